"""Deleting weights that no cell needs any more, by the policy ``keep`` of each study.

    checkpoints   everything stays
    final         of each run its exports and its last and best checkpoint
    results       no weights: settings, logs, tokenizers and results

A run may belong to several studies of one store. It is touched only when every cell of every one of them that reads it
is done, and then by the policy that keeps most. One that a study names by its path, as ``model:`` say, stays as it is.
What a run has lost stands in its ``dropped.json``.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pretrain.folder import BEST, steps_in
from probes.study.finished import DROPPED, kept_of
from probes.study.index import entry_of
from probes.study.record import held_for_deletion
from probes.study.tasks import RUNS, ProbeTask, Task
from probes.study.users import records_of, root_of, stages_named, users_of
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.store import Store

POLICIES = ("checkpoints", "final", "results")
"""From the one that keeps most."""


@dataclass(frozen=True)
class Freed:
    """What one run loses: the paths, all below ``run``, and their size in bytes."""

    run: Path
    keep: str
    paths: tuple[Path, ...]
    size: int


@dataclass(frozen=True)
class Collection:
    """What is deleted; how many runs are left alone because a cell that reads them is not done.

    held   folder of another study → its policy, for those that keep more of a run than is asked for; ``held_runs``
           is of how many runs
    namers folders of the studies that name a run by its path, which keeps it; ``named_runs`` is how many runs
    """

    freed: tuple[Freed, ...]
    needed: int
    held: Mapping[Path, str]
    held_runs: int
    namers: tuple[Path, ...] = ()
    named_runs: int = 0

    @property
    def size(self) -> int:
        """Bytes."""
        return sum(freed.size for freed in self.freed)


def collect(folders: Iterable[Path], keep: str | None = None, dry_run: bool = False) -> Collection:
    """Delete what may go of the runs of these studies; with ``dry_run`` nothing is.

    ``keep`` stands for the policy of these studies; other studies that share a run with them have their own.
    Raises InputError for a folder that is no study or a policy that is none.
    """
    if keep is not None and keep not in POLICIES:
        raise InputError(f"keep must be one of {', '.join(POLICIES)}, not {keep!r}")
    named = records_of(folders)
    roots = dict.fromkeys(root_of(folder, record) for folder, record in named.items())
    freed: list[Freed] = []
    needed, held_runs, holders = 0, 0, dict[Path, str]()
    named_runs, namers = 0, dict[Path, None]()
    for root in roots:
        store = Store(root)
        with held_for_deletion(store, dry_run):
            found = _policies(store, named, keep)
            needed += found.needed
            held_runs += len(found.held)
            holders |= {folder: policy for of_run in found.held.values() for folder, policy in of_run.items()}
            named_runs += len(found.named)
            namers |= {folder: None for of_run in found.named.values() for folder in of_run}
            here = [one for one in (_freed(run, policy) for run, policy in found.policies.items()) if one.paths]
            if not dry_run:
                for one in here:
                    _delete(one)
            freed += here
    return Collection(tuple(freed), needed, holders, held_runs, tuple(namers), named_runs)


def check_weights(tasks: Sequence[Task], done: Mapping[str, str], store: Store) -> None:
    """InputError if one of the ``tasks``, which are to be run, reads weights that were deleted.

    ``done`` has the fingerprints of finished tasks by key.
    """
    lost: dict[str, str | None] = {}
    for task in tasks:
        for parent in task.parents:
            if parent not in done:
                continue
            run = _run_of(store, done[parent])
            if parent not in lost:
                lost[parent] = None if run is None else kept_of(run)
            if run is not None and _reads_lost(task, lost[parent]):
                less = ", or set words.checkpoints to false" if lost[parent] == "final" else ""
                raise InputError(
                    f"{task.label} needs weights that synthlang gc deleted (it kept {lost[parent]}); delete the folder "
                    f"{run} and start again: the run is trained anew, with the same result{less}"
                )


def _run_of(store: Store, name: str) -> Path | None:
    paths = [store.path(kind, name) for kind in dict.fromkeys(RUNS.values())]
    return next((path for path in paths if path.exists()), None)


def _reads_lost(task: Task, kept: str | None) -> bool:
    if kept == "final":
        return isinstance(task, ProbeTask) and "words" in task.config.probes and task.config.words.checkpoints
    return kept == "results"


@dataclass(frozen=True)
class _Found:
    """The policy of each run that no cell needs; how many some cell needs; run → other studies that keep more of it;
    run → studies that name it by its path."""

    policies: dict[Path, str]
    needed: int
    held: dict[Path, dict[Path, str]]
    named: dict[Path, list[Path]]


def _policies(store: Store, mine: dict[Path, dict[str, Any]], keep: str | None) -> _Found:
    """What to do with the runs of the studies ``mine`` that use the store."""
    users = users_of(store, mine)
    ours: set[Path] = set()
    needed: set[Path] = set()
    wanted: dict[Path, dict[Path, str]] = {}  # run → study → policy
    for folder, record in users.items():
        policy = keep if keep is not None and folder in mine else record["config"].get("keep", POLICIES[0])
        for cell in record["cells"]:
            for run in _runs(store, cell):
                ours |= {run} if folder in mine else set()
                needed |= {run} if cell["status"] != "done" else set()
                wanted.setdefault(run, {})[folder] = policy
    policies: dict[Path, str] = {}
    held: dict[Path, dict[Path, str]] = {}
    named = _named(store, users | mine)
    for run in ours - needed - named.keys():
        own = min((POLICIES.index(policy) for folder, policy in wanted[run].items() if folder in mine))
        more = {folder: policy for folder, policy in wanted[run].items() if POLICIES.index(policy) < own}
        policies[run] = min(wanted[run].values(), key=POLICIES.index)
        if more:
            held[run] = more
    return _Found(policies, len(ours & needed), held, {run: named[run] for run in ours - needed if run in named})


def _named(store: Store, records: Mapping[Path, dict[str, Any]]) -> dict[Path, list[Path]]:
    """Stage that studies name by its path → these studies."""
    found: dict[Path, list[Path]] = {}
    for folder, record in records.items():
        for name in stages_named(record, store):
            found.setdefault((store.root / name).resolve(), []).append(folder)
    return found


def _runs(store: Store, cell: Mapping[str, Any]) -> list[Path]:
    """The run folders of a cell: of its stages or, where it did not come so far, of those that others made."""
    found = []
    for stage, kind in RUNS.items():
        name = cell["stages"].get(stage)
        if name is None and (entry := entry_of(store, cell["keys"].get(stage, ""))) is not None:
            name = entry["fingerprint"]
        if name is not None:
            found.append(store.path(kind, name).resolve())
    return found


def _freed(run: Path, keep: str) -> Freed:
    """What a policy deletes of a run; nothing of one that is not finished."""
    folder, paths = run / "checkpoints", list[Path]()
    if keep == "checkpoints" or not (run / "done.json").exists():
        return Freed(run, keep, (), 0)
    steps = steps_in(folder)
    if keep == "results":
        weights = [*run.glob("export/**/*.safetensors"), *run.glob("export/**/*.safetensors.index.json")]
        paths = ([folder] if steps else []) + weights
    elif steps:
        best = read_json(folder / f"step-{steps[-1]}" / "state.json").get(BEST)
        paths = [folder / f"step-{step}" for step in steps[:-1] if step != best]
    return Freed(run, keep, tuple(sorted(paths)), sum(map(size_of, paths)))


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files of a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(inside.stat().st_size for inside in path.rglob("*") if inside.is_file())


def _delete(freed: Freed) -> None:
    """Note what goes, then delete it: killed between, the next time does the rest."""
    write_json(freed.run / DROPPED, {"keep": freed.keep})
    for path in freed.paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink()
