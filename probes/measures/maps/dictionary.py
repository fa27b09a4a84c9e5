"""The dictionary of the probe ``maps``: translations of word types, to fit on and to measure on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measures.maps import MapsConfig
from probes.measures.probe_input import ProbeInput
from probes.models.aligned import Aligned
from probes.rotation.dictionary import (
    OF_TEXT,
    SUITABLE,
    TranslationSet,
    in_small_letters,
    index_of,
    lowered,
    translation_set,
    translations,
    types_in,
)
from synthlang.corpus import Corpus
from synthlang.dictionary.word_dictionary import Pair, read_muse
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.rng import key_of, permutation
from synthlang.wording import plural

Corpora = tuple[Corpus, Corpus]
Types = tuple[NDArray[np.int64], NDArray[np.int64]]


@dataclass(frozen=True)
class Split:
    """Pairs (source word, word of the other language), divided so that no word is in both parts.

    Attributes:
        fit: The pairs to fit on.
        test: The pairs to measure on.
        mixed: Number of pairs in neither part, because they share a word with ``test``.
    """

    fit: list[Pair]
    test: list[Pair]
    mixed: int


@dataclass(frozen=True, eq=False)
class Dictionary:
    """Translations between word types of the fitted sentences.

    Attributes:
        corpora: The sentences of both sides, lower-cased if case is ignored.
        types: The codes of the candidates of each side. Rows of vectors are in this order.
        split: The pairs of words that the translations are from.
        fitted: Translations from the source to the other language, to fit on.
        forward: Translations from the source to the other language, to measure on.
        backward: Translations from the other to the source language, to measure on.
        counts: Number of items left out, by reason.
    """

    corpora: Corpora
    types: Types
    split: Split
    fitted: TranslationSet
    forward: TranslationSet
    backward: TranslationSet
    counts: dict[str, int]

    def words(self, side: int) -> list[str]:
        """Return the candidates of a side, in the order of ``types``.

        ``side`` is 0 for the other language and 1 for the source language.
        """
        names: Sequence[str] = self.corpora[side].form.names or ()
        return [names[code] for code in self.types[side].tolist()]

    def measured(self) -> dict[str, Any]:
        """Return the numbers of candidates of both languages and the counts of the measured translations, for JSON."""
        return {
            "types": {"parent": len(self.types[1]), "other": len(self.types[0])},
            "translations": self.forward.to_json(),
            "translations_backward": self.backward.to_json(),
        }

    def only(self, config: MapsConfig, kept: tuple[NDArray[np.bool_], NDArray[np.bool_]], what: str) -> Dictionary:
        """Return the dictionary restricted to some candidates. ``counts`` do not change.

        Args:
            config: The settings of the probe.
            kept: The masks [types] of the candidates of each side to keep.
            what: The name of these candidates in errors.

        Raises:
            InputError: No pair is left to fit on or to measure on.
        """
        types = self.types[0][kept[0]], self.types[1][kept[1]]
        return _laid(config, self.corpora, types, self.split, self.counts, what)


def read_dictionary(given: ProbeInput) -> Dictionary:
    """Return the dictionary of the settings, restricted to words of the fitted sentences.

    Raises:
        InputError: The sentence pairs or a file cannot be read, or no pair is left to fit on or to measure on.
    """
    config, text, data = given.config.of(MapsConfig), given.aligned.text, given.data
    corpora = (text.left, text.right)
    if config.in_small_letters:
        corpora = lowered(corpora[0]), lowered(corpora[1])
    (left, rare_left), (right, rare_right) = (
        types_in(corpus, sentences, given.fitted, config.min_count)
        for corpus, sentences in zip(corpora, (data.left, data.right), strict=True)
    )
    linked = Aligned(replace(text, left=corpora[0], right=corpora[1]), data)
    split = _split(config, linked, given.config.seed)
    found = _laid(config, corpora, (left, right), split, {})
    fitted = found.fitted.counts
    counts = {
        "pairs of the dictionary with a word that is measured": split.mixed,
        "pairs to fit on with a word that is not in the sentences": fitted["pairs"] - fitted["known"],
    }
    for name, what in (
        ("unknown_source", "words to measure on that are not in the sentences"),
        ("unanswered", "words to measure on whose translations are not in the sentences"),
    ):
        counts[f"{what} (parent)"] = found.forward.counts[name]
        counts[f"{what} (other language)"] = found.backward.counts[name]
    rare = {"types too rare (other language)": rare_left, "types too rare (parent)": rare_right}
    return replace(found, counts={**counts, **rare})


def _laid(
    config: MapsConfig, corpora: Corpora, types: Types, split: Split, counts: dict[str, int], what: str = OF_TEXT
) -> Dictionary:
    """Build the dictionary from the pairs between the given word types, which are called ``what`` in errors."""
    left, right = (index_of(corpus, codes) for corpus, codes in zip(corpora, types, strict=True))

    def known(pairs: list[Pair], source: dict[str, int], target: dict[str, int], to: str, key: str) -> TranslationSet:
        file = getattr(config, key)
        hint = f"give {'more sentence pairs' if file is None else SUITABLE}"
        hint += ", or reduce maps.min_count" * (config.min_count > 1)
        path, keys = None if file is None else user_path(file), "maps" if file is None else f"maps.{key}"
        return translation_set(pairs, source, target, path, keys, to, what, hint)

    measured = "dictionary" if config.test_dictionary is None else "test_dictionary"
    fitted = known(split.fit, right, left, "fit", "dictionary")
    forward = known(split.test, right, left, "measure", measured)
    backward = known([(b, a) for a, b in split.test], left, right, "measure", measured)
    return Dictionary(corpora, types, split, fitted, forward, backward, counts)


def _split(config: MapsConfig, text: Aligned, seed: int) -> Split:
    def read(path: str) -> list[Pair]:
        pairs = read_muse(user_path(path))
        return in_small_letters(pairs) if config.in_small_letters else pairs

    if config.dictionary is not None:
        pairs = read(config.dictionary)
    else:
        names = [side.form.names or () for side in (text.text.right, text.text.left)]
        pairs = [(names[0][b], names[1][a]) for a, b in translations(text, config.words).tolist()]
    if config.test_dictionary is not None:
        test = read(config.test_dictionary)
        of_test = {a for a, _ in test}
    else:
        words = list(dict.fromkeys(a for a, _ in pairs))
        count = min(max(1, round(config.held_out * len(words))), len(words) - 1)
        of_test = {words[i] for i in permutation(key_of("maps-held-out", seed), len(words))[:count]}
        test = [pair for pair in pairs if pair[0] in of_test]
    answers = {b for _, b in test}
    fit = [(a, b) for a, b in pairs if a not in of_test and b not in answers]
    if not fit or not test:
        reason = f"of {plural(len(pairs), 'translation')}, none is left to {'measure' if fit else 'fit'} on"
        hint = f"give {'a larger dictionary' if config.dictionary else 'more sentence pairs'}"
        hint += ", or a smaller test dictionary" * (config.test_dictionary is not None)
        path, keys = user_path(config.dictionary) if config.dictionary else None, "maps.dictionary"
        raise InputError(reason, path, keys=keys if path else "maps", hint=hint, code="empty")
    dropped = len(pairs) - len(fit) - (0 if config.test_dictionary is not None else len(test))
    return Split(fit, test, dropped)
