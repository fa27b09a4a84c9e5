"""What maps are fitted and measured on, the same for all layers: types, a dictionary, links, sentence files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pretrain.adjust.text import SENTENCE_TOKENS, Sentences, encode
from probes.maps.translation_set import TranslationSet, translation_set
from probes.measure.maps_config import MapsConfig, SentenceFiles
from probes.measure.subject import Side, Subject
from probes.transfer.aligned_text import Aligned
from probes.transfer.word_vectors import translations
from synthlang.alignments.parallel import read_parallel
from synthlang.corpus import FORM, Column, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.muse import Pair, read_muse
from synthlang.rng import key_of, permutation

Sides = tuple[Side, Side]
"""The other language (left, role target) and the parent (right, role source)."""


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Translations between the types of words of the fitted sentences.

    corpora   the sentences of both sides, in small letters where words are compared so
    types     of each side the codes of its candidates; a row of a vector matrix is a place in it
    fitted    parent → other language, to fit on
    forward   the same to measure on, with no word of ``fitted``; ``backward``: the other way round
    counts    what was left out
    """

    corpora: tuple[Corpus, Corpus]
    types: tuple[NDArray[np.int64], NDArray[np.int64]]
    fitted: TranslationSet
    forward: TranslationSet
    backward: TranslationSet
    counts: dict[str, int]


@dataclass(frozen=True, eq=False)
class Occurrences:
    """The words of some sentences: ``rows`` [s] of the text, ``first`` [s + 1] the number of the first word of each
    among them, ``number`` [words] that of each among all words of the text."""

    rows: NDArray[np.int64]
    first: NDArray[np.int64]
    number: NDArray[np.int64]

    @staticmethod
    def of(corpus: Corpus, rows: NDArray[np.int64]) -> Occurrences:
        """Those of the sentences at ``rows``, in that order."""
        counts = np.diff(corpus.offsets)[rows]
        first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Occurrences(rows, first, np.repeat(corpus.offsets[rows] - first[:-1], counts) + np.arange(first[-1]))


def read_dictionary(subject: Subject) -> Dictionary:
    """The dictionary to fit on and the one to measure on; InputError where a file has no word of the text."""
    config, rows = subject.config.maps, subject.fitted
    text, data = subject.aligned.text, subject.data
    corpora = (text.left, text.right)
    if config.in_small_letters:
        corpora = lowered(corpora[0]), lowered(corpora[1])
    held = [
        _candidates(corpus, sentences, rows, config.min_count)
        for corpus, sentences in zip(corpora, (data.left, data.right), strict=True)
    ]
    left, right = (_index(corpus, types) for corpus, (types, _) in zip(corpora, held, strict=True))
    linked = Aligned(replace(text, left=corpora[0], right=corpora[1]), data)
    fit, test, mixed = _split(config, linked, subject.config.seed)
    of_fit, of_test = _named(config)
    fitted = translation_set(fit, right, left, *of_fit)
    forward = translation_set(test, right, left, *of_test)
    backward = translation_set([(b, a) for a, b in test], left, right, *of_test)
    counts = {
        "pairs of the dictionary with a word that is measured": mixed,
        "pairs to fit on with a word that is not in the sentences": fitted.counts["pairs"] - fitted.counts["known"],
        **{
            f"{what} ({language})": one.counts[name]
            for name, what in (
                ("unknown_source", "words to measure on that are not in the sentences"),
                ("unanswered", "words to measure on whose translations are not in the sentences"),
            )
            for language, one in (("parent", forward), ("other language", backward))
        },
        "types too rare (other language)": held[0][1],
        "types too rare (parent)": held[1][1],
    }
    return Dictionary(corpora, (held[0][0], held[1][0]), fitted, forward, backward, counts)


def _named(config: MapsConfig) -> tuple[tuple[str, Path | None], tuple[str, Path | None]]:
    """What the pairs to fit on and those to measure on are called in messages, and the files that they are from."""
    key, path = ("maps.dictionary", user_path(config.dictionary)) if config.dictionary else ("the sentence pairs", None)
    if config.test_dictionary is not None:
        return (f"{key} that are not measured", path), ("maps.test_dictionary", user_path(config.test_dictionary))
    return (f"{key} that are drawn to fit on", path), (f"{key} that are drawn to measure on", path)


