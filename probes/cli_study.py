"""The commands about grids of runs: ``synthlang study``, ``search``, ``report``, ``findings`` and ``gc``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import probes
from probes.cli_options import NoWait, Set, Slurm, Smoke, argument, names_of, one_of, option, renamed
from probes.study.options import EXECUTORS, SAMPLERS, SearchOptions, StudyOptions
from synthlang.catalogue import SIZES
from synthlang.errors import InputError

Study = Annotated[
    Path, argument("YAML file, or name of a study (synthlang configs studies lists them).", **names_of("studies"))
]
SHARED = "Folder for stages, which several studies may share"
Size = Annotated[
    str | None,
    option(
        "Size to add to the name of a study that has none: paper, lab or tiny (default: none). NAME --size lab is the "
        "same as NAME/lab.",
        **one_of(*SIZES),
    ),
]
Folders = Annotated[list[Path], argument("Study folders.")]


def study(
    config: Annotated[
        Path | None,
        argument(
            "YAML file, or name of a study (synthlang configs studies lists them). Required unless --init is given "
            "(default: none).",
            **names_of("studies"),
        ),
    ] = None,
    out: Annotated[Path | None, option("Study folder (default: runs/NAME). An unfinished study continues.")] = None,
    store: Annotated[Path | None, option(f"{SHARED} (default: that of the last start, else OUT/stages).")] = None,
    size: Size = None,
    executor: Annotated[
        str,
        option(
            "Executor: local (worker processes), in-process (no worker) or slurm (jobs of a cluster).",
            **one_of(*EXECUTORS),
        ),
    ] = "local",
    workers: Annotated[
        int | None,
        option(
            "Number of processes of --executor local (default: one per CUDA device or else per core, at most one per "
            "cell).",
            min=1,
        ),
    ] = None,
    retry: Annotated[int, option("Number of retries of a failed stage.", min=0)] = 0,
    only: Annotated[
        list[str],
        option("Cells to run, by a part of their name or AXIS=LABEL (default: all; repeatable).", metavar="TEXT"),
    ] = [],  # noqa: B006  typer copies it
    dry_run: Annotated[
        bool, option("Plan only: cells, shared stages, tokens, time and disk. Nothing runs.", "--dry-run")
    ] = False,
    verify: Annotated[
        bool, option("Dry run with a check of all files of the store by checksum. Nothing runs.", "--verify")
    ] = False,
    init: Annotated[
        Path | None,
        option("Study file to write, with comments, to start from (default: none). Nothing runs.", metavar="FILE"),
    ] = None,
    yes: Annotated[
        bool, option("Consent to a study that takes more than 7 days by forecast, or more than the free disk.", "--yes")
    ] = False,
    slurm: Slurm = [],  # noqa: B006
    no_wait: NoWait = False,
    threads: Annotated[
        int | None,
        option(
            "Number of CPU threads per process (default: OMP_NUM_THREADS, else chosen by model width and cores). Not "
            "used by --executor slurm, whose jobs use --slurm cpus=N.",
            min=1,
        ),
    ] = None,
    smoke: Smoke = False,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Run every cell of a grid and write a report. Results and measures are CSV and Parquet files beside it."""
    hint = "give either a study or --init FILE"
    if init is not None:
        if config is not None:
            raise InputError("cannot be combined with a study", "--init", hint=hint, code="conflict")
        probes.write_new_study(init)
        return
    if config is None:
        raise InputError("no study is given", hint=hint, code="missing")
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
            verify=verify,
            yes=yes,
            smoke=smoke,
        ),
        overrides=overrides,
    )
    if not (dry_run or verify) and any(cell.status == "failed" for cell in run.cells):
        raise typer.Exit(1)


def search(
    config: Study,
    out: Annotated[
        Path | None, option("Search folder (default: runs/NAME-search). An unfinished search continues.")
    ] = None,
    store: Annotated[Path | None, option(f"{SHARED} (default: OUT/stages).")] = None,
    size: Size = None,
    trials: Annotated[
        int, option("Total number of cells to try, including those of an earlier start of the search.", min=1)
    ] = 20,
    first_rung: Annotated[
        int | None,
        option("Training steps before the first rung of successive halving (default: none, no halving).", min=1),
    ] = None,
    reduction: Annotated[int, option("Reduction factor N: the best 1/N trials of each rung continue.", min=2)] = 3,
    sampler: Annotated[
        str,
        option("Sampler: random (without replacement) or tpe (tree-structured Parzen estimator).", **one_of(*SAMPLERS)),
    ] = "random",
    seed: Annotated[int, option("Seed of the sampler.", min=0)] = 0,
    overrides: Set = [],  # noqa: B006
) -> None:
    """Search a grid for the lowest perplexity with Optuna."""
    options = SearchOptions(size, store, trials, first_rung, reduction, sampler, seed)
    probes.search_study(config, out, options, overrides=overrides)


def report(
    folders: Folders,
    out: Annotated[
        Path | None, option("Folder for one joint report on all studies (default: a report in each study folder).")
    ] = None,
) -> None:
    """Write reports of studies again, or one joint report."""
    probes.write_report(folders, out)


def findings(
    folder: Annotated[Path, argument("Folder of an archive of studies, such as docs/findings.")],
    archive: Annotated[
        list[Path],
        option(
            "Folder of a finished or unfinished study to archive first (default: none; repeatable).", metavar="STUDY"
        ),
    ] = [],  # noqa: B006
    keep: Annotated[list[Path], renamed("--keep", "--archive")] = [],  # noqa: B006
    out: Annotated[
        Path | None, option("First page to write (default: FOLDER.md). The pages of papers are written beside it.")
    ] = None,
) -> None:
    """Write the pages of findings from an archive of studies."""
    probes.write_findings(folder, [*archive, *keep], out)


def gc(
    folders: Folders,
    keep: Annotated[
        str | None,
        option(
            "Weights to keep: checkpoints (all), final (exports, last and best checkpoint) or results (none) (default: "
            "key keep of each study).",
            **one_of("checkpoints", "final", "results"),
        ),
    ] = None,
    unused: Annotated[
        bool, option("Deletion of stages that no study of the store uses, in addition to weights.", "--unused")
    ] = False,
    dry_run: Annotated[
        bool,
        option(
            "Dry run: a check of the stores for damage, and a list of the runs and stages that would lose files. "
            "Nothing is deleted.",
            "--dry-run",
        ),
    ] = False,
) -> None:
    """Delete weights of finished runs.

    Weights that an unfinished cell of any study in the store still needs are kept.
    """
    probes.collect_garbage(folders, keep, unused=unused, dry_run=dry_run)
