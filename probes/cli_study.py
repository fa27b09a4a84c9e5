"""The commands about grids of runs: ``synthlang study``, ``report``, ``findings`` and ``gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import probes
from probes.cli_options import Set, Smoke, Threads, argument, names_of, one_of, option


def study(
    config: Annotated[
        Path, argument("A YAML file, or the name of a study: synthlang configs studies.", **names_of("studies"))
    ],
    out: Annotated[
        Path | None, option("The study folder (default: runs/NAME); an unfinished study in it goes on.")
    ] = None,
    store: Annotated[Path | None, option("Folder of the stages, shared by studies (default: OUT/stages).")] = None,
    size: Annotated[
        str | None, option("The size of a study given by name: paper, lab or tiny.", **one_of("paper", "lab", "tiny"))
    ] = None,
    executor: Annotated[
        str, option("local (processes), in-process or slurm.", **one_of("local", "in-process", "slurm"))
    ] = "local",
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
    run = probes.run_study(
        config,
        out,
        size=size,
        store=store,
        executor=executor,
        workers=workers,
        retry=retry,
        only=only,
        dry_run=dry_run,
        slurm=slurm,
        wait=not no_wait,
        threads=threads,
        smoke=smoke,
        overrides=overrides,
    )
    if not dry_run and any(cell.status == "failed" for cell in run.cells):
        raise typer.Exit(1)


def search(
    config: Annotated[
        Path, argument("A YAML file, or the name of a study: synthlang configs studies.", **names_of("studies"))
    ],
    out: Annotated[Path | None, option("The folder of the search (default: runs/NAME-search); it goes on.")] = None,
    store: Annotated[Path | None, option("Folder of the stages, shared with studies (default: OUT/stages).")] = None,
    size: Annotated[
        str | None, option("The size of a study given by name: paper, lab or tiny.", **one_of("paper", "lab", "tiny"))
    ] = None,
    trials: Annotated[int, option("How many cells are tried in all.", min=1)] = 20,
    first_rung: Annotated[
        int | None, option("Successive halving: steps after which the first are given up (default: none is).", min=1)
    ] = None,
    reduction: Annotated[int, option("Of those at a rung the best one in so many goes on.", min=2)] = 3,
    sampler: Annotated[str, option("random, no cell twice, or tpe.", **one_of("random", "tpe"))] = "random",
    seed: Annotated[int, option("Seed of the sampler.", min=0)] = 0,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Search a study's grid for the lowest perplexity, by Optuna: at random or TPE, with successive halving."""
    probes.search_study(
        config,
        out,
        size=size,
        store=store,
        trials=trials,
        first_rung=first_rung,
        reduction=reduction,
        sampler=sampler,
        seed=seed,
        overrides=overrides,
    )


def report(
    folders: Annotated[list[Path], argument("Study folders.")],
    out: Annotated[Path | None, option("Folder of one report on all of them (default: one in each folder).")] = None,
) -> None:
    """Write the tables and figures of studies again, or one report on several studies."""
    probes.write_report(folders, out)


def findings(
    folder: Annotated[Path, argument("Folder of the studies that are kept, such as docs/findings.")],
    keep: Annotated[
        list[Path], option("A study whose results are kept there first, also in parts; repeatable.", metavar="STUDY")
    ] = [],  # noqa: B006  typer copies it
    out: Annotated[Path | None, option("The page (default: FOLDER.md); its numbers are written beside it.")] = None,
) -> None:
    """Write what came out, claim by claim and paper by paper, from the studies that are kept."""
    probes.write_findings(folder, keep, out)


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
    probes.collect_garbage(folders, keep, unused=unused, dry_run=dry_run)
