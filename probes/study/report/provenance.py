"""Where a study comes from: fingerprints, environment, times, settings."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import yaml

from probes.report.numbers import Entry, plural
from probes.report.page import Block, Code, Folded, Paragraph, Section, Table
from probes.study.report.data import Study
from probes.study.resolved import DIFFERS

CELLS = 100
"""Most cells that a page lists."""
WRITTEN = "The study as it is written; base names files that it changes."
RESOLVED = (
    f"What base files, the study and defaults come to. {DIFFERS} stands where cells are not the same; what differs is "
    "in their labels, and in the column Settings of the cell of tables/cells.csv. cell:model, cell:second "
    "and cell:start are models of the cell."
)


def settings(study: Study) -> Section:
    """The study as it was written, and every setting that it comes to, as YAML."""
    blocks: list[Block] = [Paragraph(WRITTEN), Code(_yaml(study.config) or "No settings were recorded.")]
    if study.settings:
        blocks.append(Folded("Every setting in full", [Paragraph(RESOLVED), Code(_yaml(study.settings))], aside=True))
    else:
        blocks.append(Paragraph("Settings in full were not recorded; start the study again to have them.", "note"))
    return Section("Settings", blocks)


def provenance(study: Study) -> Section:
    """Fingerprints, environment and time."""
    stages = list(dict.fromkeys(stage for cell in study.cells for stage in cell.stages))
    body = [
        [c.name, c.status, *(c.stages.get(stage, "–") for stage in stages), _overrides(c.overrides)]
        for c in study.cells
    ]
    blocks: list[Block] = [Paragraph(f"Study {study.name}, fingerprint {study.fingerprint or 'unknown'}.")]
    if body:
        header = ["Cell", "Status", *(f"{_told(stage)} fingerprint" for stage in stages), "Settings of the cell"]
        caption = "Cells and the fingerprints of their stages."
        table = Table(caption, header, body, len(header), "cells", CELLS)
        blocks.append(Folded(f"Fingerprints of {plural(len(body), 'cell')}, stage by stage", [table], aside=True))
    if study.environment:
        environment = [[str(k), _value(v)] for k, v in study.environment.items()]
        blocks.append(Table("Environment.", ["What", "Version or value"], environment, 2, "environment"))
    if study.seconds:
        by_kind: dict[str, list[float]] = {}
        for stage, seconds in sorted(study.seconds.items()):
            by_kind.setdefault(stage.rsplit("-", 1)[0], []).append(seconds)
        times: list[list[Entry]] = [
            [kind, len(held), duration(sum(held)), duration(max(held))] for kind, held in by_kind.items()
        ]
        times.append(
            ["all", len(study.seconds), duration(sum(study.seconds.values())), duration(max(study.seconds.values()))]
        )
        header = ["Stage", "How many", "Total", "Longest"]
        blocks.append(Table("Time of the stages, one after the other. h:mm:ss.", header, times))
    else:
        blocks.append(Paragraph("No times were recorded.", "note"))
    return Section("Where it comes from", blocks)


def _told(stage: str) -> str:
    """
    >>> _told("transfer pos seed 0"), _told("pretrain")
    ('transfer pos, fine-tuning seed 0', 'pretrain')
    """
    return re.sub(r"^(transfer .*) (seed \d+)$", r"\1, fine-tuning \2", stage)


def duration(seconds: float) -> str:
    """
    >>> duration(3725.4), duration(0.42)
    ('1:02:05', '0:00:00.4')
    """
    if seconds < 10:
        return f"0:00:{seconds:04.1f}"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02d}:{whole % 60:02d}"


def _overrides(overrides: Mapping[str, Any]) -> str:
    return ", ".join(f"{key}={_value(value)}" for key, value in overrides.items()) or "–"


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _yaml(value: Mapping[str, Any]) -> str:
    return yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True, width=100) if value else ""
