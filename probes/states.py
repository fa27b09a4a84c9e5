"""Hidden states of aligned text: words in context, sentences, and means of word types.

Functions yield batches and need the memory of one batch, unless their docstrings state more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.adjust.batches import SideWords, side_words, word_pairs
from pretrain.adjust.vectors import Subword, layer_states, word_vectors
from pretrain.model.language_model import LanguageModel
from probes.models.pretrained import Reader, bounded_batches
from synthlang.corpus import Corpus
from synthlang.parallel.prepare import SENTENCE_TOKENS, PairData, Sentences
from synthlang.progress import Report, silent
from synthlang.rng import key_of, permutation
from synthlang.vocabularies import Specials

Ids = NDArray[np.int64]


@dataclass(frozen=True)
class StateReader:
    """A model that reads one side of aligned text.

    Attributes:
        body: The model.
        specials: Ids of the special tokens of the language in the model.
        layers: The layers to read, 0 … N.
        subword: The subword whose vector represents a word: start, end or mean.
    """

    body: LanguageModel
    specials: Specials
    layers: tuple[int, ...]
    subword: Subword

    def vectors(self, words: SideWords) -> Tensor:
        """Return the vectors [layers, words, d] of words, float32."""
        return word_vectors(self.body, words.to(self.body.norm.weight.device), self.layers, self.subword)


@dataclass(frozen=True, eq=False)
class LanguageSide:
    """One language of the sentence pairs, with its reader.

    Attributes:
        name: Name of the language, for the progress and for errors.
        corpus: The sentences as words.
        sentences: The same sentences as token ids. Row r of one side translates row r of the other.
        reader: The model that reads the sentences.
    """

    name: str
    corpus: Corpus
    sentences: Sentences
    reader: StateReader


@contextmanager
def reading(bodies: Iterable[LanguageModel]) -> Iterator[None]:
    """Put models into evaluation mode without gradients, on a GPU if there is one, and restore them afterwards."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    distinct = {id(body): body for body in bodies}.values()
    before = [(body, body.training, body.norm.weight.device) for body in distinct]
    try:
        with torch.no_grad():
            for body, _, _ in before:
                body.eval().to(device)
            yield
    finally:
        for body, training, place in before:
            body.train(training).to(place)


