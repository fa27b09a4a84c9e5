"""Aligned text of two languages as a model reads it: sentence pairs with word alignments, as token ids."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from probes.models.pretrained import Pretrained
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, LinkedText, PairConfig, TextPair, read_pair
from synthlang.parallel.prepare import DataConfig, PairData, prepare_pair
from synthlang.progress import Report, Say, silent
from synthlang.store import Store

CONSTRUCTED = "pretraining"
"""Name of the pair that is aligned by construction: the pretraining text and its derivation."""


@dataclass(frozen=True, eq=False)
class Aligned:
    """Sentence pairs of two languages, with the target language left and the source language right.

    Attributes:
        text: The sentences as words, with word alignments.
        data: The same sentence pairs as token ids, divided into parts for fitting and for measuring.
    """

    text: LinkedText
    data: PairData

    def linked_words(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the left [q] and right [q] words of all alignments in the sentence pairs at ``rows``.

        Words are numbered through the whole corpus of each side.
        """
        links = self.data.links.take(rows)
        sentence = rows[links.sentence]
        return self.text.left.offsets[sentence] + links.left, self.text.right.offsets[sentence] + links.right


def read_aligned(
    pairs: Mapping[str, PairConfig | None],
    config: DataConfig,
    pretrained: Pretrained,
    seed: int = 0,
    store: Store | None = None,
    report: Report = silent,
    fits: bool = True,
) -> tuple[Aligned, ...]:
    """Read sets of sentence pairs in the order of their names, with the target language left and the source right.

    Args:
        pairs: Sets of sentence pairs by name. A set that is None is left out. If no set remains, the pretraining text
            in both languages is used, which is aligned by construction.
        config: Selection of the sentence pairs.
        pretrained: The model that reads the sentence pairs.
        seed: Seed for sampling sentence pairs.
        store: Store that keeps the word alignments of an aligner (default: none, and then aligners are an error).
        report: Function that receives the progress.
        fits: True if a map is fitted on the pairs, which needs at least one pair outside the measured ones.

    Raises:
        InputError: A set cannot be read, has the key ``tokenizers`` or a name that no file can have, or needs an
            aligner although there is no store. The error is also raised if the transforms of a language work on
            tokens, ``config.length`` is longer than the model reads, nothing is aligned by construction, no word of a
            side has a token, or no sentence pair is left to fit on.
    """
    length = config.longest(pretrained.length)
    left, right = pretrained.target, pretrained.source
    for reader in (left, right):
        if reader.language.on_tokens or reader.tokenizer.subwords is not None:
            reason = f"the transforms of the language {reader.language.name} with unit: token leave no words to align"
            raise InputError(reason, keys="language", hint="use a language without unit: token", code="conflict")
    cutters, numbers = (left.tokenizer.tokenizer, right.tokenizer.tokenizer), (left.number, right.number)

    def read(name: str, pair: PairConfig) -> Aligned:
        title = f"aligned text {safe_name(name, 'name of a pair')}"
        say: Say = lambda text: report(title, 0, 1, text)  # noqa: E731
        say("")
        _check(name, pair, store)
        try:
            with tempfile.TemporaryDirectory() as nowhere:  # only an aligner, which has a store, writes anything
                text = read_pair(pair, (left.tokenizer, right.tokenizer), store or Store(Path(nowhere)), say)
            data = prepare_pair(name, text, cutters, config, length, seed, numbers, fits)
        except InputError as error:
            raise error.inside("pairs", *([name] if chosen else [])) from error
        report(title, 1, 1, f"{len(data.train):,} sentence pairs")
        return Aligned(text, data)

    chosen = {name: pair for name, pair in sorted(pairs.items()) if pair is not None}
    return tuple(read(*item) for item in (chosen or {CONSTRUCTED: _constructed(pretrained)}).items())


def _constructed(pretrained: Pretrained) -> DerivedPair:
    """Pair the pretraining text in the target language with the text in the source language."""
    target, source = pretrained.target.language, pretrained.source.language
    same = target.fingerprint == source.fingerprint
    check_constructed(target.name, pretrained.text is not None, pretrained.natural, same)
    assert pretrained.text is not None, "as was checked"
    return DerivedPair(source=pretrained.text, left=target, right=source)


def check_constructed(language: str | None, has_text: bool, natural: bool, same: bool) -> None:
    """Check that sentence pairs exist by construction, for settings that name no pairs.

    Args:
        language: Name of the target language, for the error. It may be None if the target language is derived.
        has_text: True if the pretraining text of the model is known.
        natural: True if the target language is not derived from the source language.
        same: True if the target language is the source language.

    Raises:
        InputError: No such pairs exist: the text is not known, or the target language is natural or is the source
            language.
    """
    hint = "give sentence pairs in this key"
    if not has_text:
        reason = "is required, because the pretraining text of the model is not known"
        raise InputError(reason, keys="pairs", hint=hint, code="missing")
    if natural:
        reason = f"is required, because {language} has sentences of its own, which are not derived"
        raise InputError(reason, keys="pairs", hint=hint, code="missing")
    if same:
        reason = f"is required, because {language} is the source language itself"
        raise InputError(reason, keys="pairs", hint=f"choose another language, or {hint}", code="conflict")


def _check(name: str, pair: PairConfig, store: Store | None) -> None:
    if pair.tokenizers is not None:
        reason = "has no effect, because left is read as the target language and right as the source language"
        raise InputError(reason, keys=("pairs", name, "tokenizers"), hint="remove this key", code="no_effect")
    if isinstance(pair, TextPair) and isinstance(pair.links, AlignerLinks) and store is None:
        reason = "an aligner gives different word alignments in each run, and no store is given that keeps them"
        hint = "give a store, or a file of alignments (kind: file)"
        raise InputError(reason, keys=("pairs", name, "links"), hint=hint, code="unsupported")
