"""The commands on data sets, including the search for data sets that a study reads, and their terminal output."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

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

    Args:
        names: Names of the catalogue (default: all, or those of the study).
        study: A study whose data sets are added.
        size: ``paper`` or ``lab`` (default: the size in the name of the study).
        to: The folder of data.

    Raises:
        InputError: A name is unknown, the study cannot be read, or the record of the folder is damaged. The size is
            unknown, is ``tiny`` without a study, or is given for a study in a file.
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
    for item in missing:
        if item.lacks:
            console.print(f"{item.name}: {item.state}: {item.fault}", soft_wrap=True, markup=False, highlight=False)
    for item in missing if names else ():
        if item.get != "fetch":
            console.print(left_line(item), soft_wrap=True, markup=False, highlight=False)
    fetched = [item for item in missing if item.get == "fetch"]
    cost = f"{total(downloads(fetched))} to download, {total(item.origin.disk for item in fetched)} on disk"
    console.print(
        f"{plural(len(found), 'data set')}, {len(missing)} missing, of which {len(fetched)} can be fetched ({cost})",
        highlight=False,
        soft_wrap=True,
    )
    return found


@dataclass(frozen=True)
class FetchOptions:
    """Options of a fetch.

    Attributes:
        to: The folder of data.
        source: Mirror in place of the sources: a folder, or an address.
        keep_downloads: True to keep the downloads, which then serve as a mirror.
        steps: False to leave out the steps after the download.
        workers: Number of worker processes of the steps.
    """

    to: Path
    source: str | None = None
    keep_downloads: bool = False
    steps: bool = True
    workers: int = 1


def fetch_data(
    names: Sequence[str], study: Path | None, size: str | None, options: FetchOptions, ask: bool
) -> list[str]:
    """Fetch data sets, and return the names of the new data sets.

    If all data sets are already in the folder, a line is printed.

    Args:
        names: Names of the catalogue.
        study: A study whose data sets are added.
        size: ``paper`` or ``lab`` (default: the size in the name of the study).
        options: Folder, mirror and steps of the fetch.
        ask: True to show the cost and request consent first. If consent is refused, the result is empty.

    Raises:
        InputError: Neither a name nor a study is given, a name is unknown, the study cannot be read, a data set cannot
            be fetched, or with ``ask`` there is no terminal. The size is unknown, is ``tiny`` without a study, or is
            given for a study in a file.
    """
    if not names and study is None:
        raise InputError("no data set is named", hint="give names, or a study with --for STUDY", code="missing")
    names, size = _chosen(names, study, size)
    written = fetch(names, size=size, confirm=_ask if ask else None, **vars(options))
    if not written and all(item.is_here for item in list_sets(names, options.to, size=size)):
        Console(stderr=True).print(f"nothing to fetch: {plural(len(names), 'data set')}, all there", highlight=False)
    return written


def check_data(names: Sequence[str], to: Path) -> bool:
    """Check data sets in a folder, print a line about each data set, and return True if all are undamaged and readable.

    If the folder has no data set, the result is True.

    Args:
        names: Names of the catalogue (default: all data sets that are in the folder).
        to: The folder of data.

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
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
