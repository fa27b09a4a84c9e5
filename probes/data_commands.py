"""The commands on data sets, including the search for data sets that a study reads, and their terminal output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from probes.study.options import sized
from synthlang.catalogue import SIZES, TINY
from synthlang.data import check, fetch, list_sets
from synthlang.data.entries import names_of
from synthlang.data.plans import Fetch
from synthlang.data.sizes import size_text, total
from synthlang.data.state import Item, downloads, left_line
from synthlang.errors import InputError
from synthlang.wording import plural

WIDE = 100
"""Smallest width of a terminal, in columns, for which the table of data sets shows the evidence."""


def data_of_study(study: Path, size: str | None, overrides: Sequence[str] = ()) -> tuple[list[str], str | None]:
    """Return the names of the data sets that a study reads, and its size.

    The size is ``size``, or by default the size in the name of the study. It is None for a study that has no sizes.

    Args:
        study: A YAML file, or the name of a study.
        size: Size of a study that is given by name (default: the size in its name).
        overrides: Texts of the form ``KEY=VALUE``.

    Raises:
        InputError: The study cannot be read, an override is wrong, or a size is given for a study in a file.
    """
    from probes.study.cells import study_inputs  # imports torch, which a fetch by name does not need

    config = sized(study, size)
    names = names_of(study_inputs(config, overrides))
    return names, config.name if config.name in SIZES else size


def list_data(names: Sequence[str], study: Path | None, size: str | None, to: Path) -> list[Item]:
    """Print a table of data sets, and return them.

    The arguments and the errors are those of ``probes.list_data``.
    """
    names, size = _chosen(names, study, size)
    found = list_sets(names, to, size=size) if names or study is None else []
    console, table = Console(), Table(box=SIMPLE_HEAD, show_edge=False, padding=0)
    columns = ("data set", "state", "get", "download", "on disk", "licence", "evidence")
    shown = len(columns) if console.width >= WIDE else len(columns) - 1
    for column in columns[:shown]:
        table.add_column(column, no_wrap=column != "licence", overflow="fold")
    for item in found:
        origin = item.origin
        how = "" if item.is_here else item.get
        sizes = (size_text(origin.download), size_text(origin.disk))
        table.add_row(*(item.name, item.state, how, *sizes, origin.licence, origin.evidence)[:shown])
    if found:
        console.print(table)
    missing = [item for item in found if not item.is_here]
    lines = [f"{item.name}: {item.state}: {item.fault}" for item in missing if item.lacks]
    lines += [left_line(item) for item in missing if names and item.get != "fetch"]
    fetched = [item for item in missing if item.get == "fetch"]
    cost = f"{total(downloads(fetched))} to download, {total(item.origin.disk for item in fetched)} on disk"
    told = f"{plural(len(found), 'data set')}, {len(missing)} missing, of which {len(fetched)} can be fetched ({cost})"
    for line in (*lines, told):
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    return found


def fetch_data(
    names: Sequence[str], study: Path | None, size: str | None, to: Path, ask: bool, **options: Any
) -> list[str]:
    """Fetch data sets, and return the names of the new data sets.

    If all data sets are already in the folder, a line is printed. The arguments and the errors are those of
    ``probes.fetch_data``.
    """
    if not names and study is None:
        raise InputError("no data set is named", hint="give names, or a study with --for STUDY", code="missing")
    names, size = _chosen(names, study, size)
    written = fetch(names, size=size, to=to, confirm=_ask if ask else None, **options)
    if not written and all(item.is_here for item in list_sets(names, to, size=size)):
        Console(stderr=True).print(f"nothing to fetch: {plural(len(names), 'data set')}, all there", highlight=False)
    return written


def check_data(names: Sequence[str], to: Path) -> bool:
    """Check data sets in a folder, print a line about each data set, and return True if all are undamaged and readable.

    The arguments and the errors are those of ``probes.check_data``.
    """
    console, found = Console(), check(names, to)
    for one in found:
        console.print(str(one), style="red" if one.fault else None, soft_wrap=True, markup=False, highlight=False)
    if not found:
        console.print(f"{to}: no data set of the catalogue is there", markup=False, highlight=False)
    return not any(one.fault for one in found)


def _chosen(names: Sequence[str], study: Path | None, size: str | None) -> tuple[list[str], str | None]:
    if study is None:
        if size == TINY:
            raise InputError(
                "studies of this size need no data", "--size tiny", hint="choose paper or lab", code="no_effect"
            )
        if size is not None and size not in SIZES:
            raise InputError(f"unknown size {size!r}", "--size", hint="choose paper or lab", code="unknown")
        return list(names), size
    of_study, size = data_of_study(study, size)
    return [*names, *of_study], size


def _ask(plan: Fetch) -> bool:
    """Request consent to a download on the terminal, and return True if it is given.

    Raises:
        InputError: There is no terminal.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        reason = "the download needs your consent, which cannot be given without a terminal"
        hint = "add --yes (in Python: ask=False)"
        raise InputError(reason, "synthlang data fetch", hint=hint, code="missing")
    steps = f", run {plural(sum(len(job.steps) for job in plan.jobs), 'step')}"
    what = f"Download {total(plan.to_download)}{steps}, and write {plural(len(plan.jobs), 'data set')}? [y/N] "
    return Console(stderr=True).input(what, markup=False).strip().lower() in ("y", "yes")
