"""What the commands do with a run or a study, and what they print."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pretrain.model import trained_model
from pretrain.run import open_run, store_of
from probes.statistics import mean_interval
from probes.study.config import load_study
from probes.study.report import ReportPaths, terminal_table, write_report
from probes.study.runner import StudyRun
from probes.transfer.config import TransferConfig
from probes.transfer.run import check_task, target_member, transfer, transfer_fingerprint
from probes.words import probe_alignment, probe_fingerprint
from synthlang.config import override, parse
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.language import check_source
from synthlang.progress import Display


def transfer_run(
    run: Path, task: str, seeds: int, language: str | None, out: Path | None, overrides: list[str]
) -> None:
    """Transfer of a run for some seeds; merges the results into a JSON file by fingerprint."""
    settings = parse(TransferConfig, override({"task": task}, overrides), "transfer")
    config, artifacts = open_run(run)
    model = trained_model(run, config, artifacts)
    pretrained = read_json(run / "run.json")["fingerprint"]
    target = artifacts.members[target_member(config, language)]
    parents = (pretrained, artifacts.members[0].source.fingerprint, target.language.fingerprint)
    path = out or run / "transfer.json"
    results: list[dict[str, Any]] = []
    with Display() as display:
        for seed in range(seeds):
            result = transfer(model, config, artifacts, settings, seed, display.report, language)
            _merge(path, transfer_fingerprint(*parents, settings, seed), result)
            results.append(result)
    table = Table(title=f"{task} on {target.name} ({results[0]['metric']}, %; mean and 95 % interval over seeds)")
    for column in ("", "mean", "interval", *(f"seed {s}" for s in range(seeds))):
        table.add_column(column, justify="right")
    for key, label in (("parent", "parent"), ("sup", "SUP"), ("zs", "ZS"), ("delta", "Δ = SUP − ZS")):
        values = [result[key] for result in results]
        interval = mean_interval(values)
        bounds = "–" if interval.low is None else f"{interval.low:.1f} … {interval.high:.1f}"
        table.add_row(label, f"{interval.mean:.1f}", bounds, *(f"{v:.1f}" for v in values))
    Console().print(table)
    Console().print(f"written: {path}", soft_wrap=True, markup=False, emoji=False)


def probe_run(run: Path, probe: str, out: Path | None) -> None:
    """Probe a run; merges the result into probes.json by fingerprint."""
    if probe != "alignment":
        raise InputError(f"unknown probe {probe!r}; there is: alignment")
    config, artifacts = open_run(run)
    result = probe_alignment(trained_model(run, config, artifacts), config, artifacts, store_of(run))
    path = (out or run) / "probes.json"
    name = probe_fingerprint(read_json(run / "run.json")["fingerprint"], config.dictionary)
    _merge(path, name, result)
    for language, found in result["languages"].items():
        if found["scores"] is not None:
            Console().print(_alignment_table(found["scores"], language))
    if result["scores"] is None:
        Console().print(f"no alignment: {result['reason']}")
    Console().print(f"written: {path}", soft_wrap=True, markup=False, emoji=False)


def _alignment_table(scores: dict[str, Any], language: str) -> Table:
    table = Table(title=f"Word-embedding alignment, parent ↔ {language} (%)")
    for column in ("types", "n", "cosine →", "cosine ←", "cosine mean", "CSLS mean"):
        table.add_column(column, justify="right")
    for key, subset in scores.items():
        if subset is None:
            table.add_row(key, "0", "–", "–", "–", "–")
        else:
            cosine = subset["cosine"]
            values = (cosine["forward"], cosine["backward"], cosine["mean"], subset["csls"]["mean"])
            table.add_row(key.replace("_", " "), str(subset["n"]), *(f"{v:.1f}" for v in values))
    return table


def _merge(path: Path, name: str, result: dict[str, Any]) -> None:
    held = read_json(path) if path.exists() else {}
    write_json(path, {**held, name: result})


def run_study(config: Path, out: Path, executor: str, workers: int | None, overrides: list[str]) -> bool:
    """Run a study and print its table; False if a cell failed."""
    if executor not in ("local", "in-process"):
        raise InputError(f"executor must be local or in-process, not {executor!r}")
    settings, cells = load_study(config, overrides)
    study = StudyRun(settings, cells, out)
    study.check_folder()
    for cell in cells:
        target_member(cell.pretrain, None)
    specs = {(member.source, cell.transfer.task) for cell in cells for member in cell.pretrain.members}
    sources = {spec: check_task(*spec) for spec in specs}
    for cell in cells:
        for member in cell.pretrain.members:
            check_source(member.language, sources[member.source, cell.transfer.task], member.source)
    with Display() as display:
        display.message(f"study {settings.name}: {len(cells)} cells × {len(settings.seeds)} transfer seeds → {out}")
        paths = study.run("local" if executor == "local" else "in-process", workers, display.report)
    console = Console()
    if rows := study.rows():
        console.print(terminal_table(rows))
    failed = [state for state in study.states if state.error]
    for state in failed:
        console.print(
            f"failed {state.cell.name}: {state.error}", style="red", soft_wrap=True, markup=False, emoji=False
        )
    _say_where(console, out, paths)
    return not failed


def write_reports(folders: list[Path]) -> None:
    """Write the reports of study folders again."""
    for folder in folders:
        if not (folder / "study.json").exists():
            raise InputError("is no study folder: study.json is missing", folder)
    for folder in folders:
        _say_where(Console(), folder, write_report(folder))


def _say_where(console: Console, folder: Path, paths: ReportPaths) -> None:
    console.print(f"results: {folder / 'results.csv'}", soft_wrap=True, markup=False, emoji=False)
    console.print(f"report:  {paths.html.resolve()}", soft_wrap=True, markup=False, emoji=False)
