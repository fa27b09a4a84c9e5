"""The one error a user can cause: a clear line that says what to do."""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches
from os import PathLike


class InputError(ValueError):
    """Wrong input from outside: a file, a config, an option.

    The command prints it as one line and exits with code 2. ``path`` and ``line``
    (1-based) come first in the message when they are known.
    """

    def __init__(self, message: str, path: str | PathLike[str] | None = None, line: int | None = None) -> None:
        where = "" if path is None else f"{path}:{line}: " if line is not None else f"{path}: "
        super().__init__(where + " ".join(message.split()))
        self.path = path
        self.line = line


def did_you_mean(name: str, allowed: Collection[str]) -> str:
    """``"did you mean X? "`` for the one of ``allowed`` that is most like ``name``; "" if none is like it."""
    near = get_close_matches(name, allowed, n=1)
    return f"did you mean {near[0]}? " if near else ""
