"""Related word pairs that several models read, and unrelated word pairs drawn from them.

Related pairs are aligned words (x_i, y_i). For an unrelated pair, x_i is combined with a word y_j of another sentence.
All models read equal pairs in the same order.
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
"""Number of word alignments in a block. Unrelated words are drawn within a block, and memory holds two blocks."""
ROWS = 256  # pairs that are in memory as float64 at once


Readers = tuple[Reader, Reader, int]
"""The readers of the target and of the source language, and the maximum length of a row in tokens."""


def readers_of(pretrained: Pretrained) -> Readers:
    """Return the part of a model that decides which word pairs it can read, without its weights."""
    return pretrained.target, pretrained.source, pretrained.length


@dataclass(frozen=True, eq=False)
class SharedText:
    """Words and word alignments that every model can read, and the token ids for each model.

    Attributes:
        text: The words and word alignments.
        rows: [n] the indices of the measured sentence pairs in ``text``.
        data: The token ids by the name of the model.
        counts: Number of alignments and sentence pairs left out, by reason.
    """

    text: LinkedText
    rows: NDArray[np.int64]
    data: Mapping[str, PairData]
    counts: Mapping[str, int]

    def aligned(self, name: str) -> Aligned:
        """Return the text with the token ids for the model ``name``."""
        return Aligned(self.text, self.data[name])


def open_other(model: str, given: ProbeInput, name: str) -> Pretrained:
    """Open another model to read the languages of ``given``.

    A model that is not a run of synthlang only needs suitable tokenizers, because the words come from ``given``.

    Args:
        model: A run, a folder or a name on Hugging Face.
        given: The input of the probe, whose languages the model reads.
        name: The key of the model in ``distances.before``, for errors.

    Raises:
        InputError: The model cannot be opened, or its run has another language under the name of the target language.
    """
    main, config = given.pretrained, given.config
    language = main.target.language
    try:
        if is_run(user_path(model)):
            opened = open_pretrained(model, config.language or language.name, config.natural)
        else:
            opened = open_pretrained(model, language.name, natural=True)
    except InputError as error:
        if error.keys == ("language",):  # the language of the config, which the probed model has
            error.keys, error.hint = (), "choose a model that has this language"
        raise error.inside("distances", "before", name) from error
    derived = opened.text is not None and main.text is not None and not config.natural
    if derived and opened.target.language.fingerprint != language.fingerprint:
        told = f"the language {language.name} of this model differs from the language of the same name in {main.name}"
        hint = "choose a model with the same language"
        raise InputError(told, keys=("distances", "before", name), hint=hint, code="conflict")
    return opened


def shared_text(given: ProbeInput, models: Mapping[str, Readers]) -> SharedText:
    """Return the measured sentence pairs that all models can read.

    A word alignment stays if every tokenizer has a token for both words. A sentence pair stays if it is short enough
    for all models. ``models`` has the readers of each model by its name.

    Raises:
        InputError: The sentence pairs cannot be read, no pair is left, a language has tokens as words, or alignments
            are of subwords that differ between the models.
    """
    rows, whole = given.measured, given.aligned.text
    links = given.data.links.take(rows)
    text = replace(whole, left=whole.left.take(rows), right=whole.right.take(rows), links=links)
    readers = {name: ((target, text.left), (source, text.right)) for name, (target, source, _) in models.items()}
    cuts = {tuple(reader.tokenizer.fingerprint for reader, _ in sides) for sides in readers.values()}
    if text.unit == "subword" and len(cuts) > 1:
        told = "word alignments are of subwords, and the models have different subwords"
        hint = f"set pairs.{given.data.name}.unit to word, or choose other models"
        raise InputError(told, keys="distances.before", hint=hint, code="conflict")
    there, fits, encoded = np.ones(len(links.left), bool), np.ones(len(rows), bool), {}
    for name, sides in readers.items():
        for reader, _ in sides:
            if reader.tokenizer.subwords is not None:
                told = f"the language {reader.language.name} of {name} has tokens in place of words (unit: token)"
                raise InputError(told, keys="distances", hint="remove the probe distances", code="unsupported")
        encoded[name] = [encode(one.tokenizer.tokenizer, corpus, text.unit, one.number) for one, corpus in sides]
        length = models[name][-1]
        longest = min(given.config.data.length or length, length)
        for side, words in zip(encoded[name], (links.left, links.right), strict=True):
            there &= np.diff(side.word_offsets)[side.offsets[links.sentence] + words] > 0
            fits &= np.diff(side.bounds) + SENTENCE_TOKENS <= longest
    kept = links.select(there)
    usable = fits & (np.diff(kept.offsets) > 0)
    if not usable.any():
        told = "no aligned word can be read by all of the models"
        raise InputError(told, keys="distances.before", hint="increase data.dev, or choose other models", code="empty")
    found = np.flatnonzero(usable).astype(np.int64)
    counts = {"links to words without a subword in some model": int((~there).sum())}
    counts["sentence pairs that some model cannot read or that have no link left"] = int((~usable).sum())
    data = {name: PairData(given.data.name, one[0], one[1], kept, found, found, {}) for name, one in encoded.items()}
    return SharedText(replace(text, links=kept), found, data, {reason: n for reason, n in counts.items() if n})


@dataclass(frozen=True, eq=False)
class Linked:
    """Vectors of n aligned word pairs, at some layers.

    Attributes:
        left: [layers, n, d] the vectors of the left words.
        right: [layers, n, d] the vectors of the right words.
        sentence: [n] the index of the sentence pair of each word pair.
        word: [n] the type of the right word, or None. Two pairs with the same type are not combined into an unrelated
            pair, because "the" in one sentence also translates the article in another.
    """

    left: Tensor
    right: Tensor
    sentence: Tensor
    word: Tensor | None = None

    def __len__(self) -> int:
        return len(self.sentence)

    def take(self, at: Tensor | slice) -> Linked:
        """Return the word pairs at the indices ``at``, in this order."""
        word = None if self.word is None else self.word[at]
        return Linked(self.left[:, at], self.right[:, at], self.sentence[at], word)

    @staticmethod
    def joined(parts: Sequence[Linked]) -> Linked:
        """Return the word pairs of all parts as one object, with its tensors on the CPU."""
        left, right = (torch.cat([getattr(part, side).cpu() for part in parts], 1) for side in ("left", "right"))
        words = [part.word.cpu() for part in parts if part.word is not None]
        return Linked(
            left, right, torch.cat([part.sentence.cpu() for part in parts]), torch.cat(words) if words else None
        )


def linked_states(
    given: ProbeInput, left: LanguageSide, right: LanguageSide, rows: NDArray[np.int64]
) -> Iterator[Linked]:
    """Yield all aligned word pairs of the sentence pairs at ``rows``, batch by batch.

    A batch has sentences of similar length, and the longest sentences come first. ``sentence`` of a batch has indices
    of ``given.data``, and ``word`` has codes of ``right.corpus``.

    Raises:
        InputError: The sentence pairs cannot be read.
    """
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
    """Yield the aligned word pairs of the measured sentence pairs in a random order of sentences.

    The order depends on the seed only, and not on the tokenizer. Models read sentences sorted by length, so about
    ``block`` word pairs at a time are put back into the random order. Unrelated words, which are drawn from nearby
    pairs, then come from sentences of any length.

    Args:
        given: The input of the probe, with the token ids for the model.
        left: The other language and its reader.
        right: The source language and its reader.
        report: Receives the progress.
        task: The name of the work in the progress.
        block: Number of word pairs that are put into order at once.

    Raises:
        InputError: The sentence pairs cannot be read, or none is left to measure on.
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
    """A block of related pairs, and unrelated pairs drawn from it.

    Attributes:
        linked: The n related pairs.
        query: [m] for each unrelated pair, the index of the related pair that its left word belongs to.
        other: [m] for each unrelated pair, the index of the related pair that its right word belongs to.
        same_word: Number of drawn pairs that were left out because both right words have the same type.
    """

    linked: Linked
    query: Tensor
    other: Tensor
    same_word: int

    def rows(self) -> Iterator[tuple[bool, Tensor, Tensor]]:
        """Yield the pairs as (related, left, right), at most ROWS pairs at a time.

        The first value is True for related pairs. ``left`` [k] and ``right`` [k] are indices into ``linked``.
        """
        every = torch.arange(len(self.linked))
        for related, one, other in ((True, every, every), (False, self.query, self.other)):
            for left, right in zip(torch.split(one, ROWS), torch.split(other, ROWS), strict=True):
                yield related, left, right


