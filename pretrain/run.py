"""A run folder: from a config to config.yaml, metrics.jsonl, checkpoints and exports."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from pretrain.artifacts import Artifacts
from pretrain.build import trained_model
from pretrain.config import PretrainConfig
from pretrain.devices import process_state
from pretrain.export import export_model
from pretrain.folder import EXPORT, export_sizes
from pretrain.loop import Trainer, effective_batch
from pretrain.prepare import prepare
from pretrain.stopping import Flag
from pretrain.trackers import check_trackers
from synthlang.config import dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, atomic_file, read_json, remove_leftovers, write_json
from synthlang.progress import Report, Say, silent, unheard
from synthlang.scripts import CONTROL_WORDS
from synthlang.store import Store

DONE = "done.json"


def pretrain(
    config: PretrainConfig,
    run: Path,
    store: Store | None = None,
    report: Report = silent,
    say: Say = unheard,
    stop: Flag | None = None,
) -> str:
    """Run a config in the folder ``run`` (started, continued or already done); returns its fingerprint.

    Data artifacts go to ``store`` (default: ``run/data``). A folder that holds another run is refused before anything
    is written; with a ``store``, before anything is written but the artifacts, and then the fingerprint decides: how a
    config spells its files makes no other run. ``say`` gets single lines for the user; when ``stop`` is set, the run
    saves and raises Stopped.
    """
    _check_folder(config, run, named_by_content=store is not None)
    check_trackers(config.trackers)
    config.micro_batches(process_state().num_processes)
    store = store or Store(run / "data")
    with process_state().main_process_first():  # the others find the artifacts built
        artifacts = prepare(config, store, report)
    name = config.fingerprint(artifacts.parents)
    _claim(run, config, name, store)
    if not (run / DONE).exists():
        say(effective_batch(config, process_state().num_processes))
        if (warmup := config.optimizer.warmup_steps) >= config.steps:
            say(f"the learning rate only rises: the warm-up ({warmup:,} steps) is as long as the run or longer")
        _say_extension(artifacts, say)
        _say_control_words(artifacts, say)
        trainer = Trainer(config, artifacts, run, name, report, say, stop)
        trainer.train()
        if trainer.accelerator.is_main_process:
            export_model(trained_model(run, config, artifacts), artifacts, config, run, name)
            record = {"fingerprint": name, "steps": config.steps, "parents": artifacts.parents}
            counts = _counts(artifacts, trainer)
            write_json(run / DONE, {**record, EXPORT: export_sizes(run), "counts": counts})
        trainer.accelerator.wait_for_everyone()
    return name


def _counts(artifacts: Artifacts, trainer: Trainer) -> dict[str, dict[str, int]]:
    """Text → reason → how much of it was left out or changed, by its language and by the rows of the run."""
    found = {f"{m.name} train": m.train.reasons for m in artifacts.languages}
    found |= {f"{m.name} dev": m.dev.reasons for m in artifacts.languages if m.dev is not None}
    for source in trainer.batches.sources:
        found.setdefault(f"{source.name} {'train' if len(source.languages) == 1 else 'pairs'}", {}).update(
            source.counts
        )
    for language, batches in trainer.validation.batches.items():
        found[f"{artifacts.languages[language].name} dev"].update(batches.sources[0].counts)
    return {text: {reason: n for reason, n in counts.items() if n} for text, counts in found.items()}


def _say_extension(artifacts: Artifacts, say: Say) -> None:
    """What new subwords changed in the text of each language."""
    if artifacts.extension is not None:
        say(f"{len(artifacts.extension.ids):,} new subwords")
        for name, effect in artifacts.extension.effects.items():
            pieces = (
                f"{effect.pieces_before / effect.words:.2f} → {effect.pieces_after / effect.words:.2f} pieces a word"
            )
            unknown = f"{effect.unknown_before:,} → {effect.unknown_after:,} words with an unknown piece"
            say(f"{name}: {pieces}, {unknown}, {effect.words_changed / effect.words:.1%} of the words cut otherwise")


def _say_control_words(artifacts: Artifacts, say: Say) -> None:
    """How many words of the texts spell what tells a model something."""
    for language in artifacts.languages:
        for split, shards in (("train", language.train), ("dev", language.dev)):
            if shards is not None and CONTROL_WORDS in shards.reasons:
                say(f"{language.name} {split}: {shards.reasons[CONTROL_WORDS]:,} {CONTROL_WORDS}")


def _check_folder(config: PretrainConfig, run: Path, named_by_content: bool) -> None:
    """Raise InputError if the folder surely holds something else; writes nothing.

    ``named_by_content``: that a config spells its texts otherwise says nothing; the fingerprint will.
    """
    if named_by_content and ((run / "run.json").exists() or (run / "config.yaml").is_file()):
        return
    if (run / "run.json").exists():
        there = _record(run)["fingerprint"]
        before = load(PretrainConfig, run / "config.yaml")
        if _settings(before) != _settings(config):
            raise InputError(f"holds another run ({there}); choose another folder", run)
    elif run.exists() and not all(_is_ours(path, config) for path in run.iterdir()):
        raise InputError("is not empty and holds no run; choose another folder", run)


def _is_ours(path: Path, config: PretrainConfig) -> bool:
    """Whether a run that was killed before it wrote run.json may have left this."""
    if path.name == "config.yaml":
        return path.is_file() and path.read_bytes() == dump_yaml(config).encode("utf-8")
    return path.name in ("data", ".locks") or path.name.startswith(TEMPORARY)


def _settings(config: PretrainConfig) -> tuple[object, ...]:
    """What makes a run another one, as far as the config alone tells."""
    languages = tuple((m.source, m.language.fingerprint) for m in config.all_languages)
    return languages, config.start, config.vocabulary, config.dictionary, config.parallel, config.fingerprint({})


def _record(run: Path) -> dict[str, Any]:
    """run.json, or InputError if it is none."""
    record = read_json(run / "run.json")
    if not isinstance(record, dict) or not {"fingerprint", "data"} <= record.keys():
        raise InputError("is no record of a run; choose another folder", run / "run.json")
    return record


def _claim(run: Path, config: PretrainConfig, name: str, store: Store) -> None:
    """Make the folder this run's, or see that it is; config.yaml says where its texts are now."""
    state = process_state()
    if (run / "run.json").exists():
        there = _record(run)["fingerprint"]
        if there != name:
            raise InputError(f"holds another run ({there}, this one is {name}); choose another folder", run)
    if state.is_main_process:
        begun = (run / "run.json").exists()
        if not begun:
            remove_leftovers(run)
        if not begun or not _names_the_same(run / "config.yaml", config):
            with atomic_file(run / "config.yaml", "w") as handle:
                handle.write(dump_yaml(config))
        if not begun:
            write_json(run / "run.json", {"fingerprint": name, "data": os.path.relpath(store.root, run)})
    state.wait_for_everyone()


