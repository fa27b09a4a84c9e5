"""The commands about grids of runs: ``synthlang study``, ``report`` and ``gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def study(
    config: Annotated[Path, typer.Argument(help="A YAML file, or the name of a study: synthlang configs studies.")],
    out: Annotated[Path, typer.Option(help="The study folder; an unfinished study in it goes on.")],
    store: Annotated[
        Path | None, typer.Option(help="Folder of the stages, shared by studies (default: OUT/stages).")
    ] = None,
    size: Annotated[str | None, typer.Option(help="The size of a study given by name: paper, lab or tiny.")] = None,
    executor: Annotated[str, typer.Option(help="local (processes), in-process or slurm.")] = "local",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes (default: one a CUDA device, else one a core).")
    ] = None,
    retry: Annotated[int, typer.Option(min=0, help="How often a stage that failed is tried again.")] = 0,
    only: Annotated[
        list[str], typer.Option(metavar="TEXT", help="Run cells with this in their name, or AXIS=LABEL; repeatable.")
    ] = [],  # noqa: B006  typer copies it
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="List cells, shared stages and time; run nothing.")
    ] = False,
    slurm: Annotated[
        list[str], typer.Option(metavar="KEY=VALUE", help="An option of Slurm, such as partition=gpu; repeatable.")
    ] = [],  # noqa: B006
    no_wait: Annotated[bool, typer.Option("--no-wait", help="Hand everything over to Slurm and leave.")] = False,
    overrides: Annotated[
        list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a key of the config; repeatable.")
    ] = [],  # noqa: B006
) -> None:
    """Run every cell of a grid, then write results, measures and report.html."""
    from probes.commands import plan_study, run_study
    from probes.study.runner import RunOptions

    config = _of_size(config, size)
    options = RunOptions(executor, workers, retry, tuple(only), store, tuple(slurm), wait=not no_wait)
    if dry_run:
        plan_study(config, out, options, overrides)
    elif code := run_study(config, out, options, overrides):
        raise typer.Exit(code)


def _of_size(config: Path, size: str | None) -> Path:
    """The name of a study with its size; a file has its own."""
    from synthlang.catalogue import YAML
    from synthlang.errors import InputError

    if size is None:
        return config
    if config.suffix in YAML:
        raise InputError("--size goes with the name of a study, and this is a file", config)
    return config / size


def report(
    folders: Annotated[list[Path], typer.Argument(help="Study folders.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder of one report on all of them (default: one in each folder).")
    ] = None,
) -> None:
    """Write the tables and figures of studies again, or one report on several studies."""
    from probes.commands import write_reports

    write_reports(folders, out)


def gc(
    folders: Annotated[list[Path], typer.Argument(help="Study folders.")],
    keep: Annotated[
        str | None,
        typer.Option(help="final (exports, last and best weights) or results (no weights); default: the study's keep."),
    ] = None,
    unused: Annotated[
        bool,
        typer.Option("--unused", help="Also stages of no cell of any study of the store: of cells that left a grid."),
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted; delete nothing.")] = False,
) -> None:
    """Delete weights of finished runs that no cell of any study of the store needs any more."""
    from probes.commands import collect_garbage

    collect_garbage(folders, keep, unused, dry_run)