def pair_blocks(
    batches: Iterable[Linked], seed: int, block: int = BLOCK, layers: Sequence[int] | None = None
) -> Iterator[PairBlock]:
    """Cut a stream of word pairs into blocks, and draw an unrelated right word for each left word.

    The draw is uniform over the words of the block from other sentence pairs (Impact of Cross-Lingual Adjustment,
    section 5.4: words of unpaired sentences). It depends only on the seed and the position in the stream. Two models
    that read the same stream therefore get the same pairs, for any batches. Memory is 2 · ``block`` pairs and a batch.

    Args:
        batches: The word pairs, batch by batch.
        seed: The seed of the draw.
        block: Number of word pairs in a block. The last block may have up to twice as many.
        layers: The numbers of the layers, for errors (default: 0, 1, …).

    Raises:
        InputError: Vectors contain NaN or infinity, all vectors of a layer are zero, or the stream has fewer than two
            sentence pairs.
    """
    key, number, apart, seen = key_of("unrelated-words", seed), 0, 0, None
    for linked in _regrouped(batches, block):
        bad = ~(linked.left.isfinite() & linked.right.isfinite()).flatten(1).all(1)
        if bool(bad.any()):
            told = f"word vectors of {_layer(bad, layers)} contain NaN or infinity"
            raise InputError(told, hint="use an earlier checkpoint, or another model", code="damaged")
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
        told = "the measured sentence pairs have no aligned words"
        raise InputError(told, hint="give sentence pairs with word alignments", code="empty")
    if not bool(seen.all()):
        told = f"all word vectors of {_layer(~seen, layers)} are zero"
        raise InputError(told, hint="read other layers, or use another model", code="damaged")
    if not apart:
        told = "all aligned words belong to one sentence pair, so there are no unrelated words"
        raise InputError(told, hint="increase data.dev, or give more sentence pairs", code="range")


