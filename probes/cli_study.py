"""The commands about grids of runs: ``synthlang study``, ``search``, ``report``, ``findings`` and ``gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import probes
from probes.cli_options import Set, Smoke, Threads, argument, names_of, one_of, option, renamed
from probes.study.options import EXECUTORS, SAMPLERS, SearchOptions, StudyOptions
from synthlang.catalogue import SIZES

Study = Annotated[
    Path, argument("YAML file, or name of a study (synthlang configs studies lists them).", **names_of("studies"))
]
Store = Annotated[Path | None, option("Folder of the stages, which studies may share (default: OUT/stages).")]
Size = Annotated[
    str | None,
    option("Size of a study given by name: paper, lab or tiny (default: the size in its name).", **one_of(*SIZES)),
]
Folders = Annotated[list[Path], argument("Study folders.")]


def study(
    config: Study,
    out: Annotated[Path | None, option("Study folder (default: runs/NAME). An unfinished study continues.")] = None,
    store: Store = None,
    size: Size = None,
    executor: Annotated[
        str, option("Executor: local (processes), in-process or slurm.", **one_of(*EXECUTORS))
    ] = "local",
    workers: Annotated[
        int | None, option("Number of processes (default: one for each CUDA device, else for each core).", min=1)
    ] = None,
    retry: Annotated[int, option("Number of further tries of a failed stage.", min=0)] = 0,
    only: Annotated[
        list[str],
        option("Cells to run: a part of the name, or AXIS=LABEL (default: all; repeatable).", metavar="TEXT"),
    ] = [],  # noqa: B006  typer copies it
    dry_run: Annotated[bool, option("Plan only: cells, shared stages and time, without a run.", "--dry-run")] = False,
    slurm: Annotated[
        list[str], option("Option of Slurm, such as partition=gpu (repeatable).", metavar="KEY=VALUE")
    ] = [],  # noqa: B006
    no_wait: Annotated[bool, option("Submission of all jobs to Slurm without waiting for them.", "--no-wait")] = False,
    threads: Threads = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Run every cell of a grid, then write results, measures and report.html."""
    run = probes.run_study(
        config,
        out,
        StudyOptions(
            size=size,
            store=store,
            executor=executor,
            workers=workers,
            threads=threads,
            retry=retry,
            only=tuple(only),
            slurm=tuple(slurm),
            wait=not no_wait,
            dry_run=dry_run,
            smoke=smoke,
        ),
        overrides=overrides,
    )
    if not dry_run and any(cell.status == "failed" for cell in run.cells):
        raise typer.Exit(1)


def search(
    config: Study,
    out: Annotated[
        Path | None, option("Folder of the search (default: runs/NAME-search). An unfinished search continues.")
    ] = None,
    store: Store = None,
    size: Size = None,
    trials: Annotated[int, option("Total number of cells to try.", min=1)] = 20,
    first_rung: Annotated[
        int | None,
        option("Steps until the first rung of successive halving (default: none, every trial runs to the end).", min=1),
    ] = None,
    reduction: Annotated[int, option("Reduction factor N: the best 1/N trials of each rung continue.", min=2)] = 3,
    sampler: Annotated[str, option("Sampler: random (without replacement) or tpe.", **one_of(*SAMPLERS))] = "random",
    seed: Annotated[int, option("Seed of the sampler.", min=0)] = 0,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Search a study's grid for the lowest perplexity, by Optuna: random or TPE, with successive halving."""
    options = SearchOptions(size, store, trials, first_rung, reduction, sampler, seed)
    probes.search_study(config, out, options, overrides=overrides)


def report(
    folders: Folders,
    out: Annotated[
        Path | None, option("Folder of one report on all studies (default: one report in each study folder).")
    ] = None,
) -> None:
    """Write the reports of studies again, or one report on several studies."""
    probes.write_report(folders, out)


def findings(
    folder: Annotated[Path, argument("Folder of the archive of studies, such as docs/findings.")],
    archive: Annotated[
        list[Path],
        option("Study to add to the archive first, finished or in parts (repeatable).", metavar="STUDY"),
    ] = [],  # noqa: B006
    keep: Annotated[list[Path], renamed("--keep", "--archive")] = [],  # noqa: B006
    out: Annotated[
        Path | None, option("Page to write (default: FOLDER.md). A page of all numbers is written beside it.")
    ] = None,
) -> None:
    """Write a page of findings, claim by claim and paper by paper, from an archive of studies."""
    probes.write_findings(folder, [*archive, *keep], out)


def gc(
    folders: Folders,
    keep: Annotated[
        str | None,
        option("Policy: checkpoints, final or results, which keeps no weights (default: `keep` of each study)."),
    ] = None,
    unused: Annotated[bool, option("Stages that no study uses are deleted too.", "--unused")] = False,
    dry_run: Annotated[
        bool, option("Dry run: list of the files to delete, with nothing deleted.", "--dry-run")
    ] = False,
) -> None:
    """Delete weights of finished runs that no unfinished cell of any study of the store reads."""
    probes.collect_garbage(folders, keep, unused=unused, dry_run=dry_run)
