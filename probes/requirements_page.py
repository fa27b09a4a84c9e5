"""The part of the reference on the requirements of studies: a table for each size, and one of restricted data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from rich.filesize import decimal

from probes.study.devices import KNOWN_GPU
from probes.study.requirements import CORES, Requirements, requirements
from synthlang.catalogue import TINY
from synthlang.data.entries import DataSet
from synthlang.data.sizes import total
from synthlang.data.sources import ByHand
from synthlang.data.state import Item, downloads
from synthlang.export.card import markdown_table
from synthlang.wording import large

SIZES = ("lab", "paper", TINY)
"""Sizes in the order of the tables."""


def requirements_page() -> str:
    """Return the requirements of all studies of the catalogue as Markdown."""
    return page_of([row for size in SIZES for row in requirements(size)])


def page_of(everything: Sequence[Requirements]) -> str:
    """Return requirements as Markdown: a table of studies for each size, and a table of restricted data.

    ``everything`` has the requirements of all studies in the order of the rows.
    """
    found = {size: [row for row in everything if row.size == size] for size in SIZES}
    parts = [f"### `{size}`\n\n{_table(size, rows)}\n" for size, rows in found.items()]
    return "\n".join([*parts, f"### Restricted data\n\n{markdown_table(RESTRICTED, list(_restricted(everything)))}\n"])


def _table(size: str, rows: Sequence[Requirements]) -> str:
    device = f"{CORES} cores" if size == TINY else f"one {KNOWN_GPU}"
    heading = (
        "study",
        "pretrained models",
        "adjusted models",
        "fine-tunings",
        "tokens",
        f"hours on {device} (estimate)",
        "hours (measured)",
        "disk for models",
        "data sets",
        "by hand",
        "steps of `fetch`",
        "download",
        "disk for data",
    )
    return markdown_table(heading, [_row(row) for row in rows])


def _row(row: Requirements) -> tuple[str, ...]:
    least = "" if row.is_complete else "at least "
    measured = row.measured
    return (
        f"`{row.name.rpartition('/')[0]}`",
        *(str(row.stages[kind] or "") for kind in ("pretrain", "adjust", "fit")),
        least + large(row.tokens),
        least + hours(row.hours),
        "" if measured is None else f"{hours(measured.hours)} ({measured.on})",
        decimal(row.disk) if row.disk else "",
        str(len(row.data) or ""),
        ", ".join(f"`{item.name}`" for item in row.data if item.get == "by hand"),
        ", ".join(dict.fromkeys(step.kind for item in row.data for step in item.origin.steps_at(row.size))),
        total(downloads(row.data)) if row.data else "",
        total(item.origin.disk for item in row.data if item.get == "fetch") if row.data else "",
    )


def hours(number: float) -> str:
    """Return a number of hours as text, rounded to hundredths below 1, to tenths below 10, and else to whole hours.

    Numbers below 0.01 are shown as 0.01.

    >>> [hours(number) for number in (0.004, 0.267, 1.83, 27.3, 99670.9)]
    ['0.01', '0.27', '1.8', '27', '99,671']
    """
    if number < 1:
        return f"{max(number, 0.01):.2f}"
    return f"{number:.1f}" if number < 10 else f"{number:,.0f}"


# --- restricted data

RESTRICTED = ("data set", "licence", "at `paper`", "at `lab`", "licence at `lab`", "studies")


def _restricted(rows: Sequence[Requirements]) -> Iterator[tuple[str, ...]]:
    """Yield a row for each data set whose use is restricted or which is not public."""
    used = Counter(item.name for row in rows for item in row.data)
    sets: dict[str, Item] = {item.name: item for row in rows for item in row.data}
    for name, item in sets.items():
        data = item.data
        by_hand = isinstance(data.source, ByHand)
        if data.restricted or by_hand:
            lab, licence = _at_lab(data)
            yield f"`{name}`", data.licence, "by hand" if by_hand else "fetch", lab, licence, str(used[name])


def _at_lab(data: DataSet) -> tuple[str, str]:
    """Return a text on the data that is read at ``lab``, and the licence of that data."""
    if data.lab is not None:
        return data.lab.note, data.lab.licence
    return ("not needed", "") if isinstance(data.source, ByHand) else ("the same", data.licence)
