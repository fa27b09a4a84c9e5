"""An opened model with the source and the target language, and the readers that encode their texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Artifacts
from pretrain.config import PretrainConfig
from pretrain.model.language_model import LanguageModel
from probes.models.names import NATURAL, SHOWN, derived_numbers, named_language, requested_language
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import Language, bind_language
from synthlang.vocabularies import LanguageTokenizer, Specials
from synthlang.vocabulary import Encoded
from synthlang.wording import first_few

ROWS, TOKENS = 256, 8192
"""Maximum number of rows and maximum number of tokens, with padding, in a batch for prediction."""
Role = Literal["source", "target"]


@dataclass(frozen=True)
class Reader:
    """Encoder of texts of one language as token ids.

    Attributes:
        language: The language of the texts.
        tokenizer: The tokenizer of the language.
        number: The number of the language in the model.
        specials: Ids of the special tokens.
        role: Role of the language in the transfer: source or target.
        bert: True if a pair of texts is ``<s> a </s> b </s>`` with segments 0 and 1, as BERT has them. Otherwise it is
            ``<s> a </s> </s> b </s>``.
    """

    language: Language
    tokenizer: LanguageTokenizer
    number: int
    specials: Specials
    role: Role
    bert: bool = False

    def encode(self, corpus: Corpus) -> Encoded:
        """Return the token ids of a corpus.

        Raises:
            InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
        """
        if self.language.on_tokens and self.tokenizer.subwords is None:
            tokens = "work on tokens of another tokenizer than that of the model"
            reason = f"the transforms of the language {self.language.name} {tokens}"
            hint = "pretrain a run with this language, or remove unit: token from its transforms"
            raise InputError(reason, hint=hint, code="conflict")
        return self.tokenizer.encode(corpus)


@dataclass(frozen=True)
class Pretrained:
    """A model and the two languages of a transfer or a probe.

    Attributes:
        model: The model that reads the source language.
        target_model: The model that reads the target language. It is ``model`` itself or a second model.
        source: The reader of the source language.
        target: The reader of the target language. The language may still have to be bound.
        name: Name of the model, or of both, in results.
        fingerprint: Fingerprint of the weights and the tokenizers.
        text: Spec of the pretraining text, in which derived languages have sentence pairs, or None if it is not known.
        natural: True if the target language has sentences of its own and is not derived from the source language.
        run: Settings and data of the pretraining run of the model, or of the run from which the model was adjusted or
            fine-tuned. None stands for a model without such a run.
        original: Name of the model f⁰ of continual learning, which is the model before its adjustment. None means that
            f⁰ is the model itself.
        checkpoint: Name of the model. It is None for a pretraining run, and for an adjusted or fine-tuned model that
            has the languages of its run.
        numbers: The number of each language, by name, in an XLM with language embeddings. Other models have none.
    """

    model: LanguageModel
    target_model: LanguageModel
    source: Reader
    target: Reader
    name: str
    fingerprint: str
    text: str | None
    natural: bool = False
    run: tuple[PretrainConfig, Artifacts] | None = None
    original: str | None = None
    checkpoint: str | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """Length in tokens of the longest row that both models read."""
        return min(self.model.embeddings.length, self.target_model.embeddings.length)

    @property
    def has_own_parts(self) -> bool:
        """True if the model has weights, or an embedding, for each of its languages."""
        return bool(self.model.language_specific()) or self.model.embeddings.languages is not None

    @property
    def notes(self) -> list[str]:
        """Notes on the results, such as a model that was not pretrained on the target language."""
        same = self.target.language.fingerprint == self.source.language.fingerprint
        if self.run is None or self.model is not self.target_model or self.target.number != 0 or same:
            return []
        names = ", ".join(language.name for language in self.run[0].all_languages)
        return [f"the model was not pretrained on {self.language_name('target')}, only on {names}"]

    def reader_of(self, language: str, natural: bool, remedy: str = NATURAL) -> Reader:
        """Return the reader of a further language, given by its name or spec, in the model of the target language.

        ``natural`` is True if the language is natural, with sentences of its own. ``remedy`` is the hint for a natural
        language without them.

        Raises:
            InputError: ``language`` is unknown: the run does not have the language, the spec is malformed, or the
                model has no embedding of the language. The error is also raised if the model has a tokenizer for each
                language, and the tokenizer of this language was not loaded.
        """
        if self.run is not None:
            number, found = find_language(*self.run, language, natural, remedy)
            tokenizer = self.run[1].languages[number].tokenizer
            number = min(number, self.target_model.language_count - 1)  # an adjusted model has no language numbers
            return replace(self.target, language=found, tokenizer=tokenizer, number=number)
        if self.source.tokenizer.fingerprint != self.target.tokenizer.fingerprint:
            problem = "dev sets of further languages are not supported for a model with a tokenizer for each language"
            hint = "remove this entry from dev_also"
            raise InputError(f"{problem} ({self.name})", hint=hint, code="unsupported")
        found = named_language(language, natural, remedy)
        return replace(self.target, language=found, number=number_of(self.numbers, found.name, natural, remedy))

    def language_name(self, role: Role) -> str:
        """Return the name of a language in results.

        If both languages have the same name, as two natural languages do, the name of the tokenizer is returned.
        """
        reader = self.source if role == "source" else self.target
        alike = self.source.language.name == self.target.language.name
        return reader.tokenizer.name if alike else reader.language.name


def find_language(
    config: PretrainConfig, artifacts: Artifacts, wanted: str | None, natural: bool, remedy: str = NATURAL
) -> tuple[int, Language]:
    """Return the target language of a transfer and its number in the model.

    A derived language that the run does not have is bound to the source text, and gets the number of the source
    language.

    Args:
        config: Settings of the run.
        artifacts: The data of the run.
        wanted: Name or spec of the language (default: the first derived language of the run).
        natural: True if the language is natural, with sentences of its own.
        remedy: Hint for a natural language without sentences of its own.

    Raises:
        InputError: There is no such language (see `requested_language`), or it cannot be bound to the source text.
    """
    known = artifacts.languages
    found = requested_language(config, wanted, natural, remedy)
    if isinstance(found, int):
        return found, known[found].language
    try:
        language = bind_language(found, known[0].source, name=known[0].spec)
    except InputError as error:
        hint = "choose a language that can be derived from the pretraining text, or pretrain a run with this language"
        raise InputError(error.reason, error.path, keys="language", hint=hint, code=error.code) from error
    same = [n for n in derived_numbers(config).values() if known[n].language.fingerprint == language.fingerprint]
    return (same[0], known[same[0]].language) if same else (0, language)


def number_of(numbers: Mapping[str, int], language: str, natural: bool, remedy: str = NATURAL) -> int:
    """Return the number of a language in a model, or 0 if the model does not number languages.

    ``natural`` is True if the language has sentences of its own, and ``remedy`` is the hint if it should have them.

    Raises:
        InputError: The model has language embeddings, but none for this language.
    """
    if numbers and language not in numbers:
        reason = f"the model has no embedding of the language {language!r}"
        hint = f"choose from {first_few(list(numbers), SHOWN)}" + ("" if natural else f"; {remedy}")
        raise InputError(reason, keys="language", hint=hint, code="unknown")
    return numbers.get(language, 0)


def bounded_batches(lengths: NDArray[np.int64], rows: int = ROWS, tokens: int = TOKENS) -> list[NDArray[np.int64]]:
    """Divide rows into batches of similar length, longest rows first.

    Args:
        lengths: [n] Length of each row in tokens.
        rows: Maximum number of rows in a batch.
        tokens: Maximum number of tokens in a batch, with padding. A longer row forms a batch of its own.

    Returns:
        The row numbers of each batch, int64. Each row is in exactly one batch.
    """
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    batches, start = [], 0
    while start < len(order):
        count = max(1, min(rows, tokens // max(int(lengths[order[start]]), 1)))
        batches.append(order[start : start + count])
        start += count
    return batches
