"""Ownership of a run folder: refuse a folder with other content, and mark the folder with run.json."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from pretrain.devices import process_state
from synthlang.config import StrictModel, dump_yaml, load
from synthlang.errors import SHOWN, InputError
from synthlang.files import LOCK, TEMPORARY, atomic_file, only_writer, read_json, write_json
from synthlang.store import Store
from synthlang.wording import changes, first_few

C = TypeVar("C", bound=StrictModel)
CHOOSE = "choose another folder"
Settings = Callable[[C], object]
"""Function that returns the part of a config that identifies its run."""


def only_run(run: Path) -> AbstractContextManager[None]:
    """Return the lock of a run folder, which only the main process of a launch takes.

    Entering the context raises InputError if another process holds the lock, or DiskError if the folder cannot be
    written.
    """
    return only_writer(run) if process_state().is_main_process else nullcontext()


def check_folder(run: Path, config: C, settings: Settings[C], what: str = "run") -> None:
    """Check that a folder may hold the run, before anything is written.

    Args:
        run: The folder, which need not exist.
        config: The config of the run.
        settings: Function that returns the part of a config that identifies its run.
        what: Kind of run that the folder may hold: ``run`` for a pretraining, or another name. Errors use this name.

    Raises:
        InputError: The folder holds another run, a run of another kind, a damaged record or config, or files that do
            not belong to a run, or is a file.
    """
    if (run / "run.json").exists():
        read_record(run, what)
        before = load(type(config), run / "config.yaml")
        if settings(before) != settings(config):
            changed = first_few(_changes(before, config, settings), SHOWN, "; ")
            raise InputError(f"holds another {what} ({changed})", run, hint=CHOOSE, code="exists")
    elif run.is_file():
        raise InputError("is a file, not a folder", run, hint=CHOOSE, code="exists")
    elif run.exists() and not all(_is_leftover(path, config) for path in run.iterdir()):
        raise InputError(f"is not empty and holds no {what}", run, hint=CHOOSE, code="exists")


def _changes(before: C, now: C, settings: Settings[C]) -> list[str]:
    """Return texts about the changed keys that make the config another run."""
    fields = [name for name in type(now).model_fields if getattr(before, name) != getattr(now, name)]
    undone = {name: now.model_copy(update={name: getattr(before, name)}) for name in fields}
    decide = {name for name, config in undone.items() if settings(config) != settings(now)}  # not log_every and such
    first, second = (one.model_dump(mode="json", include=decide or {*fields}) for one in (before, now))
    return list(changes(first, second))


def _is_leftover(path: Path, config: StrictModel) -> bool:
    """Return whether the path may remain from a run that was killed before it wrote run.json."""
    if path.name == "config.yaml":
        return path.is_file() and path.read_bytes() == dump_yaml(config).encode("utf-8")
    return path.name == "data" or path.name.startswith((TEMPORARY, LOCK, Store.LOCKS))


def mark_folder(
    run: Path, config: C, name: str, settings: Settings[C], inputs: Mapping[str, Any], what: str = "run", **record: str
) -> None:
    """Write config.yaml and run.json with the fingerprint ``name`` and the ``record``, or check an existing run.json.

    run.json also holds ``inputs``, which maps each text, file and model of the config to the fingerprint of its
    content. An error can therefore name the text that has changed. config.yaml is updated if the texts of the run have
    moved. All processes of a launch call this function, and the main process writes. ``settings`` and ``what`` are as
    for ``check_folder``.

    Raises:
        InputError: The folder has the record of a run with another fingerprint or of another kind.
        DiskError: A file cannot be written.
    """
    state = process_state()
    begun = (run / "run.json").exists()
    if begun and (there := read_record(run, what))["fingerprint"] != name:
        reason = f"holds another {what}, because {changed_since(there, inputs)}"
        raise InputError(reason, run, hint=f"restore the earlier state, or {CHOOSE}", code="changed")
    if state.is_main_process:
        if not begun or not _names_the_same(run / "config.yaml", config, settings):
            with atomic_file(run / "config.yaml", "w") as handle:
                handle.write(dump_yaml(config))
        if not begun:
            write_json(run / "run.json", {"fingerprint": name, "inputs": inputs, **record})
    state.wait_for_everyone()


def changed_since(record: Mapping[str, Any], inputs: Mapping[str, Any]) -> str:
    """Return a clause that names the inputs whose content has changed since the ``record`` of a run was written."""
    known = record.get("inputs", {})
    changed = [key for key, now in inputs.items() if known.get(key, now) != now]
    return f"the content of {first_few(changed, SHOWN)} has changed" if changed else "settings or data have changed"


def _names_the_same(path: Path, config: C, settings: Settings[C]) -> bool:
    """Return whether a config.yaml can be loaded and identifies the same run."""
    try:
        return settings(load(type(config), path)) == settings(config)
    except InputError:  # a file that a language names is gone
        return False


def read_record(run: Path, what: str = "run") -> dict[str, Any]:
    """Read run.json of a pretraining run (``what`` is "run"), or of a run of another kind.

    Only the records of pretraining runs have the key ``data``, with the path of the store from the run folder.

    Raises:
        InputError: The file is missing or damaged, or is the record of the other kind of run.
    """
    record = read_json(run / "run.json")
    if not isinstance(record, dict) or "fingerprint" not in record:
        raise InputError("is not a record of a run", run / "run.json", hint=CHOOSE, code="format")
    if ("data" in record) != (what == "run"):
        reason = "holds a pretraining run" if "data" in record else "holds an adjustment"
        raise InputError(reason, run, hint=CHOOSE, code="exists")
    return record