def _names_the_same(path: Path, config: PretrainConfig) -> bool:
    """Whether a config.yaml names the same texts and files, and they are there as far as parsing tells."""
    try:
        return _settings(load(PretrainConfig, path)) == _settings(config)
    except InputError:  # a file that a language names is gone
        return False


def open_run(
    run: Path, config: PretrainConfig | None = None, report: Report = silent
) -> tuple[PretrainConfig, Artifacts]:
    """The config and the data artifacts of a finished run.

    ``config`` is one that comes to this run, as a study has it; default: its config.yaml. InputError if what the run
    was trained on has changed or is gone: its model must not be read with the vocabulary of another text.
    """
    if not (run / "config.yaml").exists():
        raise InputError("is no run folder: config.yaml is missing", run)
    if not (run / DONE).exists():
        raise InputError("the run is not finished; run synthlang pretrain again to go on", run)
    config = config or load(PretrainConfig, run / "config.yaml")
    try:
        artifacts = prepare(config, store_of(run), report)
    except InputError as error:
        raise InputError(f"what the run was trained on cannot be read again: {error}", run) from error
    parents = read_json(run / DONE).get("parents", {})
    changed = sorted(
        key for key in parents.keys() | artifacts.parents.keys() if parents.get(key) != artifacts.parents.get(key)
    )
    if changed:
        raise InputError(
            f"what the run was trained on has changed since ({', '.join(changed)}); put it back, or train another run "
            "in another folder",
            run,
        )
    return config, artifacts


def store_of(run: Path) -> Store:
    """Where the data artifacts of a run are."""
    return Store(run / _record(run)["data"])
