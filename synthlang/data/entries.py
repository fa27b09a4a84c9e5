"""The catalogue of data sets, ``configs/data.yaml``, with the source of each folder under ``data/``."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Literal

from pydantic import Field

from synthlang import catalogue
from synthlang.config import StrictModel, parse
from synthlang.data.conversions import Conversion
from synthlang.data.sizes import Size
from synthlang.data.sources import ByHand, MadeOf, Source
from synthlang.data.steps import Step
from synthlang.errors import InputError, did_you_mean

ROOT = "data"
"""The folder in the working folder that studies read."""
Layout = Literal["text", "conllu", "nli", "ner", "qa", "slots", "minimal", "pairs", "dictionary", "vectors"]
Evidence = Literal["page", "repository", "partly", "none"]
LAB = "lab"
Variant = Literal["main", "lab"]


class Origin(StrictModel):
    """Source of the files of a data set, with their conversion, licence and evidence."""

    source: Source
    """Source of the files."""
    convert: Conversion | None = None
    """The conversion of the files that were downloaded."""
    licence: str
    """The licence, as an SPDX identifier where there is one, and restrictions of use or redistribution."""
    restricted: bool = False
    """True if commercial use or redistribution is restricted."""
    download: Size | None = None
    """Megabytes to download, or null for data that a person obtains."""
    disk: Size | None = None
    """Megabytes on the disk with all steps, or null for data that a person obtains."""
    items: int | None = Field(default=None, gt=0)
    """Number of labelled items for training, for forecasts. It is null for other data, or if it is unknown."""
    evidence: Evidence
    """Evidence for the source: ``page``, ``repository``, ``partly`` or ``none``.

    ``page`` means a page of the source, and ``repository`` means public repositories that use the source. With
    ``partly``, the evidence covers only a part of the source.
    """
    checked: str
    """Findings from the evidence."""
    steps: tuple[Step, ...] = ()
    """Steps after the download, in their order."""
    note: str = ""
    """Difference from the data of the paper, or ""."""

    @property
    def is_fetched(self) -> bool:
        """True if ``fetch`` downloads the data set."""
        return not isinstance(self.source, ByHand | MadeOf)

    def steps_at(self, size: str | None) -> tuple[Step, ...]:
        """Return the steps that run at every size, and the steps that run at ``size`` alone (None: no size)."""
        return tuple(step for step in self.steps if step.at in (None, size))


class DataSet(Origin):
    """An entry of the catalogue: a data set that fills a folder or some files under ``data/``."""

    title: str
    """Description of the data set."""
    used: str
    """Papers and sections that use the data set."""
    layout: Layout
    """Layout of the files, which determines the reader."""
    fills: tuple[str, ...] = ()
    """Files of the data set, below ``data/`` (default: the folder with the name of the data set)."""
    lab: Origin | None = None
    """Free source at the size ``lab``, if it differs from the main source."""

    @property
    def splits(self) -> tuple[str, ...]:
        """Splits that studies read, which ``fetch`` writes or a person provides. A data set of files has no splits."""
        if self.fills:
            return ()
        if isinstance(self.source, MadeOf):
            return entry(self.source.base).splits
        if isinstance(self.source, ByHand) and self.source.splits:
            return self.source.splits
        converts = (origin.convert for origin in (self, self.lab) if origin is not None)
        return next((convert.written_splits for convert in converts if convert is not None), ())

    def origin(self, size: str | None) -> Origin:
        """Return the free origin at the size ``lab`` if the data set has a free origin, else the main origin."""
        return self.lab if size == LAB and self.lab is not None else self


def names() -> list[str]:
    """Return the names of all entries, in the order of the catalogue."""
    return catalogue.names("data")


def to_option(root: Path) -> str:
    """Return the option of ``synthlang data`` for the folder ``root``, with a space before it, or "" for the default.

    >>> to_option(Path("data")), to_option(Path("my data"))
    ('', " --to 'my data'")
    """
    return "" if root == Path(ROOT) else f" --to {shlex.quote(str(root))}"


@cache
def entry(name: str) -> DataSet:
    """Return the entry of the data set ``name`` in the catalogue.

    Raises:
        InputError: There is no such entry.
    """
    if name not in names():
        hint = f"{did_you_mean(name, names())}list the data sets with: synthlang data list"
        raise InputError(f"there is no data set {name!r} in the catalogue", hint=hint, code="unknown")
    return parse(DataSet, catalogue.find("data", name).data, f"data.yaml {name}")


def places(name: str) -> tuple[str, ...]:
    """Return the folder or the files of the entry ``name``, as paths below ``data/``.

    Raises:
        InputError: There is no such entry.
    """
    return entry(name).fills or (name,)


@cache
def _by_place() -> dict[str, str]:
    return {place: name for name in names() for place in places(name)}


def name_of(path: str | Path, root: str | Path = ROOT) -> str | None:
    """Return the name of the entry that fills a path, or None if the path is outside ``root`` or not in the catalogue.

    >>> name_of("data/nli/en"), name_of("data/muse/en-fr-test.txt"), name_of("mine/nli/en")
    ('nli/en', 'muse/en-fr', None)
    """
    try:
        place = PurePosixPath(Path(path).as_posix()).relative_to(PurePosixPath(Path(root).as_posix()))
    except ValueError:
        return None
    return _by_place().get(place.as_posix())


def names_of(paths: Iterable[str | Path], root: str | Path = ROOT) -> list[str]:
    """Return the names of the entries that fill some of the paths, each once (see ``name_of``)."""
    found = (name_of(path, root) for path in paths)
    return list(dict.fromkeys(name for name in found if name is not None))
