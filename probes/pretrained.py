"""Models that probes and transfers read, ours or of Hugging Face; their languages, from text to ids; aligned text."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from safetensors.torch import save_file

from pretrain.artifacts import Artifacts
from pretrain.build import trained_model
from pretrain.checkpoints import disk_errors
from pretrain.config import PretrainConfig, SharingConfig
from pretrain.folder import EXPORT, export_sizes
from pretrain.hub import Base, open_base
from pretrain.model.encoder import MaskedLM
from pretrain.model.from_hf import from_hf
from pretrain.model.to_hf import to_hf
from pretrain.run import open_run
from probes.model_names import adjusted_from, asked_for, derived_numbers, is_run, model_path, no_language
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, safe_name, user_path, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, Language, bind_language, parse_language
from synthlang.parallel.pairs import AlignerLinks, DerivedPair, LinkedText, PairConfig, TextPair, read_pair
from synthlang.parallel.prepare import DataConfig, PairData, prepare_pair
from synthlang.progress import Report, Say, silent
from synthlang.store import Store
from synthlang.vocabularies import LanguageTokenizer, Specials
from synthlang.vocabularies.checkpoint import Checkpoint
from synthlang.vocabularies.xlm_tokenizer import XLM
from synthlang.vocabulary import Encoded

ROWS, TOKENS = 256, 8192  # of a batch that is only predicted
Role = Literal["source", "target"]
ENGLISH = "en"
"""The language that models with language embeddings are fine-tuned in: the source, which has no other name."""
CONSTRUCTED = "pretraining"  # name of the pair that is aligned by construction


@dataclass(frozen=True)
class Reader:
    """How texts of one language become ids.

    number    that of the language in the model
    role      whether it is the language that is trained on first (the parent) or the other one
    bert      pairs are ``<s> a </s> b </s>`` with segments 0 and 1, as BERT has them; else ``<s> a </s> </s> b </s>``
    """

    language: Language
    tokenizer: LanguageTokenizer
    number: int
    specials: Specials
    role: Role
    bert: bool = False

    def encode(self, corpus: Corpus) -> Encoded:
        """The ids of a corpus. InputError for a language of tokens that the model reads as words."""
        if self.language.on_tokens and self.tokenizer.subwords is None:
            raise InputError(
                f"the language {self.language.name} moves or changes tokens, and the model's tokenizer is not the one "
                "they are of: pretrain a run with it, or leave unit: token out"
            )
        return self.tokenizer.encode(corpus)


@dataclass(frozen=True)
class Pretrained:
    """A model and the two languages of a transfer.

    model          what reads the source language
    target_model   what reads the target: the same object, or another model (on frozen features)
    source, target their ways from texts to ids; the target's language may still have to be bound (``bind``)
    fingerprint    of the weights and the tokenizers
    text           the spec of the pretraining text that derived languages have sentence pairs in; None: not known
    natural        whether the target has sentences of its own and is not derived from the source
    run            the settings and the data of the run of ours that the model is, or that has its languages
    numbers        language → its number in an XLM with language embeddings; of other models nothing
    original       the name of f⁰ of continual learning, where that is not the model itself: what it was adjusted from
    """

    model: MaskedLM
    target_model: MaskedLM
    source: Reader
    target: Reader
    name: str
    fingerprint: str
    text: str | None
    natural: bool = False
    run: tuple[PretrainConfig, Artifacts] | None = None
    original: str | None = None
    numbers: Mapping[str, int] = field(default_factory=dict)

    @property
    def length(self) -> int:
        """The longest row that both models can read."""
        return min(self.model.embeddings.length, self.target_model.embeddings.length)

    @property
    def notes(self) -> list[str]:
        """What a reader of results has to know: that the run did not read the target, a language that is derived."""
        same = self.target.language.fingerprint == self.source.language.fingerprint
        if self.run is None or self.model is not self.target_model or self.target.number != 0 or same:
            return []
        names = ", ".join(language.name for language in self.run[0].all_languages)
        return [f"the model was not pretrained on {self.language_name('target')}, only on {names}"]

    def reader_of(self, language: str, natural: bool) -> Reader:
        """How the model that reads the target reads a further language, by its name or spec.

        InputError for a language that the run does not have, and for an adjusted run, whose others are not open.
        """
        if self.run is not None:
            number, spoken = _transferred_to(*self.run, language, natural)
            tokenizer = self.run[1].languages[number].tokenizer
            number = min(number, self.target_model.language_count - 1)  # an adjusted body knows no languages
            return replace(self.target, language=spoken, tokenizer=tokenizer, number=number)
        if self.source.tokenizer.fingerprint != self.target.tokenizer.fingerprint:
            raise InputError(f"{self.name} has a tokenizer for each language, and that of {language} is not open")
        spoken = Language(name=language) if natural else parse_language(language)
        return replace(self.target, language=spoken, number=_number(self.numbers, spoken.name))

    def language_name(self, role: Role) -> str:
        """What a language is called; two natural ones are as their run calls them, for both have no transforms."""
        reader = self.source if role == "source" else self.target
        alike = self.source.language.name == self.target.language.name
        return reader.tokenizer.name if alike else reader.language.name


def open_pretrained(
    model: str,
    language: str | None,
    natural: bool = False,
    target_model: str | None = None,
    configs: Mapping[str, PretrainConfig] = MappingProxyType({}),
) -> Pretrained:
    """Open a run, a folder or a name of Hugging Face, and the language to transfer to.

    language   for a run the name or the spec of one of its languages (default: the first derived one); a spec of
               another one is a language that the model never saw, read as the parent is. For other models any spec;
               for natural ones any name
    configs    model → the settings that a run is opened with, where they are not those of its config.yaml
    """
    path = model_path(model)
    if is_run(path):
        config, artifacts = open_run(path, configs.get(model))
        record = read_json(path / "run.json")["fingerprint"]
        # with another model, the other language is for that one to know
        asked = language if target_model is None else artifacts.languages[0].name
        trained = trained_model(path, config, artifacts)
        try:
            opened = of_run(config, artifacts, trained, record, asked, natural)
        except InputError as error:
            raise InputError(str(error), path) from error  # with two models it would not be known whose language it is
        opened = replace(opened, name=path.name)
    else:
        opened = _of_checkpoint(model, language, natural)
    if target_model is None:
        return opened
    other = open_pretrained(target_model, language, natural, configs=configs)
    target = replace(other.target, role="target")
    both = fingerprint("models", source=opened.fingerprint, target=other.fingerprint)
    name = f"{opened.name} and {other.name}"
    return replace(opened, target_model=other.target_model, target=target, name=name, fingerprint=both)


def of_run(
    config: PretrainConfig,
    artifacts: Artifacts,
    model: MaskedLM,
    record: str,
    language: str | None = None,
    natural: bool = False,
) -> Pretrained:
    """A run of ours, of which ``record`` is the fingerprint."""
    parent = artifacts.languages[0]
    number, spoken = _transferred_to(config, artifacts, language, natural)
    specials, bert = artifacts.id_space.specials, model.architecture == "bert"
    source = Reader(parent.language, parent.tokenizer, 0, specials, "source", bert)
    target = Reader(spoken, artifacts.languages[number].tokenizer, number, specials, "target", bert)
    return Pretrained(model, model, source, target, config.label, record, parent.spec, natural, (config, artifacts))


def _transferred_to(
    config: PretrainConfig, artifacts: Artifacts, wanted: str | None, natural: bool
) -> tuple[int, Language]:
    """The number of the language to transfer to, and what it is."""
    known = artifacts.languages
    asked = asked_for(config, wanted, natural)
    if isinstance(asked, int):
        return asked, known[asked].language
    try:
        language = bind_language(asked, known[0].source)
    except InputError as error:
        raise no_language(str(wanted), [one.name for one in known], error) from error
    same = [n for n in derived_numbers(config).values() if known[n].language.fingerprint == language.fingerprint]
    return (same[0], known[same[0]].language) if same else (0, language)


def _of_checkpoint(model: str, language: str | None, natural: bool) -> Pretrained:
    """A model of Hugging Face, or an adjusted run of ours, whose languages have tokenizers of their own."""
    if language is None:
        if not user_path(model).exists():
            raise InputError(f"there is no folder {model}; of a model of Hugging Face name a language with --language")
        if (user_path(model) / "study.json").is_file():
            raise InputError(f"{model} is a study: name a run of it, as {model}/stages/pretrain-…")
        raise InputError(f"{model} is no pretraining run, so its languages are not known: name one with --language")
    base = open_base(model)
    spoken = Language(name=language) if natural else parse_language(language)
    folders: dict[Role, str] = {"source": "", "target": ""}
    if base.is_run:
        folders = {"source": PARENT.name, "target": spoken.name}
        for folder in folders.values():
            if folder not in base.folders:
                raise InputError(f"{model} has no language {folder!r}; there is {', '.join(base.folders)}")
    checkpoints = {role: base.checkpoints[folder] for role, folder in folders.items()}
    numbers = {"source": _number(base.language_numbers, ENGLISH), "target": _number(base.language_numbers, spoken.name)}
    body = body_of(base, checkpoints.values())
    bert = body.architecture in ("bert", XLM)  # XLM's rows of two texts are as BERT's, and it knows no token types
    source, target = (
        Reader(read, tokenizer_of(role, checkpoint), numbers[role], base.specials, role, bert)
        for (role, checkpoint), read in zip(checkpoints.items(), (PARENT, spoken), strict=True)
    )
    name = Path(model).name or model
    opened = Pretrained(body, body, source, target, name, fingerprint("model", **base.parents()), None, natural)
    return replace(opened, original=adjusted_from(model), numbers=base.language_numbers)


def _number(numbers: Mapping[str, int], language: str) -> int:
    """That of a language in a model, 0 in one that numbers none; InputError for one that it does not know."""
    if numbers and language not in numbers:
        raise InputError(f"the model has no embedding of the language {language!r}; it has {', '.join(numbers)}")
    return numbers.get(language, 0)


def body_of(base: Base, checkpoints: Iterable[Checkpoint], languages: int = 1) -> MaskedLM:
    """The body of a model, which reads the ids of the ``checkpoints`` and knows so many languages, all alike, or those
    that it has embeddings of."""
    checkpoints, numbered = list(checkpoints), len(base.language_numbers)
    ids = [np.unique(np.concatenate([_ids(checkpoint) for checkpoint in checkpoints]))] * (numbered or languages)
    rows = max(checkpoint.rows for checkpoint in checkpoints)
    return from_hf(str(base.folder), SharingConfig(), ids=ids, size=rows, language_ids=numbered > 0, seed=0)


def open_original(pretrained: Pretrained) -> Base | None:
    """f⁰ of continual learning, found and not loaded; None where it is the model itself.

    InputError for a model that is not there, and for one that cuts words into other tokens.
    """
    if pretrained.original is None:
        return None
    try:
        base = open_base(pretrained.original)
    except InputError as error:
        raise InputError(f"continual.before: f⁰, the model before it was adjusted: {error}") from error
    known = [checkpoint.tokenizer.get_vocab() for checkpoint in base.checkpoints.values()]
    for reader in (pretrained.source, pretrained.target):
        if reader.tokenizer.tokenizer.get_vocab() not in known:
            raise InputError(
                f"continual.before: {pretrained.original} has another vocabulary than {pretrained.name}, so f⁰ has no "
                "vectors of the same words; name another model"
            )
    return base


def load_original(base: Base, pretrained: Pretrained) -> MaskedLM:
    """The body of f⁰; InputError for one of another size than the model's."""
    body = body_of(base, base.checkpoints.values(), pretrained.model.language_count)
    sizes = [(one.shape.layers, one.shape.hidden) for one in (body, pretrained.model)]
    if sizes[0] != sizes[1]:
        raise InputError(f"continual.before: f⁰ has {sizes[0]} layers and units, {pretrained.name} has {sizes[1]}")
    return body


