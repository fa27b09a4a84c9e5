"""The folder of an adjustment: config.yaml, run.json, metrics.jsonl, checkpoints/, export/, done.json."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.export import export_adjusted
from pretrain.adjust.trainer import Adjuster
from pretrain.adjust.vectors import encoder_of, layer_numbers
from pretrain.folder import EXPORT, export_sizes, read_metrics
from pretrain.hub import Base, load_model, longest_input, open_base
from pretrain.processes import process_state
from pretrain.stopping import Flag
from synthlang.config import dump_yaml, load
from synthlang.errors import InputError
from synthlang.files import TEMPORARY, atomic_file, read_json, remove_leftovers, write_json
from synthlang.parallel.pairs import DerivedPair, TextPair, read_pair
from synthlang.parallel.prepare import PairData, prepare_pair
from synthlang.progress import Report, Say, silent, unheard
from synthlang.store import Store

DONE = "done.json"


def adjust(
    config: AdjustConfig, run: Path, report: Report = silent, say: Say = unheard, stop: Flag | None = None
) -> str:
    """Adjust a model in the folder ``run`` (started, continued or already done); returns the fingerprint.

    A folder that holds anything else is refused before it is written to. ``done.json`` then holds the distances before
    and after, what was left out of each pair, and the parents. When ``stop`` is set, it saves and raises Stopped.
    """
    _check_folder(config, run)
    base = open_base(config.model)
    model = load_model(base)
    layer_numbers(config.loss.layers, encoder_of(model))  # an error before any work
    with process_state().main_process_first():  # the others find the aligner's work done
        pairs, parents = _prepare(config, base, longest_input(model), Store(run / "data"), say)
    name = config.fingerprint(parents)
    _claim(config, run, name)
    if (run / DONE).exists():
        return name
    for pair in pairs:
        say(f"{pair.name}: " + ", ".join(f"{count:,} {what}" for what, count in pair.counts.items()))
    trainer = Adjuster(config, model, pairs, base.specials, run, name, report, say, stop)
    trainer.train()
    if trainer.accelerator.is_main_process:
        export_adjusted(model, base, config, run, name, parents)
        write_json(run / DONE, _record(name, trainer, parents, run))
    trainer.accelerator.wait_for_everyone()
    return name


def _prepare(
    config: AdjustConfig, base: Base, limit: int, store: Store, say: Say
) -> tuple[list[PairData], dict[str, Any]]:
    """The pairs of languages, ready for batches, and the fingerprints of all that the weights depend on."""
    length = config.data.longest(limit)
    pairs, parents = [], base.parents()
    parents["pairs"] = {}
    for name, settings in config.texts.items():
        left, right = _languages(settings)
        checkpoints = base.checkpoint(left, name), base.checkpoint(right, name)
        text = read_pair(settings, checkpoints, store, say)
        tokenizers = (checkpoints[0].tokenizer, checkpoints[1].tokenizer)
        pairs.append(prepare_pair(name, text, tokenizers, config.data, length, config.seed))
        parents["pairs"][name] = text.fingerprint
        if base.is_run:
            parents["pairs"][name] = [text.fingerprint, left, right]
    return pairs, parents


def _languages(pair: TextPair | DerivedPair) -> tuple[str, str]:
    """The languages of a run whose tokenizers a pair needs."""
    if pair.tokenizers is not None:
        return pair.tokenizers
    return (pair.left.name, pair.right.name) if isinstance(pair, DerivedPair) else ("left", "right")


def _record(name: str, trainer: Adjuster, parents: dict[str, Any], run: Path) -> dict[str, Any]:
    rows = read_metrics(run / "metrics.jsonl")
    measured = [{k: v for k, v in row.items() if k.startswith(("related/", "unrelated/"))} for row in rows]
    return {
        "fingerprint": name,
        "steps": trainer.steps,
        "parents": parents,
        EXPORT: export_sizes(run),
        "counts": {pair.name: pair.counts for pair in trainer.pairs},
        "before": measured[0],
        "after": measured[-1],
    }


def _check_folder(config: AdjustConfig, run: Path) -> None:
    """Raise InputError if the folder holds something else; writes nothing."""
    if (run / "config.yaml").is_file():
        if _settings(load(AdjustConfig, run / "config.yaml")) != _settings(config):
            raise InputError("holds another adjustment (see its config.yaml); choose another folder", run)
    elif run.exists() and not all(p.name == "data" or p.name.startswith(TEMPORARY) for p in run.iterdir()):
        raise InputError("is not empty and holds no adjustment; choose another folder", run)


def _settings(config: AdjustConfig) -> tuple[Any, ...]:
    """What makes an adjustment another one, as far as the config alone tells."""
    return config.model, config.pairs, config.fingerprint({})


def _claim(config: AdjustConfig, run: Path, name: str) -> None:
    """Make the folder this adjustment's, or see that it is."""
    state = process_state()
    if (run / "run.json").exists():
        held = read_json(run / "run.json")
        if not isinstance(held, dict) or held.get("fingerprint") != name:
            raise InputError(
                "the model, the texts or the links have changed since it began; choose another folder", run
            )
    elif state.is_main_process:
        if run.exists():
            remove_leftovers(run)
        with atomic_file(run / "config.yaml", "w") as handle:
            handle.write(dump_yaml(config))
        write_json(run / "run.json", {"fingerprint": name})
    state.wait_for_everyone()
