"""A run folder: from a config to config.yaml, metrics.jsonl, checkpoints and exports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from transformers import RobertaForMaskedLM

from pretrain.checkpoint import latest_checkpoint, load_weights
from pretrain.config import PretrainConfig
from pretrain.export import export_model
from pretrain.loop import Trainer
from pretrain.model import build_model
from pretrain.prepare import Artifacts, prepare
from pretrain.processes import process_state
from synthlang.config import dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, atomic_file, read_json, remove_leftovers, write_json
from synthlang.progress import Report, silent
from synthlang.store import Store

DONE = "done.json"


def pretrain(config: PretrainConfig, run: Path, store: Store | None = None, report: Report = silent) -> str:
    """Run a config in the folder ``run`` (started, continued or already done); returns its fingerprint.

    Data artifacts go to ``store`` (default: ``run/data``). A folder that holds another run
    is refused before anything is written.
    """
    _check_folder(config, run)
    store = store or Store(run / "data")
    with process_state().main_process_first():  # the others find the artifacts built
        artifacts = prepare(config, store, report)
    name = config.fingerprint(artifacts.parents)
    _claim(run, config, name, store)
    if not (run / DONE).exists():
        trainer = Trainer(config, artifacts, run, report)
        trainer.train()
        if trainer.accelerator.is_main_process:
            export_model(trainer.model, artifacts, config, run, name)
            write_json(run / DONE, {"fingerprint": name, "steps": config.steps, "parents": artifacts.parents})
        trainer.accelerator.wait_for_everyone()
    return name


def _check_folder(config: PretrainConfig, run: Path) -> None:
    """Raise InputError if the folder surely holds something else; writes nothing."""
    if (run / "run.json").exists():
        held = _record(run)["fingerprint"]
        before = load(PretrainConfig, run / "config.yaml")
        if _settings(before) != _settings(config):
            raise InputError(f"holds another run ({held}); choose another folder", run)
    elif run.exists() and not all(_is_ours(path, config) for path in run.iterdir()):
        raise InputError("is not empty and holds no run; choose another folder", run)


def _is_ours(path: Path, config: PretrainConfig) -> bool:
    """Whether a run that was killed before it wrote run.json may have left this."""
    if path.name == "config.yaml":
        return path.is_file() and path.read_bytes() == dump_yaml(config).encode("utf-8")
    return path.name in ("data", ".locks") or path.name.startswith(TEMPORARY)


def _settings(config: PretrainConfig) -> tuple[str, str, str]:
    """What makes a run another one, as far as the config alone tells."""
    return config.source, config.language.fingerprint, config.fingerprint({})


def _record(run: Path) -> dict[str, Any]:
    """run.json, or InputError if it is none."""
    held = read_json(run / "run.json")
    if not isinstance(held, dict) or not {"fingerprint", "data"} <= held.keys():
        raise InputError("is no record of a run; choose another folder", run / "run.json")
    return held


def _claim(run: Path, config: PretrainConfig, name: str, store: Store) -> None:
    """Make the folder this run's, or see that it is."""
    state = process_state()
    if (run / "run.json").exists():
        held = _record(run)["fingerprint"]
        if held != name:
            raise InputError(f"holds another run ({held}, this one is {name}); choose another folder", run)
    elif state.is_main_process:
        remove_leftovers(run)
        with atomic_file(run / "config.yaml", "w") as handle:
            handle.write(dump_yaml(config))
        write_json(run / "run.json", {"fingerprint": name, "data": os.path.relpath(store.root, run)})
    state.wait_for_everyone()


def open_run(run: Path) -> tuple[PretrainConfig, Artifacts]:
    """The config and the data artifacts of a finished run."""
    if not (run / "config.yaml").exists():
        raise InputError("is no run folder: config.yaml is missing", run)
    if not (run / DONE).exists():
        raise InputError("the run is not finished; run synthlang pretrain again to go on", run)
    config = load(PretrainConfig, run / "config.yaml")
    return config, prepare(config, Store(run / read_json(run / "run.json")["data"]))


def load_model(run: Path, config: PretrainConfig, artifacts: Artifacts) -> RobertaForMaskedLM:
    """The trained model of a run."""
    path = latest_checkpoint(run / "checkpoints")
    if path is None:
        raise InputError("has no checkpoint", run)
    model = build_model(config.model, artifacts.ids, config.batch.length, config.seed)
    load_weights(path / "model.safetensors", model)
    return model