def tokenizer_of(name: str, checkpoint: Checkpoint) -> LanguageTokenizer:
    """The tokenizer of a checkpoint as that of a language."""
    ids, settings, specials = _ids(checkpoint), checkpoint.settings, checkpoint.specials
    return LanguageTokenizer(name, checkpoint.tokenizer, ids, settings=settings, specials=specials)


def _ids(checkpoint: Checkpoint) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    vocabulary = checkpoint.tokenizer.get_vocab(with_added_tokens=True)
    return np.unique(np.fromiter(vocabulary.values(), np.int64, len(vocabulary)))


Languages = Mapping[str, tuple[LanguageTokenizer, int]]
"""Language → its tokenizer, and its number in the body."""


def keep_languages(body: MaskedLM, languages: Languages, folder: Path, record: Mapping[str, Any]) -> None:
    """Write ``folder/export/<language>``, or ``folder/export`` for "", and then the record as ``folder/done.json``.

    Each is a plain model with its tokenizer; the head of a task is left out.
    """
    for name, (tokenizer, number) in languages.items():
        settings, weights = to_hf(body, number)
        with atomic_folder(folder / "export" / name, replace=True) as new:
            settings.save_pretrained(new)
            with disk_errors():
                save_file(weights, new / "model.safetensors", metadata={"format": "pt"})
            tokenizer.save(new)
    write_json(folder / "done.json", {**record, EXPORT: export_sizes(folder)})


