"""Sentence pairs with links between their words: how a config names them, and reading them.

Languages derived from one source language are aligned by construction: every transform records the source word of each
word (``Rewrite.source_index``), and two words are aligned if their source word is the same. Inserted words are aligned
with none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from synthlang.config import StrictModel
from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.files import count_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, Language, NamedLanguage, bind_language
from synthlang.parallel.aligners import FORMAT, FORWARD, REVERSE, Method, Program, align, symmetrise
from synthlang.parallel.links import Links, check_pharaoh, concatenate_links, read_pharaoh
from synthlang.parallel.text import Cutter, ParallelText, Splitter, check_lines, in_subwords, read_joint, read_parallel
from synthlang.progress import Say, unheard
from synthlang.references import SourceSpec, UserFile
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split
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
    words: Splitter = "spaces"
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
    left: NamedLanguage
    right: NamedLanguage = PARENT
    tokenizers: tuple[str, str] | None = None


PairConfig = Annotated[TextPair | DerivedPair, Field(discriminator="kind")]


@dataclass(frozen=True)
class LinkedText:
    """Sentence pairs with links; ``counts`` says what was left out so far, by reason.

    With ``unit`` subword the words of both sides are token ids (``in_subwords``).
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
    for language in (config.left, config.right):
        if language.on_tokens:
            raise InputError(f"language {language.name}: its transforms with unit: token leave no words to align")
    left, right = bind_language(config.left, source), bind_language(config.right, source)
    batches = [*gold_batches(source, config.split, left, right)]
    if not batches:
        raise InputError(f"{config.source} has no sentence in its split {config.split}: there is no link")
    lefts, rights, links = zip(*batches, strict=True)
    parents = {"source": source.fingerprint, "left": left.fingerprint, "right": right.fingerprint}
    name = fingerprint("derived-pair", split=config.split, parents=parents)
    return LinkedText(concatenate(lefts), concatenate(rights), concatenate_links(links), name, {})


def _text(config: TextPair, tokenizers: tuple[Cutter, Cutter], store: Store, say: Say) -> LinkedText:
    left, *more = _text_files(config)
    text = read_parallel(left, more[0], config.words) if more else read_joint(left, config.words)
    if config.unit == "subword":
        text = in_subwords(text, tokenizers)
    if isinstance(config.links, FileLinks):
        links = _from_files(config.links, text)
    else:
        links = _from_aligner(config.links, text, store, say)
    links, outside = links.within(text.left.lengths, text.right.lengths)
    name = fingerprint("text-pair", text=text.fingerprint, links=_digest(links))
    counts = {"links to words that are not there": outside} if outside else {}
    return LinkedText(text.left, text.right, links, name, counts, config.unit)


def _text_files(config: TextPair) -> list[Path]:
    """Left and right, or the joint file."""
    return [user_path(path) for path in (config.left, config.right, config.joint) if path is not None]


def _digest(links: Links) -> str:
    """Of the links themselves: two files or programs that say the same are the same."""
    columns = (links.offsets.astype("<i8"), links.left.astype("<i4"), links.right.astype("<i4"))
    return fingerprint("links", columns=[hashlib.sha256(c.tobytes()).hexdigest() for c in columns])


def _from_files(config: FileLinks, text: ParallelText) -> Links:
    found = []
    for path in _paths(config):
        links = read_pharaoh(path, config.first)
        _check_lines(path, len(links), len(text))
        found.append(links if config.possible else links.select(links.sure))
    return found[0] if len(found) == 1 else symmetrise(found[0], found[1], config.symmetrise)


def count_text(config: TextPair) -> int | None:
    """How many sentence pairs a text has, as far as lines tell; None for packed files.

    Raises InputError for files of different numbers of lines, and for a file whose first lines are no links.
    """
    left, *more = files = _text_files(config)
    pairs = None if any(path.suffix == ".gz" for path in files) else count_lines(left)
    if pairs is not None:
        for right in more:
            check_lines(left, pairs, right, count_lines(right))
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


def gold_batches(source: Source, split: str, left: Language, right: Language) -> Iterator[tuple[Corpus, Corpus, Links]]:
    """The sentences of a split in two (bound) languages, batch by batch, with their links.

    A sentence that either language leaves out is left out; the ids say which are there.
    """
    check_split(source, split, "the source")
    for batch in source.batches(split):
        yield gold_links(batch, left.rewrite(batch), right.rewrite(batch))


def gold_links(corpus: Corpus, left: Rewrite, right: Rewrite) -> tuple[Corpus, Corpus, Links]:
    """Two rewrites of one batch: the sentences that both kept, in both languages, and their links."""
    everything = np.arange(len(corpus), dtype=np.int64)
    first, second = (everything if r.source_rows is None else r.source_rows for r in (left, right))
    common, of_left, of_right = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    both = left.take(of_left), right.take(of_right)
    one, other = (rewrite.apply(corpus) for rewrite in both)
    # the row of each word's parent word in the batch, −1 for an inserted one
    rows = [
        np.where(r.source_index == INSERTED, -1, r.source_index + np.repeat(corpus.offsets[common], np.diff(r.offsets)))
        for r in both
    ]
    a, b = _join(*rows)
    links = Links.build(one.sentence_of_word[a], one.position[a], other.position[b], np.ones(len(a), bool), len(common))
    return one, other, links


def _join(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Indices of all pairs of equal values that are ≥ 0."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right, left, side=side, sorter=order) for side in ("left", "right"))
    counts = np.where(left < 0, 0, high - low)
    first = np.repeat(np.arange(len(left), dtype=np.int64), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(low, counts) + within]
