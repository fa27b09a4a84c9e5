"""Tables and notes of the probe ``words``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rich.table import Table

from probes.measures.result import table_of

Names = tuple[str, str]
SCORES = ("n", "cosine →", "cosine ←", "cosine mean", "CSLS mean")


def subset_table(values: Mapping[str, Any], names: Names) -> Table:
    """All words, those in the dictionary and the others; ``names`` of the parent and of the other language."""
    sizes = f"{values['candidates']['other']:,} and {values['candidates']['parent']:,}"
    title = f"Word-embedding alignment, {names[0]} ↔ {names[1]}, among {sizes} words (%)"
    rows = [[key.replace("_", " "), *_cells(scores)] for key, scores in values["scores"].items()]
    return table_of(title, ("types", *SCORES), rows)


def band_table(bands: Sequence[Mapping[str, Any]], language: str) -> Table:
    """All words by frequency in the parent's text."""
    rows = [[f"{band['from']:,} – {band['to'] or '…'}", *_cells(band["scores"]["all"])] for band in bands]
    return table_of(f"The same by frequency rank in the parent's text, {language} (%)", ("ranks", *SCORES), rows)


def _cells(scores: Mapping[str, Any] | None) -> list[str]:
    if scores is None:
        return ["0", "–", "–", "–", "–"]
    cosine = scores["cosine"]
    values = (cosine["forward"], cosine["backward"], cosine["mean"], scores["csls"]["mean"])
    return [f"{scores['n']:,}", *(f"{value:.1f}" for value in values)]


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
