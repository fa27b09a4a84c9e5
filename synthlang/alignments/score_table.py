"""Scores of links as a table: a row for each way to join the directions of an aligner."""

from __future__ import annotations

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table

from synthlang.alignments.errors import AlignmentErrors
from synthlang.alignments.links import Links

Bounds = tuple[float, float] | None


def score_table(
    chosen: Mapping[str, Links], errors: Mapping[str, AlignmentErrors], bounds: Mapping[str, Bounds]
) -> Table:
    """How many links there are under each name, and their scores and intervals in percent where there are any."""
    some = next(iter(errors.values()), None)
    pairs = len(some.sums) if some else len(next(iter(chosen.values())))
    title = f"Links of {pairs:,} sentence pairs" + (", scores in %" if some else "")
    # with so little between the columns all of them fit into a terminal of 80
    table = Table(title=title, box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.add_column("", no_wrap=True)
    scored = ("AER", *(["95 % interval"] if bounds else []), "precision", "recall", "F1") if some else ()
    for column in ("links", *scored):
        table.add_column(column, justify="right", no_wrap=True)
    for name, links in chosen.items():
        row = [f"{len(links.left):,}"]
        if some:
            found = errors[name]
            shown = [_percent(value) for value in (found.aer, found.precision, found.recall, found.f1)]
            row += [shown[0], *([_range(bounds[name])] if bounds else []), *shown[1:]]
        table.add_row(name, *row)
    return table


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}"


def _range(bounds: Bounds) -> str:
    return "–" if bounds is None else f"{100 * bounds[0]:.1f} … {100 * bounds[1]:.1f}"