def _split(config: MapsConfig, text: Aligned, seed: int) -> tuple[list[Pair], list[Pair], int]:
    """Pairs (parent, other language) to fit on and to measure on, which share no word, and how many were dropped."""
    if config.dictionary is not None:
        pairs = read_muse(user_path(config.dictionary))
    else:
        names = [side.form.names or () for side in (text.text.right, text.text.left)]
        pairs = [(names[0][b], names[1][a]) for a, b in translations(text, config.words).tolist()]
    pairs = _lower(pairs, config.in_small_letters)
    if config.test_dictionary is not None:
        test = _lower(read_muse(user_path(config.test_dictionary)), config.in_small_letters)
        of_test = {a for a, _ in test}
    else:
        words = list(dict.fromkeys(a for a, _ in pairs))
        count = min(max(1, round(config.held_out * len(words))), len(words) - 1)
        of_test = {words[i] for i in permutation(key_of("maps-held-out", seed), len(words))[:count]}
        test = [pair for pair in pairs if pair[0] in of_test]
    answers = {b for _, b in test}
    fit = [(a, b) for a, b in pairs if a not in of_test and b not in answers]
    if not fit or not test:
        raise InputError(
            f"{'maps.dictionary' if config.dictionary else 'maps'}: of {len(pairs):,} translations {len(fit)} are left "
            f"to fit on and {len(test):,} to measure on; name a larger dictionary, or more sentence pairs",
            user_path(config.dictionary) if config.dictionary else None,
        )
    dropped = len(pairs) - len(fit) - (0 if config.test_dictionary is not None else len(test))
    return fit, test, dropped


def _lower(pairs: list[Pair], small: bool) -> list[Pair]:
    """In small letters if they are to be, each once."""
    return list(dict.fromkeys((a.lower(), b.lower()) for a, b in pairs)) if small else pairs


def lowered(corpus: Corpus) -> Corpus:
    """In small letters, words that are then alike being one type."""
    small = Column.of([name.lower() for name in corpus.form.names or ()])
    column = Column(small.codes[corpus.form.codes], small.names)
    return replace(corpus, columns={**corpus.columns, FORM: column})


def _candidates(
    corpus: Corpus, sentences: Sentences, rows: NDArray[np.int64], least: int
) -> tuple[NDArray[np.int64], int]:
    """The codes of the types that occur so often, and have a subword, in the sentences at ``rows``; and the others."""
    words = Occurrences.of(corpus, rows).number
    words = words[np.diff(sentences.word_offsets)[words] > 0]
    counts = np.bincount(corpus.form.codes[words], minlength=len(corpus.form.names or ()))
    return np.flatnonzero(counts >= least), int(((counts > 0) & (counts < least)).sum())


def _index(corpus: Corpus, types: NDArray[np.int64]) -> dict[str, int]:
    names: Sequence[str] = corpus.form.names or ()
    return {names[code]: row for row, code in enumerate(types.tolist())}


def linked_pairs(subject: Subject, words: tuple[Occurrences, Occurrences]) -> NDArray[np.int64]:
    """[links, 2] places of the parent's and the other language's word of each measured link among ``words``."""
    links = subject.data.links.take(subject.measured)
    sentence = links.sentence
    right, left = words[1].first[sentence] + links.right, words[0].first[sentence] + links.left
    return np.stack([right, left], axis=1).astype(np.int64)


@dataclass(frozen=True, eq=False)
class SentencePairs:
    """Parallel sentences of files, without links: of the other language and of the parent, as words and as ids."""

    corpora: tuple[Corpus, Corpus]
    sentences: tuple[Sentences, Sentences]
    counts: dict[str, int]

    def sides(self, like: Sides) -> Sides:
        """Read as these sides are."""
        left, right = (
            replace(side, corpus=corpus, sentences=sentences)
            for side, corpus, sentences in zip(like, self.corpora, self.sentences, strict=True)
        )
        return left, right


def read_sentence_files(subject: Subject, files: SentenceFiles) -> SentencePairs:
    """Two files of parallel lines, without pairs that are empty or too long, which are counted.

    InputError if no pair is left.
    """
    text = read_parallel(user_path(files.left), user_path(files.right), files.words)
    readers = subject.pretrained.target, subject.pretrained.source

    def encoded(*corpora: Corpus) -> tuple[Sentences, Sentences]:
        left, right = (
            encode(reader.tokenizer.tokenizer, corpus, "word", reader.member)
            for reader, corpus in zip(readers, corpora, strict=True)
        )
        return left, right

    lengths = np.stack([np.diff(sentences.bounds) for sentences in encoded(text.left, text.right)])
    most = subject.config.data.length or subject.pretrained.length
    empty, long = (lengths == 0).any(0), (lengths + SENTENCE_TOKENS > most).any(0)
    rows = np.flatnonzero(~empty & ~long)
    if not len(rows):
        raise InputError(f"maps.sentences: none of the {len(text)} pairs of lines can be read", user_path(files.left))
    left, right = text.left.take(rows), text.right.take(rows)
    counts = {"lines that are empty": int(empty.sum()), f"lines over {most} tokens": int((long & ~empty).sum())}
    return SentencePairs((left, right), encoded(left, right), counts)
