"""The dictionary of the probe ``maps``: translations between types of words, to fit on and to measure on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measures.maps import MapsConfig
from probes.measures.probe_input import ProbeInput
from probes.rotation.dictionary import (
    TranslationSet,
    in_small_letters,
    index_of,
    lowered,
    translation_set,
    translations,
    types_in,
)
from probes.transfer.aligned_text import Aligned
from synthlang.corpus import Corpus
from synthlang.dictionary.words import Pair, read_muse
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.rng import key_of, permutation

Types = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Split:
    """Pairs (parent, other language) to ``fit`` on and to measure on (``test``), which share no word.

    mixed   pairs that belong to neither
    named   what the pairs to fit on and those to measure on are called in messages, and the files that they are from
    """

    fit: list[Pair]
    test: list[Pair]
    mixed: int
    named: tuple[tuple[str, Path | None], tuple[str, Path | None]]


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Translations between the types of words of the fitted sentences.

    corpora   the sentences of both sides, in small letters where words are compared so
    types     of each side the codes of its candidates; a row of a vector matrix is a place in it
    split     all pairs, as words
    fitted    parent → other language, to fit on
    forward   the same to measure on, with no word of ``fitted``; ``backward``: the other way round
    counts    what was left out
    """

    corpora: tuple[Corpus, Corpus]
    types: Types
    split: Split
    fitted: TranslationSet
    forward: TranslationSet
    backward: TranslationSet
    counts: dict[str, int]

    def words(self, side: int) -> list[str]:
        """The candidates of a side, in the order of ``types``."""
        names: Sequence[str] = self.corpora[side].form.names or ()
        return [names[code] for code in self.types[side].tolist()]

    def measured(self) -> dict[str, Any]:
        """How many candidates there are, and what is measured in each direction."""
        return {
            "types": {"parent": len(self.types[1]), "other": len(self.types[0])},
            "translations": self.forward.to_json(),
            "translations_backward": self.backward.to_json(),
        }

    def only(self, kept: tuple[NDArray[np.bool_], NDArray[np.bool_]], what: str) -> Dictionary:
        """With some of the candidates of each side, and what that leaves of the pairs; ``counts`` are as they were.

        InputError, which calls the words ``what``, where it leaves no pair to fit on or to measure on.
        """
        types = self.types[0][kept[0]], self.types[1][kept[1]]
        (fit, of_fit), (test, of_test) = self.split.named
        named = (f"{fit} between {what}", of_fit), (f"{test} between {what}", of_test)
        return _laid(self.corpora, types, replace(self.split, named=named), self.counts)


def read_dictionary(given: ProbeInput) -> Dictionary:
    """The dictionary to fit on and the one to measure on; InputError where a file has no word of the text."""
    config, rows = given.config.of(MapsConfig), given.fitted
    text, data = given.aligned.text, given.data
    corpora = (text.left, text.right)
    if config.in_small_letters:
        corpora = lowered(corpora[0]), lowered(corpora[1])
    (left, rare_left), (right, rare_right) = (
        types_in(corpus, sentences, rows, config.min_count)
        for corpus, sentences in zip(corpora, (data.left, data.right), strict=True)
    )
    linked = Aligned(replace(text, left=corpora[0], right=corpora[1]), data)
    rare = {"types too rare (other language)": rare_left, "types too rare (parent)": rare_right}
    split = _split(config, linked, given.config.seed)
    found = _laid(corpora, (left, right), split, rare)
    return replace(found, counts={**_left_out(found), **rare})


def _laid(corpora: tuple[Corpus, Corpus], types: Types, split: Split, counts: dict[str, int]) -> Dictionary:
    """The pairs between words of these types."""
    left, right = (index_of(corpus, codes) for corpus, codes in zip(corpora, types, strict=True))
    of_fit, of_test = split.named
    return Dictionary(
        corpora,
        types,
        split,
        fitted=translation_set(split.fit, right, left, *of_fit),
        forward=translation_set(split.test, right, left, *of_test),
        backward=translation_set([(b, a) for a, b in split.test], left, right, *of_test),
        counts=counts,
    )


def _left_out(found: Dictionary) -> dict[str, int]:
    return {
        "pairs of the dictionary with a word that is measured": found.split.mixed,
        "pairs to fit on with a word that is not in the sentences": (
            found.fitted.counts["pairs"] - found.fitted.counts["known"]
        ),
        **{
            f"{what} ({language})": one.counts[name]
            for name, what in (
                ("unknown_source", "words to measure on that are not in the sentences"),
                ("unanswered", "words to measure on whose translations are not in the sentences"),
            )
            for language, one in (("parent", found.forward), ("other language", found.backward))
        },
    }


def _named(config: MapsConfig) -> tuple[tuple[str, Path | None], tuple[str, Path | None]]:
    """What the pairs to fit on and those to measure on are called in messages, and the files that they are from."""
    key, path = ("maps.dictionary", user_path(config.dictionary)) if config.dictionary else ("the sentence pairs", None)
    if config.test_dictionary is not None:
        return (f"{key} that are not measured", path), ("maps.test_dictionary", user_path(config.test_dictionary))
    return (f"{key} that are drawn to fit on", path), (f"{key} that are drawn to measure on", path)


def _split(config: MapsConfig, text: Aligned, seed: int) -> Split:
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
    return Split(fit, test, dropped, _named(config))


def _lower(pairs: list[Pair], small: bool) -> list[Pair]:
    """In small letters if they are to be."""
    return in_small_letters(pairs) if small else pairs
