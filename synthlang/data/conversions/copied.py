"""Files that a reader of ours reads unchanged."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from synthlang.data.conversions.base import Converter, Given, splits_of
from synthlang.files import safe_name, writing
from synthlang.packed import open_packed


class CopiedFiles(Converter):
    """Copy files, and unpack a file packed with gzip if its new name does not end in .gz."""

    kind: Literal["copy"]
    """Copy files under new names."""
    files: Mapping[str, str] = Field(min_length=1)
    """The downloaded file, or ARCHIVE!MEMBER, for each file of the data set (which may be ``train/label``)."""

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.files.values())

    @property
    def written_splits(self) -> tuple[str, ...]:
        return splits_of(self.files)

    def run(self, given: Given, out: Path, names: Sequence[str]) -> dict[str, int]:
        del names
        for target, name in self.files.items():
            path = out.joinpath(*(safe_name(part) for part in target.split("/")))
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                source = given.path(name)
                if name.endswith(".gz") and not target.endswith(".gz"):
                    with open_packed(source) as unpacked, path.open("wb") as handle:
                        shutil.copyfileobj(unpacked, handle)
                else:
                    shutil.copyfile(source, path)
        return {}
