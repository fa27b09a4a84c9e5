"""State of the data sets in a folder, and the sizes of their downloads."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from synthlang.data.entries import ROOT, DataSet, Origin, Variant, entry, places
from synthlang.data.record import Record, SetRecord, read_record
from synthlang.data.sizes import Size
from synthlang.data.sources import ByHand, MadeOf
from synthlang.data.steps import Parse
from synthlang.wording import first_few, plural

State = Literal["here", "here, by hand", "here, the lab source", "here, the paper's source", "incomplete", "missing"]


@dataclass(frozen=True)
class Item:
    """A data set at a size, in a folder of data.

    Attributes:
        name: Name of the data set.
        data: Entry of the data set in the catalogue.
        origin: Source of the data set at the size.
        state: State of the files. A folder without a record counts as filled by hand. With a record, a data set is
            here only if each file that was written is there with its size.
        lacks: For an incomplete data set, a text about each file that is gone or has another size.
    """

    name: str
    data: DataSet
    origin: Origin
    state: State
    lacks: tuple[str, ...] = ()

    @property
    def variant(self) -> Variant:
        """``lab`` or ``main``, the name of the origin in the catalogue."""
        return "main" if self.origin is self.data else "lab"

    @property
    def is_here(self) -> bool:
        """True if all files of the data set are there."""
        return self.state not in ("incomplete", "missing")

    @property
    def fault(self) -> str:
        """Text on the first files that an incomplete data set lacks, or ""."""
        return first_few(self.lacks, 3)

    @property
    def label(self) -> str:
        """The name, with the fault of an incomplete data set."""
        return f"{self.name} ({self.fault})" if self.lacks else self.name

    @property
    def get(self) -> str:
        """``by hand`` if a person must obtain the data set, else ``fetch``."""
        return "by hand" if isinstance(self.origin.source, ByHand) else "fetch"


def items(names: Iterable[str], root: Path, size: str | None = None) -> list[Item]:
    """Return data sets with their state in the folder ``root``.

    If a missing data set is made of another data set, the other data set is listed before it.

    Args:
        names: Names of data sets.
        root: The folder of data.
        size: ``lab`` for the free source of a data set that has one, else None.

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
    """
    record, found = read_record(root), dict[str, Item]()
    for name in names:
        item = _item(name, root, size, record)
        if isinstance(item.origin.source, MadeOf) and not item.is_here:
            base = item.origin.source.base
            found.setdefault(base, _item(base, root, size, record))
        found.setdefault(name, item)
    return list(found.values())


def _item(name: str, root: Path, size: str | None, record: Record) -> Item:
    data, known = entry(name), record.sets.get(name)
    origin = data.origin(size)
    there = [_is_there(root / place) for place in places(name)]
    if known is not None and any(there) and (lacks := lacking(name, root, known)):
        return Item(name, data, origin, "incomplete", tuple(lacks.values()))
    if not all(there):
        return Item(name, data, origin, "missing")
    if known is None:
        return Item(name, data, origin, "here, by hand")
    item = Item(name, data, origin, "here")
    if known.variant == item.variant:
        return item
    return replace(item, state="here, the lab source" if known.variant == "lab" else "here, the paper's source")


def _is_there(path: Path) -> bool:
    """Return whether a path is a file, or a folder that is not empty."""
    return path.is_file() or (path.is_dir() and any(not one.name.startswith(".") for one in path.iterdir()))


def lacking(name: str, root: Path, known: SetRecord) -> dict[str, str]:
    """Return a text about each recorded file of a data set that is gone or has another size, by its path.

    Word alignments, which are beside the files of a data set, do not count.

    Raises:
        InputError: The catalogue has no data set ``name``.
    """
    found, filled = dict[str, str](), places(name)
    for path, file in known.written.items():
        if not any(path == place or path.startswith(f"{place}/") for place in filled):
            continue
        if not (root / path).is_file():
            found[path] = f"{path} is gone"
        elif (size := (root / path).stat().st_size) != file.size:
            found[path] = f"{path} has {plural(size, 'byte')} instead of {file.size:,}"
    return found


def left_line(item: Item) -> str:
    """Return a line that describes how a person obtains or makes a data set that is not fetched."""
    source = item.origin.source
    if isinstance(source, MadeOf):
        [parse, *_] = (step for step in item.origin.steps if isinstance(step, Parse))
        return f"{item.name}: make it with: {parse.command(Path(ROOT, source.base), Path(ROOT, item.name))}"
    assert isinstance(source, ByHand)
    return f"{item.name}: by hand. {source.obtain} Layout: {source.layout}."


def downloads(found: Iterable[Item]) -> list[Size | None]:
    """Return the size of each download of data sets, or None for an unknown size.

    A download that several data sets share, such as an archive, is listed once. Data sets that a person obtains or that
    are made of other data sets are left out.
    """
    fetched = (item.origin for item in found if item.origin.is_fetched)
    return list({origin.source.model_dump_json(): origin.download for origin in fetched}.values())
