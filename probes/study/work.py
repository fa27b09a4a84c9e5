"""What the stages of a study do, under their locks: another runner of the store waits, and finds what is made."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pretrain.adjust.run import adjust
from pretrain.build import trained_model
from pretrain.checkpoints import is_sound
from pretrain.config import PretrainConfig
from pretrain.folder import kept_steps, steps_in
from pretrain.hub import open_base
from pretrain.prepare import prepare
from pretrain.run import open_run, pretrain
from pretrain.stopping import on_sigterm
from probes.measures.probe_command import measure
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.measures.words.alignment import probe_alignment
from probes.model_names import is_run, model_path
from probes.pretrained import Languages, Pretrained, body_of, keep_languages, of_run, open_pretrained, tokenizer_of
from probes.study.cell import ADJUSTED, MODEL, SECOND
from probes.study.digests import Digests
from probes.study.done import is_done, is_intact
from probes.study.shared_fits import places_of
from probes.study.stage import (
    DONE,
    PREDICTIONS,
    RESULT,
    AdjustStage,
    AlignmentStage,
    PretrainStage,
    ProbeStage,
    Stage,
    TransferStage,
    TuneStage,
    origin,
    short,
)
from probes.transfer.config import TransferConfig
from probes.transfer.result import drops, facts, of_sets, seed_record, write_predictions
from probes.transfer.run import Transfer, check_keep
from probes.transfer.splits import load_data, load_training
from synthlang.config import dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT
from synthlang.progress import Report
from synthlang.store import Store

CHECKPOINTS = "checkpoints"  # in the folder of a run


class _Reading:
    """The user's files that a stage reads, as they were when its work began."""

    def __init__(self, stage: Stage, store: Store) -> None:
        self._stage, self._store = stage, store
        self._before = stage.files(Digests(store))

    def check(self, made: Path | None = None) -> None:
        """InputError if one has other content by now: what was read may be of neither, so what was ``made`` of it
        goes."""
        now = self._stage.files(Digests(self._store))
        changed = [path for path in {**self._before, **now} if self._before.get(path) != now.get(path)]
        try:
            if changed:
                self._stage.reread(self._store)  # which opens them: touched files, and others of a folder, are the same
        except InputError:
            if made is not None:
                shutil.rmtree(made)
            raise InputError("has changed while it was read; start again", changed[0]) from None


def _pretrain(stage: PretrainStage, store: Store, report: Report, reading: _Reading) -> None:
    """Train, or go on; SIGTERM saves and raises Stopped."""
    config, folder = _config_of(stage, store), _folder(store, stage)
    prepare(config, store, report)
    reading.check()  # training reads what was prepared
    with store.lock(stage.kind, stage.key), on_sigterm() as stop:
        if not is_intact(stage.kind, folder):
            _reopen(folder)
        pretrain(config, folder, store, report, stop=stop)


def _measure_alignment(stage: AlignmentStage, store: Store, report: Report, reading: _Reading) -> None:
    run, config = _done_folder(store, stage.pretrained), _config_of(stage.pretrained, store)

    def build(path: Path) -> None:
        _, artifacts = open_run(run, config, report)
        model = trained_model(run, config, artifacts)
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, probe_alignment(model, config, artifacts, store))

    _obtain(stage, store, reading, build)


def _adjust(stage: AdjustStage, store: Store, report: Report, reading: _Reading) -> None:
    """Adjust, or go on; SIGTERM saves and raises Stopped."""
    folder = _folder(store, stage)
    config = stage.config.model_copy(update={"model": _model(store, stage.model)})
    with store.lock(stage.kind, stage.key), on_sigterm() as stop:
        if not is_intact(stage.kind, folder):
            if (folder / "config.yaml").is_file():  # begun by a config that spells its files otherwise
                with atomic_file(folder / "config.yaml", "w") as handle:
                    handle.write(dump_yaml(config))
            _reopen(folder)
            adjust(config, folder, report, stop=stop)
            reading.check(folder)


def _tune(stage: TuneStage, store: Store, report: Report, reading: _Reading) -> None:
    """Fine-tune on the source language for one seed; ``<stage>.work`` has fits in progress."""
    opened, _ = _opened(stage, store)
    check_keep(stage.config, opened, "tuned")
    data = load_training(stage.config, opened, report)
    transfer = Transfer(opened, data, stage.config, report, store, places_of(stage, store))

    def build(path: Path) -> None:
        transfer.check()
        body, fit = transfer.tune(stage.seed, _unfinished(store, stage))
        texts = {f"aligned text {name}": text["counts"] for name, text in transfer.aligned.get("aligned", {}).items()}
        counts = {**drops(transfer), **texts}
        record = {"model": opened.name, "task": stage.config.task, "seed": stage.seed, "fit": fit, "counts": counts}
        with atomic_folder(path) as folder:
            keep_languages(body, languages_of(_model(store, stage.model), opened), folder, record)

    _obtain(stage, store, reading, build)


