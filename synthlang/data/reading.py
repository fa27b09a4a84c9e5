"""Contents of data sets, counted with the readers that studies use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


def open_layout(layout: Layout, paths: Sequence[Path]) -> None:
    """Open a data set as a study would, to check that it has the layout.

    Only the start of a file is read, except that the lines of two parallel files are counted.

    Args:
        layout: The layout of the data set.
        paths: The folder of the data set, or its files.

    Raises:
        InputError: A file is missing, cannot be read or has another layout.
    """
    for path in paths:
        if not path.exists():
            raise no_such(path, "file or folder", hint=MISSING)
    if layout in TASKS:
        from synthlang.tasks import open_task

        open_task(f"{TASKS[layout]}:{paths[0]}")
    elif layout == "text":
        from synthlang.sources import open_source

        open_source(f"text:{paths[0]}")
    elif layout == "pairs":
        from synthlang.parallel.text import check_lines

        check_lines(paths[0], count_lines(paths[0]), paths[1], count_lines(paths[1]))
    else:
        for _ in _lines(paths[0]):
            break


def contents(layout: Layout, paths: Sequence[Path], report: Report = silent) -> dict[str, Content]:
    """Read a data set, and return the content of each of its splits or files, by name.

    Args:
        layout: The layout of the data set.
        paths: The folder of the data set, or its files.
        report: Called with the progress.

    Raises:
        InputError: A file is missing, damaged or has another layout.
    """
    open_layout(layout, paths)
    if layout in TASKS:
        return _task(f"{TASKS[layout]}:{paths[0]}", report)
    if layout == "text":
        return _text(f"text:{paths[0]}", report)
    if layout == "dictionary":
        from synthlang.dictionary.word_dictionary import read_weighted

        return {path.name: Content("pairs of words", len(read_weighted(path))) for path in paths}
    if layout == "vectors":
        return {path.name: Content("vectors", _vectors(path)) for path in paths}
    return {path.name: Content("sentences", count_lines(path)) for path in paths}


def _task(spec: str, report: Report) -> dict[str, Content]:
    from synthlang.tasks import open_task

    task = open_task(spec)
    found = {split: Content("items") for split in task.splits}
    for split, content in found.items():
        for batch in task.batches(split):
            content.items += len(batch)
            column = batch.corpus.columns.get(task.tags) if task.tags else batch.label
            if column is not None:
                content.labels.update(column.values())
            report(split, content.items, max(content.items, task.size(split) or 0), "")
    return found


def _text(spec: str, report: Report) -> dict[str, Content]:
    from synthlang.sources import open_source
    from synthlang.sources.base import size_of

    source = open_source(spec)
    found = {split: Content("sentences") for split in source.splits}
    for split, content in found.items():
        for batch in source.batches(split):
            content.items += len(batch)
            report(split, content.items, max(content.items, size_of(source, split) or 0), "")
    return found


def _lines(path: Path) -> Iterator[bytes]:
    with reading(path), path.open("rb") as handle:
        yield from handle


def _vectors(path: Path) -> int:
    """Count the vectors, and check that the header states the same number."""
    lines = _lines(path)
    header = next(lines, b"").split()
    if len(header) != 2 or not all(part.isdigit() for part in header):
        reason = "the first line must be the number of words and the number of dimensions, separated by a space"
        raise InputError(reason, path, 1, hint=FETCH, code="format")
    stated, found = int(header[0]), sum(1 for _ in lines)
    if stated != found:
        reason = f"the first line gives {plural(stated, 'word')}, but the file has {found:,}"
        raise InputError(reason, path, 1, hint=FETCH, code="damaged")
    return found
