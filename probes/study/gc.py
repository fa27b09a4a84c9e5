"""Garbage collection of a store: weights of finished runs, by a policy, and whole stages that no study needs.

    checkpoints   keep everything
    final         keep the exports and the last and the best checkpoint of each run
    results       keep no weights: only settings, logs, tokenizers and results

A study needs the stages of its cells and the stages that it names by a path. Its study.json records both. Weights are
deleted only if every cell that reads them is done, in every study of the store. If these studies have different
policies, the one that keeps most applies, and the file ``dropped.json`` of the run records it. A whole stage is deleted
only on request (``--unused``), and only if no study needs it. A stage that a study names by a path keeps all files. No
study enters the store during a collection.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from filelock import Timeout

from pretrain.folder import BEST, steps_in
from probes.stages.base import Stage
from probes.stages.done import DROPPED, is_whole, kept_of, noted
from probes.stages.finetune import FinetuneStage
from probes.stages.kinds import RUN_STAGES, STAGE_KINDS
from probes.stages.pretrain import root_of
from probes.stages.probe import ProbeStage
from probes.stages.shared_finetunes import left_places
from probes.study.config import Keep
from probes.study.record import LIST, STUDY, read_record, studies_of
from probes.study.stage_folders import cell_stage, is_folder_name, stages_in
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, read_json, remove_leftovers, write_json
from synthlang.store import Store
from synthlang.strict_yaml import read_yaml

POLICIES: tuple[str, ...] = get_args(Keep)
"""Policies, ordered from the one that keeps most."""
CONFIG = "config.yaml"
"""File of a run with its settings, which name the model that the run starts from."""
UNNEEDED = f"delete {STUDY} if this study is no longer needed"
"""Remedy for another study of the store whose record cannot be read."""
GONE = "unused-"
"""Prefix of the folder of a stage that is being deleted. The new name keeps studies from using a partial stage."""


# --- studies and the stages that they need ---


@dataclass(frozen=True)
class User:
    """A study of a store.

    Attributes:
        folder: The folder of the study.
        asked: True if the collection was requested for this study.
        keep: The policy of the study, or the policy that was requested in its place.
        has: Folder of a stage → True if a cell with this stage is not done.
        names: Folders of the stages that the study names by a path, and of their ancestors.
    """

    folder: Path
    asked: bool
    keep: str
    has: Mapping[str, bool]
    names: Collection[str]


def _users(folders: Iterable[Path], dry_run: bool, keep: str | None = None) -> Iterator[tuple[Store, list[User]]]:
    """Yield each store of these studies with all of its studies.

    The given studies are included even if their folders were renamed after the store listed them. The store stays
    locked until the next store is requested, so that no study enters the locked store. A ``dry_run`` locks nothing.

    Args:
        folders: The studies for which the collection was requested.
        dry_run: True if nothing will be deleted.
        keep: The policy of the given studies, in place of their own.
    """
    asked = {folder.resolve(): _record(folder) for folder in folders}
    for root in dict.fromkeys(_root(folder, record) for folder, record in asked.items()):
        store = Store(root)
        with nullcontext() if dry_run else store.lock(*LIST):
            listed = {folder.resolve(): _record(folder, UNNEEDED) for folder in studies_of(root)}
            records = {**listed, **asked}
            parents = {stage: made_of for record in records.values() for stage, made_of in record["parents"].items()}
            users = []
            for folder, record in records.items():
                policy = keep if keep is not None and folder in asked else record["config"].get("keep", POLICIES[0])
                ours = folder in listed or _root(folder, record) == root
                has = _unfinished(record) if ours else {}
                names = _with_ancestors(record["reads"], parents, store)
                users.append(User(folder, folder in asked, policy, has, names))
            yield store, users


def _record(folder: Path, otherwise: str = "name another folder") -> dict[str, Any]:
    """Return the record of a study with its stage graph, which records of earlier versions do not have."""
    record = read_record(folder, otherwise)
    if not record.keys() >= {"parents", "reads"}:
        hint = f"start the study again, which writes the file anew, or {otherwise}"
        raise InputError("has no list of stages and their parents", folder / STUDY, hint=hint, code="format")
    return record


def stores_of(folders: Iterable[Path]) -> list[Path]:
    """Return the stores of studies, each once.

    Raises:
        InputError: A folder holds no study that this version of synthlang can read.
    """
    return list(dict.fromkeys(_root(folder, read_record(folder)) for folder in folders))


def _root(folder: Path, record: Mapping[str, Any]) -> Path:
    return Path(folder / record["store"]).resolve()


def _unfinished(record: Mapping[str, Any]) -> dict[str, bool]:
    """Return the stages of a study: folder → True if an unfinished cell has the stage."""
    found: dict[str, bool] = {}
    for cell in record["cells"]:
        for name, key in cell["keys"].items():
            stage = cell_stage(name, key)
            found[stage] = found.get(stage, False) or cell["status"] != "done"
    return found


def _with_ancestors(stages: Collection[str], parents: Mapping[str, Sequence[str]], store: Store) -> set[str]:
    """Return the folders of stages and of their ancestors, from the records of studies and the settings of stages."""
    found, new = set[str](), set(stages)
    while new:
        found |= new
        settings = [path for stage in new if (path := store.root / stage / CONFIG).is_file()]
        made_of = {parent for stage in new for parent in parents.get(stage, ())}
        new = made_of.union(*(stages_in(read_yaml(path)) for path in settings)) - found
    return found


# --- weights ---


@dataclass(frozen=True)
class Freed:
    """The files of a run that a collection deletes.

    Attributes:
        run: The folder of the run.
        keep: The policy that applies.
        paths: The files and folders to delete, all below ``run``.
        size: Total size of these files and folders in bytes.
    """

    run: Path
    keep: str
    paths: tuple[Path, ...]
    size: int


@dataclass
class Collected:
    """The result of a collection.

    Attributes:
        freed: The runs with deleted files. After a dry run, these files still exist.
        needed: Number of runs kept because an unfinished cell reads them.
        keepers: Other studies whose policy keeps more of a run than requested: folder → policy.
        kept_runs: Number of runs that ``keepers`` keep.
        namers: The studies that name a run by its path, as the keys of a mapping.
        named_runs: Number of runs kept because of ``namers``.
    """

    freed: list[Freed] = field(default_factory=list)
    needed: int = 0
    keepers: dict[Path, str] = field(default_factory=dict)
    kept_runs: int = 0
    namers: dict[Path, None] = field(default_factory=dict)
    named_runs: int = 0

    @property
    def size(self) -> int:
        """Size of all deleted files in bytes."""
        return sum(freed.size for freed in self.freed)


def collect(folders: Iterable[Path], keep: str | None = None, dry_run: bool = False) -> Collected:
    """Delete weights of the runs of some studies, as far as no study needs them.

    Args:
        folders: Folders of the studies.
        keep: A policy for these studies, in place of their own. Other studies that share a run keep their policy.
        dry_run: True to delete nothing. The result then shows what would be deleted.

    Raises:
        InputError: The policy is unknown, a folder holds no study that this version of synthlang can read, or a record
            of the store, of one of its studies or of one of its runs cannot be read.
    """
    if keep is not None and keep not in POLICIES:
        hint = f"choose one of {', '.join(POLICIES)}"
        raise InputError(f"unknown policy {keep!r}", "--keep", hint=hint, code="unknown")
    found = Collected()
    for store, users in _users(folders, dry_run, keep):
        for run in dict.fromkeys(name for user in users if user.asked for name in user.has):
            folder = store.root / run
            if run.split("-")[0] in RUN_STAGES.values() and folder.exists():
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
            # The note is written first, so that the next collection deletes the rest after a kill.
            write_json(freed.run / DROPPED, {"keep": freed.keep})
            for path in freed.paths:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _freed(run: Path, keep: str) -> Freed:
    """Return the files of a run that a policy deletes. An unfinished run keeps all files."""
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
    """Return the size of a file, or of all files in a folder, in bytes."""
    if path.is_file():
        return path.stat().st_size
    return sum(inside.stat().st_size for inside in path.rglob("*") if inside.is_file())


def check_weights(stages: Sequence[Stage], done: Collection[str], store: Store) -> None:
    """Raise InputError if a stage reads weights that a collection deleted.

    Args:
        stages: The stages that will be made.
        done: Keys of the finished stages.
        store: The store of the stages.
    """
    lost: dict[str, str | None] = {}
    for stage in stages:
        for parent in (*stage.parents, *_further_of(stage)):
            if parent.key not in done or parent.kind not in RUN_STAGES.values():
                continue
            run = store.path(parent.kind, parent.key)
            if parent.key not in lost:
                lost[parent.key] = kept_of(run)
            if _reads_lost(stage, lost[parent.key]):
                less = ""
                if isinstance(stage, ProbeStage) and lost[parent.key] == "final":
                    settings = [] if stage.step is None else [f"probes.{stage.name}.checkpoints to selected"]
                    if "words" in stage.config.probes:
                        settings.append(f"probes.{stage.name}.words.checkpoints to false")
                    less = f", or set {' and '.join(settings)}"
                raise InputError(
                    f"{stage.label} needs weights that synthlang gc deleted (policy {lost[parent.key]})",
                    run,
                    hint=f"delete this folder and start the study again, which trains the run anew{less}",
                    code="missing",
                )


def _further_of(stage: Stage) -> tuple[Stage, ...]:
    """Return the model before its adjustment, if continual learning of the stage reads this model too."""
    if not isinstance(stage, FinetuneStage) or not stage.has_original:
        return ()
    before = root_of(stage.model)
    return (before,) if isinstance(before, Stage) else ()


def _reads_lost(stage: Stage, kept: str | None) -> bool:
    if kept == "final":
        return isinstance(stage, ProbeStage) and stage.reads_checkpoints
    return kept == "results"


# --- whole stages ---


@dataclass(frozen=True)
class Unused:
    """A stage that no study needs, or fine-tuned models that a stopped study left for sharing.

    Attributes:
        folder: The folder of the stage or of the models.
        label: Description of the stage or of the models.
        size: Size of the folder in bytes.
    """

    folder: Path
    label: str
    size: int


def delete_unused(folders: Iterable[Path], dry_run: bool = False) -> list[Unused]:
    """Delete each finished stage that no study needs, from the stores of some studies.

    Fine-tuned models that stopped studies left for sharing are deleted, too. Unfinished stages, locked stages and texts
    that were prepared for pretraining are kept. The temporary folders beside a stage (``.work``, ``.again``) are also
    kept.

    Args:
        folders: Folders of the studies.
        dry_run: True to delete nothing. The result may then have stages that are locked.

    Returns:
        The deleted stages and fine-tuned models.

    Raises:
        InputError: A folder holds no study that this version of synthlang can read, or a record of the store, of one of
            its studies or of one of its stages cannot be read.
    """
    found: list[Unused] = []
    for store, users in _users(folders, dry_run):
        needed = {stage for user in users for stage in {*user.has, *user.names}}
        if not dry_run:
            remove_leftovers(store.root, GONE)
        for kind, stages in STAGE_KINDS.items():
            for folder in sorted(store.root.glob(f"{kind}-*")):
                if not is_folder_name(folder.name) or folder.name in needed or not is_whole(stages.content, folder):
                    continue
                one = Unused(folder, noted(folder).get("label", f"this stage of kind {kind}"), size_of(folder))
                if dry_run or _delete_stage(store, folder):
                    found.append(one)
        for place in left_places(store):
            one = Unused(place.folder, "fine-tuned models of a stopped study", size_of(place.folder))
            if dry_run or place.delete():
                found.append(one)
    return found


def _delete_stage(store: Store, folder: Path) -> bool:
    """Delete the folder of a stage. Return False if the folder does not exist or is locked.

    The folder is renamed first. After a kill the next collection deletes the rest.
    """
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
