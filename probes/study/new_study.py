"""The study file that ``synthlang study --init`` writes, as a start for a study of one's own."""

from __future__ import annotations

from pathlib import Path

from synthlang.catalogue import folder
from synthlang.errors import InputError
from synthlang.files import atomic_file

TEMPLATE = "new-study.yaml"


def write_new_study(path: Path) -> None:
    """Write the commented study file to a path, with this path in its commands.

    Raises:
        InputError: The path exists, or cannot be written.
    """
    if path.exists():
        raise InputError("exists already", path, hint="give --init another file", code="exists")
    text = (folder() / TEMPLATE).read_text(encoding="utf-8")
    with atomic_file(path, "w") as handle:
        handle.write(text.replace("FILE", str(path)))
