"""Options of ``synthlang study`` and ``synthlang search``: one object from the command to the run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from synthlang.errors import InputError

EXECUTORS = ("local", "in-process", "slurm")
SAMPLERS = ("random", "tpe")


@dataclass(frozen=True)
class StudyOptions:
    """Options of ``synthlang study``.

    Attributes:
        size: Size of a study of the catalogue: ``paper``, ``lab`` or ``tiny``.
        store: Folder of the stages, which studies may share (default: the store of the last start, else
            ``OUT/stages``).
        executor: ``local`` (processes), ``in-process`` or ``slurm``.
        workers: Number of processes (default: one for each CUDA device, else one for each core, and at most one for
            each cell).
        threads: Threads in each process (default: OMP_NUM_THREADS, else chosen by the width of the models and the
            number of cores). Jobs of Slurm use ``cpus`` of their options instead.
        retry: Number of further tries of a failed stage.
        only: Texts that choose cells: a part of the name, or ``AXIS=LABEL``. Other cells keep their results.
        slurm: Options of Slurm, such as ``partition=gpu``.
        wait: True to wait for the jobs of Slurm. False to submit all jobs and end.
        dry_run: True to print the plan and the forecast, and run nothing.
        verify: True to read every file of the store, print the damaged ones and the plan, and run nothing.
        yes: True to start a study whose forecast exceeds a week or the free disk.
        smoke: True to shrink every stage to seconds and write to ``OUT-smoke``. The numbers mean nothing.
    """

    size: str | None = None
    store: Path | None = None
    executor: str = "local"
    workers: int | None = None
    threads: int | None = None
    retry: int = 0
    only: tuple[str, ...] = ()
    slurm: tuple[str, ...] = ()
    wait: bool = True
    dry_run: bool = False
    verify: bool = False
    yes: bool = False
    smoke: bool = False

    def check(self) -> None:
        """Raise InputError for an unknown executor, and for options of Slurm with another executor."""
        if self.executor not in EXECUTORS:
            hint = f"choose one of {', '.join(EXECUTORS)}"
            raise InputError(f"unknown executor {self.executor!r}", "--executor", hint=hint, code="unknown")
        if self.executor != "slurm" and (self.slurm or not self.wait):
            option = "--slurm" if self.slurm else "--no-wait"
            raise InputError("the option is for Slurm only", option, hint="add --executor slurm", code="no_effect")


@dataclass(frozen=True)
class SearchOptions:
    """Options of ``synthlang search``.

    Attributes:
        size: Size of a study of the catalogue: ``paper``, ``lab`` or ``tiny``.
        store: Folder of the stages, which studies may share (default: ``OUT/stages``).
        trials: Number of cells to try, including the cells of earlier starts.
        first_rung: Training steps before the first rung, or None to train every trial to the end.
        reduction: Reduction factor η: the best 1/η of the trials of each rung continue.
        sampler: ``random`` (without replacement) or ``tpe`` (tree-structured Parzen estimator).
        seed: Seed of the sampler.
    """

    size: str | None = None
    store: Path | None = None
    trials: int = 20
    first_rung: int | None = None
    reduction: int = 3
    sampler: str = "random"
    seed: int = 0

    def check(self) -> None:
        """Raise InputError for an unknown sampler and for numbers out of range."""
        if self.sampler not in SAMPLERS:
            hint = f"choose {' or '.join(SAMPLERS)}"
            raise InputError(f"unknown sampler {self.sampler!r}", "--sampler", hint=hint, code="unknown")
        least = (("--trials", self.trials, 1), ("--first-rung", self.first_rung, 1), ("--reduction", self.reduction, 2))
        for option, value, minimum in least:
            if value is not None and value < minimum:
                raise InputError(f"must be at least {minimum}, not {value}", option, code="range")

    def rungs(self, steps: int) -> list[int]:
        """Return the rungs of a run of ``steps`` steps: the steps before the end at which trials are compared.

        >>> SearchOptions(first_rung=10, reduction=3).rungs(90)
        [10, 30]
        """
        found, rung = [], self.first_rung or steps
        while rung < steps:
            found.append(rung)
            rung *= self.reduction
        return found


def sized(config: Path, size: str | None) -> Path:
    """Return the catalogue name ``config/size``, or ``config`` itself if no size is given.

    Raises:
        InputError: A size is given for a study in a file.
    """
    from synthlang.catalogue import YAML  # `import probes` must be quick: an early Ctrl-C ends in one line

    if size is None:
        return config
    if config.suffix in YAML:
        raise InputError("a study in a file has no sizes", config, hint="leave --size out", code="no_effect")
    return config / size
