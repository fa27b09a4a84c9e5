"""Contents of data sets, counted with the readers that studies use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from synthlang.data.entries import Layout
from synthlang.errors import InputError
from synthlang.files import count_lines, no_such, reading
from synthlang.progress import Report, silent
from synthlang.wording import first_few, plural

TASKS = {"nli": "nli", "ner": "ner", "qa": "qa", "slots": "slots", "minimal": "minimal", "conllu": "pos"}
"""The task that reads a folder of each layout."""
FETCH = "delete the data set, and fetch or obtain it again"
MISSING = "run synthlang data fetch for this data set, or obtain the data set by hand"
SHOWN = 8
"""Number of labels that a line names."""


@dataclass
class Content:
    """Contents of a split or a file of a data set.

    Attributes:
        unit: Name of the items, in the plural.
        items: Number of items.
        labels: Number of items, or words, with each label.
    """

    unit: str
    items: int = 0
    labels: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        """Return the counts on one line."""
        shown = first_few([f"{name} {count:,}" for name, count in self.labels.most_common()], SHOWN)
        return f"{self.items:,} {self.unit}" + (f" ({shown})" if shown else "")


def open_layout(layout: Layout, paths: Sequence[Path]) -> Any:
    """Open a data set as a study would, to check that it has the layout.

    Only the start of a file is read, except that the lines of two parallel files are counted.

    Args:
        layout: The layout of the data set.
        paths: The folder of the data set, or its files.

    Returns:
        The task of labelled items or the source of a folder, or None for files.

    Raises:
        InputError: A file is missing, cannot be read or has another layout.
    """
    for path in paths:
        if not path.exists():
            raise no_such(path, "file or folder", hint=MISSING)
    if layout in TASKS:
        from synthlang.tasks import open_task

        return open_task(f"{TASKS[layout]}:{paths[0]}")
    if layout == "text":
        from synthlang.sources import open_source

        return open_source(f"text:{paths[0]}")
    if layout == "pairs":
        from synthlang.parallel.text import check_lines

        check_lines(paths[0], count_lines(paths[0]), paths[1], count_lines(paths[1]))
    return None


def contents(layout: Layout, paths: Sequence[Path], report: Report = silent) -> dict[str, Content]:
    """Read a data set, and return the content of each of its splits or files, by name.

    Args:
        layout: The layout of the data set.
        paths: The folder of the data set, or its files.
        report: Called with the progress.

    Raises:
        InputError: A file is missing, damaged or has another layout.
    """
    opened = open_layout(layout, paths)
    if opened is not None:
        return _counted(opened, "sentences" if layout == "text" else "items", report)
    if layout == "dictionary":
        from synthlang.dictionary.word_dictionary import read_weighted

        return {path.name: Content("pairs of words", len(read_weighted(path))) for path in paths}
    if layout == "vectors":
        return {path.name: Content("vectors", _vectors(path)) for path in paths}
    return {path.name: Content("sentences", count_lines(path)) for path in paths}


def _counted(opened: Any, unit: str, report: Report) -> dict[str, Content]:
    """Count the items of each split of a task or a source, and the labels of a task."""
    from synthlang.sources.base import size_of

    found = {split: Content(unit) for split in opened.splits}
    for split, content in found.items():
        for batch in opened.batches(split):
            content.items += len(batch)
            if unit == "items":
                column = batch.corpus.columns.get(opened.tags) if opened.tags else batch.label
                content.labels.update(() if column is None else column.values())
            report(split, content.items, max(content.items, size_of(opened, split) or 0), "")
    return found


def _vectors(path: Path) -> int:
    """Count the vectors, and check that the header states the same number."""
    with reading(path), path.open("rb") as handle:
        header, found = handle.readline().split(), sum(1 for _ in handle)
    if len(header) != 2 or not all(part.isdigit() for part in header):
        reason = "the first line must be the number of words and the number of dimensions, separated by a space"
        raise InputError(reason, path, 1, hint=FETCH, code="format")
    if (stated := int(header[0])) != found:
        reason = f"the first line gives {plural(stated, 'word')}, but the file has {found:,}"
        raise InputError(reason, path, 1, hint=FETCH, code="damaged")
    return found
