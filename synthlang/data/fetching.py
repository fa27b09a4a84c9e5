"""``synthlang data fetch``: what is needed and what it costs, the download, the conversion, and the record."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from synthlang import __version__
from synthlang.data.conversions import FORMAT
from synthlang.data.conversions.base import Given
from synthlang.data.downloads import Downloads, Wanted
from synthlang.data.entries import MEGABYTE, places
from synthlang.data.hub import HubFile
from synthlang.data.reading import open_layout
from synthlang.data.record import SOURCES, Received, SetRecord, read_record, write_record, written_files
from synthlang.data.state import Item, items, left_line, megabytes, total
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, UNIQUE, atomic_folder, only_writer, remove_leftovers, writing
from synthlang.fingerprint import sha256_file
from synthlang.progress import Report, Say, silent, unheard
from synthlang.wording import first_few

UNKNOWN_DISK = 3.0
"""Megabytes of a data set of unknown size on the disk, for each megabyte of its download."""
UNREADABLE = ("damaged", "format")
"""Codes of errors about content that another download may mend."""


@dataclass(frozen=True)
class Job:
    """A data set to fetch, with the files that it needs."""

    item: Item
    files: tuple[Wanted, ...]

    @property
    def download(self) -> float | None:
        """Megabytes of its files."""
        sizes = [file.size for file in self.files]
        return None if None in sizes else sum(size or 0 for size in sizes) / MEGABYTE

    @property
    def disk(self) -> float:
        """Megabytes on the disk, estimated where the catalogue has none."""
        known = self.item.origin.disk
        return known if known is not None else UNKNOWN_DISK * (self.download or self.item.origin.download or 0.0)


@dataclass(frozen=True)
class Fetch:
    """The plan of a fetch: the jobs, and the data sets that it leaves alone.

    Attributes:
        here: Data sets that are there.
        left: Data sets that a person or another command has to make.
    """

    root: Path
    downloads: Downloads
    jobs: tuple[Job, ...]
    here: tuple[Item, ...]
    left: tuple[Item, ...]

    @property
    def files(self) -> list[Wanted]:
        """The files of all jobs, each once."""
        return list({file.place: file for job in self.jobs for file in job.files}.values())

    @property
    def to_download(self) -> list[float | None]:
        """Megabytes of each file that is not there yet."""
        return [None if file.size is None else file.size / MEGABYTE for file in self.downloads.left(self.files)]

    def lines(self) -> list[str]:
        """Describe the plan: sizes, licences and warnings."""
        told = []
        for job in self.jobs:
            origin = job.item.origin
            restricted = " (restricted use)" if origin.restricted else ""
            about = f"{megabytes(job.download)}, {origin.licence}{restricted}, {origin.source.address}"
            told.append(f"{job.item.name}: {about}")
            if origin.note:
                told.append(f"  {origin.note}")
            if unpinned := _unpinned(job):
                told.append(
                    f"  no checksum is known of {unpinned}: the first content that comes is trusted and recorded"
                )
        if self.jobs:
            disk = megabytes(sum(job.disk for job in self.jobs))
            told.append(f"in all: {total(self.to_download)} to download, about {disk} on the disk")
        return [*told, *(line for item in self.here for line in _here(item)), *(left_line(item) for item in self.left)]


def plan_fetch(
    names: Iterable[str], root: Path, size: str | None = None, mirror: str | None = None, report: Report = silent
) -> Fetch:
    """Ask the sources for the files that data sets need. Nothing is downloaded or written.

    Raises:
        InputError: A name is unknown, or a source cannot be reached.
    """
    downloads = Downloads(root, mirror)
    jobs, here, left = [], [], []
    found = items(names, root, size)
    for number, item in enumerate(found):
        report("look up", number, len(found), item.name)
        if item.is_here:
            here.append(item)
        elif not item.origin.is_fetched:
            left.append(item)
        else:
            jobs.append(Job(item, tuple(downloads.wanted(item.origin.source))))
    report("look up", len(found), len(found), "")
    return Fetch(root, downloads, tuple(jobs), tuple(here), tuple(left))


def run_fetch(plan: Fetch, keep: bool = False, report: Report = silent, say: Say = unheard) -> list[str]:
    """Download, convert and record the data sets of a plan, and return their names.

    What can be fetched is fetched, even if another source fails.

    Args:
        plan: The plan.
        keep: True to keep the downloads, which then serve as a mirror.
        report: Called with the progress.
        say: Called with a line on each data set.

    Raises:
        InputError: The disk is too small, another process fetches, or a data set failed. The others are there.
    """
    if not plan.jobs:
        return []
    check_disk(plan)
    done, errors = list[str](), list[InputError]()
    with only_writer(plan.root / SOURCES):
        remove_leftovers(plan.root)
        failed = plan.downloads.get(plan.files, report)
        for job in plan.jobs:
            broken = [failed[file.place] for file in job.files if file.place in failed]
            try:
                if broken:
                    raise broken[0]
                _convert(plan, job, report)
            except InputError as error:
                errors.append(error)
                if error.code in UNREADABLE and not plan.downloads.is_mirror:
                    _forget(plan, job)
                say(f"{job.item.name}: failed: {error}")
                continue
            done.append(job.item.name)
            say(f"{job.item.name}: written{_needs(job.item)}")
        if not (errors or keep or plan.downloads.is_mirror):
            _clean(plan)
    if errors:
        first = errors[0].inside()
        first.others = tuple(error for error in errors[1:] if error.text != first.text)
        raise first
    return done


def _forget(plan: Fetch, job: Job) -> None:
    """Delete the downloads of a job whose content cannot be read and was never confirmed by a checksum."""
    for file in job.files:
        if not file.remote.has_checksum:
            plan.downloads.path(file).unlink(missing_ok=True)


def check_disk(plan: Fetch) -> None:
    """Raise InputError if the disk has less space than the downloads and the converted files need."""
    where = next(folder for folder in (plan.root, *plan.root.absolute().parents) if folder.exists())
    need = sum(size or 0.0 for size in plan.to_download) + sum(job.disk for job in plan.jobs)
    if (free := shutil.disk_usage(where).free / MEGABYTE) < need:
        reason = f"has {megabytes(free)} of free space, and about {megabytes(need)} are needed"
        raise InputError(reason, where, hint="free some space, or name another folder with --to", code="resources")


def _convert(plan: Fetch, job: Job, report: Report) -> None:
    """Convert the files of a job, put the result in its place, and record it."""
    item, root = job.item, plan.root
    received = _received(plan, job)
    assert item.origin.convert is not None, f"{item.name} is fetched and has no conversion"
    targets = [root / place for place in places(item.name)]
    for target in targets:
        remove_leftovers(target.parent, target.name, UNIQUE)
    files = {file.remote.name: plan.downloads.path(file) for file in job.files}
    with writing(root), TemporaryDirectory(prefix=TEMPORARY, dir=root) as work:
        given = Given(files, Path(work), lambda task, *more: report(f"{item.name}: {task}", *more))
        given.unpack(item.origin.convert.inputs)
        if item.data.fills:
            out = Path(work, "out")
            out.mkdir()
            omitted = item.origin.convert.run(given, out, [target.name for target in targets])
            open_layout(item.data.layout, [out / target.name for target in targets])
            for target in targets:
                target.parent.mkdir(parents=True, exist_ok=True)
                (out / target.name).replace(target)
        else:
            targets[0].parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(targets[0], replace=True) as out:
                omitted = item.origin.convert.run(given, out, [])
                open_layout(item.data.layout, [out])
    _record(plan, job, received, _files_below(root, targets), omitted)


def _received(plan: Fetch, job: Job) -> tuple[Received, ...]:
    """Describe the files that came.

    Raises:
        InputError: A file of an unknown checksum differs from the one that came earlier.
    """
    record, found = read_record(plan.root), []
    for file in job.files:
        path, remote = plan.downloads.path(file), file.remote
        digest = sha256_file(path)
        earlier = None if remote.has_checksum else record.known_sha256(remote.url)
        if earlier not in (None, digest):
            reason = f"the SHA-256 is {digest}, and {earlier} came earlier"
            hint = f"if you trust the new content, delete the entry {job.item.name} of {plan.root / SOURCES}"
            raise InputError(reason, remote.url, hint=hint, code="changed")
        size = path.stat().st_size
        found.append(Received(url=remote.url, size=size, sha256=digest, verified=remote.has_checksum))
    return tuple(found)


def _record(
    plan: Fetch, job: Job, received: tuple[Received, ...], files: Mapping[str, Path], omitted: Mapping[str, int]
) -> None:
    item, source = job.item, job.item.origin.source
    hub_commits = [file.remote.revision for file in job.files if isinstance(file.remote, HubFile)]
    one = SetRecord(
        variant="lab" if item.origin is not item.data else "main",
        source=source.model_dump(mode="json"),
        revision=hub_commits[0] if hub_commits else source.version,
        licence=item.origin.licence,
        received=received,
        written=written_files(files),
        omitted=omitted,
        steps=item.origin.steps,
        date=datetime.now(UTC).date().isoformat(),
        synthlang=__version__,
        converter=FORMAT,
    )
    write_record(plan.root, read_record(plan.root).with_set(item.name, one))


def _files_below(root: Path, targets: Sequence[Path]) -> dict[str, Path]:
    """Return the files at or in the targets by their paths below the folder of data."""
    inside = [path for target in targets for path in ([target] if target.is_file() else sorted(target.rglob("*")))]
    return {path.relative_to(root).as_posix(): path for path in inside if path.is_file()}


def _clean(plan: Fetch) -> None:
    """Delete the downloads of a plan, and folders that are left without a file."""
    folder = plan.downloads.folder
    for file in plan.files:
        plan.downloads.path(file).unlink(missing_ok=True)
    for path in sorted(folder.rglob("*"), reverse=True):
        if path.name == ".cache":  # the notes of the library of the hub
            shutil.rmtree(path, ignore_errors=True)
        elif path.is_dir() and not any(path.iterdir()):
            path.rmdir()
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _unpinned(job: Job) -> str:
    """Return the names of the files of a job without a known checksum."""
    names = [file.remote.name for file in job.files if not file.remote.has_checksum]
    return first_few(names, 3)


def _here(item: Item) -> list[str]:
    if item.state == "here":
        return []
    if item.state == "here, by hand":
        return [f"{item.name}: is there, without a record; check it with: synthlang data check {item.name}"]
    return [f"{item.name}: {item.state}; delete it to fetch the other one"]


def _needs(item: Item) -> str:
    """Describe the steps that a data set still needs."""
    told = {
        "segment": "its words must still be separated by spaces (docs/data.md)",
        "parse": "it must still be parsed (docs/parsing.md)",
    }
    return "".join(f"; {told[step]}" for step in item.origin.steps)
