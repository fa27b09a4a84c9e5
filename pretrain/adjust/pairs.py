"""Sentence pairs with links between their words: how a config names them, and reading them."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from pretrain.adjust.subwords import Cutter, in_subwords
from pretrain.config.languages import named_language
from synthlang.alignments import (
    Links,
    Method,
    check_pharaoh,
    count_pairs,
    gold_batches,
    read_joint,
    read_parallel,
    read_pharaoh,
    symmetrise,
)
from synthlang.alignments.aligner import FORMAT, FORWARD, REVERSE, Program, align
from synthlang.alignments.links import concatenate_links
from synthlang.alignments.parallel import ParallelText, Words
from synthlang.config import StrictModel
from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.files import count_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, Language, bind_language
from synthlang.progress import Say, unheard
from synthlang.references import SourceSpec, UserFile
from synthlang.sources import open_source
from synthlang.store import Store


class FileLinks(StrictModel):
    """Links from a Pharaoh file, or from two (one of each direction), which are symmetrised.

    first      the number of the first word: 0 or 1
    possible   also take possible links (``ipj``)
    """

    kind: Literal["file"] = "file"
    path: UserFile
    reverse: UserFile | None = None
    first: Literal[0, 1] = 0
    possible: bool = False
    symmetrise: Method = "intersection"


class AlignerLinks(StrictModel):
    """Links by an external program, which runs once in both directions."""

    kind: Literal["aligner"] = "aligner"
    program: Program = "eflomal"
    symmetrise: Method = "intersection"


class TextPair(StrictModel):
    """Parallel text: two files with a sentence a line, or one of lines ``left ||| right``.

    words       ``spaces`` separate words, or our ``rules`` find them (only where an aligner makes the links)
    unit        what links are between: each ``word``, or each ``subword`` as the model's tokenizer cuts words (Impact,
                table 6, "subword alignment"); the aligner then reads token ids, and a file of links counts tokens
    tokenizers  of a run of ours: the languages whose tokenizers cut left and right
    """

    kind: Literal["text"] = "text"
    left: UserFile | None = None
    right: UserFile | None = None
    joint: UserFile | None = None
    words: Words = "spaces"
    unit: Literal["word", "subword"] = "word"
    links: Annotated[FileLinks | AlignerLinks, Field(discriminator="kind")] = AlignerLinks()
    tokenizers: tuple[str, str] | None = None

    @model_validator(mode="after")
    def _one_text(self) -> TextPair:
        given = (self.left is not None, self.right is not None, self.joint is not None)
        if given not in ((True, True, False), (False, False, True)):
            raise ValueError("give left and right, two files, or joint, one file of lines 'left ||| right'")
        if self.words == "rules" and isinstance(self.links, FileLinks):
            raise ValueError("words: rules would find other words than those a file of links counts; use words: spaces")
        return self


class DerivedPair(StrictModel):
    """Two languages of one parent, aligned by construction: ``left``, a derived one, and ``right`` (the parent)."""

    kind: Literal["derived"] = "derived"
    source: SourceSpec
    split: str = "train"
    left: Language
    right: Language = PARENT
    tokenizers: tuple[str, str] | None = None

    @field_validator("left", "right", mode="before")
    @classmethod
    def _named(cls, value: Any) -> Any:
        return named_language(value)


PairConfig = Annotated[TextPair | DerivedPair, Field(discriminator="kind")]


@dataclass(frozen=True)
class LinkedText:
    """Sentence pairs with links; ``counts`` says what was left out so far, by reason.

    With ``unit`` subword the words of both sides are token ids (pretrain.adjust.subwords).
    """

    left: Corpus
    right: Corpus
    links: Links
    fingerprint: str
    counts: dict[str, int]
    unit: Literal["word", "subword"] = "word"


def read_pair(
    config: TextPair | DerivedPair, tokenizers: tuple[Cutter, Cutter], store: Store, say: Say = unheard
) -> LinkedText:
    """The sentence pairs of a pair of languages; what an aligner finds is kept in ``store``, and ``say`` hears of it.

    ``tokenizers`` cut left and right where subwords are linked. Raises InputError for files that do not fit each other
    and for a pair without any link.
    """
    linked = _derived(config) if isinstance(config, DerivedPair) else _text(config, tokenizers, store, say)
    if not len(linked.links.left):
        raise InputError("there is no link between the words of any sentence pair")
    return linked


def _derived(config: DerivedPair) -> LinkedText:
    source = open_source(config.source)
    left, right = (_bound(language, config.source) for language in (config.left, config.right))
    parts = list(gold_batches(source, config.split, left, right))
    parents = {"source": source.fingerprint, "left": left.fingerprint, "right": right.fingerprint}
    corpora = [concatenate([part[side] for part in parts]) for side in (0, 1)]  # type: ignore[misc]
    links = concatenate_links([part[2] for part in parts])
    return LinkedText(
        corpora[0], corpora[1], links, fingerprint("derived-pair", split=config.split, parents=parents), {}
    )


def _bound(language: Language, spec: str) -> Language:
    if language.on_tokens:
        raise InputError(f"language {language.name}: its transforms with unit: token leave no words to align")
    return bind_language(language, open_source(spec))


def _text(config: TextPair, tokenizers: tuple[Cutter, Cutter], store: Store, say: Say) -> LinkedText:
    if config.joint is not None:
        text = read_joint(user_path(config.joint), config.words)
    else:
        assert config.left is not None and config.right is not None, "the config has a text"
        text = read_parallel(user_path(config.left), user_path(config.right), config.words)
    if config.unit == "subword":
        text = in_subwords(text, tokenizers)
    if isinstance(config.links, FileLinks):
        links = _from_files(config.links, text)
    else:
        links = _from_aligner(config.links, text, store, say)
    links, outside = links.within(text.left.lengths, text.right.lengths)
    parts = {"text": text.fingerprint, "links": _digest(links)}
    counts = {"links to words that are not there": outside} if outside else {}
    return LinkedText(text.left, text.right, links, fingerprint("text-pair", **parts), counts, config.unit)


def _digest(links: Links) -> str:
    """Of the links themselves: two files or programs that say the same are the same."""
    columns = (links.offsets.astype("<i8"), links.left.astype("<i4"), links.right.astype("<i4"))
    return fingerprint("links", columns=[hashlib.sha256(c.tobytes()).hexdigest() for c in columns])


def _from_files(config: FileLinks, text: ParallelText) -> Links:
    paths = _paths(config)
    read = [read_pharaoh(path, config.first) for path in paths]
    for path, links in zip(paths, read, strict=True):
        _check_lines(path, len(links), len(text))
    kept = [links if config.possible else links.select(links.sure) for links in read]
    return kept[0] if len(kept) == 1 else symmetrise(kept[0], kept[1], config.symmetrise)


def count_text(config: TextPair) -> int | None:
    """How many sentence pairs a text has, as far as lines tell; None for packed files.

    Raises InputError for files of different numbers of lines, and for a file whose first lines are no links.
    """
    if config.joint is not None:
        joint = user_path(config.joint)
        pairs = None if joint.suffix == ".gz" else count_lines(joint)
    else:
        assert config.left is not None and config.right is not None, "the config has a text"
        pairs = count_pairs(user_path(config.left), user_path(config.right))
    if isinstance(config.links, FileLinks):
        for path in _paths(config.links):
            check_pharaoh(path, config.links.first)
            if pairs is not None:
                _check_lines(path, count_lines(path), pairs)
    return pairs


def _paths(config: FileLinks) -> list[Path]:
    return [user_path(name) for name in (config.path, config.reverse) if name is not None]


def _check_lines(path: Path, lines: int, pairs: int) -> None:
    if lines != pairs:
        raise InputError(f"has {lines} lines, but the text has {pairs} sentence pairs", path)


def _from_aligner(config: AlignerLinks, text: ParallelText, store: Store, say: Say) -> Links:
    name = fingerprint("alignment", format=FORMAT, program=config.program, text=text.fingerprint)

    def build(folder: Path) -> None:
        say(f"aligning {len(text):,} sentence pairs with {config.program}, in both directions")
        align(config.program, text.left, text.right, folder)

    folder = store.obtain("alignment", name, build)
    forward, reverse = (read_pharaoh(folder / file) for file in (FORWARD, REVERSE))
    return symmetrise(forward, reverse, config.symmetrise)
