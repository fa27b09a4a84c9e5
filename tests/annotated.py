"""Small annotated sentences for tests, written on one line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from synthlang.corpus import Corpus


def annotated(*sentences: str) -> Corpus:
    """A corpus of sentences written as ``form/upos/deprel/head[/feats[/lemma]]``, words with a space between them."""
    most = max(word.count("/") for sentence in sentences for word in sentence.split())
    return Corpus.of([_columns(sentence, ("feats", "lemma")[: max(most - 3, 0)]) for sentence in sentences])


def _columns(sentence: str, more: Sequence[str]) -> dict[str, Sequence[Any]]:
    rows = [word.split("/") for word in sentence.split()]
    columns: dict[str, Sequence[Any]] = {
        "form": [row[0] for row in rows],
        "upos": [row[1] for row in rows],
        "deprel": [row[2] for row in rows],
        "head": [int(row[3]) for row in rows],
    }
    for place, name in enumerate(more, start=4):
        columns[name] = [row[place] if len(row) > place else "_" for row in rows]
    return columns
