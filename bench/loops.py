"""The same work as plain loops over sentences, one Python object a word: what a ratio is taken to."""

from __future__ import annotations

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from synthlang.corpus import Sentence
from synthlang.scripts import SCRIPTS

MARKS = (".", "!", "?")
LETTERS = SCRIPTS["cyrillic"].letters


def derive(words: list[str]) -> tuple[list[str], list[int]]:
    """Inverted between final marks and transliterated, with the origin of each word."""
    origin: list[int] = []
    start = 0
    for end in range(len(words) + 1):
        if end == len(words) or words[end] in MARKS:
            origin += [*range(end - 1, start - 1, -1), *([end] if end < len(words) else [])]
            start = end + 1
    return ["".join(LETTERS[byte] for byte in words[i].encode("utf-8")) for i in origin], origin


def export(sentences: Iterable[list[str]], path: Path) -> None:
    """Derived and written as parquet from rows of Python objects, all three configurations."""
    tables: dict[str, list[dict[str, Any]]] = {"parent": [], "derived": [], "parallel": []}
    for number, words in enumerate(sentences):
        derived, origin = derive(words)
        text, new = " ".join(words), " ".join(derived)
        pairs = [{"parent": a, "derived": b} for b, a in enumerate(origin)]
        tables["parent"].append({"id": number, "text": text, "words": words})
        tables["derived"].append({"id": number, "text": new, "words": derived, "origin": origin, "parent_text": text})
        tables["parallel"].append(
            {"id": number, "parent_text": text, "derived_text": new, "parent_words": words, "derived_words": derived}
            | {"alignment": pairs}
        )
    for name, rows in tables.items():
        pq.write_table(pa.Table.from_pylist(rows), path.with_suffix(f".{name}"), compression="zstd")


def shuffle_trees(sentences: Iterable[Sentence]) -> int:
    """Each node's items in a random order, laid out by recursion; returns the words."""
    draw = random.Random(0)  # noqa: S311  a stopwatch, no secret
    words = 0
    for sentence in sentences:
        items: dict[int, list[int]] = {}
        for word, head in enumerate(sentence.columns["head"], start=1):
            items.setdefault(head, []).append(word)
        words += len(_laid_out(items, items[0][0], draw)) if 0 in items else 0
    return words


def _laid_out(items: dict[int, list[int]], node: int, draw: random.Random) -> list[int]:
    order = [node, *items.get(node, [])]
    draw.shuffle(order)
    return [word for item in order for word in ([node] if item == node else _laid_out(items, item, draw))]


def read_text(path: Path) -> int:
    """Words between white space."""
    with path.open(encoding="utf-8") as handle:
        return sum(len(line.split()) for line in handle)


def read_conllu(path: Path) -> int:
    """Lines cut at tabs, nothing checked; returns the words."""
    kept = []
    with path.open(encoding="utf-8") as handle:
        for line in handle:
            fields = line.rstrip("\n").split("\t")
            if len(fields) == 10 and fields[0].isdigit():
                kept.append((fields[1], fields[3], int(fields[6]), fields[7]))
    return len(kept)
