"""metrics.jsonl: one JSON object a line, in the order of steps, without a line from the future."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from synthlang.files import atomic_file


def read_metrics(path: Path) -> list[dict[str, Any]]:
    """The complete lines; a last line that a kill cut short is left out."""
    if not path.exists():
        return []
    rows = []
    for line in path.read_text(encoding="utf-8").split("\n"):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            break  # only the tail can be incomplete: lines are appended whole
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
            with self.path.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(row, allow_nan=False) + "\n")
