"""What ``synthlang search`` does: search a study's grid, and print the trials, best first."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm
from probes.study.cells import check_not_hidden
from probes.study.config import StudyConfig
from probes.study.grid import with_assignments
from probes.study.record import STAGES
from probes.study.search import ERROR, TRIALS, Search, SearchOptions, ranked, tried
from synthlang.catalogue import load_yaml
from synthlang.config import parse
from synthlang.progress import Display

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

SHOWN = 20
"""Trials that are printed, at most."""


def search_command(
    config: Path, out: Path, store: Path | None, options: SearchOptions, overrides: list[str]
) -> list[FrozenTrial]:
    """The trials, best first; SystemExit with 143 after SIGTERM."""
    study = parse(StudyConfig, with_assignments(load_yaml(config, "studies"), overrides), config)
    store = store or out / STAGES
    search = Search(study, config, out, store, options)
    check_not_hidden(search.points, overrides)
    with Display() as display, on_sigterm() as stop:
        try:
            found = ranked(tried(search.run(stop, display.report, display.message)))
        except Stopped:
            display.message("stopped; run the same command again to go on")
            raise SystemExit(EXIT_CODE) from None
    console = Console()
    lines = [f"{_reached(trial)}: {', '.join(f'{a}={v}' for a, v in trial.params.items())}" for trial in found[:SHOWN]]
    lines += [f"trials: {out / TRIALS}", f"finished models are found by a study with --store {store}"]
    for line in lines:
        console.print(line, soft_wrap=True, markup=False, emoji=False, highlight=False)
    return found


def _reached(trial: FrozenTrial) -> str:
    step = trial.last_step
    if step is None or ERROR in trial.user_attrs:
        return "failed"
    return f"perplexity {trial.intermediate_values[step]:.2f} at step {step}"
