"""Measurements of models: alignment, transfer to downstream tasks, and studies.

Each function here is the Python form of a command (``docs/python.md``) and imports its libraries when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from probes.study.options import SearchOptions, StudyOptions
from synthlang.errors import InputError

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from probes.correlation import GroupCorrelation
    from probes.study.runner import StudyRun
    from probes.transfer.compare import Comparison
    from synthlang.config import Overrides
    from synthlang.data.state import Item
    from synthlang.parallel.align_command import AlignOptions
    from synthlang.parallel.error_rates import AlignmentErrors


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
        from probes.parse_jobs import SENTENCES, ParseJobs, parse_on_slurm
        from synthlang.parsing.engines import engine_spec

        jobs = ParseJobs(job_sentences or SENTENCES, tuple(slurm), retry, wait)
        return parse_on_slurm(source, engine_spec(engine, model), Path(out), tokens, cache, jobs, morphology)
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
    """Check that the options of ``parse`` have an effect with the executor.

    Raises:
        InputError: An option has no effect.
    """
    if workers is not None and executor == "slurm":
        reason = "the option has no effect on jobs of Slurm"
        hint = "leave the option out, or set the number of processors of a job, as in --slurm cpus=4"
        raise InputError(reason, "--workers", hint=hint, code="no_effect")
    if executor != "slurm" and (retry or job_sentences):
        option = "--retry" if retry else "--job-sentences"
        hint = "leave the option out, or add --executor slurm"
        raise InputError("the option is for Slurm only", option, hint=hint, code="no_effect")
    if workers is not None and executor == "in-process":
        reason, hint = "the option has no effect on a single process", "leave the option out, or use --executor local"
        raise InputError(reason, "--workers", hint=hint, code="no_effect")


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
    """Test whether the scores of several transfers differ from those of the first one.

    Args:
        results: JSON files of ``run_transfer``, the baseline first. The files of predictions must be beside them.
        metrics: The scores to compare (default: the main score of the task).
        tests: The test sets to compare: parent, zs, sup, … (default: the sets in all files).
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
    return correlate_command([Path(name) for name in files], options, _path(out), _path(figure))


def run_study(
    config: str | Path,
    out: str | Path | None = None,
    options: StudyOptions | None = None,
    *,
    overrides: Overrides = (),
) -> StudyRun:
    """Run every cell of a grid, and write results, measures and ``report.html``.

    With the options ``dry_run`` or ``verify``, the plan is printed and nothing is run. Finished stages are not run
    again. A failed cell does not end the study.

    In a script, call this function under ``if __name__ == "__main__":``, because multiprocessing imports the script
    again. The executor ``in-process`` does not need this guard.

    Args:
        config: A YAML file, or the name of a study.
        out: The study folder (default: ``runs/NAME``).
        options: Executor, workers, store, selected cells and more (default: ``StudyOptions()``).
        overrides: Dotted config keys and their new values.

    Returns:
        The run with its ``folder`` and its ``cells``. Each cell has a ``status`` and an ``error``.

    Raises:
        InputError: The study or an option is wrong, data are missing, or the forecast is too high (see
            ``StudyOptions.yes``).
        DiskError: A file cannot be written.
        SystemExit: With code 143 after SIGTERM.
    """
    from probes.commands import run_study as run
    from synthlang.config import assignments

    return run(Path(config), _path(out), options or StudyOptions(), assignments(overrides))


def push(
    folder: str | Path,
    repo: str | None = None,
    *,
    to: str | None = None,
    public: bool = False,
    partial: bool = False,
    dry_run: bool = False,
) -> list[str]:
    """Upload a study, a run or a data set to the hub.

    A study becomes a repository for each model, a data set with its results, and a collection that joins them. Files
    that the hub already has with equal content are skipped.

    Args:
        folder: A study, a data set folder of ``derive``, a finished run, or ``RUN/export/LANGUAGE``.
        repo: OWNER/NAME, for all folders but a study.
        to: OWNER or OWNER/PREFIX of the repositories of a study (default of the prefix: the study's name).
        public: True to make new repositories public. They are private by default.
        partial: True to leave out unfinished cells, damaged models and models without weights.
        dry_run: True to print what would be uploaded, and upload nothing.

    Returns:
        The addresses of the repositories and, last, of the collection of a study. With ``dry_run``, the list is empty.

    Raises:
        InputError: ``repo`` or ``to`` does not fit the folder, the folder is unfinished or damaged, or the upload
            fails.
    """
    from probes.push_command import push as run

    return run(Path(folder), repo, to, public, partial, dry_run)


def write_new_study(path: str | Path) -> None:
    """Write a small study file with comments, as a starting point for a new study.

    Raises:
        InputError: The file exists.
        DiskError: The file cannot be written.
    """
    from probes.commands import write_new_study as write

    write(Path(path))


def search_study(
    config: str | Path,
    out: str | Path | None = None,
    options: SearchOptions | None = None,
    *,
    overrides: Overrides = (),
) -> list[FrozenTrial]:
    """Search the grid of a study for the lowest perplexity in the source language.

    Optuna is required: ``pip install 'synthlang-study[search]'``.

    Args:
        config: A YAML file, or the name of a study.
        out: The search folder (default: ``runs/NAME-search``). A call with the same arguments continues the search.
        options: Trials, sampler, successive halving and more (default: ``SearchOptions()``).
        overrides: Dotted config keys and their new values.

    Returns:
        The trials, best first. The attribute ``params`` maps axes to labels. The attribute ``intermediate_values`` maps
        steps to perplexity.

    Raises:
        InputError: The study or an option is wrong, an override has no effect, data are missing, or Optuna is not
            installed.
        DiskError: A file cannot be written.
        SystemExit: With code 143 after SIGTERM.
    """
    from probes.study.search import search_command
    from synthlang.config import assignments

    return search_command(Path(config), _path(out), options or SearchOptions(), assignments(overrides))


