"""The error for wrong input, with its place, reason and hint as data."""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from difflib import get_close_matches
from os import PathLike
from typing import Literal, Self

from synthlang.wording import first_few

Code = Literal[
    "missing",  # a file, folder, column, split or required key does not exist
    "unknown",  # a name (of a key, a kind, a language, an axis) is not an allowed one
    "type",  # a value has another type than its key
    "range",  # a number, a length or a count is outside the allowed range
    "conflict",  # two settings, or a setting and the data, exclude each other
    "no_effect",  # a setting would change nothing
    "format",  # the content of a file or a value does not have the required form
    "duplicate",  # a name, a key or a line occurs twice
    "empty",  # an input has no content, or a selection leaves none
    "damaged",  # a file is truncated or its checksum differs
    "exists",  # the output path exists already
    "locked",  # another process writes the output
    "changed",  # settings or data differ from those that the work was started with
    "unsupported",  # the input is valid, but synthlang cannot process it
    "extra",  # an optional package or program is not installed
    "resources",  # memory or disk space does not suffice
    "failed",  # a program or a service that was called failed
    "invalid",  # any other fault
]
"""Kind of a fault, by which programs and tests compare errors."""
SHOWN = 3
"""Number of faults of one input that a message shows. Further faults are only counted."""
LONGEST = 600
"""Largest number of characters of each part of a message (keys, reason, hint), since a part may quote an input."""


class InputError(ValueError):
    """Error for wrong input: a file, a config or an option.

    The command prints the error as one line and exits with code 2::

        my-study.yaml:12: grid.product.lr: unknown key; did you mean pretrain.optimizer.learning_rate?
        ^ path        ^ line ^ keys        ^ reason     ^ hint

    Attributes:
        reason: Description of the fault.
        path: The file or folder, or the option, that holds the wrong value, or None if it is not known.
        line: The line in ``path``, from 1, or None if it is not known.
        keys: The keys of a config that lead to the wrong value, outermost first.
        hint: Action that corrects the fault. The message shows it after the reason.
        code: The kind of fault (see ``Code``).
        others: Further faults of the same input. A message shows at most SHOWN faults and the number of further faults.
        absent: The file or folder that does not exist, or "".
    """

    absent = ""

    def __init__(
        self,
        reason: str,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        *,
        keys: Sequence[str] | str = (),
        hint: str = "",
        code: Code = "invalid",
        others: Sequence[InputError] = (),
    ) -> None:
        super().__init__(reason)
        self.reason = " ".join(reason.split())
        self.path = path
        self.line = line
        self.keys = tuple(keys.split(".")) if isinstance(keys, str) else tuple(keys)
        self.hint = " ".join(hint.split())
        self.code: Code = code
        self.others = tuple(others)

    def __str__(self) -> str:
        faults = [fault.text for fault in (self, *self.others)]
        line = "" if self.line is None else f":{self.line}"
        where = "" if self.path is None else f"{_shown(str(self.path))}{line}: "
        return where + first_few(faults, SHOWN, "; ")

    @property
    def text(self) -> str:
        """Keys, reason and hint of this fault alone, without the file."""
        message = "; ".join(_shown(part) for part in (self.reason, self.hint) if part)
        return f"{_shown('.'.join(self.keys))}: {message}" if self.keys else message

    @property
    def place(self) -> tuple[str | PathLike[str] | None, int | None, tuple[str, ...]]:
        """The attributes ``path``, ``line`` and ``keys``."""
        return self.path, self.line, self.keys

    def inside(self, *keys: str, path: str | PathLike[str] | None = None, line: int | None = None) -> Self:
        """Return a copy of this error as a fault of a larger input.

        ``keys`` are put before the keys of this error. ``path`` and ``line`` are used only if this error has no path.

        >>> print(InputError("must be at least 1", keys="steps").inside("pretrain", path="study.yaml"))
        study.yaml: pretrain.steps: must be at least 1
        """
        found = copy.copy(self)
        found.keys = (*keys, *self.keys)
        found.others = tuple(other.inside(*keys) for other in self.others)
        if self.path is None:
            found.path, found.line = path, line
        return found

    def with_hint(self, more: str) -> Self:
        """Return a copy of this error with the hint ``more`` after the hint that it has.

        >>> print(InputError("must be at least 1", "study.yaml").with_hint("leave it out"))
        study.yaml: must be at least 1; leave it out
        """
        found = copy.copy(self)
        found.hint = "; ".join(filter(None, (self.hint, more)))
        return found


def _shown(text: str) -> str:
    """Return a text, with its middle cut if it is longer than LONGEST characters."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 103]} … {text[-100:]}"


def did_you_mean(name: str, allowed: Collection[str]) -> str:
    """Return ``"did you mean X? "`` for the most similar name in ``allowed``, or "" if none is similar."""
    near = get_close_matches(name, allowed, n=1)
    return f"did you mean {near[0]}? " if near else ""
