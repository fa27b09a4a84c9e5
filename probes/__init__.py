"""Measurements of models: alignment, transfer to downstream tasks, and studies.

Each function here is the Python form of a command (``docs/python.md``) and imports its libraries when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from probes.of_studies import (
    check_data,
    check_installation,
    collect_garbage,
    fetch_data,
    list_data,
    path_of,
    push,
    run_study,
    search_study,
    write_findings,
    write_new_study,
    write_report,
)
from probes.study.options import StudyOptions
from synthlang.errors import InputError

if TYPE_CHECKING:
    from probes.correlation import GroupCorrelation
    from probes.transfer.compare import Comparison
    from synthlang.config import Overrides
    from synthlang.parallel.align_command import AlignOptions
    from synthlang.parallel.error_rates import AlignmentErrors


__all__ = [
    "align",
    "check_data",
    "check_installation",
    "collect_garbage",
    "compare",
    "correlate",
    "fetch_data",
    "list_data",
    "parse",
    "probe",
    "push",
    "run_study",
    "run_transfer",
    "search_study",
    "write_findings",
    "write_new_study",
    "write_report",
]


def parse(
    source: str,
    out: str | Path,
    *,
    engine: Literal["spacy", "stanza"] = "spacy",
    model: str | None = None,
    tokens: Literal["source", "engine"] = "source",
    morphology: bool = False,
    executor: str = "local",
    workers: int | None = None,
    slurm: Sequence[str] = (),
    wait: bool = True,
    retry: int = 0,
    job_sentences: int | None = None,
    cache: Path | None = None,
) -> dict[str, int]:
    """Parse every split of a source and write it as CoNLL-U, on all GPUs of this machine or with jobs of Slurm.

    Args:
        source: A source, as for ``synthlang.derive``.
        out: The folder to write. For Slurm, all nodes must mount it at the same path.
        engine: The parser, ``spacy`` or ``stanza``.
        model: A pipeline of spaCy (default: ``en_core_web_sm``), a language of Stanza (default: ``en``), or a folder.
        tokens: ``source`` keeps the words of the source. With ``engine`` the parser splits the text itself.
        morphology: True to annotate morphological features and lemmas, which ``conllu:OUT?feats&lemma`` reads.
        executor: ``local`` (processes, each with one GPU if there are any), ``in-process`` or ``slurm``.
        workers: Number of local processes (default: one for each GPU, else 1).
        slurm: Options of Slurm, such as ``time=120``.
        wait: True to wait for the jobs. False to submit all of them and end.
        retry: Number of further tries of a failed job.
        job_sentences: Number of sentences for each job (default: 100,000).
        cache: Folder in which parses are stored (default: ``~/.cache/synthlang/parses``, or for Slurm a temporary
            folder beside ``out``).

    Returns:
        Number of sentences of each split. The mapping is empty if ``wait`` is False.

    Raises:
        InputError: The source, the parser or Slurm is missing, the parser or a job fails, a split has no parsed
            sentence, ``out`` has other content, an option is wrong, or two options exclude each other.
        DiskError: A file cannot be written.
    """
    import synthlang
    from probes.study.executors.resources import cuda_devices

    StudyOptions(executor=executor, slurm=tuple(slurm), wait=wait).check()
    _check_parse(executor, workers, retry, job_sentences)
    if executor == "slurm":
        from probes.parse_jobs import SENTENCES, parse_on_slurm
        from synthlang.parsing.engines import engine_spec

        options: dict[str, Any] = {"slurm": tuple(slurm), "retry": retry, "wait": wait, "morphology": morphology}
        options["sentences"] = job_sentences or SENTENCES
        return parse_on_slurm(source, engine_spec(engine, model), Path(out), tokens, cache, **options)
    devices = cuda_devices() if executor == "local" and workers != 1 else []
    count = (workers or max(1, len(devices))) if executor == "local" else 1
    return synthlang.parse(
        source,
        out,
        engine=engine,
        model=model,
        tokens=tokens,
        morphology=morphology,
        workers=count,
        cache=cache,
        devices=devices,
    )


def _check_parse(executor: str, workers: int | None, retry: int, job_sentences: int | None) -> None:
    """Raise InputError if an option of ``parse`` has no effect with the executor."""
    fault = ""
    if workers is not None and executor == "slurm":
        option, fault = "--workers", "the option has no effect on jobs of Slurm"
        hint = "set the number of processors of a job, as in --slurm cpus=4"
    elif executor != "slurm" and (retry or job_sentences):
        option, fault = "--retry" if retry else "--job-sentences", "the option is for Slurm only"
        hint = "add --executor slurm"
    elif workers is not None and executor == "in-process":
        option, fault, hint = "--workers", "the option has no effect on a single process", "use --executor local"
    if fault:
        raise InputError(fault, option, hint=f"leave the option out, or {hint}", code="no_effect")


def probe(
    model: str | Path,
    model2: str | None = None,
    *,
    probes: str | None = None,
    config: str | Path | None = None,
    language: str | None = None,
    checkpoints: str | None = None,
    out: str | Path | None = None,
    threads: int | None = None,
    overrides: Overrides = (),
) -> dict[str, Any]:
    """Measure how well a model aligns two languages, and write ``probes.json``, figures and a page.

    The probes ``sentences`` and ``minimal_pairs`` also write their scores as Parquet files.

    Args:
        model: A finished run, a model folder, or a name on Hugging Face.
        model2: A second model, which reads the other language.
        probes: Comma-separated names, or ``all`` (default: the probes in the config, else words, retrieval, maps, cka
            and distances). By default, ``words`` is left out if translations of words are not known.
        config: A YAML file, or a name from the catalogue.
        language: The language to compare with the source language (default: the first derived or only other language
            of the run). It is required for a model that is not a run.
        checkpoints: ``selected``, or ``all`` to probe also the other checkpoints that the run keeps (default: the
            setting of the config, else ``selected``).
        out: The folder for the results (default for a run: ``RUN/probes``). It is required for other models.
        threads: Number of threads (default: ``OMP_NUM_THREADS``, else chosen by model width and cores).
        overrides: Dotted config keys and their new values.

    Returns:
        The content of ``probes.json``.

    Raises:
        InputError: The model, the config or the text cannot be read, an argument is wrong, or a probe fails. The
            results of probes that ended before the failure are written.
        DiskError: A file cannot be written.
    """
    from probes.measures.probe_command import probe_command, probe_names, read_probe_config
    from synthlang.config import assignments
    from synthlang.files import read_json

    options = {"language": language, "model2": model2, "probes": probe_names(probes), "checkpoints": checkpoints}
    settings = read_probe_config(path_of(config), options, assignments(overrides))
    return dict(read_json(probe_command(str(model), settings, path_of(out), threads) / "probes.json"))


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
    """Fine-tune a model on the source language and on a target language, with several seeds.

    Args:
        model: A finished run, a model folder, or a name on Hugging Face.
        task: nli, ner, pos, parsing, slots or qa (default: the task of the config, else pos).
        config: A YAML file, or a name from the catalogue such as ``pos/tiny``.
        train: The training items in the source language (default: those of the config, else from the text of the run).
        dev: The items for model selection (default: the dev split of the training items, or else their last tenth).
        test: The test items (default: the test split of the training items).
        language: The target language (default: the first derived language of the run).
        target: The items of a natural target language by split, such as ``{"test": SOURCE}``.
        seeds: Number of fine-tuning seeds. Finished seeds are not run again.
        out: The JSON file (default for a run: ``RUN/transfer/TASK-LANGUAGE.json``). It is required for other models.
            Predictions are written to ``NAME.predictions.parquet`` beside it.
        save_models: The folder for the models fine-tuned on the source language, which ``probe`` can read.
        smoke: True to test the call within seconds on few items, with one seed, and write another file (NAME-smoke).
            The scores mean nothing.
        threads: Number of threads (default: ``OMP_NUM_THREADS``, else chosen by model width and cores).
        overrides: Dotted config keys and their new values.

    Returns:
        The content of the JSON file: SUP, ZS and Δ = SUP − ZS in percent for each seed, and their means with
        intervals. Without training items in the target language, SUP and Δ are None.

    Raises:
        InputError: The model, the config or the items cannot be read or used, an argument is wrong, ``out`` has the
            result of another transfer, or training diverges.
        DiskError: A file cannot be written.
    """
    from probes.transfer.transfer_command import read_transfer_config, transfer_command
    from synthlang.config import assignments
    from synthlang.files import read_json

    options = {"task": task, "train": train, "dev": dev, "test": test, "language": language}
    settings = read_transfer_config(path_of(config), options, target or {}, assignments(overrides))
    return dict(
        read_json(transfer_command(str(model), settings, seeds, path_of(out), path_of(save_models), smoke, threads))
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
    """Test whether the scores of several transfers differ from those of the first one.

    Args:
        results: JSON files of ``run_transfer``, the baseline first. The files of predictions must be beside them.
        metrics: The scores to compare (default: the main score of the task).
        tests: The test sets to compare: parent, zs, sup, … (default: every set that all files have).
        correction: The correction for multiple comparisons: holm, bh or none.
        rounds: Number of permutations.
        swap: The unit to permute: each ``prediction``, or an ``item`` with its predictions of all seeds.

    Returns:
        The differences with intervals and p-values, with a row for each test set, metric and file except the first.

    Raises:
        InputError: There are fewer than two files, a file cannot be read, an argument is wrong, or the files differ in
            task, scoring, seeds or test items.
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
    """Align the words of parallel text, or score existing word alignments.

    Args:
        texts: One file of lines ``left ||| right``, or two files with one sentence per line.
        options: The aligner, the combination of its two directions, and the gold standard (default:
            ``AlignOptions()``).
        out: The Pharaoh file for the word alignments.
        scores: The JSON file for the scores.

    Returns:
        Error rates by method of combining the directions. The mapping is empty without a gold standard.

    Raises:
        InputError: A file cannot be read or does not match the text, the text has no sentence pair, options exclude
            each other, or the aligner is missing or fails.
        DiskError: A file cannot be written.
    """
    from probes.statistics import alignment_interval
    from synthlang.parallel.align_command import AlignOptions, align_command

    files = [Path(name) for name in texts]
    return align_command(files, options or AlignOptions(), path_of(out), path_of(scores), alignment_interval)


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
    """Correlate two columns of results, with a permutation p-value and a bootstrap interval.

    ``by``, ``block`` and ``cluster`` may each name several columns, separated by commas.

    Args:
        files: ``results.csv`` or ``results.parquet`` of studies, or other tables in these formats.
        x: The first column, such as ``alignment_all``.
        y: The second column, such as ``delta``.
        by: Grouping columns. Each group has its own coefficients.
        block: Columns that form blocks. Only rows with equal values in these columns are compared.
        cluster: Columns that mark dependent rows, or ``none`` (default: ``cell``, if present).
        kind: Comma-separated coefficients: spearman, kendall, pearson.
        level: The confidence level of the intervals.
        out: The JSON file to write.
        figure: The SVG file to write.

    Returns:
        A correlation for each group and coefficient, and one for all rows together, in which the groups are blocks. A
        single group has no correlation of all rows. With ``block``, each correlation is computed without and with
        these blocks.

    Raises:
        InputError: A file is not a table, a column is missing, no row has numbers in both columns, or an argument is
            wrong.
        DiskError: A file cannot be written.
    """
    from probes.correlation import CorrelateOptions, correlate_command

    options = CorrelateOptions.of(x, y, by, block, cluster, kind, level)
    return correlate_command([Path(name) for name in files], options, path_of(out), path_of(figure))
