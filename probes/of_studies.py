"""The functions of ``probes`` that work on studies, their data sets and the installation (``docs/python.md``).

Like the other functions of the package, they import their libraries when they are called.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from probes.study.options import SearchOptions, StudyOptions

if TYPE_CHECKING:
    from optuna.trial import FrozenTrial

    from probes.study.runner import StudyRun
    from synthlang.config import Overrides
    from synthlang.data.state import Item


def path_of(name: str | Path | None) -> Path | None:
    """Return a path, or None for None."""
    return None if name is None else Path(name)


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

    return run(Path(config), path_of(out), options or StudyOptions(), assignments(overrides))


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

    return search_command(Path(config), path_of(out), options or SearchOptions(), assignments(overrides))


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

    return run(names, path_of(study), size, Path(to))


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
    more = {"keep_downloads": keep_downloads, "steps": steps}
    return run(names, path_of(study), size, Path(to), ask, source=mirror, workers=workers, **more)


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

    write_reports([Path(folder) for folder in folders], path_of(out))


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

    write_findings_page(Path(folder), [Path(name) for name in archive], path_of(out))


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
