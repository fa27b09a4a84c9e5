"""Linked words of a text that several models read alike, and unrelated pairs among them.

All models read the same links of the same sentences, in the same order. The word x_i belongs to y_i, and is paired with
a word y_j of another sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.probe_input import ProbeInput
from probes.models.aligned import Aligned
from probes.models.names import is_run
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained, Reader
from probes.states import LanguageSide, link_batches
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.parallel.pairs import LinkedText
from synthlang.parallel.prepare import SENTENCE_TOKENS, PairData, encode
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation, uniform

BLOCK = 2048
"""Links among which unrelated words are drawn; at most twice as many are held."""
ROWS = 256  # pairs whose float64 copies are held at once


@dataclass(frozen=True)
class PairReaders:
    """The readers of both languages (left: target) and the longest input of a model, without its weights."""

    target: Reader
    source: Reader
    length: int

    @staticmethod
    def of(pretrained: Pretrained) -> PairReaders:
        """Return the readers of a model."""
        return PairReaders(pretrained.target, pretrained.source, pretrained.length)


@dataclass(frozen=True, eq=False)
class SharedText:
    """Words and links that every model reads, and the ids of each model.

    Attributes:
        text: The words and links.
        rows: [n] the sentence pairs that are measured on.
        data: The ids by the name of a model.
        counts: What some model does not read.
    """

    text: LinkedText
    rows: NDArray[np.int64]
    data: Mapping[str, PairData]
    counts: Mapping[str, int]

    def aligned(self, name: str) -> Aligned:
        """Return the text as a model reads it."""
        return Aligned(self.text, self.data[name])


def open_other(model: str, given: ProbeInput, name: str) -> Pretrained:
    """Another model that reads the languages of ``given``; InputError if its language is another one.

    The words are those of ``given``, so of a model that is no run of ours only the tokenizers have to fit.
    """
    main, config = given.pretrained, given.config
    language = main.target.language
    try:
        if is_run(user_path(model)):
            opened = open_pretrained(model, config.language or language.name, config.natural)
        else:
            opened = open_pretrained(model, language.name, natural=True)
    except InputError as error:
        raise error.inside("distances", "before", name) from error
    derived = opened.text is not None and main.text is not None and not config.natural
    if derived and opened.target.language.fingerprint != language.fingerprint:
        told = f"its language {language.name} is another one than that of {main.name}"
        raise InputError(told, keys=("distances", "before", name), code="conflict")
    return opened


def shared_text(given: ProbeInput, models: Mapping[str, PairReaders]) -> SharedText:
    """Return the measured sentence pairs of ``given`` as all of ``models`` can read them.

    A link stays if every tokenizer has a token for both words, a sentence pair if it is short enough for all models.

    Raises:
        InputError: No pair is left, tokens are words, or subwords are linked that the models cut differently.
    """
    rows, whole = given.measured, given.aligned.text
    links = given.data.links.take(rows)
    text = replace(whole, left=whole.left.take(rows), right=whole.right.take(rows), links=links)
    readers = {name: ((one.target, text.left), (one.source, text.right)) for name, one in models.items()}
    cuts = {tuple(reader.tokenizer.fingerprint for reader, _ in sides) for sides in readers.values()}
    if text.unit == "subword" and len(cuts) > 1:
        told = "subwords are linked, and the models cut words into different ones"
        raise InputError(told, keys="distances.before", hint="link words", code="conflict")
    there, fits, encoded = np.ones(len(links.left), bool), np.ones(len(rows), bool), {}
    for name, sides in readers.items():
        for reader, _ in sides:
            if reader.tokenizer.subwords is not None:
                told = f"the language {reader.language.name} of {name} has tokens as words, which leave none to link"
                raise InputError(told, keys="distances", code="unsupported")
        encoded[name] = [encode(one.tokenizer.tokenizer, corpus, text.unit, one.number) for one, corpus in sides]
        longest = min(given.config.data.length or models[name].length, models[name].length)
        for side, words in zip(encoded[name], (links.left, links.right), strict=True):
            there &= np.diff(side.word_offsets)[side.offsets[links.sentence] + words] > 0
            fits &= np.diff(side.bounds) + SENTENCE_TOKENS <= longest
    kept = links.select(there)
    usable = fits & (np.diff(kept.offsets) > 0)
    if not usable.any():
        told = "there is no linked word that all of the models read in one of the sentences"
        raise InputError(told, keys="distances.before", hint="raise data.dev, or name other models", code="empty")
    found = np.flatnonzero(usable).astype(np.int64)
    counts = {"links to words without a subword in some model": int((~there).sum())}
    counts["sentence pairs that some model cannot read or that have no link left"] = int((~usable).sum())
    data = {name: PairData(given.data.name, one[0], one[1], kept, found, found, {}) for name, one in encoded.items()}
    return SharedText(replace(text, links=kept), found, data, {reason: n for reason, n in counts.items() if n})


@dataclass(frozen=True, eq=False)
class Linked:
    """Vectors of both words of n links, at some layers.

    Attributes:
        left: [layers, n, d].
        right: [layers, n, d].
        sentence: [n] the sentence pair of a link, the same number wherever the pair comes again in the stream.
        word: [n] the type of the right word, or None. Words of two links of one type are not taken as unrelated: "the"
            is the translation of the article of every other sentence, too.
    """

    left: Tensor
    right: Tensor
    sentence: Tensor
    word: Tensor | None = None

    def __len__(self) -> int:
        return len(self.sentence)

    def take(self, at: Tensor | slice) -> Linked:
        """Return some of the links, in this order."""
        word = None if self.word is None else self.word[at]
        return Linked(self.left[:, at], self.right[:, at], self.sentence[at], word)

    @staticmethod
    def joined(parts: Sequence[Linked]) -> Linked:
        """Return links one after another, on the CPU."""
        left, right = (torch.cat([getattr(part, side).cpu() for part in parts], 1) for side in ("left", "right"))
        words = [part.word.cpu() for part in parts if part.word is not None]
        return Linked(
            left, right, torch.cat([part.sentence.cpu() for part in parts]), torch.cat(words) if words else None
        )


def linked_states(
    given: ProbeInput, left: LanguageSide, right: LanguageSide, rows: NDArray[np.int64]
) -> Iterator[Linked]:
    """Vectors of both words of every link of the pairs at ``rows``, their sentence and the type of the right word."""
    data, codes = given.data, right.corpus.form.codes
    for at, of_left, of_right in link_batches(data, rows, left.reader, right.reader, silent, ""):
        links = data.links.take(at)
        sentence = at[links.sentence]
        word = codes[right.corpus.offsets[sentence] + links.right].astype(np.int64)
        yield Linked(of_left, of_right, torch.from_numpy(sentence), torch.from_numpy(word))


def linked_in_order(
    given: ProbeInput,
    left: LanguageSide,
    right: LanguageSide,
    report: Report = silent,
    task: str = "",
    block: int = BLOCK,
) -> Iterator[Linked]:
    """Yield the linked words of the measured sentence pairs in an order that the seed draws.

    The order is the same for every tokenizer. Sentences are read by length, about ``block`` links at a time, and put
    back into the order. So unrelated words, which are drawn among neighbours in the stream, are not of sentences of
    similar length.
    """
    data, rows = given.data, given.measured
    rows = rows[permutation(key_of("distances-order", given.config.seed), len(rows))]
    counts = np.diff(data.links.offsets)[rows]
    part = (np.cumsum(counts) - counts) // block
    cuts = [0, *(np.flatnonzero(np.diff(part)) + 1).tolist(), len(rows)]
    place = np.zeros(len(data.links), np.int64)
    place[rows] = np.arange(len(rows))
    for start, stop in pairwise(cuts):
        links = Linked.joined(list(linked_states(given, left, right, rows[start:stop])))
        yield links.take(torch.from_numpy(np.argsort(place[links.sentence.numpy()], kind="stable")))
        report(task, stop, len(rows), "")


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Links, which are the related pairs, and unrelated pairs among them.

    Attributes:
        linked: The links.
        query: [m] the link of the left word of an unrelated pair.
        other: [m] the link of its right word.
        same_word: The number of drawn pairs that were left out since both links have the same type of word.
    """

    linked: Linked
    query: Tensor
    other: Tensor
    same_word: int

    def rows(self) -> Iterator[tuple[bool, Tensor, Tensor]]:
        """Yield some pairs at a time: whether they are related, and the links of their left and right words."""
        every = torch.arange(len(self.linked))
        for related, one, other in ((True, every, every), (False, self.query, self.other)):
            for left, right in zip(torch.split(one, ROWS), torch.split(other, ROWS), strict=True):
                yield related, left, right


