"""The command ``synthlang transfer``, which fine-tunes a model and tests it on another language."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pretrain.threads import threads_for, use_threads
from probes.models.names import is_run
from probes.models.opening import open_pretrained
from probes.models.pretrained import Pretrained
from probes.transfer.compare import Comparison
from probes.transfer.config import TransferConfig, combinations
from probes.transfer.result import ResultFile, drops, rows_of
from probes.transfer.run import Transfer
from probes.transfer.saved import TRANSFER, check_one_model, model_folders
from probes.transfer.splits import load_data, open_splits
from probes.transfer.tasks.metrics import defined
from synthlang.catalogue import load_yaml
from synthlang.config import override, parse
from synthlang.errors import InputError
from synthlang.files import only_writer, read_json, safe_name, user_path, write_json, writing
from synthlang.progress import Display
from synthlang.smoke import NOTE, smaller, smaller_source, smoke_path
from synthlang.store import Store


def read_transfer_config(
    path: Path | None, options: Mapping[str, str | None], target: Mapping[str, str | None], overrides: list[str]
) -> TransferConfig:
    """Read a config and replace its keys by the options of the command, and then by the overrides.

    Args:
        path: A file, or a name in the catalogue (default: an empty config).
        options: Values by key. The value None leaves a key unchanged.
        target: The items of a natural target language by split (train, dev, test), or None for a split without items.
        overrides: Texts of the form ``KEY=VALUE``.

    Raises:
        InputError: The file cannot be read, a key or value is invalid, or ``target`` has training or dev items although
            no test items are given.
    """
    data = {} if path is None else load_yaml(path, "transfer")
    data |= {key: value for key, value in options.items() if value is not None}
    named = {key: value for key, value in target.items() if value is not None}
    items = data.get("target") or {}
    if named and isinstance(items, Mapping):  # ``parse`` refuses any other value
        data["target"] = {**items, **named}
    data = override(data, overrides)
    if named and isinstance(data["target"], Mapping) and "test" not in data["target"]:
        reason = "is missing, but a target language with training or dev items also needs test items"
        hint = "add --target-test SOURCE (key target.test)"
        raise InputError(reason, "--target-test", hint=hint, code="missing")
    return parse(TransferConfig, data, path or "transfer")


def transfer_command(
    model: str,
    config: TransferConfig,
    seeds: int,
    out: Path | None,
    keep: Path | None = None,
    smoke: bool = False,
    threads: int | None = None,
) -> Path:
    """Transfer a model with the seeds 0 … ``seeds`` − 1, and return the path of the result file.

    Seeds that are already in ``out`` are not run again. Predictions are written to ``NAME.predictions.parquet`` beside
    ``NAME.json``.

    Args:
        model: A run, a folder or a name on Hugging Face.
        config: The settings.
        seeds: Number of fine-tuning seeds.
        out: The JSON file for the result (default: ``RUN/transfer/TASK-LANGUAGE.json``).
        keep: The folder for the fine-tuned models (default: models are not saved).
        smoke: True to use tiny settings, one seed and another file name.
        threads: Number of threads (default: chosen by the size of the model).

    Raises:
        InputError: The model or the data cannot be read or used (see `open_pretrained`, `load_data` and
            ``Transfer.check``), or training diverges. The error is also raised if a natural target language has no
            name, if ``out`` is None for a model that is not a run, or if ``out`` is a folder, has the result of another
            transfer, or is written by another process. With ``keep``, the error is also raised if the model cannot be
            saved for both languages, or ``out`` has the result of a seed whose model is not in ``keep``.
        DiskError: A file cannot be written.
    """
    pretrained = _opened(model, config)
    use_threads(threads or threads_for(pretrained.model.shape.hidden))
    config, notes = fitted_to(config, pretrained.length)
    notes += pretrained.notes
    idle = config.idle  # before the changes of a smoke run
    path = out or _default_path(model, config, pretrained)
    if smoke:
        config, seeds, path, notes = smaller(config), 1, smoke_path(path), [NOTE, *notes]
        pretrained = replace(pretrained, text=pretrained.text and smaller_source(pretrained.text))
    open_splits(config, pretrained.text, pretrained.length)
    if keep is not None:
        _check_keep(config, pretrained)
    if path.is_dir():
        raise InputError("is a folder, not a file", path, hint="give a JSON file with --out", code="exists")
    with Display() as display, only_writer(path), nullcontext() if keep is None else only_writer(keep):
        work = path.with_name(f"{path.stem}.work")  # unfinished work beside the result
        with writing(work):
            work.mkdir(parents=True, exist_ok=True)
        data = load_data(config, pretrained, display.report)
        transfer = Transfer(pretrained, data, config, display.report, Store(work / "data"))
        file = ResultFile(path, transfer.fingerprint)
        transfer.check()
        for line in _lines_before(transfer, idle, notes):
            display.message(line)
        if keep is not None:
            _check_saved(file, seeds, keep)
        for seed in range(seeds):
            if seed not in file.seeds:
                file.add(transfer, transfer.run(seed, work / transfer.fingerprint[:12], keep))
        shutil.rmtree(work)
    Console().print(result_table(read_json(path), defined([transfer.main])))
    Console().print(f"written: {path}", soft_wrap=True, markup=False, emoji=False)
    return path


def _opened(model: str, config: TransferConfig) -> Pretrained:
    """Open the model with the languages of the transfer, and set the original model of continual learning."""
    natural = config.target is not None
    if natural and config.language is None:
        reason = "is missing, but a natural target language needs a name"
        hint = "name the language as in the run, or by any name, such as de, if the model is not a run"
        raise InputError(reason, "--language", hint=hint, code="missing")
    pretrained = open_pretrained(model, config.language, natural, config.target_model)
    if config.aligning is None or config.aligning.before is None:
        return pretrained
    return replace(pretrained, original=config.aligning.before)


def _lines_before(transfer: Transfer, idle: Sequence[str], notes: Sequence[str]) -> Iterator[str]:
    """Yield the lines that are shown before fine-tuning: keys without effect, notes, and omitted items by reason."""
    yield from (f"{key} has no effect on the task {transfer.config.task}" for key in idle)
    reading = (f"{name}: {transfer.reading(name)}" for name in ("source test", "target test"))
    yield from (f"note: {note}" for note in (*notes, *reading))
    for name, counts in drops(transfer).items():
        yield from (f"{name}: {reason}: {count:,}" for reason, count in counts.items())


def fitted_to(config: TransferConfig, reads: int) -> tuple[TransferConfig, list[str]]:
    """Reduce ``length``, and for the task qa ``stride``, to values for a model that reads ``reads`` tokens at once.

    Returns:
        The settings, and a note on each change.
    """
    update: dict[str, int | None] = {}
    if config.length is not None and config.length > reads:
        update["length"] = None
    rows = update.get("length", config.length) or reads
    if config.task == "qa" and config.stride >= rows // 2:  # otherwise windows would hardly advance, or not at all
        update["stride"] = rows // 4
    reasons = {"length": f"the model reads {reads} tokens at once", "stride": f"a row has at most {rows} tokens"}
    notes = [
        f"{key} is {value or reads} instead of {getattr(config, key)}, because {reasons[key]}"
        for key, value in update.items()
    ]
    return config.model_copy(update=update), notes


def _check_keep(config: TransferConfig, pretrained: Pretrained) -> None:
    combinations(config)  # its errors are not about the option
    try:
        check_one_model(config, pretrained.has_own_parts, pretrained.model.architecture)
    except InputError as error:
        raise error.with_hint("or leave this option out").inside(path="--save-models") from error


def _default_path(model: str, config: TransferConfig, pretrained: Pretrained) -> Path:
    run = user_path(model)
    if not is_run(run):
        reason = "is not a run folder, so there is no default place for the result"
        raise InputError(reason, model, hint="give a file with --out FILE.json", code="missing")
    language = safe_name(pretrained.language_name("target"), "language name")
    return run / "transfer" / f"{config.task}-{language}.json"


def _check_saved(file: ResultFile, seeds: int, keep: Path) -> None:
    """Raise InputError if a seed is finished, but the folder ``keep`` does not have its models."""
    for seed in file.seeds.keys() & range(seeds):
        for folder in model_folders(keep, seed, len(file.seeds[seed]["fits"]["source"])):
            record = folder / "done.json"
            if not record.is_file() or read_json(record).get(TRANSFER) != file.name:
                reason = f"has the result of seed {seed}, but its model is not in {folder}"
                hint = "give another file with --out, so that all seeds run again"
                raise InputError(reason, file.path, hint=hint, code="exists")


def result_table(result: Mapping[str, Any], about: str | None = None) -> Table:
    """Return a result as a table of means, two 95 % intervals, the majority baseline and the scores of each seed.

    ``result`` is the content of a result file. The first interval is over seeds and items, and the second over seeds
    only. All scores are in percent. ``about`` is the caption, which explains the metric.
    """
    items = result["counts"]["target test"]["items"]
    title = f"{result['task']}, {result['model']} → {result['language']} ({result['metric']}, %; {items:,} test items)"
    table = Table(title=title, caption=about)
    seeds = [f"seed {record['seed']}" for record in result["seeds"]]
    for column in ("", "mean", "95 % interval", "over seeds", "majority", *seeds):
        table.add_column(column, justify="right")
    for test, label, whole, values in rows_of(result):
        bounds = [_bounds(whole["low"], whole["high"]), _bounds(whole["seeds_low"], whole["seeds_high"])]
        majority = result["majority"].get(test)
        shown = "–" if majority is None else f"{majority:.1f}"
        table.add_row(label, f"{whole['mean']:.1f}", *bounds, shown, *(f"{v:.1f}" for v in values))
    return table


def _bounds(low: float | None, high: float | None) -> str:
    return "–" if low is None or high is None else f"{low:.1f} … {high:.1f}"


def show_comparison(found: Comparison, out: Path | None) -> None:
    """Print a comparison, and write it to the JSON file ``out``, if given.

    Raises:
        DiskError: The file cannot be written.
    """
    Console().print(found.table())
    for test in found.left_out:
        Console().print(f"not compared: {test}, which is missing in some file", markup=False)
    if out is not None:
        write_json(out, found.to_json())
        Console().print(f"written: {out}", soft_wrap=True, markup=False, emoji=False)
