"""What the tasks of a study do. Each makes a stage under its lock: another runner of the store waits, and finds it."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pretrain.adjust.config import FORMAT as ADJUST_FORMAT
from pretrain.adjust.config import OF_WEIGHTS
from pretrain.adjust.run import adjust
from pretrain.build import trained_model
from pretrain.checkpoints import is_sound
from pretrain.config import PretrainConfig
from pretrain.folder import kept_steps, own_steps, steps_in
from pretrain.prepare import prepare
from pretrain.run import open_run, pretrain
from pretrain.stopping import on_sigterm
from probes.measures import FORMAT as PROBE_FORMAT
from probes.measures import ProbeConfig
from probes.measures.command import measure
from probes.measures.probe_input import ProbeInput
from probes.measures.words.alignment import dictionary_of, probe_alignment, probe_fingerprint
from probes.study.cell import MODEL, SECOND
from probes.study.finished import is_intact, made
from probes.study.identity import identity
from probes.study.kinds import (
    DONE,
    PREDICTIONS,
    RESULT,
    AdjustTask,
    AlignmentTask,
    Model,
    PretrainTask,
    ProbeTask,
    TransferTask,
    TuneTask,
    origin,
    short,
)
from probes.study.models import content_of, languages_of, open_model, source_of
from probes.study.task import Task
from probes.study.tasks import task_from_json
from probes.transfer.model import Pretrained, check_keep, keep_languages
from probes.transfer.model_names import is_run, model_path
from probes.transfer.result import drops, facts, of_sets, seed_record, write_predictions
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data, load_training
from synthlang.config import dump_yaml
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, write_json
from synthlang.fingerprint import fingerprint
from synthlang.progress import Report
from synthlang.store import Store

T = TypeVar("T", bound=Task)
CHECKPOINTS = "checkpoints"  # in the folder of a run


def run_pretraining(task: PretrainTask, store: Store, report: Report) -> str:
    """Train in ``pretrain-<fingerprint>``, or go on; SIGTERM saves and raises Stopped."""
    task = _reread(task)
    config = _config_of(task, store)
    artifacts = prepare(config, store, report)
    name = config.fingerprint(artifacts.parents)
    folder = store.path(task.kind, name)
    with store.lock(task.kind, name), on_sigterm() as stop:
        if not is_intact(task, folder):
            _reopen(folder)
        pretrain(config, folder, store, report, stop=stop)
    return name


def run_alignment(task: AlignmentTask, store: Store, report: Report) -> str:
    """Measure the alignment of a run's word embeddings."""
    task = _reread(task)
    run, config = _stage(store, task.pretrained), _config_of(task.pretrained, store)
    name = probe_fingerprint(content_of(str(run)), config)

    def build(path: Path) -> None:
        _, artifacts = open_run(run, config, report)
        model = trained_model(run, config, artifacts)
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, probe_alignment(model, config, artifacts, store))

    return _obtained(task, store, name, build)


def run_adjustment(task: AdjustTask, store: Store, report: Report) -> str:
    """Adjust in ``adjust-<fingerprint>``, or go on; SIGTERM saves and raises Stopped.

    What an aligner finds differs from run to run, so the stage is named by the text that it reads.
    """
    task = _reread(task)
    model = _place(store, task.model)
    parts = identity(task.config, {MODEL: content_of(model)})
    settings = {key: parts[key] for key in sorted({"model", "pairs"} | OF_WEIGHTS)}
    name = fingerprint("adjust-stage", format=ADJUST_FORMAT, settings=settings)
    folder = store.path(task.kind, name)
    config = task.config.model_copy(update={"model": model})
    with store.lock(task.kind, name), on_sigterm() as stop:
        if not is_intact(task, folder):
            if (folder / "config.yaml").is_file():  # begun by a config that spells its files otherwise
                with atomic_file(folder / "config.yaml", "w") as handle:
                    handle.write(dump_yaml(config))
            _reopen(folder)
            adjust(config, folder, report, stop=stop)
    return name


def run_tuning(task: TuneTask, store: Store, report: Report) -> str:
    """Fine-tune on the source language for one seed; ``<stage>.work`` has fits in progress."""
    task = _reread(task)
    opened, _ = _opened(task, store)
    check_keep(task.config, opened, "tuned")
    transfer = Transfer(opened, load_training(task.config, opened, report), task.config, report, store)
    name = fingerprint("tune-stage", transfer=transfer.fingerprint, seed=task.seed)

    def build(path: Path) -> None:
        transfer.check()
        work = path.with_name(f"{path.name}.work")
        body, fit = transfer.tune(task.seed, work)
        texts = {f"aligned text {name}": held["counts"] for name, held in transfer.aligned.get("aligned", {}).items()}
        counts = {**drops(transfer), **texts}
        record = {"model": opened.name, "task": task.config.task, "seed": task.seed, "fit": fit, "counts": counts}
        with atomic_folder(path) as folder:
            keep_languages(body, languages_of(_place(store, task.model), opened), folder, record)
        if work.exists():
            shutil.rmtree(work)

    return _obtained(task, store, name, build)