@dataclass(frozen=True, eq=False)
class Aligned:
    """A pair of languages: its words with links, and the same as ids, ready for batches."""

    text: LinkedText
    data: PairData


def read_aligned(
    pairs: Mapping[str, PairConfig | None],
    config: DataConfig,
    pretrained: Pretrained,
    seed: int = 0,
    store: Store | None = None,
    report: Report = silent,
    fits: bool = True,
) -> tuple[Aligned, ...]:
    """The pairs of languages in order of their names, read as the model reads target (left) and source (right).

    Without ``pairs`` they are the pretraining text in both languages, aligned by construction. ``store`` keeps what an
    aligner finds. Raises InputError for a pair that cannot be read, where nothing is aligned by construction, and, if
    something ``fits``, where no sentence pair is left for that.
    """
    chosen = {name: pair for name, pair in sorted(pairs.items()) if pair is not None}
    length = config.longest(pretrained.length)
    readers = pretrained.target, pretrained.source
    for reader in readers:
        if reader.language.on_tokens or reader.tokenizer.subwords is not None:
            raise InputError(
                f"language {reader.language.name}: its transforms with unit: token leave no words to align"
            )
    left, right = readers
    found = []
    for name, pair in (chosen or {CONSTRUCTED: _constructed(pretrained)}).items():
        title = f"aligned text {safe_name(name, 'name of a pair')}"
        say: Say = lambda text, title=title: report(title, 0, 1, text)  # type: ignore[misc]  # noqa: E731
        say("")
        _check(name, pair, store)
        with tempfile.TemporaryDirectory() as nowhere:  # only an aligner, which has a store, writes anything
            text = read_pair(pair, (left.tokenizer, right.tokenizer), store or Store(Path(nowhere)), say)
        cutters, numbers = (left.tokenizer.tokenizer, right.tokenizer.tokenizer), (left.number, right.number)
        data = prepare_pair(name, text, cutters, config, length, seed, numbers, fits)
        report(title, 1, 1, f"{len(data.train):,} sentence pairs")
        found.append(Aligned(text, data))
    return tuple(found)


