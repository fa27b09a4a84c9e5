"""Tables and notes of the probe ``words``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

Names = tuple[str, str]
SCORES = ("cosine →", "cosine ←", "cosine mean", "CSLS mean")


def subset_table(values: Mapping[str, Any], names: Names) -> Table:
    """All words, those in the dictionary and the others; ``names`` of the parent and of the other language."""
    among = values["candidates"]
    sizes = f"{among['other']:,} and {among['parent']:,}"
    table = Table(title=f"Word-embedding alignment, {names[0]} ↔ {names[1]}, among {sizes} words (%)")
    for column in ("types", "n", *SCORES):
        table.add_column(column, justify="right")
    for key, held in values["scores"].items():
        table.add_row(key.replace("_", " "), *_cells(held))
    return table


def band_table(bands: Sequence[Mapping[str, Any]], language: str) -> Table:
    """All words by frequency in the parent's text."""
    table = Table(title=f"The same by frequency rank in the parent's text, {language} (%)")
    for column in ("ranks", "n", *SCORES):
        table.add_column(column, justify="right")
    for band in bands:
        table.add_row(f"{band['from']:,} – {band['to'] or '…'}", *_cells(band["scores"]["all"]))
    return table


def _cells(held: Mapping[str, Any] | None) -> list[str]:
    if held is None:
        return ["0", "–", "–", "–", "–"]
    cosine = held["cosine"]
    values = (cosine["forward"], cosine["backward"], cosine["mean"], held["csls"]["mean"])
    return [f"{held['n']:,}", *(f"{value:.1f}" for value in values)]


def notes_of(values: Mapping[str, Any]) -> list[str]:
    """What a reader of the numbers has to know."""
    notes = [f"words: {values['reason']}"] if "reason" in values else []
    shared = (values["candidates"] or {}).get("shared", 0)
    if shared:
        notes.append(
            f"words: rows that both languages have: {shared:,}; each competes for every word but its own, and a pair "
            "that is one row is left out"
        )
    zeros = sum(n for reason, n in values["counts"].items() if reason.startswith("rows of zeros"))
    if zeros:
        notes.append(f"words: {zeros:,} embeddings are zero: they are near nothing, and their words count as missed")
    return notes
