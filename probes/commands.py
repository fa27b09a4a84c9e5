"""What the commands do with a run or a study, and what they print."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from probes.study.config import Cell, load_study, positions_of
from probes.study.report import ReportPaths, terminal_table, write_report
from probes.study.runner import StudyRun
from probes.transfer.model import derived_members, first_derived
from probes.transfer.places import check_columns, open_places
from synthlang.errors import InputError
from synthlang.language import check_source
from synthlang.progress import Display
from synthlang.sources import open_source


def run_study(config: Path, out: Path, executor: str, workers: int | None, overrides: list[str]) -> bool:
    """Run a study and print its table; False if a cell failed."""
    if executor not in ("local", "in-process"):
        raise InputError(f"executor must be local or in-process, not {executor!r}")
    settings, cells = load_study(config, overrides)
    study = StudyRun(settings, cells, out)
    study.check_folder()
    for cell in cells:
        check_cell(cell)
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


def check_cell(cell: Cell) -> None:
    """Raise InputError for what cannot be pretrained, or transferred to, before anything runs."""
    pretrain, settings = cell.pretrain, cell.transfer
    for member in pretrain.members:
        check_source(member.language, open_source(member.source), member.source)
    try:
        _, places, _ = open_places(settings, pretrain.members[0].source, positions_of(pretrain))
        if settings.target is None:
            known = derived_members(pretrain)
            number = known.get(settings.language or "", None) or first_derived(pretrain)
            if settings.parser is None:
                check_columns(pretrain.members[number].language, places)
    except InputError as error:
        raise InputError(f"transfer: {error}", cell.name) from error


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
