"""What was left out on the way to the scores, as the stages counted it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from probes.report.numbers import Entry
from probes.report.page import Paragraph, Section, Table
from probes.study.report.data import Study

ROWS = 150
CAPTION = (
    "What trainings, adjustments and transfers counted by reason: what they left out, cut, changed or left as it was, "
    "and the pairs that remained. Least and most: in one stage; in stages: in how many, of those that read this data."
)


def dropped(study: Study) -> Section | None:
    """A table of counts by stage, data and reason; None where nothing was recorded."""
    if not study.dropped:
        return None
    body: list[list[Entry]] = []
    for path, count in _counts(study.dropped):
        *stage, data, reason = ("", "", *path)[-max(3, len(path)) :]
        where = [" › ".join(filter(None, stage)), data, reason]
        body.append([*where, count["least"], count["most"], f"{count['stages']:,} of {count['of']:,}"])
    if not body:
        return Section("What was dropped", [Paragraph("Nothing was dropped.")])
    header = ["Stage", "Data", "What", "Least", "Most", "In stages"]
    return Section("What was dropped", [Table(CAPTION, header, body, 3, "dropped", ROWS)])


def _counts(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Mapping[str, int]]]:
    """Every count with the keys that lead to it; of several studies the first key is a study."""
    if not isinstance(value, Mapping):
        return
    if all(isinstance(value.get(key), int) for key in ("least", "most", "stages", "of")):
        yield path, value
        return
    for key, inner in value.items():
        yield from _counts(inner, (*path, str(key)))
