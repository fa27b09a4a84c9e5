"""Deleting what no study of a store needs any more: weights, by a policy, and whole stages.

    checkpoints   everything stays
    final         of each run its exports and its last and best checkpoint
    results       no weights: settings, logs, tokenizers and results

A stage is needed by the studies that have it in a cell, by their study.json, or name it by a path. Weights go only when
every cell of every study that reads them is done, and then by the policy that keeps most; what a run has lost stands in
its ``dropped.json``. A whole stage goes only if asked to (``--unused``), and if no study needs it. What is named by a
path stays as it is: such a path is known by the name of the folder in it (``pretrain-0123456789abcdef``), wherever the
store is now. While anything is deleted, no study enters the store.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import Timeout

from pretrain.folder import BEST, steps_in
from probes.study.cell import Cell
from probes.study.done import DROPPED, is_whole, kept_of, noted
from probes.study.record import LIST, read_record, studies_of
from probes.study.shared_fits import left_places
from probes.study.stage import KINDS, RUNS, ProbeStage, Stage, TransferStage, TuneStage, holds_original, origin
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, read_json, remove_leftovers, user_path, write_json
from synthlang.fingerprint import LENGTH
from synthlang.references import references
from synthlang.store import Store

POLICIES = ("checkpoints", "final", "results")
"""From the one that keeps most."""
STAGE = re.compile(rf"(?:{'|'.join(KINDS)})-[0-9a-f]{{{LENGTH}}}")
"""The name of a stage's folder."""
SETTINGS = "config.yaml", "run.json"
"""What a run says of itself, with the model that it is made of."""
GONE = "unused-"
"""A stage that is being deleted is called this first, so that no half of one is ever taken for a whole."""


# --- who needs what ---


@dataclass(frozen=True)
class User:
    """A study of a store: its folder, whether it was asked about, its policy; stage → whether some cell that has it is
    not done; and the stages that it names by a path."""

    folder: Path
    asked: bool
    keep: str
    has: Mapping[str, bool]
    names: Collection[str]


def _users(folders: Iterable[Path], dry_run: bool, keep: str | None = None) -> Iterator[tuple[Store, list[User]]]:
    """The stores of the studies that are asked about, each with all of its studies: those that its list knows, and
    those asked about, though their folder has another name by now. ``keep`` stands for the policy of those asked about.

    What is deleted of a store meanwhile is deleted while no study can enter it; nothing is locked for a ``dry_run``.
    """
    asked = {folder.resolve(): read_record(folder) for folder in folders}
    for root in dict.fromkeys(_root(folder, record) for folder, record in asked.items()):
        store = Store(root)
        with nullcontext() if dry_run else store.lock(*LIST):
            listed = {folder.resolve(): read_record(folder) for folder in studies_of(root)}
            users = []
            for folder, record in {**listed, **asked}.items():
                policy = keep if keep is not None and folder in asked else record["config"].get("keep", POLICIES[0])
                ours = folder in listed or _root(folder, record) == root
                stages = _stages_of(record["cells"] if ours else ())
                users.append(User(folder, folder in asked, policy, stages, _named_by(record, store)))
            yield store, users


def _root(folder: Path, record: Mapping[str, Any]) -> Path:
    return Path(folder / record["store"]).resolve()


