"""What was left out on the way to the scores, as the stages counted it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.report.blocks import Paragraph, Section, Table
from probes.study.report.data import Study

ROWS = 150


def dropped(study: Study) -> Section | None:
    """A table of counts by place and reason; None where nothing was recorded."""
    if not study.dropped:
        return None
    counts = [(path, value) for path, value in flatten(study.dropped).items() if value not in (None, {}, [], "")]
    if not any(not isinstance(value, int | float) or value for _, value in counts):
        return Section("What was dropped", [Paragraph("Nothing was dropped.")])
    body = [[*path.rpartition(" › ")[::2], value if isinstance(value, int | float) else str(value)]
            for path, value in counts if value]  # fmt: skip
    caption = "Items that were left out or cut, counted by the stages that did so."
    return Section("What was dropped", [Table(caption, ["Where", "What", "How many"], body, 2, "dropped", ROWS)])


def flatten(value: Any, prefix: str = "") -> dict[str, Any]:
    """Leaves of nested objects by their path; objects in a list have numbers from 1, any other list is a leaf.

    >>> flatten({"all": {"n": 9, "csls": {"mean": 1.5}}, "bands": [{"n": 4}], "steps": [1, 2]})
    {'all › n': 9, 'all › csls › mean': 1.5, 'bands › 1 › n': 4, 'steps': [1, 2]}
    """
    if isinstance(value, list) and value and all(isinstance(child, Mapping) for child in value):
        value = dict(enumerate(value, 1))
    if not isinstance(value, Mapping):
        return {prefix or "value": value}
    leaves: dict[str, Any] = {}
    for key, child in value.items():
        leaves |= flatten(child, f"{prefix} › {key}" if prefix else str(key))
    return leaves
