"""Sentence pairs with word alignments: settings and readers.

Languages derived from one source language are aligned by construction: two words are aligned if they have the same
source word (``Rewrite.source_index``). Inserted words are not aligned.
"""

from __future__ import annotations

import hashlib
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
from synthlang.language import PARENT, NamedLanguage, bind_language, checked_source
from synthlang.parallel.aligners import (
    FORWARD,
    REVERSE,
    Method,
    Program,
    ready_alignment,
    ready_store,
    stored_alignment,
    symmetrise,
)
from synthlang.parallel.links import Links, check_pharaoh, check_sentences, concatenate_links, read_pharaoh
from synthlang.parallel.text import (
    Cutter,
    ParallelText,
    Splitter,
    check_lines,
    in_subwords,
    read_joint,
    read_parallel,
    text_fingerprint,
)
from synthlang.progress import Say, unheard
from synthlang.references import OmitDefaultFromHash, SourceSpec, UserFile
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources import open_source
from synthlang.sources.base import check_split
from synthlang.store import Store
from synthlang.vocabulary import encode_corpus
from synthlang.wording import enumerated


class FileLinks(StrictModel):
    """Word alignments from a Pharaoh file, or from a file for each direction, which are symmetrised."""

    kind: Literal["file"] = "file"
    """Word alignments from a file."""
    path: UserFile
    """The Pharaoh file, or the file of the forward direction."""
    reverse: UserFile | None = None
    """The Pharaoh file of the reverse direction, also as left-right pairs."""
    first: Literal[0, 1] = 0
    """Number of the first word: 0 or 1."""
    possible: bool = False
    """Also use possible alignments (``ipj``)."""
    symmetrise: Method = "intersection"
    """Method to join the two directions."""


class AlignerLinks(StrictModel):
    """Word alignments by an external program, which runs once in both directions."""

    kind: Literal["aligner"] = "aligner"
    """Word alignments by an aligner."""
    program: Program = "eflomal"
    """The aligner."""
    symmetrise: Method = "intersection"
    """Method to join the two directions."""


class TextPair(StrictModel):
    """Parallel text: two files with one sentence per line, or one file of lines ``left ||| right``."""

    kind: Literal["text"] = "text"
    """Sentence pairs from text files."""
    left: UserFile | None = None
    """The file of the left side."""
    right: UserFile | None = None
    """The file of the right side, whose line n translates line n of ``left``."""
    joint: UserFile | None = None
    """One file with both sides, in place of ``left`` and ``right``."""
    words: Splitter = "spaces"
    """Splitting into words: at ``spaces``, or by our ``rules`` (only with an aligner)."""
    unit: Literal["word", "subword"] = "word"
    """Unit of alignment: each ``word``, or each ``subword`` of the model's tokenizer.

    With ``subword`` the aligner reads token ids, and a file of alignments counts tokens (The Impact of Cross-Lingual
    Adjustment, table 6).
    """
    links: Annotated[FileLinks | AlignerLinks, Field(discriminator="kind")] = AlignerLinks()
    """Source of the word alignments: a file or an aligner."""
    tokenizers: tuple[str, str] | None = None
    """Languages of a pretraining run whose tokenizers encode left and right."""

    @model_validator(mode="after")
    def _one_text(self) -> TextPair:
        given = (self.left is not None, self.right is not None, self.joint is not None)
        if given not in ((True, True, False), (False, False, True)):
            keys = [key for key, there in zip(("left", "right", "joint"), given, strict=True) if there]
            reason = (
                f"must have the keys left and right, or the key joint, but has {enumerated(keys) or 'none of them'}"
            )
            hint = "give two files as left and right, or one file with lines 'left ||| right' as joint"
            raise InputError(reason, hint=hint, code="conflict" if any(given) else "missing")
        if self.words == "rules" and isinstance(self.links, FileLinks):
            reason = "the splitting by rules needs an aligner, but links names a file of word alignments"
            hint = "set this key to spaces, or links to an aligner (kind: aligner)"
            raise InputError(reason, keys="words", hint=hint, code="conflict")
        return self


class DerivedPair(StrictModel):
    """Two languages of one source language, aligned by construction."""

    kind: Literal["derived"] = "derived"
    """Sentence pairs of two derived languages."""
    source: SourceSpec
    """The source of sentences."""
    split: str = "train"
    """The split of the source."""
    left: NamedLanguage
    """The derived language."""
    right: NamedLanguage = PARENT
    """The other language (default: the source language)."""
    unit: Annotated[Literal["word", "subword"], OmitDefaultFromHash()] = "word"
    """Unit of alignment: each ``word``, or each ``subword`` of the model's tokenizer.

    With ``subword``, subword i of a word is aligned with subword i of the aligned word.
    """
    tokenizers: tuple[str, str] | None = None
    """Languages of a pretraining run whose tokenizers encode left and right."""