def _stages_of(cells: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Stage → whether a cell that has it is not done."""
    found: dict[str, bool] = {}
    for cell in cells:
        for name, key in cell["keys"].items():
            stage = f"{RUNS.get(name, name.split(' ')[0])}-{key}"
            found[stage] = found.get(stage, False) or cell["status"] != "done"
    return found


def _named_by(record: Mapping[str, Any], store: Store) -> set[str]:
    """The stages that a study names by a path, and those that the named runs were made of in turn."""
    overrides = [cell.get("overrides") for cell in record["cells"]]
    text = json.dumps([record["config"], record.get("settings"), record.get("reads"), overrides])
    found, new = set[str](), _stages_in(text)
    while new:
        found |= new
        files = (store.root / stage / name for stage in new for name in SETTINGS)
        texts = [path.read_text("utf-8", "replace") for path in files if path.is_file()]
        new = {stage for text in texts for stage in _stages_in(text)} - found
    return found


def stages_read(cells: Iterable[Cell]) -> list[str]:
    """The stages, of any store, that cells name by a path or a link, also in files that they are based on.

    For study.json: relative paths are from the folder where the study runs.
    """
    every_cell = list(cells)
    names = {cell.model for cell in every_cell if cell.model is not None}
    for config in {id(config): config for cell in every_cell for config in cell.configs.values()}.values():
        names |= {str(named.name) for named in references(config) if named.kind in ("model", "file")}
    paths = [os.path.abspath(user_path(name)) for name in names]
    return sorted({stage for path in paths for stage in _stages_in(path) | _stages_in(os.path.realpath(path))})


def _stages_in(text: str) -> set[str]:
    return set(STAGE.findall(text))


# --- weights ---


@dataclass(frozen=True)
class Freed:
    """What one run loses: the paths, all below ``run``, and their size in bytes."""

    run: Path
    keep: str
    paths: tuple[Path, ...]
    size: int


@dataclass
class Collected:
    """What is deleted; ``needed`` is how many runs are left alone because a cell that reads them is not done.

    keepers  folder of another study → its policy, for those that keep more of a run than is asked for; ``kept_runs``
             is of how many runs
    namers   folders of the studies that name a run by its path, which keeps it; ``named_runs`` is how many runs
    """

    freed: list[Freed] = field(default_factory=list)
    needed: int = 0
    keepers: dict[Path, str] = field(default_factory=dict)
    kept_runs: int = 0
    namers: dict[Path, None] = field(default_factory=dict)
    named_runs: int = 0

    @property
    def size(self) -> int:
        return sum(freed.size for freed in self.freed)


def collect(folders: Iterable[Path], keep: str | None = None, dry_run: bool = False) -> Collected:
    """Delete what may go of the runs of these studies; with ``dry_run`` nothing is.

    ``keep`` stands for the policy of these studies; other studies that share a run with them have their own.
    Raises InputError for a folder that is no study or a policy that is none.
    """
    if keep is not None and keep not in POLICIES:
        raise InputError(f"keep must be one of {', '.join(POLICIES)}, not {keep!r}")
    found = Collected()
    for store, users in _users(folders, dry_run, keep):
        for run in dict.fromkeys(name for user in users if user.asked for name in user.has):
            folder = store.root / run
            if run.split("-")[0] in RUNS.values() and folder.exists():
                _collect(folder, users, found, dry_run)
    return found


def _collect(run: Path, users: Sequence[User], found: Collected, dry_run: bool) -> None:
    using = [user for user in users if run.name in user.has]
    naming = {user.folder: None for user in users if run.name in user.names}
    if any(user.has[run.name] for user in using):
        found.needed += 1
    elif naming:
        found.named_runs += 1
        found.namers |= naming
    else:
        asked_policy = min(POLICIES.index(user.keep) for user in using if user.asked)
        more = {user.folder: user.keep for user in using if POLICIES.index(user.keep) < asked_policy}
        found.kept_runs += bool(more)
        found.keepers |= more
        freed = _freed(run.resolve(), min((user.keep for user in using), key=POLICIES.index))
        found.freed += [freed] if freed.paths else []
        if freed.paths and not dry_run:
            # noted first: killed between, the next time does the rest
            write_json(freed.run / DROPPED, {"keep": freed.keep})
            for path in freed.paths:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


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


def check_weights(stages: Sequence[Stage], done: Collection[str], store: Store) -> None:
    """InputError if one of the ``stages``, which are to be made, reads weights that were deleted; ``done`` are keys."""
    lost: dict[str, str | None] = {}
    for stage in stages:
        for parent in (*stage.parents, *_further_of(stage)):
            if parent.key not in done or parent.kind not in RUNS.values():
                continue
            run = store.path(parent.kind, parent.key)
            if parent.key not in lost:
                lost[parent.key] = kept_of(run)
            if _reads_lost(stage, lost[parent.key]):
                less = ", or set words.checkpoints to false" if lost[parent.key] == "final" else ""
                raise InputError(
                    f"{stage.label} needs weights that synthlang gc deleted (it kept {lost[parent.key]}); delete the "
                    f"folder {run} and start again: the run is trained anew, with the same result{less}"
                )


def _further_of(stage: Stage) -> tuple[Stage, ...]:
    """The model before its adjustment, where continual learning reads it."""
    if not isinstance(stage, TransferStage | TuneStage) or not holds_original(stage.config, stage.model):
        return ()
    before = origin(stage.model)
    return (before,) if isinstance(before, Stage) else ()


def _reads_lost(stage: Stage, kept: str | None) -> bool:
    if kept == "final":
        return isinstance(stage, ProbeStage) and "words" in stage.config.probes and stage.config.words.checkpoints
    return kept == "results"


# --- whole stages ---


@dataclass(frozen=True)
class Unused:
    """A stage that no study needs: its folder, what it is, and its size in bytes."""

    folder: Path
    label: str
    size: int


def delete_unused(folders: Iterable[Path], dry_run: bool = False) -> list[Unused]:
    """Delete the whole stages that no study of the stores of these studies needs; with ``dry_run`` nothing is.

    A run that is not finished, what is beside a stage while it is made (``.work``, ``.again``), a stage that somebody
    works on at this moment, and texts that were prepared for pretraining stay. Raises InputError for a folder that is
    no study.
    """
    found: list[Unused] = []
    for store, users in _users(folders, dry_run):
        needed = {stage for user in users for stage in {*user.has, *user.names}}
        if not dry_run:
            remove_leftovers(store.root, GONE)
        for kind in KINDS:
            for folder in sorted(store.root.glob(f"{kind}-*")):
                if not STAGE.fullmatch(folder.name) or folder.name in needed or not is_whole(kind, folder):
                    continue
                one = Unused(folder, noted(folder).get("label", f"this {kind}"), size_of(folder))
                if dry_run or _delete_stage(store, folder):
                    found.append(one)
        for place in left_places(store):
            one = Unused(place.folder, "fits of a study that was stopped", size_of(place.folder))
            if dry_run or place.delete():
                found.append(one)
    return found


def _delete_stage(store: Store, folder: Path) -> bool:
    """First the folder's name goes; killed after that, the rest goes the next time. False if somebody works on it."""
    kind, _, key = folder.name.partition("-")
    aside = folder.with_name(f"{TEMPORARY}{GONE}{folder.name}")
    try:
        with store.lock(kind, key).acquire(timeout=0):
            if not folder.is_dir():
                return False
            folder.rename(aside)
    except Timeout:
        return False
    shutil.rmtree(aside)
    return True