def pair_blocks(batches: Iterable[Linked], seed: int, block: int = BLOCK) -> Iterator[PairBlock]:
    """Cut a stream of links into blocks, and give each left word an unrelated right word of its block.

    The draw is uniform over the links of the block in other sentence pairs (Impact of Cross-Lingual Adjustment, section
    5.4: words of unpaired sentences). It is a function of the seed and of the number of the link in the stream, so two
    models that read the same links have the same pairs, however the links come in batches. Memory is that of 2 ·
    ``block`` links and a batch.

    Raises:
        InputError: Vectors hold NaN or infinity, are all zero at a layer, or no two sentence pairs are in the stream.
    """
    key, number, apart, seen = key_of("unrelated-words", seed), 0, 0, None
    for linked in _regrouped(batches, block):
        bad = ~(linked.left.isfinite() & linked.right.isfinite()).flatten(1).all(1)
        if bool(bad.any()):
            layer = int(bad.nonzero()[0, 0])
            raise InputError(f"word vectors of layer {layer} of those read hold NaN or infinity", code="damaged")
        query, other = unrelated(linked.sentence.numpy(), key, number)
        apart, drawn = apart + len(query), len(query)
        if linked.word is not None:
            differs = linked.word.numpy()[query] != linked.word.numpy()[other]
            query, other = query[differs], other[differs]
        some = ((linked.left != 0).any(-1) | (linked.right != 0).any(-1)).any(-1)
        seen = some if seen is None else seen | some
        number += len(linked)
        yield PairBlock(linked, torch.from_numpy(query), torch.from_numpy(other), drawn - len(query))
    if seen is None:
        told = "there are no linked words to measure distances of"
        raise InputError(told, hint="align the text of the two languages first", code="empty")
    if not bool(seen.all()):
        layer = int((~seen).nonzero()[0, 0])
        raise InputError(f"all word vectors of layer {layer} of those read are zero", code="damaged")
    if not apart:
        told = "all linked words are of one sentence pair"
        raise InputError(told, hint="unrelated words need at least two of them", code="range")


