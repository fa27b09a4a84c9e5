"""The commands about grids of runs: ``synthlang study``, ``report``, ``findings`` and ``gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from probes.cli_options import Set, Smoke, Threads, argument, option


def study(
    config: Annotated[Path, argument("A YAML file, or the name of a study: synthlang configs studies.")],
    out: Annotated[
        Path | None, option("The study folder (default: runs/NAME); an unfinished study in it goes on.")
    ] = None,
    store: Annotated[Path | None, option("Folder of the stages, shared by studies (default: OUT/stages).")] = None,
    size: Annotated[str | None, option("The size of a study given by name: paper, lab or tiny.")] = None,
    executor: Annotated[str, option("local (processes), in-process or slurm.")] = "local",
    workers: Annotated[int | None, option("Processes (default: one a CUDA device, else one a core).", min=1)] = None,
    retry: Annotated[int, option("How often a stage that failed is tried again.", min=0)] = 0,
    only: Annotated[
        list[str], option("Run cells with this in their name, or AXIS=LABEL; repeatable.", metavar="TEXT")
    ] = [],  # noqa: B006  typer copies it
    dry_run: Annotated[bool, option("List cells, shared stages and time; run nothing.", "--dry-run")] = False,
    slurm: Annotated[
        list[str], option("An option of Slurm, such as partition=gpu; repeatable.", metavar="KEY=VALUE")
    ] = [],  # noqa: B006
    no_wait: Annotated[bool, option("Hand everything over to Slurm and leave.", "--no-wait")] = False,
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006  typer copies it
) -> None:
    """Run every cell of a grid, then write results, measures and report.html."""
    from probes.commands import plan_study, run_study
    from probes.study.runner import RunOptions
    from synthlang.catalogue import run_folder
    from synthlang.smoke import smoke_path

    config = _of_size(config, size)
    out = smoke_path(out or run_folder(config)) if smoke else out or run_folder(config)
    options = RunOptions(executor, workers, retry, tuple(only), store, tuple(slurm), wait=not no_wait, threads=threads)
    if dry_run:
        plan_study(config, out, options, overrides, smoke)
    elif code := run_study(config, out, options, overrides, smoke):
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
    folders: Annotated[list[Path], argument("Study folders.")],
    out: Annotated[Path | None, option("Folder of one report on all of them (default: one in each folder).")] = None,
) -> None:
    """Write the tables and figures of studies again, or one report on several studies."""
    from probes.commands import write_reports

    write_reports(folders, out)


def findings(
    folder: Annotated[Path, argument("Folder of the studies that are kept, such as docs/findings.")],
    keep: Annotated[
        list[Path], option("A finished study whose results are kept there first; repeatable.", metavar="STUDY")
    ] = [],  # noqa: B006  typer copies it
    out: Annotated[Path | None, option("The page (default: FOLDER.md).")] = None,
) -> None:
    """Write what came out, claim by claim and paper by paper, from the studies that are kept."""
    from probes.commands import write_findings_page

    write_findings_page(folder, keep, out)


def gc(
    folders: Annotated[list[Path], argument("Study folders.")],
    keep: Annotated[
        str | None, option("final (exports, last and best weights) or results (no weights); default: the study's keep.")
    ] = None,
    unused: Annotated[
        bool, option("Also stages of no cell of any study of the store: of cells that left a grid.", "--unused")
    ] = False,
    dry_run: Annotated[bool, option("Say what would be deleted; delete nothing.", "--dry-run")] = False,
) -> None:
    """Delete weights of finished runs that no cell of any study of the store needs any more."""
    from probes.commands import collect_garbage

    collect_garbage(folders, keep, unused, dry_run)
