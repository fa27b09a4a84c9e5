"""Masking with exactly k slots a row: BERT's 80/10/10, a pure function of (key, step, row)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import key_of, random_bits, uniform
from synthlang.scripts import SPECIAL_TOKENS
from synthlang.vocabulary import MASK

IGNORE = -100  # PyTorch's cross entropy leaves such a label out
SHARE_MASK, SHARE_RANDOM = 0.8, 0.1  # Devlin et al. 2019, section 3.1


@dataclass(frozen=True)
class Masked:
    """``input_ids`` [rows, length], ``slots`` and ``labels`` [rows, k] int64."""

    input_ids: NDArray[np.int64]
    slots: NDArray[np.int64]
    labels: NDArray[np.int64]


def slots_per_row(rate: float, length: int) -> int:
    """k: the masked slots of a row of ``length`` positions."""
    return max(1, round(rate * length))


def random_word_tables(
    parent: NDArray[np.int64], derived: NDArray[np.int64], choice: str
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each language the ids that a random word is drawn from.

    ``parent`` and ``derived`` are the ids of each language. ``all``: those of both (XLM),
    ``same-language``: its own, ``source-only``: the parent's (what ALIGN-MLM's code did).
    """
    if choice == "same-language":
        return parent, derived
    if choice == "source-only":
        return parent, parent
    both = np.union1d(parent, derived)
    return both, both


def mask(
    ids: NDArray[np.int64],
    language: NDArray[np.int64],
    samples: NDArray[np.int64],
    k: int,
    tables: tuple[NDArray[np.int64], NDArray[np.int64]],
    seed: int,
) -> Masked:
    """Mask k slots in each row.

    ids       [rows, length] the text
    language  [rows] index into ``tables``, where random words come from
    samples   [rows] the number of each row in the whole run: the counter of its randomness
    A row with fewer than k words fills the remaining slots with the label IGNORE.
    """
    rows, length = ids.shape
    position = np.arange(length)
    order = random_bits(key_of("slots", seed), samples[:, None], position) >> np.uint64(1)
    maskable = ids >= len(SPECIAL_TOKENS)
    order = np.where(maskable, order, order | np.uint64(2**63))  # specials come last
    slots = np.argpartition(order, k - 1, axis=1)[:, :k] if k < length else np.tile(position, (rows, 1))
    slots = np.sort(slots, axis=1)
    labels = np.take_along_axis(ids, slots, axis=1)
    valid = np.take_along_axis(maskable, slots, axis=1)
    action = uniform(key_of("action", seed), samples[:, None], slots)
    word = uniform(key_of("word", seed), samples[:, None], slots)
    sizes = np.asarray([len(tables[0]), len(tables[1])])[language][:, None]
    drawn = (word * sizes).astype(np.int64)
    random_id = np.where(language[:, None] == 0, _pick(tables[0], drawn), _pick(tables[1], drawn))
    shown = np.where(action < SHARE_MASK, MASK, np.where(action < SHARE_MASK + SHARE_RANDOM, random_id, labels))
    result = ids.copy()
    np.put_along_axis(result, slots, np.where(valid, shown, labels), axis=1)
    return Masked(result, slots, np.where(valid, labels, IGNORE))


def _pick(table: NDArray[np.int64], index: NDArray[np.int64]) -> NDArray[np.int64]:
    return table[np.minimum(index, len(table) - 1)]
