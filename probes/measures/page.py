"""The page of a probed model: every table and figure with what they say, one file that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table as TerminalTable

from probes.measures import PROBES
from probes.measures.result import ProbeResult
from probes.measures.settings import ProbeSettings
from probes.report.page import Block, Bullets, Code, Figures, Paragraph, Section, Table, html_page
from synthlang.files import atomic_file


def write_page(
    folder: Path,
    values: Mapping[str, Any],
    found: Mapping[str, ProbeResult],
    table: Mapping[str, type[ProbeSettings]] = PROBES,
) -> Path:
    """Write ``probes.html``; ``table`` says what each probe is called."""
    notes = [Section("Notes", [Bullets(values["notes"])])] if values["notes"] else []
    sections = notes + [Section(table[name].title, _blocks(table[name], result)) for name, result in found.items()]
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


def _blocks(probe: type[ProbeSettings], result: ProbeResult) -> list[Block]:
    blocks: list[Block] = [Paragraph(probe.about)]
    blocks += [Paragraph(note, "note") for note in result.notes]
    blocks += [block_of(table) for table in result.tables]
    if result.figures:
        blocks.append(Figures([figure.figure() for figure in result.figures]))
    counts = [f"{reason}: {count:,}" for reason, count in (result.values.get("counts") or {}).items() if count]
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