def _layer(flags: Tensor, layers: Sequence[int] | None) -> str:
    """Return the name of the first flagged layer."""
    at = int(flags.nonzero()[0, 0])
    return f"layer {at if layers is None else layers[at]}"


def unrelated(sentence: NDArray[np.int64], key: int, number: int = 0) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Draw for each of n word pairs one pair from another sentence, uniformly at random.

    Args:
        sentence: [n] the sentence of each pair.
        key: The key of the random draw.
        number: Number of earlier pairs in the stream.

    Returns:
        The indices [m] of the pairs, and the indices [m] of the drawn pairs. If there is no other sentence, a pair is
        left out.
    """
    _, own, counts = np.unique(sentence, return_inverse=True, return_counts=True)
    order = np.argsort(sentence, kind="stable")
    start, size = (np.cumsum(counts) - counts)[own], counts[own]
    room = len(sentence) - size
    draw = uniform(key, number + np.arange(len(sentence)))[: len(sentence)]
    picked = np.floor(draw * room).astype(np.int64)
    picked += np.where(picked >= start, size, 0)  # skip the pairs of the same sentence
    query = np.flatnonzero(room > 0)
    return query, order[picked[query]]


def _regrouped(batches: Iterable[Linked], block: int) -> Iterator[Linked]:
    """Regroup word pairs into batches of ``block`` pairs. The last batch has fewer than 2 · ``block`` pairs."""
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
