"""Counts, times, sizes, names and changes as text for messages and reports."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

LONG = 40
"""Maximum length of a shown value in characters."""


def plural(n: int, noun: str) -> str:
    """Return a count with its noun.

    >>> plural(1, "cell"), plural(3000, "cell")
    ('1 cell', '3,000 cells')
    """
    return f"{n:,} {noun}" + ("" if n == 1 else "s")


def first_few(names: Sequence[str], most: int, separator: str = ", ") -> str:
    """Join the first ``most`` names, and add the number of further names if there are more.

    >>> first_few("abc", 3), first_few("abcd", 2, "; ")
    ('a, b, c', 'a; b; and 2 more')
    """
    last = f"{separator.strip(', ')} and {len(names) - most:,} more" if len(names) > most else ""
    return separator.join(names[:most]) + last


def enumerated(parts: Sequence[str]) -> str:
    """Return an enumeration: the parts with commas between them, and with "and" before the last one."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def duration(seconds: float) -> str:
    """Format a time, given in seconds, in a suitable unit from seconds to years.

    >>> [duration(s) for s in (0.4, 119.4, 150, 7199, 7200, 200_000, 1e6, 1e8, 4e11)]
    ['0 s', '119 s', '2 min', '120 min', '2.0 h', '56 h', '12 days', '3.2 years', '12,675 years']
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    hours = seconds / 3600
    if hours < 100:
        return f"{hours:.1f} h" if hours < 10 else f"{hours:.0f} h"
    days, years = hours / 24, hours / 24 / 365.25
    return f"{days:.0f} days" if years < 2 else f"{years:.1f} years" if years < 10 else f"{years:,.0f} years"


def large(number: float) -> str:
    """Format a number from 0 with a word for its magnitude, such as ``33 billion``.

    >>> [large(n) for n in (999, 65_536, 32.77e9, 7.864e12, 235.9e12)]
    ['999', '66 thousand', '33 billion', '7.9 trillion', '236 trillion']
    """
    for unit, name in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million"), (1e3, "thousand")):
        if number >= unit:
            return f"{number / unit:,.1f} {name}" if number < 10 * unit else f"{number / unit:,.0f} {name}"
    return f"{number:.0f}"


def changes(before: Any, now: Any, key: str = "") -> Iterator[str]:
    """Yield a text for each change between two settings, which are JSON values under the dotted key ``key``.

    >>> list(changes({"steps": 6, "batch": {"rows": 8}, "seeds": [0]}, {"steps": 9, "batch": {}, "seeds": [0, 1]}))
    ['steps: 6 → 9', 'batch.rows is gone', 'seeds: 1 → 2 values']
    """
    if isinstance(before, list) and isinstance(now, list):
        if len(before) != len(now):
            yield f"{key}: {len(before)} → {len(now)} values"
            return
        before, now = (dict(enumerate(values)) for values in (before, now))
    if isinstance(before, Mapping) and isinstance(now, Mapping):
        for name in {**before, **now}:
            inner = f"{key}.{name}" if key else str(name)
            if name in before and name in now:
                yield from changes(before[name], now[name], inner)
            else:
                yield f"{inner} is {'new' if name in now else 'gone'}"
    elif before != now:
        yield f"{key}: {_shown(before)} → {_shown(now)}"


def _shown(value: Any) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= LONG else f"{text[:LONG]}…"
