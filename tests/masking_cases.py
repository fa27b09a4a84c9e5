"""Rows to mask, a dictionary for masking, and masking as a loop over rows and positions."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from pretrain.data.batch import IGNORE, Rows, RowSource
from pretrain.data.masking import Masker, masked_per_row, random_word_tables
from pretrain.objectives.dict import Translated
from pretrain.objectives.table import NAMES
from synthlang.dictionary.ids import IdDictionary, Synonyms
from synthlang.rng import key_of, random_bits, uniform
from synthlang.vocabularies import OURS, Specials

V = 100  # ids 5 … 99 are the first language's, 105 … 199 the second's
SIZE, LENGTH, RATE = 2 * V, 32, 0.15
WORDS = (np.arange(5, V), np.arange(V + 5, 2 * V))


@dataclass(frozen=True)
class Kind:
    """The attributes of a source of rows that masking reads."""

    term: str = "mlm"
    causal: bool = False


def source_of(term: str = "mlm") -> RowSource:
    return cast(RowSource, Kind(term))


def monolingual(count, member=0, length=LENGTH, low=5, high=V, seed=0):
    """Rows of one language: <s>, words, </s> at column 9."""
    ids = np.random.default_rng(seed).integers(low, high, (count, length)) + member * V
    ids[:, 0], ids[:, 9] = OURS.bos, OURS.eos
    return Rows(ids, np.full_like(ids, member))


def translated(count, length=LENGTH, seed=0):
    """Return rows of pairs, with language 0 in the first half and 1 in the second. Each half ends with padding."""
    rng = np.random.default_rng(seed)
    half = length // 2
    ids = rng.integers(5, V, (count, length))
    ids[:, half:] += V
    languages = np.repeat([[0] * half + [1] * half], count, axis=0)
    lengths = np.stack([rng.integers(3, half + 1, count), rng.integers(3, half + 1, count)], axis=1)
    column = np.arange(length)
    used = np.where(column < half, lengths[:, :1], lengths[:, 1:])
    valid = column % half < used
    ids[column[None] % half == used - 1] = OURS.eos
    ids[:, [0, half]] = OURS.bos
    ids[~valid] = OURS.pad
    positions = np.repeat([column % half], count, axis=0)
    return Rows(ids, languages, positions, valid)


def dictionary_of(pairs, languages=None) -> IdDictionary:
    pairs = np.asarray(pairs, np.int64).reshape(-1, 2)
    languages = np.tile([0, 1], (len(pairs), 1)) if languages is None else np.asarray(languages, np.int64)
    return IdDictionary(pairs, languages, {"fingerprint": "f"})


def copies(share: float, seed=0) -> IdDictionary:
    """A share of the words of language 0 with their copies."""
    words = np.random.default_rng(seed).permutation(WORDS[0])[: round(share * len(WORDS[0]))]
    return dictionary_of(np.stack([words, words + V], axis=1))


def masker_of(
    dictionary: IdDictionary | None = None,
    target: Any = "label",
    rate=RATE,
    dict_rate=0.5,
    language_ids=True,
    choice="same-language",
    seed=1,
    length=LENGTH,
    specials: Specials = OURS,
    size=SIZE,
    words=WORDS,
) -> Masker:
    relabels = {}
    if dictionary is not None:
        relabels["dict"] = Translated(Synonyms.of(dictionary, 2, size), dict_rate, target, language_ids)
    return Masker(specials, size, rate, length, random_word_tables(words, choice), seed, NAMES, relabels)


def entries_of(dictionary: IdDictionary) -> dict[tuple[int, int], list[tuple[int, int]]]:
    """(member, id) → its translations as (member, id), sorted."""
    entries: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for (a, b), (m, n) in zip(dictionary.pairs.tolist(), dictionary.languages.tolist(), strict=True):
        entries.setdefault((m, a), []).append((n, b))
        entries.setdefault((n, b), []).append((m, a))
    return {token: sorted(found) for token, found in entries.items()}


def masked_by_a_loop(
    rows, samples, dictionary=None, target="label", dict_rate=0.5, language_ids=True, term="mlm", rate=RATE, seed=1
) -> SimpleNamespace:
    """Mask as ``masker_of(…).mask`` does, slot by slot by the tables of the docstring.

    Random words have the language of the word.
    """
    entries = entries_of(dictionary) if dictionary is not None else {}
    length = rows.ids.shape[1]
    k = masked_per_row(rate, length)
    below = (1 << (length - 1).bit_length()) - 1
    ids, languages, before = rows.ids.tolist(), rows.languages.tolist(), rows.ids.tolist()

    def word(row, column):
        return before[row][column] >= 5 and (rows.valid is None or rows.valid[row][column])

    shape = (len(ids), k)
    slots, labels, terms = np.zeros(shape, int), np.full(shape, IGNORE), np.full(shape, NAMES.index(term))
    for row, sample in enumerate(samples.tolist()):

        def u(name, column, sample=sample):
            return float(uniform(key_of(name, seed), sample, column)[0])

        def rank(column, sample=sample, row=row):
            bits = int(random_bits(key_of("slots", seed), sample, column)[0]) >> 1
            return (not word(row, column), (bits & ~below) + column)

        order = sorted(range(length), key=rank)[:k]
        words = sum(word(row, c) for c in range(length))
        wanted = min(k, words) if rows.valid is None else max(round(rate * words), 1)
        chosen = {c for c in order[:wanted] if word(row, c)}
        slots[row] = sorted(order)
        for place, column in enumerate(sorted(order)):
            if column not in chosen:
                continue
            token, member = before[row][column], languages[row][column]
            label, shown, action = token, token, u("action", column)
            if action < 0.8:
                shown = OURS.mask
            elif action < 0.9:
                shown = int(WORDS[member][int(u("word", column) * len(WORDS[member]))])
            translations = entries.get((member, token), [])
            if dictionary is not None and u("dict", column) < dict_rate:
                if translations or target != "label":
                    terms[row, place] = NAMES.index("dict")
                if translations:
                    other, translation = translations[int(u("translation", column) * len(translations))]
                    if target in ("label", "label-or-copy"):
                        label = translation
                    else:
                        shown = translation
                    if target != "label-or-copy" and (language_ids or target != "label"):
                        languages[row][column] = other
                elif target != "label":
                    shown = token
            ids[row][column] = shown
            labels[row, place] = label
    return SimpleNamespace(
        input_ids=np.asarray(ids), languages=np.asarray(languages), masked=slots, labels=labels, terms=terms
    )
