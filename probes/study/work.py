"""What the tasks of a study do. Each makes a stage under its lock: another runner of the store waits, and finds it."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

from pretrain.adjust.config import FORMAT as ADJUST_FORMAT
from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.model import trained_model
from pretrain.prepare import prepare
from pretrain.run import DONE, pretrain
from pretrain.stopping import on_sigterm
from probes.measure.command import measure
from probes.measure.config import FORMAT as PROBE_FORMAT
from probes.measure.config import ProbeConfig
from probes.measure.subject import Subject
from probes.study.cells import MODEL, SECOND
from probes.study.identity import identity
from probes.study.index import made
from probes.study.kinds import (
    PREDICTIONS,
    RESULT,
    AdjustTask,
    AlignmentTask,
    Model,
    PretrainTask,
    ProbeTask,
    TransferTask,
    short,
)
from probes.study.models import content_of, open_model
from probes.study.task import Task
from probes.transfer.data import load_data
from probes.transfer.model import Pretrained, is_run, model_path
from probes.transfer.predictions import write_predictions
from probes.transfer.result import drops, facts, seed_record
from probes.transfer.run import Transfer
from probes.words import probe_alignment, probe_fingerprint
from synthlang.config import dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import Report
from synthlang.store import Store


def run_pretraining(task: PretrainTask, store: Store, report: Report) -> str:
    """Train in ``pretrain-<fingerprint>``, or go on; SIGTERM saves and raises Stopped."""
    artifacts = prepare(task.config, store, report)
    name = task.config.fingerprint(artifacts.parents)
    with store.lock(task.kind, name), on_sigterm() as stop:
        pretrain(task.config, store.path(task.kind, name), store, report, stop=stop)
    return name


def run_alignment(task: AlignmentTask, store: Store, report: Report) -> str:
    """Measure the alignment of a run's word embeddings."""
    run = _stage(store, task.pretrained)
    name = probe_fingerprint(content_of(str(run)), task.config.dictionary)

    def build(path: Path) -> None:
        artifacts = prepare(task.config, store, report)
        model = trained_model(run, task.config, artifacts)
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, probe_alignment(model, task.config, artifacts, store))

    store.obtain(task.kind, name, build)
    return name


def run_adjustment(task: AdjustTask, store: Store, report: Report) -> str:
    """Adjust in ``adjust-<fingerprint>``, or go on; SIGTERM saves and raises Stopped.

    What an aligner finds differs from run to run, so the stage is named by the text that it reads.
    """
    model = _place(store, task.model)
    parts = identity(task.config, {MODEL: content_of(model)})
    name = fingerprint("adjust-stage", format=ADJUST_FORMAT, settings=parts)
    folder = store.path(task.kind, name)
    config = task.config.model_copy(update={"model": model})
    with store.lock(task.kind, name), on_sigterm() as stop:
        if not (folder / DONE).exists():
            _move(folder, config)
            adjust(config, folder, report, stop=stop)
    return name


def _move(folder: Path, config: AdjustConfig) -> None:
    """Let an adjustment go on in a store that was moved: only the path of its model has changed."""
    path = folder / "config.yaml"
    if path.is_file() and load(AdjustConfig, path).model != config.model:
        with atomic_file(path, "w") as handle:
            handle.write(dump_yaml(config))


def run_probes(task: ProbeTask, store: Store, report: Report) -> str:
    """Measure the probes of a config."""
    opened, models = _opened(task, store)
    own = _place(store, task.model)
    contents = {name: content_of(place) for name, place in models.items()}
    languages = [reader.language.fingerprint for reader in (opened.source, opened.target)]
    parts = {"settings": identity(task.config, contents), "model": opened.fingerprint, "languages": languages}
    name = fingerprint("probe-stage", format=PROBE_FORMAT, **parts)

    def build(path: Path) -> None:
        run = model_path(own) if is_run(model_path(own)) else None
        measure(Subject(opened, _filled(task.config, models), run, store, report), path, told=task.config)

    store.obtain(task.kind, name, build)
    return name


def _filled(config: ProbeConfig, models: dict[str, str]) -> ProbeConfig:
    """The config with the folders of the cell's models."""
    model2, paraphrase = (
        None if name is None else models.get(name, name) for name in (config.model2, config.cka.paraphrase)
    )
    cka = config.cka.model_copy(update={"paraphrase": paraphrase})
    before = {name: models.get(model, model) for name, model in config.distances.before.items()}
    distances = config.distances.model_copy(update={"before": before})
    return config.model_copy(update={"cka": cka, "distances": distances, "model2": model2})


def run_transfer(task: TransferTask, store: Store, report: Report) -> str:
    """Fine-tune and test for one seed; ``<stage>.work`` has fits in progress."""
    pretrained, _ = _opened(task, store)
    data = load_data(task.config, pretrained, report)
    transfer = Transfer(pretrained, data, task.config, report, store)
    name = fingerprint("transfer-seed", transfer=transfer.fingerprint, seed=task.seed)

    def build(path: Path) -> None:
        transfer.check()
        work = path.with_name(f"{path.name}.work")
        result = transfer.run(task.seed, work)
        sets = {name: held.batch for name, held in data.sets.items()}
        record = {**facts(transfer), **seed_record(result, transfer.main.name), "majority": transfer.majority}
        counts = {name: {"items": len(b), "words": int(b.corpus.offsets[-1])} for name, b in sets.items()}
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, {**record, "counts": counts, "drops": drops(transfer)})
            write_predictions(folder / PREDICTIONS, result.predictions)
        if work.exists():
            shutil.rmtree(work)

    store.obtain(task.kind, name, build)
    return name


def _opened(task: TransferTask | ProbeTask, store: Store) -> tuple[Pretrained, dict[str, str]]:
    """The model, and the folders of what configs call ``cell:model`` and ``cell:second``."""
    model, config = _place(store, task.model), task.config
    before = _place(store, task.model.model) if isinstance(task.model, AdjustTask) else None
    models = {MODEL: before or model}
    if task.second is not None:
        models[SECOND] = _place(store, task.second)
    if isinstance(config, ProbeConfig):
        named, natural = config.model2, config.natural
    else:
        named, natural = config.target_model, config.target is not None
    second = None if named is None else models.get(named, named)
    opened = open_model(model, config.language, natural, second, before)
    both = [short(held) for held in (task.model, task.second) if held is not None]
    return replace(opened, name=" and ".join(both)), models


def _place(store: Store, model: Model) -> str:
    """The folder of a model of the study, or the name of another one."""
    return model if isinstance(model, str) else str(_stage(store, model))


def _stage(store: Store, task: Task) -> Path:
    """The folder that a task has made."""
    name = made(store, task)  # a file that has changed meanwhile is for the next start to see
    if name is None:
        raise InputError(f"{task.label} is not finished; start again")
    return store.path(task.kind, name)
