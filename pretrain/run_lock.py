"""Ownership of a run folder: refuse a folder with other content, and mark the folder with run.json."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from textwrap import shorten
from typing import Any, TypeVar

from pretrain.devices import process_state
from synthlang.config import StrictModel, dump_yaml, load
from synthlang.errors import SHOWN, InputError
from synthlang.files import LOCK, TEMPORARY, atomic_file, only_writer, read_json, write_json
from synthlang.store import Store

C = TypeVar("C", bound=StrictModel)
CHOOSE = "choose another folder"
Settings = Callable[[C], object]
"""Function that returns the part of a config that identifies its run."""


def only_run(run: Path) -> AbstractContextManager[None]:
    """Return the lock of a run folder, which only the main process of a launch takes."""
    return only_writer(run) if process_state().is_main_process else nullcontext()


def check_folder(run: Path, config: C, settings: Settings[C], what: str = "run") -> None:
    """Check that a folder may hold the run, before anything is written.

    Raises:
        InputError: The folder holds another run, or files that do not belong to a run.
    """
    if (run / "run.json").exists():
        read_record(run, what)
        before = load(type(config), run / "config.yaml")
        if settings(before) != settings(config):
            changes = "; ".join(_changes(before, config, settings))
            raise InputError(f"holds another {what} ({changes})", run, hint=CHOOSE, code="exists")
    elif run.exists() and not all(_is_leftover(path, config) for path in run.iterdir()):
        raise InputError(f"is not empty and holds no {what}", run, hint=CHOOSE, code="exists")


def _changes(before: C, now: C, settings: Settings[C]) -> list[str]:
    """Return each key that makes another run, with its old and its new value."""
    fields = [name for name in type(now).model_fields if getattr(before, name) != getattr(now, name)]
    undone = {name: now.model_copy(update={name: getattr(before, name)}) for name in fields}
    decide = {name for name, config in undone.items() if settings(config) != settings(now)}  # not log_every and such
    first, second = (one.model_dump(mode="json", include=decide or {*fields}) for one in (before, now))
    found = [f"{key}: {old}, now {new}" for key, old, new in differences(first, second)]
    return found[:SHOWN] + ([f"and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])


def differences(before: Any, now: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, str, str]]:
    """Yield the dotted key, the old and the new value of each difference between two configs, all as texts.

    >>> list(differences({"steps": 6, "batch": {"rows": 8}}, {"steps": 9, "batch": {"rows": 8}}))
    [('steps', '6', '9')]
    """
    if isinstance(before, list) and isinstance(now, list):
        before, now = (dict(enumerate(one)) for one in (before, now))
    if isinstance(before, dict) and isinstance(now, dict):
        for key in {**before, **now}:
            yield from differences(before.get(key), now.get(key), (*place, str(key)))
    elif before != now:
        old, new = (shorten(json.dumps(value, ensure_ascii=False), 60) for value in (before, now))
        yield ".".join(place), old, new


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
    moved.
    """
    state = process_state()
    begun = (run / "run.json").exists()
    if begun and (there := read_record(run, what))["fingerprint"] != name:
        known = there.get("inputs", {})
        changed = [key for key, now in inputs.items() if known.get(key, now) != now]
        why = f"the content of {' and '.join(changed)} has changed" if changed else "settings or data have changed"
        reason = f"holds another {what} ({there['fingerprint']}, not {name}), because {why}"
        raise InputError(reason, run, hint=CHOOSE, code="changed")
    if state.is_main_process:
        if not begun or not _names_the_same(run / "config.yaml", config, settings):
            with atomic_file(run / "config.yaml", "w") as handle:
                handle.write(dump_yaml(config))
        if not begun:
            write_json(run / "run.json", {"fingerprint": name, "inputs": inputs, **record})
    state.wait_for_everyone()


def _names_the_same(path: Path, config: C, settings: Settings[C]) -> bool:
    """Return whether a config.yaml can be loaded and identifies the same run."""
    try:
        return settings(load(type(config), path)) == settings(config)
    except InputError:  # a file that a language names is gone
        return False


def read_record(run: Path, what: str = "run") -> dict[str, Any]:
    """Read run.json of a pretraining run or, by the name ``what``, of another kind of run.

    Raises:
        InputError: The file is not a record of such a run. Only records of pretraining runs name their data.
    """
    record = read_json(run / "run.json")
    if not isinstance(record, dict) or "fingerprint" not in record:
        raise InputError("is not a record of a run", run / "run.json", hint=CHOOSE, code="format")
    if ("data" in record) != (what == "run"):
        raise InputError("holds another kind of run", run, hint=CHOOSE, code="exists")
    return record
