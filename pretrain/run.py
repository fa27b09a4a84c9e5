"""A run folder: from a config to config.yaml, metrics.jsonl, checkpoints and exports."""

from __future__ import annotations

import os
from pathlib import Path

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
from synthlang.files import atomic_file, read_json, write_json
from synthlang.progress import Report, silent
from synthlang.store import Store

DONE = "done.json"


def pretrain(config: PretrainConfig, run: Path, store: Store | None = None, report: Report = silent) -> str:
    """Run a config in the folder ``run`` (started, continued or already done); returns its fingerprint.

    Data artifacts go to ``store`` (default: ``run/data``). A folder that holds another run
    is refused before anything is written.
    """
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


def _claim(run: Path, config: PretrainConfig, name: str, store: Store) -> None:
    """Make the folder this run's, or see that it is."""
    state = process_state()
    if (run / "run.json").exists():
        held = read_json(run / "run.json")["fingerprint"]
        if held != name:
            raise InputError(f"holds another run ({held}, this one is {name}); choose another folder", run)
    elif state.is_main_process:
        if run.exists() and any(p.name not in ("data", ".locks") for p in run.iterdir()):
            raise InputError("is not empty and holds no run; choose another folder", run)
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
