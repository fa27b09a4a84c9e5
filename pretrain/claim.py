"""Whose a run folder is: refused before anything is written if it holds something else, then marked by run.json."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, TypeVar

from pretrain.devices import process_state
from synthlang.config import StrictModel, dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import LOCK, TEMPORARY, atomic_file, only_writer, read_json, remove_leftovers, write_json
from synthlang.store import Store

C = TypeVar("C", bound=StrictModel)
Settings = Callable[[C], object]  # what makes a run another one, as far as the config alone tells


def only_run(run: Path) -> AbstractContextManager[None]:
    """``only_writer`` of a run folder; of several processes of a launch the main one has the lock."""
    return only_writer(run) if process_state().is_main_process else nullcontext()


def check_folder(run: Path, config: C, settings: Settings[C], what: str = "run") -> None:
    """InputError if the folder surely holds something else; writes nothing."""
    if (run / "run.json").exists():
        there = read_record(run, what)["fingerprint"]
        if settings(load(type(config), run / "config.yaml")) != settings(config):
            raise InputError(f"holds another {what} ({there}); choose another folder", run)
    elif run.exists() and not all(_is_leftover(path, config) for path in run.iterdir()):
        raise InputError(f"is not empty and holds no {what}; choose another folder", run)


def _is_leftover(path: Path, config: StrictModel) -> bool:
    """Whether a run that was killed before it wrote run.json may have left this."""
    if path.name == "config.yaml":
        return path.is_file() and path.read_bytes() == dump_yaml(config).encode("utf-8")
    return path.name == "data" or path.name.startswith((TEMPORARY, LOCK, Store.LOCKS))


def claim(run: Path, config: C, name: str, settings: Settings[C], what: str = "run", **record: str) -> None:
    """Make the folder that of the run with the fingerprint ``name``, or see that it is.

    config.yaml then says where its texts are now; run.json has the fingerprint and the ``record``.
    """
    state = process_state()
    begun = (run / "run.json").exists()
    if begun and (there := read_record(run, what)["fingerprint"]) != name:
        raise InputError(
            f"holds another {what} ({there}, this one is {name}): its settings or its data have changed since it "
            "began; choose another folder",
            run,
        )
    if state.is_main_process:
        if not begun:
            remove_leftovers(run)
        if not begun or not _names_the_same(run / "config.yaml", config, settings):
            with atomic_file(run / "config.yaml", "w") as handle:
                handle.write(dump_yaml(config))
        if not begun:
            write_json(run / "run.json", {"fingerprint": name, **record})
    state.wait_for_everyone()


def _names_the_same(path: Path, config: C, settings: Settings[C]) -> bool:
    """Whether a config.yaml names the same texts and files, and they are there as far as parsing tells."""
    try:
        return settings(load(type(config), path)) == settings(config)
    except InputError:  # a file that a language names is gone
        return False


def read_record(run: Path, what: str = "run") -> dict[str, Any]:
    """run.json, or InputError if it is none, or that of another kind: only a pretraining's names its data."""
    record = read_json(run / "run.json")
    if not isinstance(record, dict) or "fingerprint" not in record:
        raise InputError("is no record of a run; choose another folder", run / "run.json")
    if ("data" in record) != (what == "run"):
        raise InputError("holds another kind of run; choose another folder", run)
    return record
