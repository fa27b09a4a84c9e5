"""``synthlang data fetch``: the download, the conversion, the steps after the conversion, and the record."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from synthlang import __version__
from synthlang.data.conversions import FORMAT
from synthlang.data.conversions.base import Given
from synthlang.data.entries import places, to_option
from synthlang.data.hub import HubFile
from synthlang.data.plans import Fetch, Job, check_disk
from synthlang.data.reading import open_layout
from synthlang.data.record import SOURCES, Received, SetRecord, Written, read_record, write_record, written_file
from synthlang.data.sources import MadeOf
from synthlang.data.state import Item
from synthlang.data.steps import Align, Parse, Segment
from synthlang.data.steps.base import StepRecord, Tools
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, UNIQUE, atomic_folder, only_writer, remove_leftovers, writing
from synthlang.fingerprint import sha256_file
from synthlang.progress import Report, Say, silent, unheard
from synthlang.wording import enumerated, plural

CACHE = ".steps"
"""Name of the folder with a folder of finished parts for each data set whose steps were interrupted."""
UNREADABLE = ("damaged", "format")
"""Codes of errors about content that another download may mend."""


def run_fetch(plan: Fetch, keep: bool = False, report: Report = silent, say: Say = unheard) -> list[str]:
    """Download, convert and record the data sets of a plan, run their steps, and return their names.

    If a data set fails, the other data sets are still fetched.

    Args:
        plan: The plan.
        keep: True to keep the downloads, which then serve as a mirror.
        report: Called with the progress.
        say: Called with a line on each data set.

    Raises:
        InputError: The disk is too small, another process fetches, a data set failed, or a person has to obtain a
            data set. The attribute ``others`` holds the errors of further data sets.
    """
    done, errors = _run_jobs(plan, keep, report, say) if plan.jobs else ([], plan.failed)
    left = [_by_hand(plan.by_hand, plan.root)] if plan.by_hand else []
    if errors:
        raise _joined(errors, left)
    if left:
        raise left[0]
    return done


def _run_jobs(plan: Fetch, keep: bool, report: Report, say: Say) -> tuple[list[str], dict[str, InputError]]:
    """Run the jobs of a plan, and return the names of the written data sets and the error of each failed data set."""
    check_disk(plan)
    done, errors = list[str](), {**plan.failed}
    tools = Tools(plan.root / CACHE, plan.workers, report, say)
    with only_writer(plan.root / SOURCES):
        remove_leftovers(plan.root)
        failed = plan.downloads.get(plan.files, report)
        for job in plan.jobs:
            broken = [failed[file.place] for file in job.files if file.place in failed]
            try:
                if broken:
                    raise broken[0]
                _make(plan, job, tools)
            except InputError as error:
                errors[job.item.name] = error
                if error.code in UNREADABLE and not plan.downloads.is_mirror:
                    _forget(plan, job)
                say(f"{job.item.name}: failed: {error}")
                continue
            done.append(job.item.name)
            say(f"{job.item.name}: {'aligned' if job.item.is_here else 'written'}")
        if not (errors or keep or plan.downloads.is_mirror):
            _clean(plan)
    return done, errors


def _by_hand(left: Sequence[Item], root: Path) -> InputError:
    """Return the error for data sets that a person has to obtain and put into the folder ``root``."""
    names = [item.name for item in left]
    free = [item.name for item in left if item.data.lab]
    instead = f"use --size lab, which has a free source for {enumerated(free)}; otherwise " if free else ""
    what = "this data set" if len(left) == 1 else "these data sets"
    check = f"run: synthlang data check {' '.join(names)}{to_option(root)}"
    hint = f"{instead}obtain {what} as described above, and {check}"
    reason = f"{plural(len(left), 'data set')} can only be obtained by hand: {', '.join(names)}"
    return InputError(reason, hint=hint, code="missing")


def _joined(errors: Mapping[str, InputError], left: Sequence[InputError]) -> InputError:
    """Join the errors of data sets, given by name, and the errors ``left``. Equal errors are listed once."""
    distinct = dict[str, InputError]()
    for name, error in errors.items():
        distinct.setdefault(error.text, error.inside(name))
    first, *others = distinct.values()
    for other in others:  # the message shows only the path of the first error
        other.reason = f"{other.path}: {other.reason}" if other.path not in (None, first.path) else other.reason
    first.others = (*left, *others)
    return first


def _forget(plan: Fetch, job: Job) -> None:
    """Delete the downloads of a job whose content cannot be read and was never confirmed by a checksum."""
    for file in job.files:
        if not file.remote.has_checksum:
            plan.downloads.path(file).unlink(missing_ok=True)


def _make(plan: Fetch, job: Job, tools: Tools) -> None:
    """Convert, parse and align the data set of a job, record it, and delete the finished parts of its steps."""
    cache = tools.cache / job.item.name.replace("/", "_")
    within = replace(tools, cache=cache, report=lambda task, *more: tools.report(f"{job.item.name}: {task}", *more))
    source = job.item.origin.source
    if not job.item.is_here and isinstance(source, MadeOf):
        _parse(plan, job, source.base, within)
    elif not job.item.is_here:
        _convert(plan, job, within)
    for step in job.steps:
        if isinstance(step, Align):
            _align(plan, job, step, within)
    shutil.rmtree(cache, ignore_errors=True)
    if tools.cache.is_dir() and not any(tools.cache.iterdir()):
        tools.cache.rmdir()


def _parse(plan: Fetch, job: Job, base: str, tools: Tools) -> None:
    """Parse the data set ``base`` into the data set of a job, and record the result."""
    target = plan.root / job.item.name
    remove_leftovers(target.parent, target.name, UNIQUE)
    if job.item.state == "incomplete":
        shutil.rmtree(target)
    done = [step.run(plan.root / base, target, tools) for step in job.steps if isinstance(step, Parse)]
    open_layout(job.item.data.layout, [target])
    _record(plan, job, (), [target], {}, done)


def _align(plan: Fetch, job: Job, step: Align, tools: Tools) -> None:
    """Align the words of a data set that is there, and add the alignment to its record."""
    paths = [plan.root / place for place in places(job.item.name)]
    done = step.run(paths, tools)
    record = read_record(plan.root)
    if (known := record.sets.get(job.item.name)) is None:
        return  # a person filled the files
    files = _written(plan.root, [step.folder(paths, done.fingerprint)])
    others = tuple(one for one in known.steps if one.settings != done.settings)
    now = known.model_copy(update={"steps": (*others, done), "written": {**known.written, **files}})
    write_record(plan.root, record.with_set(job.item.name, now))


def _convert(plan: Fetch, job: Job, tools: Tools) -> None:
    """Convert the files of a job, separate its words, put the result in its place, and record it."""
    item, root = job.item, plan.root
    received = _received(plan, job)
    assert item.origin.convert is not None, f"{item.name} is fetched and has no conversion"
    targets = [root / place for place in places(item.name)]
    for target in targets:
        remove_leftovers(target.parent, target.name, UNIQUE)
    files = {file.remote.name: plan.downloads.path(file) for file in job.files}
    with (
        writing(root),
        TemporaryDirectory(prefix=TEMPORARY, dir=root) as work,
        Given(files, Path(work), tools.report, [target.name for target in targets]).naming() as given,
    ):
        given.unpack(item.origin.convert.inputs)
        if item.data.fills:
            out = Path(work, "out")
            out.mkdir()
            omitted = item.origin.convert.run(given, out)
            done = _segment(job, [out / target.name for target in targets], tools)
            open_layout(item.data.layout, [out / target.name for target in targets])
            for target in targets:
                target.parent.mkdir(parents=True, exist_ok=True)
                (out / target.name).replace(target)
        else:
            targets[0].parent.mkdir(parents=True, exist_ok=True)
            with atomic_folder(targets[0], replace=True) as out:
                omitted = item.origin.convert.run(given, out)
                done = _segment(job, sorted(out.iterdir()), tools)
                open_layout(item.data.layout, [out])
    _record(plan, job, received, targets, omitted, done)


def _segment(job: Job, paths: Sequence[Path], tools: Tools) -> list[StepRecord]:
    """Separate the words of converted files."""
    return [step.run(job.item.data.layout, paths, tools) for step in job.steps if isinstance(step, Segment)]


def _received(plan: Fetch, job: Job) -> tuple[Received, ...]:
    """Describe the downloaded files of a job.

    Raises:
        InputError: A file without a known checksum differs from an earlier download of the same address.
    """
    record, found = read_record(plan.root), []
    for file in job.files:
        path, remote = plan.downloads.path(file), file.remote
        digest = sha256_file(path)
        earlier = None if remote.has_checksum else record.known_sha256(remote.url)
        if earlier not in (None, digest):
            reason = f"the SHA-256 of the file is {digest}, but an earlier download had {earlier}"
            names = [name for name, one in record.sets.items() if any(file.url == remote.url for file in one.received)]
            hint = f"if you trust the new content, delete the entry {enumerated(names)} of {plan.root / SOURCES}"
            raise InputError(reason, remote.url, hint=hint, code="changed")
        size = path.stat().st_size
        found.append(Received(url=remote.url, size=size, sha256=digest, verified=remote.has_checksum))
    return tuple(found)


def _record(
    plan: Fetch,
    job: Job,
    received: tuple[Received, ...],
    targets: Sequence[Path],
    omitted: Mapping[str, int],
    steps: Sequence[StepRecord],
) -> None:
    item, source = job.item, job.item.origin.source
    hub_commits = [file.remote.revision for file in job.files if isinstance(file.remote, HubFile)]
    one = SetRecord(
        variant=item.variant,
        source=source.model_dump(mode="json"),
        revision=hub_commits[0] if hub_commits else source.version,
        licence=item.origin.licence,
        received=received,
        written=_written(plan.root, targets),
        omitted=omitted,
        steps=tuple(steps),
        date=datetime.now(UTC).date().isoformat(),
        synthlang=__version__,
        converter=FORMAT,
    )
    write_record(plan.root, read_record(plan.root).with_set(item.name, one))


def _written(root: Path, targets: Sequence[Path]) -> dict[str, Written]:
    """Return the record of the files at or in the targets, by their paths below the folder of data."""
    inside = [path for target in targets for path in ([target] if target.is_file() else sorted(target.rglob("*")))]
    return {path.relative_to(root).as_posix(): file for path in inside if (file := written_file(path)) is not None}


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
