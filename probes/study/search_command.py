"""The command ``synthlang search``: search the grid of a study and print the best trials."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm
from probes.study.cells import check_not_hidden
from probes.study.inherited import read_study
from probes.study.options import SearchOptions, sized
from probes.study.search import ERROR, TRIALS, Search, ranked, tried
from synthlang.catalogue import run_folder
from synthlang.progress import Display

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

SHOWN = 20
"""Maximum number of trials to print."""


def search_command(name: Path, out: Path | None, options: SearchOptions, overrides: list[str]) -> list[FrozenTrial]:
    """Search the grid of a study, print the best SHOWN trials and return all trials, the best first.

    Args:
        name: Name or file of the study.
        out: Folder of the search (default: ``runs/NAME-search``).
        options: Options of the search.
        overrides: Assignments ``KEY=VALUE`` that change the config of the study.

    Raises:
        InputError: The study or an option is wrong, an assignment changes nothing, or Optuna is not installed.
        SystemExit: The search was stopped by SIGTERM (code 143).
    """
    config = sized(name, options.size)
    out = out or run_folder(config).with_name(f"{run_folder(config).name}-search")
    study = read_study(config, overrides)
    search = Search(study, config, out, options)
    check_not_hidden(search.points, overrides)
    with Display() as display, on_sigterm() as stop:
        try:
            found = ranked(tried(search.run(stop, display.report, display.message)))
        except Stopped:
            display.message("stopped; run the same command again to continue")
            raise SystemExit(EXIT_CODE) from None
    console = Console()
    lines = [f"{_reached(trial)}: {', '.join(f'{a}={v}' for a, v in trial.params.items())}" for trial in found[:SHOWN]]
    lines += [f"trials: {out / TRIALS}", f"a study reuses the finished models with --store {search.store.root}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, emoji=False, highlight=False)
    return found


def _reached(trial: FrozenTrial) -> str:
    step = trial.last_step
    if step is None or ERROR in trial.user_attrs:
        return "failed"
    return f"perplexity {trial.intermediate_values[step]:.2f} at step {step}"
