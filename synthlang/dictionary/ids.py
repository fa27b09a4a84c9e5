"""Words of a dictionary that are one token each, as pairs of ids."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from synthlang.dictionary.spec import SPECIAL_IDS
from synthlang.dictionary.words import WordDictionary


def id_pairs(
    dictionary: WordDictionary,
    source: Tokenizer,
    target: Tokenizer,
    offset: int = 0,
    specials: ArrayLike = SPECIAL_IDS,
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The pairs [n, 2] of (source id, target id + ``offset``), sorted, of words that are one token on both sides.

    For a natural pair of languages in one vocabulary both tokenizers are the same one. ``specials`` are ids
    of no word (default: ours, 0–4). The counts say how many lines of the dictionary are pairs, and why the
    others are none.
    """
    left, right = (
        _single_ids(tokenizer, words, specials)
        for tokenizer, words in ((source, dictionary.source), (target, dictionary.target))
    )
    usable = (left >= 0) & (right >= 0)
    pairs = np.stack([left[usable], right[usable] + offset], axis=1).reshape(-1, 2)
    counts = {
        "pairs": int(usable.sum()),
        "source word is several tokens": int(((left < 0) & (right >= 0)).sum()),
        "target word is several tokens": int(((left >= 0) & (right < 0)).sum()),
        "both words are several tokens": int(((left < 0) & (right < 0)).sum()),
    }
    return np.unique(pairs, axis=0), counts


def _single_ids(tokenizer: Tokenizer, words: tuple[str, ...], specials: ArrayLike) -> NDArray[np.int64]:
    """[words] the id of each word that is one token and no special one, else −1."""
    encodings = tokenizer.encode_batch(list(words), add_special_tokens=False)
    ids = np.asarray([e.ids[0] if len(e.ids) == 1 else -1 for e in encodings], np.int64).reshape(-1)
    return np.where(np.isin(ids, specials), -1, ids)
