"""The plan of ``synthlang data fetch``: downloads and steps, with their sizes and times."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from synthlang.checksums import damaged_files
from synthlang.data.conversions.base import INSIDE
from synthlang.data.downloads import Downloads, Wanted
from synthlang.data.entries import places, to_option
from synthlang.data.record import Record, read_record
from synthlang.data.sizes import MEGABYTE, Size, megabytes, total
from synthlang.data.sources import MadeOf
from synthlang.data.state import Item, items, left_line
from synthlang.data.steps import Align, Parse, Step
from synthlang.errors import InputError
from synthlang.files import count_lines
from synthlang.progress import Report, silent
from synthlang.wording import duration, enumerated, first_few

UNPACKED = 3.0
"""Bytes of text in an archive for each byte of the archive, measured on three parallel texts."""
NO_STEPS = "--no-steps"


@dataclass(frozen=True)
class Job:
    """A data set to fetch, with the files that it needs and the steps after the download.

    Attributes:
        item: The data set.
        files: The files to download. There are none for a data set that is there or that is made of another data set.
        steps: The steps to run.
    """

    item: Item
    files: tuple[Wanted, ...]
    steps: tuple[Step, ...] = ()

    @property
    def downloads(self) -> list[Size | None]:
        """Size of each file to download, or None for a file of unknown size."""
        return [file.download for file in self.files]

    @property
    def disk(self) -> Size | None:
        """Size on the disk, or None for a data set that is there or whose size is unknown."""
        return None if self.item.is_here else self.item.origin.disk

    @property
    def scratch(self) -> float:
        """Estimated megabytes of the members of archives, which are unpacked until the conversion ends."""
        convert = self.item.origin.convert
        if convert is None or not any(INSIDE in name for name in convert.inputs):
            return 0.0
        return UNPACKED * sum(size.megabytes for size in self.downloads if size is not None)


@dataclass(frozen=True)
class Fetch:
    """The plan of a fetch: the jobs, and the data sets that it leaves alone.

    Attributes:
        root: The folder of data.
        downloads: The folder of downloads, or a mirror.
        jobs: The data sets to fetch, or to run steps for.
        here: Data sets that are there and need no step.
        left: Data sets that a person or another command has to make.
        undone: Names of data sets that are there, with the kinds of steps that were left out when they were fetched.
        failed: Errors of data sets whose files cannot be looked up, by name.
        workers: Number of worker processes of steps.
    """

    root: Path
    downloads: Downloads
    jobs: tuple[Job, ...]
    here: tuple[Item, ...]
    left: tuple[Item, ...]
    undone: dict[str, list[str]]
    failed: dict[str, InputError]
    workers: int = 1

    @property
    def files(self) -> list[Wanted]:
        """The files of all jobs, each once."""
        return list({file.place: file for job in self.jobs for file in job.files}.values())

    @property
    def to_download(self) -> list[Size | None]:
        """Size of each file that is not in the folder of downloads yet, or None for a file of unknown size."""
        return [file.download for file in self.downloads.left(self.files)]

    @property
    def disk(self) -> list[Size]:
        """Size on the disk of each data set that the fetch writes, if the size is known."""
        return [size for job in self.jobs if (size := job.disk) is not None]

    @property
    def by_hand(self) -> list[Item]:
        """The data sets that a person has to obtain."""
        return [item for item in self.left if item.get == "by hand"]

    def lines(self) -> list[str]:
        """Return lines of text that describe the plan: sizes, licences, steps with their time, and warnings.

        Raises:
            InputError: The input of a step cannot be read.
        """
        told = [f"{name}: failed: {error}" for name, error in self.failed.items()]
        told += [line for job in self.jobs for line in self._of_job(job)]
        if self.jobs:
            told.append(f"in all: {total(self.to_download)} to download, {total(self.disk)} on the disk{self._time()}")
        return [*told, *(line for item in self.here for line in self._here(item)), *map(left_line, self.left)]

    def _of_job(self, job: Job) -> list[str]:
        origin, told = job.item.origin, list[str]()
        restricted = " (restricted use)" if origin.restricted else ""
        size = f"{total(job.downloads)}, " if job.files else ""
        about = f"{size}{origin.licence}{restricted}, {origin.source.address}"
        told.append(f"{job.item.name}: is there" if job.item.is_here else f"{job.item.name}: {about}")
        if job.item.lacks:
            told.append(f"  replaces an incomplete data set: {job.item.fault}")
        if origin.note and not job.item.is_here:
            told.append(f"  {origin.note}")
        if unpinned := [file.remote.name for file in job.files if not file.remote.has_checksum]:
            names = first_few(unpinned, 3)
            told.append(f"  no checksum is known of {names}: the first content that comes is trusted and recorded")
        for step in job.steps:
            told.append(f"  then {step.about}: {step.estimate(self.amount(job, step), self.workers)}")
        return told

    def amount(self, job: Job, step: Step) -> int | None:
        """Return the number of units of a step (see ``BaseStep.unit``), or None if it is unknown.

        Units are counted or estimated in the input of the step if the input is there. Otherwise the catalogue states
        their number.

        Raises:
            InputError: The input cannot be read.
        """
        source = job.item.origin.source
        if isinstance(step, Parse) and isinstance(source, MadeOf) and (self.root / source.base).is_dir():
            return step.amount_of(self.root / source.base)
        if isinstance(step, Align) and job.item.is_here:
            return count_lines(self.root / places(job.item.name)[0])
        return step.amount

    def _time(self) -> str:
        steps = [(step, self.amount(job, step)) for job in self.jobs for step in job.steps]
        if not steps:
            return ""
        known = [step.seconds(amount, self.workers) for step, amount in steps if amount is not None]
        least = "" if len(known) == len(steps) else "at least "
        return f", {least}{duration(sum(known))} of steps (estimate)"

    def _here(self, item: Item) -> list[str]:
        if item.name in self.undone:
            kinds = self.undone[item.name]
            steps = f"the step{'' if len(kinds) == 1 else 's'} {enumerated(kinds)}"
            return [f"{item.name}: is there, without {steps}; delete this data set, and fetch it again"]
        if item.state == "here":
            return []
        if item.state == "here, by hand":
            check = f"synthlang data check {item.name}{to_option(self.root)}"
            return [f"{item.name}: is there, without a record; check the data set with: {check}"]
        return [f"{item.name}: {item.state}; delete this data set to fetch the other source"]


def plan_fetch(
    names: Iterable[str],
    root: Path,
    size: str | None = None,
    mirror: str | None = None,
    report: Report = silent,
    with_steps: bool = True,
    workers: int = 1,
) -> Fetch:
    """Plan a fetch: check the tools of the steps, and look up the files of the sources.

    Nothing is downloaded or written.

    Args:
        names: Names of data sets.
        root: The folder of data.
        size: ``lab`` for the free sources and for the steps at this size.
        mirror: A folder, or the address of a mirror, in place of the sources.
        report: Called with the progress.
        with_steps: False to leave out the steps after the download.
        workers: Number of worker processes of steps.

    Raises:
        InputError: A name is unknown, the record of the folder is damaged, a library or a model of a step is not
            installed, or the mirror does not exist.
    """
    downloads, record = Downloads(root, mirror), read_record(root)
    found = items(names, root, size)
    steps = {item.name: item.origin.steps_at(size) if with_steps else () for item in found}
    undone = {item.name: kinds for item in found if (kinds := _undone(item, record, steps[item.name]))}
    for item in found:
        if item.is_here:
            steps[item.name] = () if item.name in undone else _alignments_left(item, root, record, steps[item.name])
    _check_tools(steps)
    jobs, here, left, failed = list[Job](), list[Item](), list[Item](), dict[str, InputError]()
    for number, item in enumerate(found):
        report("look up", number, len(found), item.name)
        is_made = isinstance(item.origin.source, MadeOf)
        if steps[item.name] and (item.is_here or is_made):
            jobs.append(Job(item, (), steps[item.name]))
        elif item.is_here:
            here.append(item)
        elif not item.origin.is_fetched:
            left.append(item)
        else:
            try:
                jobs.append(Job(item, tuple(downloads.wanted(item.origin.source)), steps[item.name]))
            except InputError as error:
                failed[item.name] = error
    report("look up", len(found), len(found), "")
    return Fetch(root, downloads, tuple(jobs), tuple(here), tuple(left), undone, failed, workers)


def _check_tools(steps: dict[str, tuple[Step, ...]]) -> None:
    """Raise InputError if a library or a model is not installed."""
    for name, chosen in steps.items():
        for step in chosen:
            try:
                step.check()
            except InputError as error:
                raise error.inside(name, step.kind).with_hint(f"{NO_STEPS} leaves out such steps") from error


def _undone(item: Item, record: Record, steps: Sequence[Step]) -> list[str]:
    """Return the kinds of steps, except ``align``, that did not run on a data set that ``fetch`` wrote."""
    if item.state != "here":
        return []
    done = {step.kind for step in record.sets[item.name].steps}
    return list(dict.fromkeys(step.kind for step in steps if step.kind not in done and not isinstance(step, Align)))


def _alignments_left(item: Item, root: Path, record: Record, steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the steps ``align`` whose word alignments are missing or damaged, for a data set that is there."""
    if item.state not in ("here", "here, by hand"):
        return ()
    paths = [root / place for place in places(item.name)]
    known = record.sets[item.name].steps if item.name in record.sets else ()
    left = list[Step]()
    for step in steps:
        if not isinstance(step, Align):
            continue
        recorded = [one.fingerprint for one in known if one.settings.get("program") == step.program]
        name = recorded[-1] if recorded else step.name(paths)
        folder = step.folder(paths, name)
        if not folder.is_dir() or damaged_files(folder):
            left.append(step)
    return tuple(left)


def check_disk(plan: Fetch) -> None:
    """Check that the disk has enough space for the downloads, the unpacked and the converted files of a plan.

    Raises:
        InputError: The disk has too little free space.
    """
    where = next(folder for folder in (plan.root, *plan.root.absolute().parents) if folder.exists())
    sizes = (size.megabytes for size in (*plan.to_download, *plan.disk) if size is not None)
    need = sum(sizes) + max((job.scratch for job in plan.jobs), default=0.0)
    if (free := shutil.disk_usage(where).free / MEGABYTE) < need:
        reason = f"has {megabytes(free)} of free space, and about {megabytes(need)} are needed"
        raise InputError(reason, where, hint="free some space, or name another folder with --to", code="resources")