def _probe(stage: ProbeStage, store: Store, report: Report, reading: _Reading) -> None:
    opened, models = _opened(stage, store)
    folder = model_path(_model(store, stage.model))

    def build(path: Path) -> None:
        if isinstance(stage.model, PretrainStage) and "words" in stage.config.probes and stage.config.words.checkpoints:
            _with_checkpoints(stage.model, store, report)
        run = folder if is_run(folder) else None
        measure(ProbeInput(opened, _filled(stage.config, models), run, store, report), path, told=stage.config)

    _obtain(stage, store, reading, build)


def _transfer(stage: TransferStage, store: Store, report: Report, reading: _Reading) -> None:
    """Fine-tune and test for one seed; ``<stage>.work`` has fits in progress."""
    pretrained, _ = _opened(stage, store)
    data = load_data(stage.config, pretrained, report)
    transfer = Transfer(pretrained, data, stage.config, report, store, places_of(stage, store))

    def build(path: Path) -> None:
        transfer.check()
        result = transfer.run(stage.seed, _unfinished(store, stage))
        record = {**facts(transfer), **seed_record(result, transfer.main.name), **of_sets(transfer)}
        with atomic_folder(path) as folder:
            write_json(folder / RESULT, record)
            write_predictions(folder / PREDICTIONS, result.predictions)

    _obtain(stage, store, reading, build)


WORK: dict[str, Callable[[Any, Store, Report, _Reading], None]] = {
    "pretrain": _pretrain,
    "adjust": _adjust,
    "tune": _tune,
    "alignment": _measure_alignment,
    "probe": _probe,
    "transfer": _transfer,
}


def make(stage: Stage, store: Store, report: Report) -> None:
    """Make a stage whose parents are done, or go on with it."""
    WORK[stage.kind](stage, store, report, _Reading(stage, store))


def _obtain(stage: Stage, store: Store, reading: _Reading, build: Callable[[Path], None]) -> None:
    """Let ``build`` make the folder of a stage that is not there, or that somebody damaged."""
    path = _folder(store, stage)

    def whole(path: Path) -> None:
        build(path)
        reading.check(path)
        if (work := _unfinished(store, stage)).exists():
            shutil.rmtree(work)

    with store.lock(stage.kind, stage.key):
        if path.exists() and not is_intact(stage.kind, path):
            shutil.rmtree(path)
    store.obtain(stage.kind, stage.key, whole)


def _unfinished(store: Store, stage: Stage) -> Path:
    """Where the fits of a stage are kept until it is done."""
    path = _folder(store, stage)
    return path.with_name(f"{path.name}.work")


def _reopen(run: Path) -> None:
    """Let a run go on that is not finished, or was damaged since. From a sound last checkpoint nothing is trained: the
    export is written anew. Where none of a finished run is sound it begins anew."""
    folder = run / CHECKPOINTS
    if (run / DONE).exists() and not any(is_sound(folder / f"step-{step}") for step in reversed(steps_in(folder))):
        shutil.rmtree(folder, ignore_errors=True)
    (run / DONE).unlink(missing_ok=True)


def _with_checkpoints(stage: PretrainStage, store: Store, report: Report) -> None:
    """Give a run those checkpoints that its config keeps and that the config it was trained by, with others, did not.

    It is trained once more beside its place: the same steps, with other checkpoints on the way.
    """
    run, config = _done_folder(store, stage), _config_of(stage, store)
    again = run.with_name(f"{run.name}.again")
    with store.lock(stage.kind, stage.key), on_sigterm() as stop:
        steps = kept_steps(config.checkpoints, config.steps)
        missing = [f"step-{step}" for step in steps if not (run / CHECKPOINTS / f"step-{step}").exists()]
        if missing:
            pretrain(config, again, store, report, stop=stop)
            for step in missing:
                (again / CHECKPOINTS / step).rename(run / CHECKPOINTS / step)
        if again.exists():
            shutil.rmtree(again)


def _filled(config: ProbeConfig, models: dict[str, str]) -> ProbeConfig:
    model2, paraphrase = (
        None if name is None else models.get(name, name) for name in (config.model2, config.cka.paraphrase)
    )
    cka = config.cka.model_copy(update={"paraphrase": paraphrase})
    before = {name: models.get(model, model) for name, model in config.distances.before.items()}
    distances = config.distances.model_copy(update={"before": before})
    return config.model_copy(update={"cka": cka, "distances": distances, "model2": model2})


