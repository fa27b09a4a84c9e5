"""The folder of an adjustment: config.yaml, run.json, metrics.jsonl, checkpoints/, export/, done.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrain.adjust.config import AdjustConfig, check_adjusted, tokenizer_languages
from pretrain.adjust.export import export_adjusted
from pretrain.adjust.loop import Adjuster
from pretrain.adjust.vectors import encoder_of, layer_numbers
from pretrain.devices import process_state
from pretrain.folder import EXPORT, export_sizes, read_metrics
from pretrain.hub import Base, load_model, longest_input, open_base
from pretrain.model.kinds import kind_of
from pretrain.run_lock import check_folder, mark_folder, only_run
from pretrain.stopping import Flag
from synthlang.errors import InputError
from synthlang.files import write_json
from synthlang.parallel.pairs import read_pair
from synthlang.parallel.prepare import PairData, prepare_pair
from synthlang.progress import Report, Say, silent, unheard
from synthlang.store import Store

DONE = "done.json"


def adjust(
    config: AdjustConfig, run: Path, report: Report = silent, say: Say = unheard, stop: Flag | None = None
) -> str:
    """Adjust a model in the folder ``run``, which may be new, unfinished or finished, and return the fingerprint.

    At the end ``done.json`` holds the distances before and after, the counts of each pair of languages, the sizes of
    the exported files and the fingerprints of the inputs.

    Args:
        config: The settings.
        run: The output folder. A folder with other content is an error before anything is written. An adjustment whose
            data has changed is an error after the sentence pairs are prepared.
        report: Function that shows progress.
        say: Function that shows messages to the user.
        stop: Flag that stops the run. Once the flag is set, the run saves a checkpoint and raises Stopped.

    Raises:
        InputError: The folder holds something else, or another process writes it. The model cannot be opened or is not
            an encoder that can be adjusted. The loss names a layer twice, or a layer that the model lacks. The text
            cannot be used. The launch uses Accelerate's FSDP, or the rows of a step cannot be split over its processes.
            All checkpoints are damaged. A loss or weight is not finite.
        DiskError: A file cannot be written, for example because the disk is full.
        Stopped: The run was stopped.
    """
    with only_run(run):
        return _adjust(config, run, report, say, stop)


def _adjust(config: AdjustConfig, run: Path, report: Report, say: Say, stop: Flag | None) -> str:
    check_folder(run, config, _settings, "adjustment")
    base = open_base(config.model)
    if base.is_xlm:
        reason = "the model has the architecture xlm, which can be probed and fine-tuned but not adjusted"
        raise InputError(reason, keys="model", hint="name another model", code="unsupported")
    check_adjusted(kind_of(base.config.model_type).model.causal, "model")
    model = load_model(base)
    layer_numbers(config.loss.layers, encoder_of(model))  # raises an error before any work
    with process_state().main_process_first():  # the aligner runs once, in the main process
        pairs, parents = _prepare(config, base, longest_input(model), Store(run / "data"), say)
    name = config.fingerprint(parents)
    inputs = {config.model: parents["model"], **{f"pairs.{pair}": text for pair, text in parents["pairs"].items()}}
    mark_folder(run, config, name, _settings, inputs, "adjustment")
    if (run / DONE).exists():
        return name
    for pair in pairs:
        say(f"{pair.name}: " + ", ".join(f"{count:,} {what}" for what, count in pair.counts.items()))
    trainer = Adjuster(config, model, pairs, base.specials, run, name, report, say, stop)
    trainer.train(config.dropout)  # the frozen copy has no dropout in any case
    if trainer.accelerator.is_main_process:
        export_adjusted(model, base, config, run, name, parents)
        write_json(run / DONE, _record(name, trainer, parents))
    trainer.accelerator.wait_for_everyone()
    return name


def _prepare(
    config: AdjustConfig, base: Base, limit: int, store: Store, say: Say
) -> tuple[list[PairData], dict[str, Any]]:
    """Return the data of each language pair, and the fingerprints of the model and the text."""
    length = config.data.longest(limit)
    pairs, parents = [], base.parents()
    parents["pairs"] = {}
    for name, settings in config.texts.items():
        left, right = tokenizer_languages(name, settings, base.folders) if base.is_run else ("", "")
        checkpoints = base.checkpoints[left], base.checkpoints[right]
        tokenizers = (checkpoints[0].tokenizer, checkpoints[1].tokenizer)
        try:
            text = read_pair(settings, checkpoints, store, say)
            pairs.append(prepare_pair(name, text, tokenizers, config.data, length, config.seed))
        except InputError as error:
            raise error.inside("pairs", name) from error
        parents["pairs"][name] = [text.fingerprint, left, right] if base.is_run else text.fingerprint
    return pairs, parents


def _record(name: str, trainer: Adjuster, parents: dict[str, Any]) -> dict[str, Any]:
    rows = read_metrics(trainer.run / "metrics.jsonl")
    measured = [{k: v for k, v in row.items() if k.startswith(("related/", "unrelated/"))} for row in rows]
    return {
        "fingerprint": name,
        "steps": trainer.steps,
        "parents": parents,
        EXPORT: export_sizes(trainer.run),
        "counts": {pair.name: pair.counts for pair in trainer.pairs},
        "before": measured[0],
        "after": measured[-1],
    }


def _settings(config: AdjustConfig) -> tuple[object, ...]:
    """Return the settings that identify an adjustment."""
    return config.model, config.pairs, config.fingerprint({})
