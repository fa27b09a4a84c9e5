"""``synthlang data check``: data sets against their record, and by the readers that studies use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from synthlang.data.entries import DataSet, entry, names, places
from synthlang.data.reading import Content, contents
from synthlang.data.record import Record, damaged, read_record
from synthlang.data.state import items
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.wording import first_few


@dataclass(frozen=True)
class Checked:
    """The result of the check of a data set.

    Attributes:
        name: Name of the data set.
        fault: Description of the fault, or "".
        is_recorded: True if ``fetch`` wrote the data set. Otherwise it was filled by hand.
        content: Content of each split or file by name. It is empty if there is a fault.
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
    chosen = list(wanted) or [item.name for item in items(names(), root) if item.is_here]
    return [_check(name, root, record, report) for name in dict.fromkeys(chosen)]


def _check(name: str, root: Path, record: Record, report: Report) -> Checked:
    data, known = entry(name), record.sets.get(name)
    if known is not None and (wrong := damaged(root, known)):
        delete = " and ".join(str(root / place) for place in places(name))
        lab = " --size lab" if known.variant == "lab" else ""
        again = f"delete {delete}, and run: synthlang data fetch {name}{lab}"
        return Checked(name, f"changed or missing since the download: {first_few(wrong, 3)}; {again}", True)
    try:
        found = _contents(name, data, root, report)
    except InputError as error:
        return Checked(name, str(error), known is not None)
    return Checked(name, "", known is not None, found)


def _contents(name: str, data: DataSet, root: Path, report: Report) -> dict[str, Content]:
    def told(part: str, done: int, total: int, note: str) -> None:
        report(f"{name}: {part}", done, total, note)

    return contents(data.layout, [root / place for place in places(name)], told)