PairConfig = Annotated[TextPair | DerivedPair, Field(discriminator="kind")]


@dataclass(frozen=True)
class LinkedText:
    """Sentence pairs with word alignments.

    Attributes:
        left: The left sentences.
        right: The right sentences, whose row n translates row n of ``left``.
        links: Word alignments of the sentence pairs.
        fingerprint: Fingerprint of the text and the alignments.
        counts: Numbers of omitted alignments, removed characters and words that are not in Unicode's form NFC, by
            reason.
        unit: Unit of the alignments. With ``subword``, the words of both sides are token ids (``in_subwords``).
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
    """Read the sentence pairs of a pair of languages.

    Args:
        config: The pair.
        tokenizers: The tokenizers of left and right, for the unit subword.
        store: The store that keeps the results of an aligner.
        say: Function that shows a message when an aligner runs.

    Raises:
        InputError: A file or the source cannot be read, or the files do not match. A language of the pair has
            transforms of tokens or cannot be bound. The aligner is not installed or fails, or no sentence pair has a
            word alignment.
        DiskError: The result of an aligner cannot be written to the store.
    """
    linked = _derived(config, tokenizers) if isinstance(config, DerivedPair) else _text(config, tokenizers, store, say)
    if not len(linked.links.left):
        if isinstance(config, DerivedPair):
            path, hint = config.source, "use languages that keep more sentences and words"
        elif isinstance(config.links, FileLinks):
            path, hint = (
                config.links.path,
                "give word alignments of this text (possible ones need links.possible: true)",
            )
        else:
            path, hint = str(_text_files(config)[0]), "use texts that translate each other"
            hint += "" if config.links.symmetrise == "union" else ", or links.symmetrise: union"
        raise InputError("no sentence pair has a word alignment", path, hint=hint, code="empty")
    return linked


def _derived(config: DerivedPair, tokenizers: tuple[Cutter, Cutter]) -> LinkedText:
    source = open_source(config.source)
    for side, language in (("left", config.left), ("right", config.right)):
        if language.on_tokens:
            reason = f"the language {language.name} has transforms with unit: token, so it has no words to align"
            raise InputError(reason, keys=side, hint="use a language without unit: token", code="conflict")
        source = checked_source(language, source, config.source)
    left, right = (bind_language(language, source, name=config.source) for language in (config.left, config.right))
    check_split(source, config.split, config.source)
    rewritten = ((batch, left.rewrite(batch), right.rewrite(batch)) for batch in source.batches(config.split))
    batches = [gold_links(*one) for one in rewritten]
    if not batches:
        hint = "name another split, or a source with sentences in this split"
        raise InputError(f"the split {config.split} has no sentence", config.source, hint=hint, code="empty")
    lefts, rights, links = zip(*batches, strict=True)
    parents = {"source": source.fingerprint, "left": left.fingerprint, "right": right.fingerprint}
    name = fingerprint("derived-pair", split=config.split, parents=parents)
    text = LinkedText(concatenate(lefts), concatenate(rights), concatenate_links(links), name, {})
    return text if config.unit == "word" else _of_subwords(text, tokenizers)


def _of_subwords(text: LinkedText, tokenizers: tuple[Cutter, Cutter]) -> LinkedText:
    """Replace words by their tokens, and align token i of a word with token i of the word that it is aligned with."""
    whole = in_subwords(ParallelText(text.left, text.right, text.fingerprint), tokenizers)
    pair, links, firsts, counts = text.links.sentence, text.links, [], []
    for cutter, corpus, column in zip(tokenizers, (text.left, text.right), (links.left, links.right), strict=True):
        starts = encode_corpus(cutter.tokenizer, corpus).word_offsets
        words = corpus.offsets[pair] + column
        firsts.append(starts[words] - starts[corpus.offsets[pair]])
        counts.append(np.diff(starts)[words])
    common = np.minimum(*counts)
    within = np.arange(common.sum()) - np.repeat(np.cumsum(common) - common, common)
    left, right = (np.repeat(first, common) + within for first in firsts)
    sure = np.ones(len(within), bool)
    linked = Links.build(np.repeat(pair, common), left, right, sure, len(text.left))
    return LinkedText(whole.left, whole.right, linked, whole.fingerprint, {}, "subword")


def _text(config: TextPair, tokenizers: tuple[Cutter, Cutter], store: Store, say: Say) -> LinkedText:
    left, *more = _text_files(config)
    text = read_parallel(left, more[0], config.words) if more else read_joint(left, config.words)
    if config.unit == "subword":
        text = in_subwords(text, tokenizers)
    if isinstance(config.links, FileLinks):
        links = _from_files(config.links, text)
    else:
        links = _from_aligner(config, config.links, text, store, say)
    links, outside = links.within(text.left.lengths, text.right.lengths)
    name = fingerprint("text-pair", text=text.fingerprint, links=_digest(links))
    counts = {**text.counts, **({"links to words that are not there": outside} if outside else {})}
    return LinkedText(text.left, text.right, links, name, counts, config.unit)


def _text_files(config: TextPair) -> list[Path]:
    return [user_path(path) for path in (config.left, config.right, config.joint) if path is not None]


def _digest(links: Links) -> str:
    """Return the fingerprint of the content of alignments."""
    columns = (links.offsets.astype("<i8"), links.left.astype("<i4"), links.right.astype("<i4"))
    return fingerprint("links", columns=[hashlib.sha256(c.tobytes()).hexdigest() for c in columns])


def _from_files(config: FileLinks, text: ParallelText) -> Links:
    found = []
    for path in _paths(config):
        links = read_pharaoh(path, config.first)
        check_sentences(path, len(links), len(text))
        found.append(links if config.possible else links.select(links.sure))
    return found[0] if len(found) == 1 else symmetrise(found[0], found[1], config.symmetrise)


def count_text(config: TextPair) -> int | None:
    """Return the number of sentence pairs of a text, or None for packed files. Only lines are counted.

    Raises:
        InputError: A file cannot be read, files have different numbers of lines, or the first lines of a file are not
            word alignments.
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
                check_sentences(path, count_lines(path), pairs)
    return pairs


