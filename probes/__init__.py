"""probes measures models: alignment, transfer to downstream tasks, and studies of many of them.

The functions here are what the commands do (``docs/python.md``); they import what they need when they are called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from probes.study.options import SearchOptions, StudyOptions

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from probes.correlation import GroupCorrelation
    from probes.study.runner import StudyRun
    from probes.transfer.compare import Comparison
    from synthlang.config import Overrides
    from synthlang.parallel.align_command import AlignOptions
    from synthlang.parallel.error_rates import AlignmentErrors


def probe(
    model: str | Path,
    model2: str | None = None,
    *,
    probes: str | None = None,
    config: str | Path | None = None,
    language: str | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    overrides: Overrides = (),
) -> dict[str, Any]:
    """Measure how a model aligns two languages; writes ``probes.json``, figures and a page.

    Args:
        model: A finished run, a folder or a name of Hugging Face.
        model2: Another model, which reads the other language.
        probes: Names with commas between, or ``all`` (default: those of the config, else all).
        config: A YAML file, or a name of the catalogue.
        language: The other language (default: the run's first derived one).
        out: Folder of the results (default for a run: ``RUN/probes``).
        threads: Of this process (default: ``OMP_NUM_THREADS``, else the number that is fastest).
        overrides: Dotted keys and their values.

    Returns:
        The content of ``probes.json``.
    """
    from probes.measures.probe_command import probe_command, probe_names, read_probe_config
    from synthlang.config import assignments
    from synthlang.files import read_json

    options = {"language": language, "model2": model2, "probes": probe_names(probes)}
    settings = read_probe_config(_path(config), options, assignments(overrides))
    return dict(read_json(probe_command(str(model), settings, _path(out), threads) / "probes.json"))


def run_transfer(
    model: str | Path,
    task: str | None = None,
    *,
    config: str | Path | None = None,
    train: str | None = None,
    dev: str | None = None,
    test: str | None = None,
    language: str | None = None,
    target: Mapping[str, str | None] | None = None,
    seeds: int = 3,
    out: str | Path | None = None,
    save_models: str | Path | None = None,
    smoke: bool = False,
    threads: int | None = None,
    overrides: Overrides = (),
) -> dict[str, Any]:
    """Fine-tune a model on the parent and on another language, over several seeds.

    Args:
        model: A finished run, a folder or a name of Hugging Face.
        task: nli, ner, pos, parsing, slots or qa (default: the config's, else pos).
        config: A YAML file, or a name of the catalogue, ``pos/tiny``.
        train: Source of the parent's items to train on (default: the run's text).
        dev: Source of the items to choose by.
        test: Source of the items to test on.
        language: Transferred to (default: the run's first derived one).
        target: Another natural language: its own sources by split, ``{"test": SOURCE}``.
        seeds: Fine-tunings; finished ones are not run again.
        out: The JSON file (default for a run: ``RUN/transfer/TASK-LANGUAGE.json``).
        save_models: Folder for the fine-tuned models, which ``probe`` reads.
        smoke: Try it in seconds with few items; the numbers mean nothing.
        threads: Of this process (default: ``OMP_NUM_THREADS``, else the number that is fastest).
        overrides: Dotted keys and their values.

    Returns:
        The content of the JSON file: SUP, ZS and Δ = SUP − ZS of each seed, and their means with intervals.
    """
    from probes.transfer.transfer_command import read_transfer_config, transfer_command
    from synthlang.config import assignments
    from synthlang.files import read_json

    options = {"task": task, "train": train, "dev": dev, "test": test, "language": language}
    settings = read_transfer_config(_path(config), options, target or {}, assignments(overrides))
    return dict(
        read_json(transfer_command(str(model), settings, seeds, _path(out), _path(save_models), smoke, threads))
    )


def compare(
    results: Sequence[str | Path],
    *,
    metrics: Sequence[str] = (),
    tests: Sequence[str] = (),
    correction: str = "holm",
    rounds: int = 1000,
    swap: str = "prediction",
) -> Comparison:
    """Test whether results of ``run_transfer`` differ from the first one, on the predictions that they keep.

    Args:
        results: JSON files, the baseline first.
        metrics: Scores to compare (default: the task's main one).
        tests: Test sets: parent, zs, sup, … (default: all that all files have).
        correction: For the number of comparisons: holm, bh or none.
        rounds: Of the permutation test.
        swap: What that test swaps: each ``prediction``, or an ``item`` with all its seeds.
    """
    from probes.transfer.compare import compare as compared

    files, options = [Path(name) for name in results], {"correction": correction, "swap": swap}
    return compared(files, metrics=metrics, tests=tests, rounds=rounds, **options)


def align(
    texts: Sequence[str | Path],
    options: AlignOptions | None = None,
    *,
    out: str | Path | None = None,
    scores: str | Path | None = None,
) -> dict[str, AlignmentErrors]:
    """Align the words of parallel text, or score links of it.

    Args:
        texts: One file of lines ``left ||| right``, or two files with a sentence a line.
        options: The aligner, how its two directions are joined, gold links.
        out: Pharaoh file to write the links to.
        scores: JSON file to write the scores to.

    Returns:
        Error rates by the way in which the directions are joined; none without a gold standard.
    """
    from probes.statistics import alignment_interval
    from synthlang.parallel.align_command import AlignOptions, align_command

    files = [Path(name) for name in texts]
    return align_command(files, options or AlignOptions(), _path(out), _path(scores), alignment_interval)


def correlate(
    files: Sequence[str | Path],
    x: str,
    y: str,
    *,
    by: str | None = None,
    block: str | None = None,
    cluster: str | None = None,
    kind: str = "spearman,kendall,pearson",
    level: float = 0.95,
    out: str | Path | None = None,
    figure: str | Path | None = None,
) -> list[GroupCorrelation]:
    """Correlate two columns of results, with permutation p and bootstrap interval.

    Args:
        files: ``results.csv`` or ``results.parquet`` of studies, or tables like them.
        x: A column of numbers, such as ``alignment_all``.
        y: Another one, such as ``delta``.
        by: A group for each value of these columns (with commas between).
        block: Rows are compared only within these.
        cluster: Rows that belong together (default: those of a cell); ``none`` for no such column.
        kind: Of spearman, kendall and pearson, those to compute.
        level: Of the intervals.
        out: JSON file to write.
        figure: SVG file to write.
    """
    from probes.correlation import CorrelateOptions, correlate_command

    options = CorrelateOptions.of(x, y, by, block, cluster, kind, level)
    return correlate_command([Path(name) for name in files], options, _path(out), _path(figure))


def run_study(
    config: str | Path,
    out: str | Path | None = None,
    options: StudyOptions | None = None,
    *,
    overrides: Overrides = (),
) -> StudyRun:
    """Run every cell of a grid and write results, measures and ``report.html``. Finished stages are not run again.

    A script calls this function under ``if __name__ == "__main__":``, which multiprocessing needs, or with the
    executor ``in-process``.

    Args:
        config: A YAML file, or the name of a study.
        out: The study folder (default: ``runs/NAME``).
        options: How the study is run: executor, workers, store, chosen cells (default: ``StudyOptions()``).
        overrides: Dotted keys and their values.

    Returns:
        The run: its ``folder``, and its ``cells``, each with ``status`` and ``error``.

    Raises:
        SystemExit: With code 143 after SIGTERM.
    """
    from probes.commands import run_study as run
    from synthlang.config import assignments

    return run(Path(config), _path(out), options or StudyOptions(), assignments(overrides))


def search_study(
    config: str | Path,
    out: str | Path | None = None,
    options: SearchOptions | None = None,
    *,
    overrides: Overrides = (),
) -> list[FrozenTrial]:
    """Search the grid of a study for the lowest perplexity in the source language, by Optuna (extra ``search``).

    Args:
        config: A YAML file, or the name of a study.
        out: The folder of the search (default: ``runs/NAME-search``). With the same arguments the search continues.
        options: How the grid is searched: trials, sampler, successive halving (default: ``SearchOptions()``).
        overrides: Dotted keys and their values.

    Returns:
        The trials, best first: ``params`` has the labels of the axes, ``intermediate_values`` has step → perplexity.
    """
    from probes.study.search_command import search_command
    from synthlang.config import assignments

    return search_command(Path(config), _path(out), options or SearchOptions(), assignments(overrides))


def write_report(folders: Sequence[str | Path], out: str | Path | None = None) -> None:
    """Write the report of each study folder again, or with ``out`` one report on all of them."""
    from probes.commands import write_reports

    write_reports([Path(folder) for folder in folders], _path(out))


def write_findings(folder: str | Path, archive: Sequence[str | Path] = (), out: str | Path | None = None) -> None:
    """Add studies to an archive, and write the page of findings from all finished studies in it.

    Args:
        folder: The folder of the archive.
        archive: Studies to add first. A study that is not finished adds the cells that it has run.
        out: The page (default: FOLDER.md); its numbers are written beside it, to ``FOLDER-numbers.md``.
    """
    from probes.commands import write_findings_page

    write_findings_page(Path(folder), [Path(name) for name in archive], _path(out))


def collect_garbage(
    folders: Sequence[str | Path], keep: str | None = None, *, unused: bool = False, dry_run: bool = False
) -> None:
    """Delete weights of finished runs that no cell of any study of the store needs any more.

    Args:
        folders: Study folders.
        keep: ``final`` (exports, last and best weights) or ``results`` (no weights); default: what each study says.
        unused: Also stages that no cell of any study of the store has.
        dry_run: Say what would be deleted; delete nothing.
    """
    from probes.commands import collect_garbage as collect

    collect([Path(folder) for folder in folders], keep, unused, dry_run)


def check_installation() -> bool:
    """Say what is installed, what is missing and the command that mends it; whether all that is needed is there."""
    from probes.doctor import examine

    return examine()


def _path(name: str | Path | None) -> Path | None:
    return None if name is None else Path(name)
