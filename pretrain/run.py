"""Pretrain a model from a config, in a run folder with config.yaml, metrics.jsonl, checkpoints and exports."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

from pretrain.artifacts import Artifacts
from pretrain.build import build_objective, new_model, train_batches, trained_model
from pretrain.config import PretrainConfig
from pretrain.data.batch import Batch
from pretrain.data.sources import told_rows
from pretrain.devices import accelerator_of, faster_precision, process_state
from pretrain.export import export_model
from pretrain.folder import BEST, EXPORT, READINGS, export_sizes
from pretrain.loop import Loop
from pretrain.memory import check_memory
from pretrain.model.language_model import LanguageModel
from pretrain.prepare import prepare
from pretrain.run_lock import changed_since, check_folder, mark_folder, only_run, read_record
from pretrain.sharded import gathered
from pretrain.step import Step
from pretrain.stopping import Flag
from pretrain.trackers import check_trackers, end_trackers, start_trackers
from pretrain.unread import check_read
from pretrain.validation import Validation
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json, user_path, write_json
from synthlang.fingerprint import sha256_file
from synthlang.progress import Report, Say, silent, unheard
from synthlang.references import references
from synthlang.scripts import CONTROL_WORDS
from synthlang.sources.text import REASONS, FileSource
from synthlang.store import Store
from synthlang.wording import large, plural

DONE = "done.json"
TEXT_REASONS = (CONTROL_WORDS, *REASONS)
"""Reasons whose counts in a text are shown before the first step."""


class Trainer(Loop[LanguageModel, Batch]):
    """The loop of a pretraining run.

    Args:
        config: The settings.
        artifacts: The data of the run.
        run: The run folder.
        name: Fingerprint of the run, which its checkpoints store.
        report: Function that shows progress.
        say: Function that shows messages to the user.
        stop: Flag that ends the run early.

    Raises:
        InputError: The launch, the checkpoint to start from, the texts or the dev split do not suit the config, or the
            device cannot compile the model.
    """

    def __init__(
        self,
        config: PretrainConfig,
        artifacts: Artifacts,
        run: Path,
        name: str = "",
        report: Report = silent,
        say: Say = unheard,
        stop: Flag | None = None,
    ) -> None:
        self.config, self.report = config, report
        # Separate parameters have no gradient in a micro-batch without a row of their language.
        tracked = {"log_with": list(config.trackers) or None, "project_dir": str(run)}
        accelerator = accelerator_of(config.sharing.separates, **tracked)
        config.micro_batches(accelerator.num_processes)
        model = new_model(config, artifacts).to(accelerator.device)
        step = Step(config, model, build_objective(config, artifacts, accelerator.device), accelerator)
        self.rows = train_batches(config, artifacts, report)
        self.validation = Validation(config, artifacts)
        policy = config.checkpoints, config.log_every
        super().__init__(run, name, model, step, self.rows.batch, config.batch.accumulation, *policy, say, stop)

    def begin(self) -> None:
        for source in self.rows.sources:
            if source.optional:  # rows of whole sentences, which may not all fit
                self.say(told_rows(source))
        start_trackers(self.accelerator, self.config, self.run)

    def measures_now(self) -> bool:
        return self.validation.due(self.step)

    def write_line(self, row: dict[str, Any], steps_per_second: float) -> None:
        tokens = self.config.batch.tokens
        row |= {"tokens_per_second": round(steps_per_second * tokens, 1), "tokens_seen": self.step * tokens}
        if self.config.sampling.schedule:
            row |= {f"tokens_seen/{name}": rows * self.config.batch.length for name, rows in self.rows_seen().items()}
        if self.validation.due(self.step):
            self.check()
            with gathered(self.trains.losses):
                row |= self.validation.measure(self.model)
            self._note_best(row)
        self.log.write(row)
        self.accelerator.log({k: v for k, v in row.items() if k != "step"}, step=self.step)
        if self.accelerator.is_main_process:
            note = f"loss {row['loss']:.3f}, {row['tokens_per_second'] / 1000:.1f}k tokens/s"
            self.report(f"pretrain {self.config.label}", self.step, self.steps, note)

    def rows_seen(self) -> Counter[str]:
        """Return the number of rows of each text and of each pair of texts up to this step.

        The keys are names of languages, such as ``en``, and of pairs of languages, such as ``en+fr``.
        """
        seen: Counter[str] = Counter()
        for source, rows in zip(self.rows.sources, self.rows.quotas.before(self.step).tolist(), strict=True):
            seen[source.name] += rows
        return seen

    def _note_best(self, row: dict[str, Any]) -> None:
        perplexity = row.get(self.validation.deciding)  # None for a dev split without a word
        if self.policy.select != "best" or not self.is_due(self.policy.every):
            return
        if perplexity is not None and (BEST not in self.extra or perplexity < self.extra["best_perplexity"]):
            self.extra = {BEST: self.step, "best_perplexity": perplexity}

    def batch_of(self, step: int) -> str:
        rows = self.config.batch.rows
        return f"its rows have the numbers {step * rows:,} to {(step + 1) * rows - 1:,}"


def pretrain(
    config: PretrainConfig,
    run: Path,
    store: Store | None = None,
    report: Report = silent,
    say: Say = unheard,
    stop: Flag | None = None,
) -> str:
    """Pretrain a model in the folder ``run``, which may be new, unfinished or finished, and return the fingerprint.

    Args:
        config: The settings.
        run: The run folder. A folder with another run is an error before anything is written. With a ``store``, the
            error comes after the data artifacts are built, because only fingerprints are compared.
        store: Store of the data artifacts (default: ``run/data``).
        report: Function that shows progress.
        say: Function that shows messages to the user.
        stop: Flag that stops the run. Once the flag is set, the run saves a checkpoint and raises Stopped.

    Raises:
        InputError: The folder holds something else, or another process writes it. A library of a tracker is missing. A
            key has no effect on the model. The launch, the memory or the device does not suit the config. The data
            cannot be used (see ``prepare``). All checkpoints of the run are damaged. A loss or weight is not finite.
        DiskError: A file cannot be written, for example because the disk is full.
        Stopped: The run was stopped.
    """
    with only_run(run):
        if store is None or not any((run / name).is_file() for name in ("run.json", "config.yaml")):
            check_folder(run, config, _settings)
        check_trackers(config.trackers)
        check_read(config)
        state = process_state()
        config.micro_batches(state.num_processes)
        check_memory(config, state.num_processes, state.device)
        store = store or Store(run / "data")
        with state.main_process_first():  # the main process builds the artifacts for all
            artifacts = prepare(config, store, report)
        check_memory(config, state.num_processes, state.device, artifacts.id_space.size)
        name = config.fingerprint(artifacts.parents)
        data = os.path.relpath(store.root, run)
        mark_folder(run, config, name, _settings, _inputs(config, artifacts), data=data)
        if not (run / DONE).exists():
            for line in _remarks(config, artifacts):
                say(line)
            _train(Trainer(config, artifacts, run, name, report, say, stop), artifacts)
    return name


def _train(trainer: Trainer, artifacts: Artifacts) -> None:
    """Train to the end, then write the exports and done.json."""
    config, run, name = trainer.config, trainer.run, trainer.name
    trainer.train()
    end_trackers(trainer.accelerator)
    if trainer.accelerator.is_main_process:
        export_model(trained_model(run, config, artifacts), artifacts, config, run, name)
        record = {"fingerprint": name, "steps": config.steps, "parents": artifacts.parents}
        unknown = artifacts.id_space.specials.unk
        readings = {m.name: m.train.reading(unknown).to_json() for m in artifacts.languages}
        counts = _counts(artifacts, trainer)
        write_json(run / DONE, {**record, EXPORT: export_sizes(run), READINGS: readings, "counts": counts})
    trainer.accelerator.wait_for_everyone()


def _counts(artifacts: Artifacts, trainer: Trainer) -> dict[str, dict[str, int]]:
    """Return the counts of omissions and changes in each text, by reason."""
    found = {f"{m.name} train": m.train.reasons for m in artifacts.languages}
    found |= {f"{m.name} dev": m.dev.reasons for m in artifacts.languages if m.dev is not None}
    for source in trainer.rows.sources:
        text = f"{source.name} {'train' if len(source.languages) == 1 else 'pairs'}"
        found.setdefault(text, {}).update(source.counts)
    for language, batches in trainer.validation.batches.items():
        found[f"{artifacts.languages[language].name} dev"].update(batches.sources[0].counts)
    return {text: {reason: n for reason, n in counts.items() if n} for text, counts in found.items()}


def effective_batch(config: PretrainConfig, processes: int) -> str:
    """Return a message about the rows and tokens of a step, and their split over processes and micro-batches.

    Raises:
        InputError: The config does not allow ``processes`` processes (see ``PretrainConfig.micro_batches``).
    """
    rows, length, micros = config.batch.rows, config.batch.length, config.batch.accumulation
    each = rows // config.micro_batches(processes)
    launch = f"{processes} process{'es' if processes > 1 else ''}"
    split = f"{launch} × {micros} micro-batch{'es' if micros > 1 else ''} × {plural(each, 'row')}"
    return f"a step is {rows} rows × {length} = {config.batch.tokens:,} tokens: {split}"


def _remarks(config: PretrainConfig, artifacts: Artifacts) -> list[str]:
    """Return the lines to show before the first step."""
    state = process_state()
    files = {m.spec: m.source.read_as for m in artifacts.languages if isinstance(m.source, FileSource)}
    lines = [f"{spec}: {read_as}" for spec, read_as in files.items()]
    batch = effective_batch(config, state.num_processes)
    lines.append(f"{batch}; {plural(config.steps, 'step')} read {large(config.tokens)} tokens")
    wide = config.model.hidden
    if config.start is None and (faster := faster_precision(wide, state.device)) not in (None, config.precision):
        lines.append(f"on this processor a model of width {wide} trains faster with --set precision={faster}")
    if (warmup := config.optimizer.warmup_steps) >= config.steps:
        lines.append(
            f"the learning rate never falls, since the warm-up ({plural(warmup, 'step')}) lasts for the whole run"
        )
    names = [language.name for language in artifacts.languages]
    lines += [f"{names[c.language]}: {c.use}" for c in artifacts.candidates if c.use]
    readings = [(m.name, m.train.reading(artifacts.id_space.specials.unk)) for m in artifacts.languages]
    lines += [f"{name}: {reading}" for name, reading in readings if reading.words]
    if artifacts.extension is not None:
        lines.append(plural(len(artifacts.extension.ids), "new subword"))
        for name, effect in artifacts.extension.effects.items():
            before, after = effect.pieces_before / effect.words, effect.pieces_after / effect.words
            unknown = f"{effect.unknown_before:,} → {effect.unknown_after:,} words with an unknown piece"
            cut = f"{effect.words_changed / effect.words:.1%} of the words split differently"
            lines.append(f"{name}: {before:.2f} → {after:.2f} pieces a word, {unknown}, {cut}")
    for language in artifacts.languages:
        for split, shards in (("train", language.train), ("dev", language.dev)):
            for reason, count in shards.reasons.items() if shards is not None else ():
                if reason in TEXT_REASONS:
                    lines.append(f"{language.name} {split}: {count:,} {reason}")
    return lines


def _settings(config: PretrainConfig) -> tuple[object, ...]:
    """Return the settings that identify a run."""
    languages = tuple((m.source, m.language.fingerprint) for m in config.all_languages)
    return languages, config.start, config.vocabulary, config.dictionary, config.parallel, config.fingerprint({})


def _inputs(config: PretrainConfig, artifacts: Artifacts) -> dict[str, str]:
    """Return a fingerprint of the content of each text, file and model that a config names."""
    found = {m.spec: m.source.fingerprint for m in artifacts.languages}
    files = [path for m in config.all_languages for one in m.language.transforms for path in one.files().values()]
    files += [user_path(named.name) for named in references(config) if named.kind == "file"]
    found |= {str(path): sha256_file(path) for path in files if path.is_file()}
    return found if config.start is None else found | {config.start.model: artifacts.parents["start"]}


def open_run(
    run: Path, config: PretrainConfig | None = None, report: Report = silent
) -> tuple[PretrainConfig, Artifacts]:
    """Return the config and the data artifacts of a finished run.

    Artifacts that are no longer in the store of the run are built again from the data.

    Args:
        run: The run folder.
        config: A config with the same data (default: the run's config.yaml).
        report: Function that shows progress.

    Raises:
        InputError: The folder is not a run, the run is not finished, or its data has changed or cannot be read again.
            The disk is full while data artifacts are built.
    """
    if not (run / "config.yaml").exists():
        reason = "is not a run folder, because it has no config.yaml"
        raise InputError(reason, run, hint="name the folder of a run", code="missing")
    if not (run / DONE).exists():
        hint = "run the command of the run again to finish it"
        raise InputError("the run is not finished", run, hint=hint, code="missing")
    config = config or load(PretrainConfig, run / "config.yaml")
    try:
        artifacts = prepare(config, store_of(run), report)
    except InputError as error:
        found = error.inside(path=run / "config.yaml")
        found.reason = f"the data of the run {run} cannot be read again: {error.reason}"
        if error.absent:
            found.hint = f"restore this path, or correct it in {run / 'config.yaml'}"
        raise found from error
    if read_json(run / DONE).get("parents", {}) != artifacts.parents:
        reason = f"does not fit its data, because {changed_since(read_record(run), _inputs(config, artifacts))}"
        hint = "restore the data, or train again in another folder"
        raise InputError(reason, run, hint=hint, code="changed")
    return config, artifacts


def store_of(run: Path) -> Store:
    """Return the store with the data artifacts of a run.

    Raises:
        InputError: The folder has no record of a pretraining run.
    """
    return Store(run / read_record(run)["data"])