def _constructed(pretrained: Pretrained) -> DerivedPair:
    """The pretraining text in the target language and in the source's."""
    target, source = pretrained.target.language, pretrained.source.language
    if pretrained.text is None:
        raise InputError(f"{pretrained.name}: its pretraining text is not known, so name sentence pairs (pairs)")
    if pretrained.natural:
        raise InputError(f"{target.name} is not derived from the source language, so name sentence pairs (pairs)")
    if target.fingerprint == source.fingerprint:
        raise InputError(f"{target.name} is the source language itself: there is nothing to align; name pairs")
    return DerivedPair(source=pretrained.text, left=target, right=source)


def _check(name: str, pair: TextPair | DerivedPair, store: Store | None) -> None:
    if pair.tokenizers is not None:
        raise InputError(
            f"pairs.{name}.tokenizers: leave it out; left is read as the target language, right as the source"
        )
    if isinstance(pair, TextPair) and isinstance(pair.links, AlignerLinks) and store is None:
        raise InputError(
            f"pairs.{name}.links: an aligner finds other links each time and there is no place to keep them; "
            "give a file of links (kind: file)"
        )


def bounded_batches(lengths: NDArray[np.int64], rows: int = ROWS, tokens: int = TOKENS) -> list[NDArray[np.int64]]:
    """Each row once, the longest first: at most ``rows`` rows and, padded, ``tokens`` tokens a batch (or one row)."""
    order = np.argsort(-lengths, kind="stable").astype(np.int64)
    batches, start = [], 0
    while start < len(order):
        count = max(1, min(rows, tokens // max(int(lengths[order[start]]), 1)))
        batches.append(order[start : start + count])
        start += count
    return batches
