"""Masking with exactly k slots a row: BERT's 80/10/10 and DICT's translations.

A pure function of (seed, sample, column): a row is masked alike in whatever batch it stands.

A slot is a column whose label is predicted. Of its input 80 % are <mask>, 10 % a random word, 10 % stay. With
DICT-MLM a share of the slots are dictionary slots; what that means differs between the paper and its code:

             input of a dictionary slot    label           a word without an entry
as-paper     80/10/10                      a translation   stays as it is, with itself as label
as-code      a translation                 the word        stays as it is, with itself as label
corrected    80/10/10                      a translation   an ordinary slot

(Deshpande et al. 2021, "ALIGN-MLM", appendix G.4, and its released code.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Artifacts
from pretrain.config import PretrainConfig
from pretrain.data.batch import IGNORE, TERMS
from pretrain.data.rows import Rows, RowSource
from synthlang.dictionary.ids import Synonyms
from synthlang.dictionary.words import trained_types
from synthlang.rng import key_of, random_bits, uniform
from synthlang.vocabularies import Specials

SHARE_MASK, SHARE_RANDOM = 0.8, 0.1  # Devlin et al. 2019, section 3.1
DICT = TERMS.index("dict")
LAST = np.uint64(1 << 63)  # more than any draw
Ids = NDArray[np.int64]
Target = Literal["as-paper", "as-code", "corrected"]


@dataclass(frozen=True)
class MaskedRows:
    """``input_ids``, ``languages`` [rows, length]; ``slots``, ``labels``, ``terms`` [rows, k]; all int64.

    Slots stand in the order of their columns. A slot with the label IGNORE predicts nothing.
    """

    input_ids: Ids
    languages: Ids
    slots: Ids
    labels: Ids
    terms: Ids


@dataclass(frozen=True)
class DictSlots:
    """Which slots predict a translation: a share ``rate`` of them, with the ``target`` of the table above.

    language_ids   whether tokens show their language, so that the slot of a translation shows that of its label
    """

    synonyms: Synonyms
    rate: float
    target: Target
    language_ids: bool


class WordTables:
    """The ids a random word of each language is drawn from."""

    def __init__(self, tables: Sequence[Ids]) -> None:
        self.sizes = np.asarray([len(table) for table in tables], np.int64)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.flat = np.concatenate(tables)

    def draw(self, languages: Ids, random: NDArray[np.float64]) -> Ids:
        """A word for each element, uniformly by ``random`` in [0, 1)."""
        sizes = self.sizes[languages]
        drawn: Ids = self.flat[self.starts[languages] + np.minimum((random * sizes).astype(np.int64), sizes - 1)]
        return drawn


def random_word_tables(trained: Sequence[Ids], choice: str) -> WordTables:
    """``trained`` are the ids that occur in the training text of each language.

    ``all``: a random word is one of any language (XLM); ``same-language``: of the token's own;
    ``source-only``: of the first (what ALIGN-MLM's code did).
    """
    if choice == "same-language":
        return WordTables(trained)
    table = trained[0] if choice == "source-only" else np.unique(np.concatenate(trained))
    return WordTables([table] * len(trained))


def slots_per_row(rate: float, length: int) -> int:
    """k: the masked slots of a row of ``length`` positions."""
    return max(1, round(rate * length))


@dataclass(frozen=True)
class _Slots:
    """Chosen slots with what stands there: ``columns``, ``languages``, ``words`` [rows, k]; which have a label."""

    columns: Ids
    languages: Ids
    words: Ids
    labelled: NDArray[np.bool_]


class Masker:
    """Masks rows of ``length`` tokens; ``size`` ids, of which the specials are never masked."""

    def __init__(
        self,
        specials: Specials,
        size: int,
        rate: float,
        length: int,
        tables: WordTables,
        seed: int,
        dictionary: DictSlots | None = None,
    ) -> None:
        self.rate, self.slots, self.tables, self.dictionary = rate, slots_per_row(rate, length), tables, dictionary
        self.length, self.mask_id = length, specials.mask
        self.is_word = np.ones(size, bool)
        self.is_word[list(specials.all)] = False
        names = ("slots", "action", "word", "dict", "translation")
        self._keys = {name: key_of(name, seed) for name in names}
        # a draw and its column are one number: sorting finds both
        self._column_bits = np.uint64((1 << (length - 1).bit_length()) - 1)

    def mask(self, rows: Rows, source: RowSource, samples: Ids) -> MaskedRows:
        """Mask rows; ``samples`` [rows] are their numbers in the whole run, the counters of their randomness.

        A row without padding has k slots with a label, as far as it has so many words; a padded one the share
        ``rate`` of its words, at least one. The remaining slots have the label IGNORE.
        """
        assert rows.ids.shape[1] == self.length, f"rows of {self.length} tokens"
        slots = self._choose(rows, samples)
        term = np.full(slots.columns.shape, TERMS.index(source.term), np.int64)
        labels = np.where(slots.labelled, slots.words, IGNORE)
        shown = np.where(slots.labelled, self._noise(slots, samples), slots.words)
        masked = MaskedRows(shown, slots.languages, slots.columns, labels, term)
        if self.dictionary is not None:
            masked = self._translate(self.dictionary, masked, slots, samples)
        ids, languages = (a.copy() for a in (rows.ids, rows.languages))
        np.put_along_axis(ids, slots.columns, masked.input_ids, axis=1)
        np.put_along_axis(languages, slots.columns, masked.languages, axis=1)
        return replace(masked, input_ids=ids, languages=languages)

    def _uniform(self, name: str, slots: _Slots, samples: Ids) -> NDArray[np.float64]:
        return uniform(self._keys[name], samples[:, None], slots.columns)

    def _choose(self, rows: Rows, samples: Ids) -> _Slots:
        """The k columns of each row that draw the smallest numbers among its words."""
        column = np.arange(rows.ids.shape[1], dtype=np.uint64)
        draws = random_bits(self._keys["slots"], samples[:, None], column)
        draws >>= np.uint64(1)
        draws &= ~self._column_bits
        draws |= column
        maskable = self.is_word[rows.ids]
        if rows.valid is not None:
            maskable &= rows.valid
        np.bitwise_or(draws, LAST, out=draws, where=~maskable)
        draws.partition(self.slots - 1, axis=1)
        first = np.sort(draws[:, : self.slots], axis=1)
        labelled = first < LAST
        if rows.valid is not None:
            words = maskable.sum(axis=1)
            labelled &= np.arange(self.slots) < np.maximum(np.rint(self.rate * words), 1)[:, None]
        columns = (first & self._column_bits).astype(np.int64)
        order = np.argsort(columns, axis=1)
        columns = np.take_along_axis(columns, order, axis=1)
        languages, words = (np.take_along_axis(a, columns, axis=1) for a in (rows.languages, rows.ids))
        return _Slots(columns, languages, words, np.take_along_axis(labelled, order, axis=1))

    def _noise(self, slots: _Slots, samples: Ids) -> Ids:
        """What the input shows: 80 % <mask>, 10 % a random word, 10 % the word."""
        action = self._uniform("action", slots, samples)
        random = self.tables.draw(slots.languages, self._uniform("word", slots, samples))
        return np.where(
            action < SHARE_MASK, self.mask_id, np.where(action < SHARE_MASK + SHARE_RANDOM, random, slots.words)
        )

    def _translate(self, dictionary: DictSlots, masked: MaskedRows, slots: _Slots, samples: Ids) -> MaskedRows:
        """Make a share of the slots dictionary slots. Arrays of ``masked`` are [rows, k], the inputs too."""
        chosen = slots.labelled & (self._uniform("dict", slots, samples) < dictionary.rate)
        random = self._uniform("translation", slots, samples)
        known, words, translated_to = dictionary.synonyms.draw(slots.languages, slots.words, random)
        translated = chosen & known
        if dictionary.target == "corrected":
            chosen = translated
        shown, labels, languages = masked.input_ids, masked.labels, masked.languages
        if dictionary.target == "as-code":
            # ``words`` is the word itself where there is no entry
            shown = np.where(chosen, words, shown)
        else:
            shown = np.where(chosen & ~known, slots.words, shown)
            labels = np.where(translated, words, labels)
        follows = dictionary.target == "as-code" or (dictionary.target == "corrected" and dictionary.language_ids)
        if follows:
            languages = np.where(translated, translated_to, languages)
        return replace(
            masked, input_ids=shown, labels=labels, languages=languages, terms=np.where(chosen, DICT, masked.terms)
        )


def build_masker(config: PretrainConfig, artifacts: Artifacts) -> Masker:
    """The masker that a run trains with."""
    objective, dictionary = config.objective, None
    if "dict" in objective.terms:
        assert artifacts.dictionary is not None, "prepare draws the dictionary of dict"
        synonyms = Synonyms.of(artifacts.dictionary, len(artifacts.languages), artifacts.id_space.size)
        dictionary = DictSlots(synonyms, objective.dict_rate, objective.dict_target, objective.uses_language_ids)
    return _masker(config, artifacts, config.seed, dictionary)


def build_dev_masker(config: PretrainConfig, artifacts: Artifacts, seed: int) -> Masker:
    """The masker of validation: without dictionary slots, so that perplexity is that of masked words."""
    return _masker(config, artifacts, seed, None)


def _masker(config: PretrainConfig, artifacts: Artifacts, seed: int, dictionary: DictSlots | None) -> Masker:
    space, objective, sharing = artifacts.id_space, config.objective, config.sharing
    trained = [trained_types(language.train.counts, space.specials.all) for language in artifacts.languages]
    # separate embeddings have a softmax for each language too: it predicts, and is shown, its own words
    own = sharing.softmax == "language"
    tables = random_word_tables(trained, "same-language" if own else objective.random_words)
    return Masker(space.specials, space.size, objective.mask_rate, config.batch.length, tables, seed, dictionary)
