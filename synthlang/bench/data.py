"""Data for measurements on any machine: text with Zipfian words, and a treebank of mini-english."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from synthlang.parsing.command import conllu
from synthlang.rng import key_of, uniform
from synthlang.sources.mini_english import MiniEnglish

TYPES = 50_000
LETTERS = "etaoinshrdlucmfwypvbgkjqxz"
SENTENCES_A_LINE = 4


def write_text(path: Path, words: int) -> None:
    """A file of about ``words`` words: rank r with probability ∝ 1 / r, 5 to 34 words a sentence."""
    key = key_of("bench")
    chance = 1 / np.arange(1, TYPES + 1)
    ranks = np.searchsorted(np.cumsum(chance / chance.sum()), uniform(key, np.arange(words)))
    names = [_name(rank) for rank in range(TYPES)]
    lengths = 5 + (uniform(key, 1, np.arange(words // 5 + 1)) * 30).astype(np.int64)
    lines: list[list[str]] = [[]]
    start = 0
    for length in lengths.tolist():
        sentence = [names[min(rank, TYPES - 1)] for rank in ranks[start : start + length].tolist()]
        if not sentence:
            break
        lines[-1].append(" ".join([sentence[0].capitalize(), *sentence[1:]]) + ".")
        if len(lines[-1]) == SENTENCES_A_LINE:
            lines.append([])
        start += length
    path.write_text("\n".join(" ".join(line) for line in lines) + "\n", encoding="utf-8")


def _name(rank: int) -> str:
    """Short words are the frequent ones, as in any language."""
    letters, rest = "", rank + 1
    while rest:
        rest, letter = divmod(rest, len(LETTERS))
        letters += LETTERS[letter]
    return letters


def write_treebank(folder: Path, sentences: int) -> None:
    """A folder with the training split of mini-english as CoNLL-U."""
    with (folder / "mini-train.conllu").open("w", encoding="utf-8") as handle:
        for batch in MiniEnglish(sentences=sentences).batches("train"):
            handle.writelines(conllu(sentence, "train") for sentence in batch)