def list_data(
    names: Sequence[str] = (), study: str | Path | None = None, *, size: str | None = None, to: str | Path = "data"
) -> list[Item]:
    """Print a table of data sets with their state, size and licence, and return them.

    Args:
        names: Names of the catalogue (default: all, or those of the study).
        study: A study whose data sets are added: a YAML file, or a name.
        size: Size of the study. ``lab`` has free sources only.
        to: The folder of data.

    Raises:
        InputError: A name is unknown, the study cannot be read, or the record of the folder is damaged. The size is
            unknown, is ``tiny`` without a study, or is given for a study in a file.
    """
    from probes.data_commands import list_data as run

    return run(names, _path(study), size, Path(to))


def fetch_data(
    names: Sequence[str] = (),
    study: str | Path | None = None,
    *,
    size: str | None = None,
    to: str | Path = "data",
    source: str | Path | None = None,
    keep_downloads: bool = False,
    steps: bool = True,
    workers: int = 1,
    ask: bool = False,
) -> list[str]:
    """Fetch data sets by name or by study (see ``synthlang.data.fetch``), and return the names of the new data sets.

    Args:
        names: Names of the catalogue (default: only those of the study).
        study: A study whose data sets are added: a YAML file, or a name.
        size: Size of the study. ``lab`` has free sources only.
        to: The folder of data.
        source: Mirror in place of the sources: a folder, or an address.
        keep_downloads: True to keep the downloads, which then serve as a mirror.
        steps: False to leave out the steps after the download.
        workers: Number of worker processes of the steps.
        ask: True to request consent on the terminal before anything is downloaded. If consent is refused, the result is
            empty.

    Raises:
        InputError: Neither a name nor a study is given, a name is unknown, the study cannot be read, a data set cannot
            be fetched, or with ``ask`` there is no terminal. The size is unknown, is ``tiny`` without a study, or is
            given for a study in a file.
    """
    from probes.data_commands import fetch_data as run

    mirror = None if source is None else str(source)
    options = {"source": mirror, "keep_downloads": keep_downloads, "steps": steps, "workers": workers}
    return run(names, _path(study), size, Path(to), ask, **options)


def check_data(names: Sequence[str] = (), *, to: str | Path = "data") -> bool:
    """Check data sets, print a line about each data set, and return True if all are undamaged and readable.

    See ``synthlang.data.check`` for the checks. If the folder has no data set, the result is True.

    Args:
        names: Names of the catalogue (default: all data sets that are in the folder).
        to: The folder of data.

    Raises:
        InputError: A name is unknown, or the record of the folder is damaged.
    """
    from probes.data_commands import check_data as run

    return run(names, Path(to))


def write_report(folders: Sequence[str | Path], out: str | Path | None = None) -> None:
    """Write the report of each study folder again, or one joint report in ``out``.

    Raises:
        InputError: A folder is not a study folder, its results cannot be read, or a report cannot be made from them.
        DiskError: A file cannot be written.
    """
    from probes.commands import write_reports

    write_reports([Path(folder) for folder in folders], _path(out))


def write_findings(folder: str | Path, archive: Sequence[str | Path] = (), out: str | Path | None = None) -> None:
    """Write the pages of findings from an archive of studies.

    Args:
        folder: The folder of the archive.
        archive: Study folders to add first. An unfinished study adds its finished cells.
        out: The first page (default: FOLDER.md). The other pages are written beside it.

    Raises:
        InputError: A folder in ``archive`` is not a study folder, the archive has no studies or is damaged, another
            process writes it, or a page would replace a file that this function did not write.
        DiskError: A file cannot be written.
    """
    from probes.commands import write_findings_page

    write_findings_page(Path(folder), [Path(name) for name in archive], _path(out))


def collect_garbage(
    folders: Sequence[str | Path], keep: str | None = None, *, unused: bool = False, dry_run: bool = False
) -> None:
    """Delete the weights of finished runs, unless an unfinished cell of a study in the store needs them.

    The weights of a run also stay if the policy of another study in the store keeps them, or if a study names the run
    by its path.

    Args:
        folders: Study folders.
        keep: ``checkpoints`` (all weights), ``final`` (exports, last and best weights) or ``results`` (no weights).
            The default is the key ``keep`` of each study.
        unused: True to also delete stages that no study in the store uses.
        dry_run: True to verify the store and print the runs whose weights would be deleted, but delete nothing.

    Raises:
        InputError: A folder is not a study folder, a record of a study or of its store cannot be read, or ``keep`` is
            unknown.
    """
    from probes.commands import collect_garbage as collect

    collect([Path(folder) for folder in folders], keep, unused, dry_run)


def check_installation() -> bool:
    """Print the required packages and their installed versions, and facts about the machine.

    Returns:
        True if all required packages are installed in a required version. Packages of extras do not count.

    Raises:
        InputError: The program itself is not installed as a package.
    """
    from probes.doctor import examine

    return examine()


def _path(name: str | Path | None) -> Path | None:
    return None if name is None else Path(name)