def _opened(stage: TransferStage | TuneStage | ProbeStage, store: Store) -> tuple[Pretrained, dict[str, str]]:
    """The model, and the folders of what configs call ``cell:model``, ``cell:adjusted`` and ``cell:second``."""
    model, config = _model(store, stage.model), stage.config
    first, other = origin(stage.model), None if isinstance(stage, TuneStage) else stage.second
    root = _model(store, first)
    models = {MODEL: root, ADJUSTED: model}
    if other is not None:
        models[SECOND] = _model(store, other)
    configs = {_model(store, run): _config_of(run, store) for run in (first, other) if isinstance(run, PretrainStage)}
    language = config.language
    if isinstance(config, ProbeConfig):
        named, natural = config.model2, config.natural
    elif isinstance(stage, TransferStage):
        named, natural = config.target_model, config.target is not None
    elif config.continual is not None:
        named, natural = None, config.continual.has_text
    else:  # there is no target language
        named, natural, language = None, True, source_of(root, configs)
    second = None if named is None else models.get(named, named)
    opened = open_model(model, language, natural, second, None if root == model else root, configs)
    both = [short(each) for each in (stage.model, other) if each is not None]
    original = root if root != model else opened.original
    if isinstance(config, TransferConfig) and config.aligning is not None and config.aligning.before is not None:
        original = models.get(config.aligning.before, config.aligning.before)
    return replace(opened, name=" and ".join(both), original=None if original == model else original), models


def _config_of(stage: PretrainStage, store: Store) -> PretrainConfig:
    """The settings of a run, with the folder of what it starts from."""
    if stage.start is None:
        return stage.config
    export = _done_folder(store, stage.start) / "export" / stage.start.config.all_languages[0].name
    assert stage.config.start is not None, "a cell with a run to start from has settings of the start"
    start = stage.config.start.model_copy(update={"model": str(export)})
    return stage.config.model_copy(update={"start": start})


def _model(store: Store, model: Stage | str) -> str:
    """The folder of a model of the study, or the name of another one."""
    return model if isinstance(model, str) else str(_done_folder(store, model))


def _done_folder(store: Store, stage: Stage) -> Path:
    """The folder of a stage that is done."""
    if not is_done(store, stage):
        raise InputError(f"{stage.label} is not finished; start again, which makes anew what of it is damaged or gone")
    return _folder(store, stage)


def _folder(store: Store, stage: Stage) -> Path:
    return store.path(stage.kind, stage.key)


def open_model(
    model: str,
    language: str | None,
    natural: bool,
    second: str | None = None,
    before: str | None = None,
    configs: Mapping[str, PretrainConfig] = MappingProxyType({}),
) -> Pretrained:
    """A model and the language to transfer to, as ``open_pretrained`` has them.

    before    what ``model`` is an adjustment, or was fine-tuned, of: of a run of ours it has the languages and the text
    configs   the settings of runs of the study, by their folders
    """
    if before is None or not is_run(model_path(before)):
        return open_pretrained(model, language, natural, second, configs)
    config, artifacts = open_run(Path(before), configs.get(before))
    base = open_base(model)
    body = body_of(base, base.checkpoints.values())
    opened = of_run(config, artifacts, body, fingerprint("model", **base.parents()), language, natural)
    return replace(opened, name=Path(model).name, target=replace(opened.target, number=0))


def source_of(model: str, configs: Mapping[str, PretrainConfig] = MappingProxyType({})) -> str:
    """What the source language of a model is called, by which ``open_model`` finds it as a natural one."""
    path = model_path(model)
    if not is_run(path):
        return PARENT.name
    return (configs.get(model) or load(PretrainConfig, path / "config.yaml")).all_languages[0].name


def languages_of(model: str, opened: Pretrained) -> Languages:
    """All languages of a model that ``open_model`` has opened, as an adjustment of it writes them.

    "" for a model of Hugging Face, which has one tokenizer whatever the language.
    """
    if opened.run is not None:
        is_own = is_run(model_path(model))  # an adjusted one has one body, which knows no languages
        numbered = enumerate(opened.run[1].languages)
        return {language.name: (language.tokenizer, number if is_own else 0) for number, language in numbered}
    checkpoints = open_base(model).checkpoints
    return {name: (tokenizer_of(name or "source", checkpoint), 0) for name, checkpoint in checkpoints.items()}
