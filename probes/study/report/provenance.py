"""Where a study comes from: fingerprints, environment, times, settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml

from probes.report.blocks import Block, Code, Paragraph, Section, Table
from probes.report.numbers import Entry
from probes.study.report.data import Study

CELLS = 100
"""Most cells that a page lists."""


def settings(study: Study) -> Section:
    """The resolved config as YAML."""
    return Section("Settings", [Code(_yaml(study.config) or "No settings were recorded.")])


def provenance(study: Study) -> Section:
    """Fingerprints, environment and time."""
    stages = list(dict.fromkeys(stage for cell in study.cells for stage in cell.stages))
    body = [
        [c.name, c.status, *(c.stages.get(stage, "–") for stage in stages), _overrides(c.overrides)]
        for c in study.cells
    ]
    blocks: list[Block] = [Paragraph(f"Study {study.name}, fingerprint {study.fingerprint or 'unknown'}.")]
    if body:
        header = ["Cell", "Status", *(f"{stage} fingerprint" for stage in stages), "Settings of the cell"]
        caption = "Cells and the fingerprints of their stages."
        blocks.append(Table(caption, header, body, len(header), "cells", CELLS))
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