def _paths(config: FileLinks) -> list[Path]:
    return [user_path(name) for name in (config.path, config.reverse) if name is not None]


def _from_aligner(config: TextPair, links: AlignerLinks, text: ParallelText, store: Store, say: Say) -> Links:
    ready = ready_alignment(_text_files(config)[0], links.program, text.fingerprint)
    folder = ready or stored_alignment(store, links.program, text, say)
    forward, reverse = (read_pharaoh(folder / file) for file in (FORWARD, REVERSE))
    return symmetrise(forward, reverse, links.symmetrise)


def has_ready_alignment(config: TextPair) -> bool:
    """Return whether the result of the aligner is ready beside the text, so that the aligner need not be installed.

    Raises:
        InputError: A file of the text cannot be read, or the record of the checksums of the result is damaged.
    """
    files = _text_files(config)
    if not isinstance(config.links, AlignerLinks) or config.unit == "subword":
        return False
    if not ready_store(files[0]).root.is_dir():
        return False
    return ready_alignment(files[0], config.links.program, text_fingerprint(files, config.words)) is not None


def gold_links(corpus: Corpus, left: Rewrite, right: Rewrite) -> tuple[Corpus, Corpus, Links]:
    """Apply two rewrites to a batch of sentences, and align output words that have the same source word.

    Args:
        corpus: The source sentences.
        left: Rewrite of ``corpus`` in the left language.
        right: Rewrite of ``corpus`` in the right language.

    Returns:
        The sentences that both rewrites kept, in both languages, and their word alignments.
    """
    everything = np.arange(len(corpus), dtype=np.int64)
    first, second = (everything if r.source_rows is None else r.source_rows for r in (left, right))
    common, of_left, of_right = np.intersect1d(first, second, assume_unique=True, return_indices=True)
    both = left.take(of_left), right.take(of_right)
    one, other = (rewrite.apply(corpus) for rewrite in both)
    # the row of each word's source word in the batch, −1 for an inserted word
    rows = [
        np.where(r.source_index == INSERTED, -1, r.source_index + np.repeat(corpus.offsets[common], np.diff(r.offsets)))
        for r in both
    ]
    a, b = _join(*rows)
    links = Links.build(one.sentence_of_word[a], one.position[a], other.position[b], np.ones(len(a), bool), len(common))
    return one, other, links


def _join(left: NDArray[np.int64], right: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the indices into ``left`` and ``right`` of all pairs of equal values ≥ 0."""
    order = np.argsort(right, kind="stable")
    low, high = (np.searchsorted(right, left, side=side, sorter=order) for side in ("left", "right"))
    counts = np.where(left < 0, 0, high - low)
    first = np.repeat(np.arange(len(left), dtype=np.int64), counts)
    within = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
    return first, order[np.repeat(low, counts) + within]
