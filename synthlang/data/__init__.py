"""Data sets of studies by name: download, conversion, record and check.

Each function does the work of a command ``synthlang data …``. ``configs/data.yaml`` is the catalogue.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from synthlang.data.checking import Checked
    from synthlang.data.plans import Fetch
    from synthlang.data.state import Item


def list_sets(names: Iterable[str] = (), to: str | Path = "data", *, size: str | None = None) -> list[Item]:
    """Return data sets with their state (such as ``missing``) in a folder.

    If a missing data set is made of another data set, the other data set is listed before it.

    Args:
        names: Names of data sets in the catalogue (default: all).
        to: The folder of data.
        size: ``lab`` for the free source of a data set whose source in the paper is not free (default: the source in
            the paper).

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
    """
    from synthlang.data.entries import names as all_names
    from synthlang.data.state import items

    return items(list(names) or all_names(), Path(to), size)


def fetch(
    names: Iterable[str],
    to: str | Path = "data",
    *,
    size: str | None = None,
    source: str | Path | None = None,
    keep_downloads: bool = False,
    steps: bool = True,
    workers: int = 1,
    confirm: Callable[[Fetch], bool] | None = None,
) -> list[str]:
    """Download, verify and convert data sets, run their steps, and record all of this in ``SOURCES.json``.

    The steps parse texts, separate words and align translations. An interrupted call resumes when it is repeated.

    Args:
        names: Names of data sets in the catalogue.
        to: The folder of data.
        size: ``lab`` for the free source of a data set whose source in the paper is not free, and for the steps of
            this size.
        source: Mirror in place of the sources: a folder, or an address.
        keep_downloads: True to keep the downloads in ``.downloads``, which then serves as a mirror.
        steps: False to leave out the steps.
        workers: Number of worker processes of the steps. The output is identical for any number.
        confirm: Function that gets the plan before anything is downloaded, and returns False to stop (default: none).

    Returns:
        The names of the data sets that were written. The list is empty if ``confirm`` returned False.

    Raises:
        InputError: A name is unknown, the record of the folder is damaged, or the mirror does not exist. A library or a
            model of a step is not installed. The disk is too small, or another process fetches. A data set failed, or
            a person has to obtain a data set. In the last two cases, the other data sets have been written.
    """
    from synthlang.data.fetching import run_fetch
    from synthlang.data.plans import plan_fetch
    from synthlang.progress import Display

    with Display() as display:
        mirror = None if source is None else str(source)
        plan = plan_fetch(names, Path(to), size, mirror, display.report, steps, workers)
    for line in plan.lines():
        display.message(line)
    if plan.jobs and confirm is not None and not confirm(plan):
        return []
    with Display() as display:
        return run_fetch(plan, keep_downloads, display.report, display.message)


def check(names: Iterable[str] = (), to: str | Path = "data") -> list[Checked]:
    """Compare data sets with their record, and read them as a study would.

    Args:
        names: Names of data sets in the catalogue (default: all that are in the folder).
        to: The folder of data.

    Returns:
        The result for each data set. A missing or damaged data set is a fault in its result and raises no error.

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
    """
    from synthlang.data.checking import check_sets
    from synthlang.progress import Display

    with Display() as display:
        return check_sets(names, Path(to), display.report)
