"""Code switching: extra anchors, which are words of another language in the derived language.

A word in the dictionary is replaced by its translation with probability 0.3. At most 15 % of the words of a batch are
replaced (Conneau et al. 2020, "Emerging Cross-lingual Structure in Pretrained Language Models", extra anchors).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, PrivateAttr, field_validator

from synthlang.corpus import Column, Corpus
from synthlang.dictionary.word_dictionary import read_muse, read_weighted
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform
from synthlang.sources.base import BATCH_SENTENCES
from synthlang.transforms.base import Transform, parent_words
from synthlang.transforms.transliterate import type_hashes

PARENT_WORDS = "parent"
Flags = NDArray[np.bool_]


class CodeSwitch(Transform):
    """Replace words by their translations. ``strength`` scales ``probability`` and ``cap``.

    A word that is its own translation is not a candidate. The transform has no inverse.
    """

    invertible: ClassVar[bool] = False  # a replaced word does not determine what it replaced
    file_fields: ClassVar[tuple[str, ...]] = ("dictionary",)
    short_name: ClassVar[tuple[str, str] | None] = ("switch", "dictionary")

    kind: Literal["code_switch"] = "code_switch"
    dictionary: str = PARENT_WORDS
    """``parent`` for the source words themselves, or a file with ``source target`` on each line.

    The source word is looked up as it is, then in lower case.
    """
    coverage: float = Field(default=1.0, ge=0.0, le=1.0)
    """Share of the source's word types that are in the dictionary, chosen by a hash of the form."""
    probability: float = Field(default=0.3, ge=0.0, le=1.0)
    """Probability that a word in the dictionary is replaced."""
    cap: float = Field(default=0.15, ge=0.0, le=1.0)
    """Largest share of the words of a batch that are replaced.

    If more words are drawn, only floor(strength · cap · words) of them are replaced. Their random numbers are the
    smallest.
    """
    batch_sentences: int = Field(default=1000, ge=1)
    """Number of sentences of a batch for ``cap``, a divisor of 2,000."""
    translations: Literal["first", "uniform", "weighted"] = "first"
    """Choice among several translations: the ``first``, or a random translation (``uniform`` or ``weighted``).

    The weights are the third column of the file, which in PanLex is the quality of a translation.
    Without that column, ``weighted`` draws uniformly.
    """
    _pairs: dict[str, tuple[str, ...]] | None = PrivateAttr(default=None)
    _weights: dict[str, tuple[float, ...]] = PrivateAttr(default_factory=dict)
    _draws: int = PrivateAttr(default=0)

    @field_validator("batch_sentences")
    @classmethod
    def _divides(cls, value: int) -> int:
        if BATCH_SENTENCES % value:
            reason = f"{value} must be a divisor of {BATCH_SENTENCES}"
            raise InputError(reason, hint="use for example 1000 or 500", code="range")
        return value

    def model_post_init(self, context: Any, /) -> None:
        """Read the dictionary once, so that the fingerprint covers the pairs in use.

        Raises:
            InputError: The dictionary cannot be read (see ``read_muse`` and ``read_weighted``).
        """
        del context
        if self.dictionary == PARENT_WORDS:
            return
        path, is_weighted = user_path(self.dictionary), self.translations == "weighted"
        try:
            weights = read_weighted(path) if is_weighted else dict.fromkeys(read_muse(path), 1.0)
        except InputError as error:
            raise error.inside("dictionary") from error
        found: dict[str, list[tuple[str, float]]] = {}
        for (source, target), weight in weights.items():
            found.setdefault(source, []).append((target, weight))
        self._pairs = {source: tuple(target for target, _ in targets) for source, targets in found.items()}
        self._weights = {source: tuple(weight for _, weight in targets) for source, targets in found.items()}

    def identity(self) -> dict[str, Any]:
        content = PARENT_WORDS if self._pairs is None else fingerprint("muse", pairs=self._pairs)
        if self._pairs is not None and self.translations == "weighted":
            content = fingerprint("weighted", pairs=self._pairs, weights=self._weights)
        return {**super().identity(), "dictionary": content} | ({"draws": self._draws} if self._draws else {})

    @property
    def adds_forms(self) -> bool:
        return self._pairs is not None

    def added_forms(self, words: Sequence[str], key: int) -> tuple[str, ...]:
        found = self._translations(words, key) if self.adds_forms else []
        return tuple(dict.fromkeys(f" {translation}" for translations in found for translation in translations))

    def redrawn(self, number: int) -> Self:
        """Return a copy with other draws of words and translations from the same dictionary."""
        redrawn = self.model_copy()
        redrawn._draws = number
        return redrawn

    def _of_words(self, key: int) -> int:
        """Return the random key that selects the replaced words and their translations."""
        return key_of("draws", key, self._draws) if self._draws else key

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if not len(corpus.form.codes):
            return Rewrite.identity(corpus)
        ids = corpus.ids[corpus.sentence_of_word]
        own, target = self._targets(corpus, ids, key)
        number = uniform(key_of("word", self._of_words(key)), ids, corpus.position)
        drawn = (target.codes != own) & (number < self.probability * self.strength)
        replaced = self._below_cap(corpus, drawn, number)
        form = Column(np.where(replaced, target.codes, own).astype(np.int32), target.names)
        counts = {
            "code_switch: words": len(own),
            "code_switch: words drawn": drawn,
            "code_switch: words over the cap": drawn & ~replaced,
            "code_switch: words replaced": replaced,
        }
        return Rewrite.identity(corpus, form).counted(counts)

    def _targets(self, corpus: Corpus, ids: NDArray[np.int64], key: int) -> tuple[NDArray[np.int32], Column]:
        """Return the codes of the words, and a column of their translations with the same names.

        A word without a translation is its own translation.
        """
        parent = parent_words(corpus)
        names = parent.names or ()
        options = self._translations(names, key)
        many = np.asarray([len(o) for o in options], np.int64)
        starts = np.cumsum(many) - many
        index: dict[str, int] = {}
        own = np.asarray([index.setdefault(name, len(index)) for name in corpus.form.names or ()], np.int32)
        flat = np.asarray([index.setdefault(o, len(index)) for all_ in options for o in all_] or [0], np.int32)
        pick = np.zeros(len(ids), np.int64)
        if self.translations != "first":
            draw = uniform(key_of("translation", self._of_words(key)), ids, corpus.position)
            pick = (draw * many[parent.codes]).astype(np.int64)
        if self.translations == "weighted" and self._pairs is not None:
            # The bounds of all types form one ascending list, in which type t has the bounds from t to t + 1.
            bounds = [t + bound for t, name in enumerate(names) if many[t] for bound in self._bounds(name)]
            pick = np.searchsorted(np.asarray(bounds), parent.codes + draw, side="right") - starts[parent.codes]
            pick = np.minimum(pick, np.maximum(many[parent.codes] - 1, 0))
        known = (many[parent.codes] > 0) & parent.lookup(lambda name: name != "_")
        at = np.where(known, starts[parent.codes] + pick, 0)
        codes = own[corpus.form.codes]
        return codes, Column(np.where(known, flat[at], codes).astype(np.int32), tuple(index))

    def _translations(self, words: Sequence[str], key: int) -> list[tuple[str, ...]]:
        """Return the translations of each word. A word that is not in the dictionary has no translation."""
        found: list[tuple[str, ...]] = [(word,) for word in words]
        if self._pairs is not None:
            most = 1 if self.translations == "first" else None
            found = [self._pairs.get(self._entry(word), ())[:most] for word in words]
        if self.coverage < 1.0:
            below = type_hashes(key, words) < self.coverage
            found = [t if is_below else () for t, is_below in zip(found, below.tolist(), strict=True)]
        return found

    def _entry(self, word: str) -> str:
        """Return a word as in the dictionary, else in lower case."""
        return word if word in (self._pairs or ()) else word.lower()

    def _bounds(self, word: str) -> NDArray[np.float64]:
        """Return the cumulative shares of the weights of a word's translations."""
        sums = np.cumsum(self._weights[self._entry(word)])
        return np.asarray(sums / sums[-1])

    def _below_cap(self, corpus: Corpus, drawn: Flags, number: NDArray[np.float64]) -> Flags:
        """Select at most floor(cap · strength · words) drawn words a batch, with the smallest numbers, [words]."""
        _, batch = np.unique(corpus.ids // self.batch_sentences, return_inverse=True)
        words = np.bincount(batch, weights=corpus.lengths)
        limit = np.floor(self.cap * self.strength * words + 1e-9)
        rows = np.flatnonzero(drawn)
        of_row = batch[corpus.sentence_of_word[rows]]
        order = np.lexsort((number[rows], of_row))
        sizes = np.bincount(of_row, minlength=len(words))
        rank = np.arange(len(rows)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        replaced = np.zeros(len(drawn), bool)
        replaced[rows[order[rank < limit[of_row[order]]]]] = True
        return replaced
