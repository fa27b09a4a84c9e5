"""metrics.jsonl: one JSON object a line, in the order of steps, without a line from the future."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from synthlang.files import append_line, atomic_file


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The lines up to the first that is none: a kill may cut the last one short, a crash of the machine more."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
        try:
            row = json.loads(line)
        except ValueError:
            break
        if not (isinstance(row, dict) and isinstance(row.get("step"), int)):
            break
        rows.append(row)
    return rows


class MetricsLog:
    """Appends lines; only the main process writes."""

    def __init__(self, path: Path, is_main: bool) -> None:
        self.path = path
        self.is_main = is_main

    def cut(self, step: int) -> None:
        """Drop the lines after ``step``: the run goes on from there and writes them again."""
        if self.is_main:
            rows = [row for row in read_metrics(self.path) if row["step"] <= step]
            with atomic_file(self.path, "w") as handle:
                handle.writelines(json.dumps(row) + "\n" for row in rows)

    def write(self, row: dict[str, Any]) -> None:
        """Append one line."""
        if self.is_main:
            append_line(self.path, json.dumps(row, allow_nan=False))
