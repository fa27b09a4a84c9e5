"""The page of a probed model: every table and figure with what they say, one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table as TerminalTable

from probes.measure.config import ProbeName
from probes.measure.found import Found
from probes.report.page import Block, Bullets, Code, Figures, Paragraph, Section, Table, html_page
from synthlang.files import atomic_file

SAID: Mapping[ProbeName, tuple[str, str]] = {
    "words": (
        "Word embeddings",
        "How often the embedding of a word lies nearest to that of its counterpart, in percent; every word of the "
        "other language that occurs in training competes, whether it has a counterpart or not. Words of the training "
        "dictionary were pulled together on purpose; the held-out ones show what the model found by itself.",
    ),
    "retrieval": (
        "Words in context",
        "How often a word in a sentence finds the word that it is linked to in the translation of the sentence, among "
        "the words of all sentences, in percent (Cao et al. 2020).",
    ),
    "maps": (
        "Rotations",
        "Whether the two languages have the same shape: an orthogonal map is fitted on some sentences and measured on "
        "others, at every layer.",
    ),
    "cka": (
        "Similarity of layers",
        "Linear CKA: how alike the states of a sentence and of its translation are up to a rotation, 0 to 1; "
        "compared with a model of random weights and, where given, with a paraphrase.",
    ),
    "distances": (
        "Distances",
        "Whether words that translate each other lie closer than words that do not: AUC is 0.5 by chance and 1 where "
        "every related pair is closer than every unrelated one.",
    ),
}


def write_page(folder: Path, values: Mapping[str, Any], found: Mapping[ProbeName, Found]) -> Path:
    """Write ``probes.html``."""
    notes = [Section("Notes", [Bullets(values["notes"])])] if values["notes"] else []
    sections = notes + [Section(SAID[name][0], _blocks(name, held)) for name, held in found.items()]
    together = values["cka_against_retrieval"]
    if together is not None:
        sections.append(Section("CKA against retrieval", [Paragraph(_together(together))]))
    settings = json.dumps(values["settings"], indent=2, ensure_ascii=False)
    parents = json.dumps(values["parents"], indent=2, ensure_ascii=False)
    sections.append(Section("Settings", [Code(f"{settings}\n{parents}")]))
    title = f"Probes of {values['model']}"
    under = f"{values['parent']} and {values['language']} · {', '.join(found)} · {values['fingerprint'][:12]}"
    path = folder / "probes.html"
    with atomic_file(path, "w") as handle:
        handle.write(html_page(title, under, sections, "probe"))
    return path


def _blocks(name: ProbeName, held: Found) -> list[Block]:
    blocks: list[Block] = [Paragraph(SAID[name][1])]
    blocks += [Paragraph(note, "note") for note in held.notes]
    blocks += [block_of(table) for table in held.tables]
    if held.figures:
        blocks.append(Figures([figure.figure() for figure in held.figures]))
    counts = [f"{reason}: {count:,}" for reason, count in (held.values.get("counts") or {}).items() if count]
    if counts:
        blocks += [Paragraph("What was counted on the way:"), Bullets(counts)]
    return blocks


def _together(found: Mapping[str, Any]) -> str:
    """Whether the layers that are alike are those where words find each other."""
    pairs = "" if found["pairs"] is None else f", {found['pairs']}"
    what = (
        f"Pearson's r over layers of biased CKA of same-number layers and retrieval of words in context (CSLS{pairs})"
    )
    if found["r"] is None:
        return f"{what}: none, {found['reason']}."
    bounds = "" if found["low"] is None else f", 95 % interval {found['low']:.2f} to {found['high']:.2f}"
    return f"{what}: {found['r']:.2f} (n = {found['n']} layers{bounds}). Layers are not independent of each other."


def block_of(table: TerminalTable) -> Table:
    """The same table for a page."""
    columns = [[str(cell) for cell in column.cells] for column in table.columns]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return Table(str(table.title or ""), [str(column.header) for column in table.columns], rows)
