"""Numbers as a report shows them: rounded, with a real minus sign, and with the interval on a second line."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from probes.statistics import Interval


@dataclass(frozen=True)
class Badge:
    """A verdict of a few words. ``kind`` sets the colour of the badge, which adds no information to the words."""

    text: str
    kind: Literal["good", "bad", "open"]


Entry = str | int | float | Interval | Badge | None
"""Content of a cell of a table. A line break sets off a smaller second line."""


def number(value: float | None, digits: int = 1) -> str:
    """Return a number with ``digits`` decimal places and a real minus sign, or a dash for None.

    >>> number(-0.727, 2), number(None), number(float("nan"))
    ('−0.73', '–', 'NaN')
    """
    if value is None:
        return "–"
    if math.isnan(value):
        return "NaN"
    text = f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


def p_value(value: float) -> str:
    """Return a p value with three decimal places and a leading zero, or ``< 0.001`` for a value below 0.0005.

    >>> p_value(0.0312), p_value(0.00004)
    ('0.031', '< 0.001')
    """
    return "< 0.001" if value < 0.0005 else f"{value:.3f}"


def bounds(low: float | None, high: float | None, digits: int = 1) -> str:
    """Return ``low to high`` with ``digits`` decimal places, or "" without bounds."""
    return "" if low is None or high is None else f"{number(low, digits)} to {number(high, digits)}"


def shown_p(p: float | None) -> str:
    """Return a p value with three decimal places and no leading zero, or a dash for None.

    A value below 0.001 becomes ``< .001``, and a value of at least 0.9995 becomes ``1``.

    >>> shown_p(0.04567), shown_p(0.0002), shown_p(None)
    ('.046', '< .001', '–')
    """
    if p is None:
        return "–"
    return "< .001" if p < 0.001 else "1" if p >= 0.9995 else number(p, 3).removeprefix("0")


def where_bounds(entries: Iterable[Entry], text: str) -> str:
    """Return ``text``, which explains intervals, if an entry is an interval with bounds, else "".

    >>> where_bounds([Interval(1.0, None, None, 1, 0.95), 3], "95 % intervals"), where_bounds([], "Bands")
    ('', '')
    """
    return text if any(isinstance(one, Interval) and one.shown.low is not None for one in entries) else ""


def entry_text(entry: Entry, digits: int = 1) -> str:
    """Return the text of an entry, with the bounds of an interval on a second line.

    Floats and intervals have ``digits`` decimal places.

    >>> entry_text(Interval(1.25, -0.5, 3.0, 4, 0.95)), entry_text(None), entry_text(3), entry_text("a")
    ('1.2\\n−0.5 to 3.0', '–', '3', 'a')
    """
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Badge):
        return entry.text
    if isinstance(entry, int):
        return f"{entry:,}"
    if isinstance(entry, Interval):
        shown = entry.shown
        second = bounds(shown.low, shown.high, digits)
        return number(entry.mean, digits) + (f"\n{second}" if second else "")
    return number(entry, digits)