def unrelated(sentence: NDArray[np.int64], key: int, number: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw for each of n links one of another sentence, uniformly: [m] links, [m] the drawn ones.

    ``sentence`` [n]; ``number`` counts the links before these. m is n, less the links that have no other sentence.
    """
    _, own, counts = np.unique(sentence, return_inverse=True, return_counts=True)
    order = np.argsort(sentence, kind="stable")
    start, size = (np.cumsum(counts) - counts)[own], counts[own]
    room = len(sentence) - size
    draw = uniform(key, number + np.arange(len(sentence)))[: len(sentence)]
    picked = np.floor(draw * room).astype(np.int64)
    picked += np.where(picked >= start, size, 0)  # the links of the own sentence are stepped over
    query = np.flatnonzero(room > 0)
    return query, order[picked[query]]


def _regrouped(batches: Iterable[Linked], block: int) -> Iterator[Linked]:
    """Yield the same word alignments, ``block`` at a time.

    The last time there are up to twice as many, so that no block is nearly empty.
    """
    waiting: list[Linked] = []
    for batch in batches:
        waiting += [batch] if len(batch) else []
        if sum(map(len, waiting)) >= 2 * block:
            joined, at = Linked.joined(waiting), 0
            while len(joined) - at >= 2 * block:
                yield joined.take(slice(at, at + block))
                at += block
            waiting = [joined.take(slice(at, None))]
    if waiting:
        yield Linked.joined(waiting)
