"""Template of a study file, which ``synthlang study --init`` writes."""

from __future__ import annotations

from pathlib import Path

from synthlang.catalogue import folder
from synthlang.errors import InputError
from synthlang.files import atomic_file

TEMPLATE = "new-study.yaml"


def write_new_study(path: Path) -> None:
    """Write the commented template to a path. The commands in its comments contain this path.

    Raises:
        InputError: The path exists, or cannot be written.
    """
    if path.exists():
        raise InputError("exists already", path, hint="name another file", code="exists")
    text = (folder() / TEMPLATE).read_text(encoding="utf-8")
    with atomic_file(path, "w") as handle:
        handle.write(text.replace("FILE", str(path)))
