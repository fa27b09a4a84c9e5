"""What was counted, in words."""

from __future__ import annotations

from collections.abc import Mapping


def listed(counts: Mapping[str, int]) -> str:
    """The reasons on one line, empty if nothing was counted.

    >>> listed({"too long": 2, "no word": 1, "never": 0})
    'too long: 2; no word: 1'
    """
    return "; ".join(f"{reason}: {count}" for reason, count in counts.items() if count)


def because(counts: Mapping[str, int]) -> str:
    """The reasons in brackets, to stand after a message."""
    return f" ({reasons})" if (reasons := listed(counts)) else ""
