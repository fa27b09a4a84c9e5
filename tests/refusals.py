"""Refusals as data: the place and the kind of the fault, but not the text of the message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from synthlang.errors import InputError


def refusal(call: Callable[..., Any], *args: Any, **kwargs: Any) -> InputError:
    """Return the InputError that a call raises. Its message must be one line."""
    with pytest.raises(InputError) as raised:
        call(*args, **kwargs)
    assert len(str(raised.value).splitlines()) == 1
    return raised.value


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[str, str]:
    """Place and code of the refusal of a call.

    A place is ``file:line keys`` without what is not known; of a path only the last part counts.
    """
    return place_and_code(refusal(call, *args, **kwargs))


def place_and_code(error: InputError) -> tuple[str, str]:
    file = "" if error.path is None else Path(str(error.path)).name
    line = "" if error.line is None else f":{error.line}"
    return f"{file}{line} {'.'.join(error.keys)}".strip(), error.code