def run_probes(task: ProbeTask, store: Store, report: Report) -> str:
    """Measure the probes of a config."""
    task = _reread(task)
    opened, models = _opened(task, store)
    own = _place(store, task.model)
    contents = {name: content_of(place) for name, place in models.items()}
    parts: dict[str, Any] = {"settings": identity(task.config, contents), "model": opened.fingerprint}
    parts["languages"] = [reader.language.fingerprint for reader in (opened.source, opened.target)]
    run = model_path(own) if is_run(model_path(own)) else None
    if _reads_words_of_run(task.config) and run is not None and opened.run is not None:
        config = opened.run[0]
        # what runs with one name need not have in common
        parts["dictionary"] = dictionary_of(config)
        if task.config.words.checkpoints:
            steps = own_steps(run / CHECKPOINTS, config.checkpoints, config.steps)
            ours = isinstance(task.model, PretrainTask)  # it gets those that it has not
            parts["steps"] = [step for step in steps if ours or (run / CHECKPOINTS / f"step-{step}").exists()]
    name = fingerprint("probe-stage", format=PROBE_FORMAT, **parts)

    def build(path: Path) -> None:
        if "steps" in parts and isinstance(task.model, PretrainTask):
            _with_checkpoints(task.model, store, report)
        measure(ProbeInput(opened, _filled(task.config, models), run, store, report), path, told=task.config)

    return _obtained(task, store, name, build)


def _reads_words_of_run(config: ProbeConfig) -> bool:
    """Whether a probe takes from a run which words are translations."""
    return "words" in config.probes and config.words.dictionary is None and config.model2 is None


def _with_checkpoints(task: PretrainTask, store: Store, report: Report) -> None:
    """Give a run those checkpoints that its config keeps and that the config it was trained by, with others, did not.

    It is trained once more beside its place: the same steps, with other checkpoints on the way.
    """
    run, config = _stage(store, task), _config_of(task, store)
    again = run.with_name(f"{run.name}.again")
    with store.lock(task.kind, run.name.removeprefix(f"{task.kind}-")), on_sigterm() as stop:
        steps = kept_steps(config.checkpoints, config.steps)
        missing = [f"step-{step}" for step in steps if not (run / CHECKPOINTS / f"step-{step}").exists()]
        if missing:
            pretrain(config, again, store, report, stop=stop)
            for step in missing:
                (again / CHECKPOINTS / step).rename(run / CHECKPOINTS / step)
        if again.exists():
            shutil.rmtree(again)


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
    task = _reread(task)
    pretrained, _ = _opened(task, store)
    data = load_data(task.config, pretrained, report)
    transfer = Transfer(pretrained, data, task.config, report, store)
    name = fingerprint("transfer-seed", transfer=transfer.fingerprint, seed=task.seed)

    def build(path: Path) -> None:
        transfer.check()
        work = path.with_name(f"{path.name}.work")
        result = transfer.run(task.seed, work)
        record = {**facts(transfer), **seed_record(result, transfer.main.name), **of_sets(transfer)}
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, record)
            write_predictions(folder / PREDICTIONS, result.predictions)
        if work.exists():
            shutil.rmtree(work)

    return _obtained(task, store, name, build)


def _reopen(run: Path) -> None:
    """Let a run go on that is not finished, or was damaged since. From a sound last checkpoint nothing is trained: the
    export is written anew. Where none of a finished run is sound it begins anew."""
    folder = run / CHECKPOINTS
    if (run / DONE).exists() and not any(is_sound(folder / f"step-{step}") for step in reversed(steps_in(folder))):
        shutil.rmtree(folder, ignore_errors=True)
    (run / DONE).unlink(missing_ok=True)


def _reread(task: T) -> T:
    """The same task with the files that languages name, which a config holds, read now and not when the study was."""
    again = task_from_json(task.to_json())
    assert isinstance(again, type(task)), "JSON keeps the kind"
    return again


def _obtained(task: Task, store: Store, name: str, build: Callable[[Path], None]) -> str:
    """Let ``build`` make a stage that is not there, or that somebody damaged; returns its name."""
    path = store.path(task.kind, name)
    with store.lock(task.kind, name):
        if path.exists() and not is_intact(task, path):
            shutil.rmtree(path)
    store.obtain(task.kind, name, build)
    return name


def _opened(task: TransferTask | TuneTask | ProbeTask, store: Store) -> tuple[Pretrained, dict[str, str]]:
    """The model, and the folders of what configs call ``cell:model`` and ``cell:second``."""
    model, config = _place(store, task.model), task.config
    first, other = origin(task.model), None if isinstance(task, TuneTask) else task.second
    root = _place(store, first)
    models = {MODEL: root}
    if other is not None:
        models[SECOND] = _place(store, other)
    configs = {_place(store, run): _config_of(run, store) for run in (first, other) if isinstance(run, PretrainTask)}
    language = config.language
    if isinstance(config, ProbeConfig):
        named, natural = config.model2, config.natural
    elif isinstance(task, TransferTask):
        named, natural = config.target_model, config.target is not None
    elif config.continual is not None:
        named, natural = None, config.continual.has_text
    else:  # there is no target language
        named, natural, language = None, True, source_of(root, configs)
    second = None if named is None else models.get(named, named)
    opened = open_model(model, language, natural, second, None if root == model else root, configs)
    both = [short(held) for held in (task.model, other) if held is not None]
    return replace(opened, name=" and ".join(both)), models


def _config_of(task: PretrainTask, store: Store) -> PretrainConfig:
    """The settings of a run, with the folder of what it starts from."""
    if task.start is None:
        return task.config
    export = _stage(store, task.start) / "export" / task.start.config.all_languages[0].name
    assert task.config.start is not None, "a cell with a run to start from has settings of the start"
    start = task.config.start.model_copy(update={"model": str(export)})
    return task.config.model_copy(update={"start": start})


def _place(store: Store, model: Model) -> str:
    """The folder of a model of the study, or the name of another one."""
    return model if isinstance(model, str) else str(_stage(store, model))


def _stage(store: Store, task: Task) -> Path:
    """The folder that a task has made."""
    name = made(store, task)  # a file that has changed meanwhile is for the next start to see
    if name is None:
        raise InputError(f"{task.label} is not finished; start again, which makes anew what of it is damaged or gone")
    return store.path(task.kind, name)