def linked_vectors(
    data: PairData, left: StateReader, right: StateReader, words: int | None, seed: int, report: Report = silent
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the vectors [layers, n, d] float32 of aligned words in the training sentences, for both sides.

    The vectors of each side have one row for each of the n word alignments of a batch. At most ``words`` word
    alignments are read, from sentence pairs in a random order (Kulshreshtha et al. 2020, section 2.2.2). Batches have
    sentences of similar length.

    Args:
        data: The sentence pairs with word alignments.
        left: The model that reads the left side.
        right: The model that reads the right side.
        words: Maximum number of word alignments (None: all).
        seed: Seed of the order, which also depends on the name of the pair.
        report: Function that receives the progress.
    """
    data = data if words is None else _first_links(data, words, seed)
    for _, of_left, of_right in link_batches(data, data.train, left, right, report, "rotation"):
        yield of_left, of_right


def row_lengths(sentences: Sentences) -> NDArray[np.int64]:
    """Return the number of tokens of each sentence, including special tokens, [sentences]."""
    return np.diff(sentences.bounds) + SENTENCE_TOKENS


def link_batches(
    data: PairData, rows: NDArray[np.int64], left: StateReader, right: StateReader, report: Report, task: str
) -> Iterator[tuple[NDArray[np.int64], Tensor, Tensor]]:
    """Yield the vectors of the aligned words in the sentence pairs ``rows``, in batches of similar length.

    A batch is (indices [b] of its sentence pairs, left vectors, right vectors). Left and right vectors are
    [layers, n, d] float32 for the n word alignments of the batch.

    Args:
        data: The sentence pairs with word alignments.
        rows: Indices of the sentence pairs to read.
        left: The model that reads the left side.
        right: The model that reads the right side.
        report: Function that receives the progress.
        task: Name of the work in the progress.
    """
    batches = bounded_batches(np.maximum(row_lengths(data.left)[rows], row_lengths(data.right)[rows]))
    for done, chosen in enumerate(batches, 1):
        batch = word_pairs([data], [rows[chosen]], left.specials, right.specials)
        of_left, of_right = left.vectors(batch.left), right.vectors(batch.right)
        links = batch.links.to(of_left.device)
        yield rows[chosen], of_left[:, links[:, 0]], of_right[:, links[:, 1]]
        report(task, done, len(batches), "")


def _first_links(data: PairData, words: int, seed: int) -> PairData:
    """Keep the first ``words`` word alignments of the training sentences in a random order."""
    rows = data.train[permutation(key_of("rotation-order", seed, data.name), len(data.train))]
    counts = np.diff(data.links.offsets)[rows]
    before = np.cumsum(counts) - counts
    rows, counts = rows[before < words], np.minimum(counts, words - before)[before < words]
    taken = np.zeros(len(data.links), np.int64)
    taken[rows] = counts
    sentence = data.links.sentence
    kept = np.arange(len(sentence)) - data.links.offsets[:-1][sentence] < taken[sentence]
    return replace(data, train=rows, links=data.links.select(kept))


def anchors(side: LanguageSide, rows: NDArray[np.int64], types: NDArray[np.int64], report: Report = silent) -> Tensor:
    """Return the mean vector of each type over its occurrences in the sentences at ``rows``, [layers, n, d] float64.

    The anchor of a type is A = (e₁ + … + e_p) / p for the vectors e of its p occurrences (Kulshreshtha et al. 2020,
    equation 6). A type without an occurrence that has a token gets NaN.

    Args:
        side: The sentences of one language, with the model that reads them.
        rows: Indices of the sentences to read.
        types: Codes of the word types in the corpus of the side, [n].
        report: Function that receives the progress.
    """
    distinct, place = np.unique(types, return_inverse=True)
    number = np.full(len(side.corpus.form.names or ()), -1)
    number[distinct] = np.arange(len(distinct))
    sums = torch.zeros(len(side.reader.layers), len(distinct), side.reader.body.shape.hidden, dtype=torch.float64)
    counts = torch.zeros(len(distinct), dtype=torch.float64)
    for batch in word_states(side, rows, report, "word anchors"):
        of_words = number[side.corpus.form.codes[batch.word.numpy()]]
        kept, types_of = torch.from_numpy(np.flatnonzero(of_words >= 0)), torch.from_numpy(of_words[of_words >= 0])
        # sum on the CPU, where the order of summation is deterministic
        sums.index_add_(1, types_of, batch.vectors[:, kept.to(batch.vectors.device)].double().cpu())
        counts += torch.bincount(types_of, minlength=len(distinct))
    return (sums / counts[:, None])[:, torch.from_numpy(place)]


def batches_by_length(
    sentences: Sentences, rows: NDArray[np.int64], report: Report = silent, task: str = ""
) -> Iterator[NDArray[np.int64]]:
    """Yield ``rows`` in batches of sentences of similar length, longest first (see `bounded_batches`).

    ``task`` is the name of the work in the progress.
    """
    batches = bounded_batches(row_lengths(sentences)[rows])
    for done, chosen in enumerate(batches, 1):
        yield rows[chosen]
        report(task, done, len(batches), "")


PAIRS_AT_ONCE = 2048
"""Number of sentence pairs whose vectors are in memory at once.

Both sides of a pair are needed together, but each side is read in its own order of lengths.
"""


def sentence_means(
    sentences: Sentences,
    reader: StateReader,
    rows: NDArray[np.int64],
    first: bool = False,
    report: Report = silent,
    task: str = "",
) -> Tensor:
    """Return a vector for each sentence at ``rows`` (ascending), [layers, rows, d] float32 on the CPU.

    With ``first``, the vector is the state of ``<s>``. Otherwise it is the mean of the states of all tokens between
    ``<s>`` and ``</s>``, or 0 for a sentence without such tokens.

    Args:
        sentences: The sentences as token ids.
        reader: The model that reads the sentences.
        rows: Indices of the sentences to read, ascending.
        first: True for the state of ``<s>``, False for the mean.
        report: Function that receives the progress.
        task: Name of the work in the progress.
    """
    device = reader.body.norm.weight.device
    found = torch.zeros(len(reader.layers), len(rows), reader.body.shape.hidden)
    for at in batches_by_length(sentences, rows, report, task):
        count = int(np.diff(sentences.offsets)[at].sum())
        words = side_words([sentences], [at], np.zeros(count, bool), reader.specials).to(device)
        states = layer_states(reader.body, words, reader.layers)
        inside = words.mask.clone()
        inside[:, 0] = 0
        inside[torch.arange(len(at), device=device), words.mask.sum(1) - 1] = 0
        weights = inside / inside.sum(1, keepdim=True).clamp(min=1)
        means = states[:, :, 0] if first else torch.einsum("lrwd,rw->lrd", states, weights.to(states.dtype))
        found[:, torch.from_numpy(np.searchsorted(rows, at))] = means.float().cpu()
    return found


def sentence_pairs(
    data: PairData,
    left: StateReader,
    right: StateReader,
    rows: NDArray[np.int64],
    first: bool = False,
    report: Report = silent,
    task: str = "sentence vectors",
) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield `sentence_means` [layers, n, d] of both sides for at most PAIRS_AT_ONCE sentence pairs at a time.

    Args:
        data: The sentence pairs.
        left: The model that reads the left side.
        right: The model that reads the right side.
        rows: Indices of the sentence pairs to read, ascending.
        first: True for the state of ``<s>``, False for the mean of the tokens.
        report: Function that receives the progress.
        task: Name of the work in the progress.
    """
    for start in range(0, len(rows), PAIRS_AT_ONCE):
        part = rows[start : start + PAIRS_AT_ONCE]
        yield sentence_means(data.left, left, part, first), sentence_means(data.right, right, part, first)
        report(task, min(start + PAIRS_AT_ONCE, len(rows)), len(rows), "")


@dataclass(frozen=True, eq=False)
class WordStates:
    """Vectors of n words in their sentences.

    Attributes:
        vectors: [layers, n, d] float32, on the device of the model.
        word: [n] int64, the index of each word among all words of the corpus, on the CPU.
    """

    vectors: Tensor
    word: Tensor


def word_states(
    side: LanguageSide, rows: NDArray[np.int64], report: Report = silent, task: str = ""
) -> Iterator[WordStates]:
    """Yield the vectors of all words with at least one token in the sentences at ``rows``, longest sentences first.

    ``task`` is the name of the work in the progress.
    """
    sentences, offsets = side.sentences, side.corpus.offsets
    for at in batches_by_length(sentences, rows, report, task):
        word = words_of(offsets, at)
        words = side_words([sentences], [at], np.zeros(len(word), bool), side.reader.specials)
        kept = words.stop > words.start
        vectors = side.reader.vectors(words)[:, kept.to(side.reader.body.norm.weight.device)]
        yield WordStates(vectors, torch.from_numpy(word)[kept])


def words_of(offsets: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the indices [words] of all words in the sentences at ``rows``, row by row.

    ``offsets`` [sentences + 1] are the sentence offsets of the corpus.
    """
    counts = np.diff(offsets)[rows]
    return np.repeat(offsets[rows] - np.cumsum(counts) + counts, counts) + np.arange(int(counts.sum()))


def single_tokens(reader: Reader, words: Sequence[str]) -> Ids:
    """Return the token id [words] of each word that is a single token, and −1 for other words.

    Raises:
        InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
    """
    encoded = reader.encode(Corpus.of([{"form": list(words)}]))
    first, pieces = encoded.word_offsets[:-1], np.diff(encoded.word_offsets)
    padded = np.append(encoded.ids, -1).astype(np.int64)
    single: Ids = np.where(pieces == 1, padded[np.minimum(first, len(encoded.ids))], -1)
    return single


def special_tokens(reader: Reader) -> Ids:
    """Return the sorted ids of special tokens: the five of every model, and all that the tokenizer marks as special."""
    added = reader.tokenizer.tokenizer.get_added_tokens_decoder()
    named = [number for number, token in added.items() if token.special]
    return np.unique(np.asarray([*reader.specials.all, *named], np.int64))
