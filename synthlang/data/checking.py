"""``synthlang data check``: data sets against their record, and by the readers that studies use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from synthlang.data.entries import DataSet, entry, names, places, to_option
from synthlang.data.reading import Content, contents
from synthlang.data.record import Record, SetRecord, read_record, written_file
from synthlang.data.sources import ByHand
from synthlang.data.state import items, lacking
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.wording import enumerated, first_few


@dataclass(frozen=True)
class Checked:
    """The result of the check of a data set.

    Attributes:
        name: Name of the data set.
        fault: Description of the fault, or "".
        is_recorded: True if ``fetch`` wrote the data set. Otherwise it was filled by hand.
        content: Content of each split or file by name. It is empty if the data set is damaged or cannot be read.
    """

    name: str
    fault: str = ""
    is_recorded: bool = False
    content: Mapping[str, Content] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the result on one line."""
        if self.fault:
            return f"{self.name}: {self.fault}"
        how = "as recorded" if self.is_recorded else "no record, read as by a study"
        return f"{self.name}: {how}; " + "; ".join(f"{part}: {content}" for part, content in self.content.items())


def check_sets(wanted: Iterable[str], root: Path, report: Report = silent) -> list[Checked]:
    """Check data sets of a folder, and return the result for each.

    Args:
        wanted: Names of data sets. If there are none, all data sets in the folder are checked.
        root: The folder of data.
        report: Called with the progress.

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
    """
    record = read_record(root)
    chosen = list(wanted) or [item.name for item in items(names(), root) if item.state != "missing"]
    return [_check(name, root, record, report) for name in dict.fromkeys(chosen)]


def _check(name: str, root: Path, record: Record, report: Report) -> Checked:
    data, known = entry(name), record.sets.get(name)
    if known is not None and (fault := _damage(name, root, known)):
        return Checked(name, fault, True)
    try:
        paths = [root / place for place in places(name)]
        found = contents(data.layout, paths, lambda part, *more: report(f"{name}: {part}", *more))
    except InputError as error:
        return Checked(name, str(error), known is not None)
    if known is None and (lacks := [split for split in data.splits if split not in found]):
        return Checked(name, _without(lacks, data), False, found)
    return Checked(name, "", known is not None, found)


def _without(splits: Sequence[str], data: DataSet) -> str:
    """Return a text about splits that a folder filled by hand lacks, with the remedy."""
    layout = f"; layout: {data.source.layout}" if isinstance(data.source, ByHand) else ""
    files = ", ".join(f"a file with {split} in its name" for split in splits)
    return f"lacks the {'split' if len(splits) == 1 else 'splits'} {enumerated(splits)}; add {files}{layout}"


def _damage(name: str, root: Path, known: SetRecord) -> str:
    """Return a text about the recorded files that are gone or have changed, with the remedy, or ""."""
    gone = lacking(name, root, known)
    left = {path: file for path, file in known.written.items() if path not in gone}
    changed = [f"{path} has changed" for path, file in left.items() if written_file(root / path) != file]
    delete = " and ".join(str(root / place) for place in places(name))
    lab = " --size lab" if known.variant == "lab" else ""
    again = f"run: synthlang data fetch {name}{lab}{to_option(root)}"
    remedy = again if gone else f"delete {delete}, and {again}"
    wrong = [*gone.values(), *changed]
    return f"differs from the record: {first_few(wrong, 3)}; {remedy}" if wrong else ""
