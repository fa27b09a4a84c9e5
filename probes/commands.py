"""The commands on studies (run, report, findings and gc) and their output in the terminal."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.filesize import decimal

from pretrain.stopping import EXIT_CODE, Stopped, on_sigterm, watching
from probes.report.files import ReportPaths
from probes.report.folder import write_joined_report, write_report
from probes.report.terminal import score_table
from probes.stages.done import verify_store
from probes.study.cells import load_study
from probes.study.checks import MissingDataError
from probes.study.cost import StudyCost, check_cost, study_cost
from probes.study.executors.slurm import check_slurm
from probes.study.executors.slurm_options import read_options
from probes.study.gc import Collected, collect, delete_unused, stores_of
from probes.study.options import StudyOptions, sized
from probes.study.plan import plan
from probes.study.record import LOGS, STUDY, log_name
from probes.study.runner import StudyRun
from synthlang import catalogue
from synthlang.catalogue import SIZES, TINY, names, run_folder
from synthlang.data.entries import ROOT, names_of
from synthlang.data.record import SOURCES
from synthlang.errors import InputError
from synthlang.files import atomic_file, check_named, only_writer
from synthlang.progress import Display
from synthlang.smoke import NOTE, smoke_path
from synthlang.wording import first_few, plural

ROWS = 120
"""Maximum number of rows of results for which the table of conditions is printed."""
STUDIES = 3
"""Maximum number of other studies that ``gc`` lists."""
FAILED = 20
"""Maximum number of failed cells that are printed."""
TEMPLATE = "new-study.yaml"
"""File of the catalogue that ``synthlang study --init`` writes."""


def run_study(name: Path, out: Path | None, options: StudyOptions, overrides: list[str]) -> StudyRun:
    """Run a study, and print its table of results and its failed cells.

    A table of more than ROWS rows is not printed. At most FAILED failed cells are printed. With ``dry_run`` or
    ``verify``, nothing is run and the plan is printed, together with the state of the data sets (``dry_run``) or the
    damaged files (``verify``). The arguments, the result and the errors are those of ``probes.run_study``.
    """
    try:
        run = _opened(name, out, options, overrides)
    except MissingDataError:
        if options.dry_run and not overrides:
            _say_requirements(sized(name, options.size))
        raise
    if options.verify and run.store.root.exists():
        _say_damage(run.store.root)
        run.look()
    if options.dry_run or options.verify:
        _show_plan(run)
        if options.dry_run:  # after the plan, which needs no data
            config = sized(name, options.size)
            _say_data(config, names_of(run.inputs))
            with _naming_tiny(config, overrides):
                run.check_cells()
        return run
    check_cost(run, name)
    _say_other_sources(run, sized(name, options.size))
    study, out = run.study, run.folder
    some = "" if len(run.chosen) == len(run.cells) else f"{len(run.chosen):,} of "
    cells = some + plural(len(run.cells), "cell")
    with Display() as display, on_sigterm() as stop, watching(stop):
        if options.smoke:
            display.message(NOTE)
        display.message(f"study {study.name}: {cells} × {plural(len(study.seeds), 'fine-tuning seed')} → {out}")
        try:
            paths = run.run(display.report, display.message)
        except Stopped:
            display.message("stopped; run the same command again to continue")
            raise SystemExit(EXIT_CODE) from None
    console = Console()
    _say_scores(console, run, out)
    _say_failed(console, run, out)
    _say_where(console, out, paths)
    return run


def _say_failed(console: Console, run: StudyRun, out: Path) -> None:
    """Print the errors of the first FAILED failed cells, and the number of further failed cells."""
    failed = [cell for cell in run.cells if cell.status == "failed"]
    for cell in failed[:FAILED]:
        _say(console, f"failed {cell.name}: {cell.error} (log: {out / LOGS / log_name(cell.name)})", "red")
    if len(failed) > FAILED:
        _say(console, f"… and {len(failed) - FAILED} more, whose logs are in {out / LOGS}", "red")


def _say_scores(console: Console, run: StudyRun, out: Path) -> None:
    """Print the table of conditions without excluded runs, and a line about the excluded ones."""
    from probes.report.data import read_study  # imports pandas
    from probes.report.printed import Printed
    from probes.report.scores import scores_of

    study = read_study(out)
    scores = scores_of(study)
    if scores.conditions and len(scores.rows) <= ROWS:
        console.print(score_table(scores, Printed(run.study.papers)))
    if study.told_failed:
        _say(console, study.told_failed, "yellow")


def _show_plan(run: StudyRun) -> None:
    if run.changed:
        _say(Console(), run.changed)
    Console().print(plan(run.study, run.graph.chosen(run.chosen), run.store, run.done))
    for line in study_cost(run).lines() if run.to_do() else ():
        _say(Console(), line)


def _say_requirements(config: Path) -> None:
    """Print the cost of a study of the catalogue whose cells cannot be built, because a language needs missing data."""
    from probes.study.requirements import requirements_of

    if config.as_posix() in names("studies"):
        needed = requirements_of(config.as_posix())
        for line in StudyCost(needed.costs, needed.device, shutil.disk_usage(Path.cwd()).free).lines():
            _say(Console(), line)
        _say_data(config, [item.name for item in needed.data])


def _say_data(config: Path, data: Sequence[str]) -> None:
    """Print how many of the data sets are present, and a line about each missing data set."""
    from synthlang.data.sizes import size_text
    from synthlang.data.state import items, left_line

    size = config.name if config.name in SIZES else None
    found = items(data, Path(ROOT), size)
    missing = [item for item in found if not item.is_here]
    if found:
        _say(Console(), f"data: {len(found) - len(missing)} of {plural(len(found), 'data set')} are there")
    for item in missing:
        cost = f"{size_text(item.origin.download)}, {size_text(item.origin.disk)} on disk, {item.origin.licence}"
        told = f"data to fetch: {item.label} ({cost})" if item.get == "fetch" else f"data: {left_line(item)}"
        _say(Console(), told)


def _say_other_sources(run: StudyRun, config: Path) -> None:
    """Warn of data sets that were fetched for another size, from another source."""
    from synthlang.data.state import items

    if config.name not in SIZES or not Path(ROOT, SOURCES).exists():
        return
    for item in items(names_of(run.inputs), Path(ROOT), config.name):
        if item.is_here and item.state not in ("here", "here, by hand"):
            told = f"warning: {ROOT}/{item.name} is {item.state}, which is not that of this size (docs/data.md)"
            _say(Console(stderr=True), told, "yellow")


def _say_damage(root: Path) -> None:
    """Verify the files of a store by their checksums, and print the damage of each folder."""
    for one in (found := verify_store(root)):
        _say(Console(), str(one), "red")
    _say(Console(), f"{root}: {plural(len(found), 'folder')} with damage" if found else f"{root}: no file is damaged")


def _opened(name: Path, out: Path | None, options: StudyOptions, overrides: list[str]) -> StudyRun:
    """Load and check a study without writing anything.

    Raises:
        InputError: The study or an option is wrong, or data are missing.
    """
    options.check()
    read_options(options.slurm)
    config = sized(name, options.size)
    folder = out or run_folder(config)
    with _naming_tiny(config, overrides):
        settings, cells = load_study(config, overrides, options.smoke)
        run = StudyRun(settings, cells, smoke_path(folder) if options.smoke else folder, options)
    if options.executor == "slurm" and run.to_do():
        check_slurm(run.folder)
    return run


def write_new_study(path: Path) -> None:
    """Write the commented template of a study to a path, and print the next commands.

    The commands in the comments contain the path. The errors are those of ``probes.write_new_study``.
    """
    if path.exists():
        raise InputError("exists already", path, hint="name another file", code="exists")
    text = (catalogue.folder() / TEMPLATE).read_text(encoding="utf-8")
    with atomic_file(path, "w") as handle:
        handle.write(text.replace("FILE", str(path)))
    _say(Console(), f"written: {path}")
    _say(Console(), f"next: synthlang study {path} --dry-run, or --smoke to try it")


@contextmanager
def _naming_tiny(config: Path, overrides: Sequence[str] = ()) -> Iterator[None]:
    """Add the remedies to an error about missing data or a missing file.

    The remedies are the command that fetches the data, and a size that needs no data.
    """
    try:
        yield
    except InputError as error:
        natural = config.name in SIZES and config.name != TINY
        if isinstance(error, MissingDataError):
            error.hint = f"run: {fetch_command(config, error.names if overrides else ())}"
        is_data = bool(error.absent) or isinstance(error, MissingDataError)
        if is_data and natural and f"{config.parent.as_posix()}/{TINY}" in names("studies"):
            raise error.with_hint(f"--size {TINY} runs without data") from error
        raise


def fetch_command(config: Path, names: Sequence[str] = ()) -> str:
    """Return the command that fetches the data sets ``names``, or by default all data of the study ``config``.

    >>> fetch_command(Path("align_mlm-table3/lab")), fetch_command(Path("my.yaml")), fetch_command(Path("a/lab"), ["b"])
    ('synthlang data fetch --for align_mlm-table3 --size lab', 'synthlang data fetch --for my.yaml', \
'synthlang data fetch b --size lab')
    """
    study, size = (config.parent, config.name) if config.name in SIZES else (config, "")
    what = " ".join(names) if names else f"--for {study.as_posix()}"
    return f"synthlang data fetch {what}" + (f" --size {size}" if size else "")


def write_reports(folders: list[Path], out: Path | None = None) -> None:
    """Write the reports of study folders again, or one joint report in ``out``, and print the path of each.

    The errors are those of ``probes.write_report``.
    """
    _check_studies(folders)
    say = partial(_say, Console(stderr=True))
    if out is not None:
        _say_where(Console(), out, write_joined_report(folders, out, say))
        return
    for folder in folders:
        _say_where(Console(), folder, write_report(folder, say))


def write_findings_page(folder: Path, keep: list[Path], out: Path | None = None) -> None:
    """Add the studies ``keep`` to an archive, then write the pages of findings from it, and print their paths.

    The other arguments and the errors are those of ``probes.write_findings``.
    """
    from probes.report.archive import archive_studies
    from probes.report.findings import STUDIES, check_page, write_findings  # imports matplotlib

    check_named(folder)
    page = out or folder.with_name(f"{folder.name}.md")
    check_page(page)
    _check_studies(keep)
    console = Console()
    with only_writer(folder):
        for kept in archive_studies(keep, folder / STUDIES):
            waiting = f", without {plural(kept.waiting, 'cell')} that did not run yet" if kept.waiting else ""
            _say(console, f"archived: {kept.folder} ({decimal(kept.size)}{waiting})")
        found = write_findings(folder, page)
    several = len(found.studies) > 1
    told = f"{len(found.studies)} {'studies' if several else 'study'}, {plural(len(found.figures), 'figure')}"
    _say(console, f"{plural(len(found.pages), 'page')}: {found.page} and beside it ({told})")


def _check_studies(folders: list[Path]) -> None:
    for folder in folders:
        if not (folder / STUDY).exists():
            reason, hint = f"is not a study folder: {STUDY} is missing", "name the folder that synthlang study wrote"
            raise InputError(reason, folder, hint=hint, code="missing")


def collect_garbage(folders: list[Path], keep: str | None, unused: bool, dry_run: bool) -> None:
    """Delete weights by policy, and unused stages on request, and print the freed space.

    The arguments and the errors are those of ``probes.collect_garbage``.
    """
    _check_studies(folders)
    found = collect(folders, keep, dry_run)
    console = Console()
    for root in stores_of(folders) if dry_run else ():
        _say_damage(root)
    for freed in found.freed:
        _say(console, f"{freed.run}: {decimal(freed.size)} (keep: {freed.keep})")
    would = "would free" if dry_run else "freed"
    _say(console, f"{would} {decimal(found.size)} of {plural(len(found.freed), 'run')}{_kept(found)}")
    if unused:
        gone = delete_unused(folders, dry_run)
        for one in gone:
            _say(console, f"{one.folder}: {decimal(one.size)} (no cell uses {one.label})")
        size = decimal(sum(one.size for one in gone))
        _say(console, f"{would} {size} of {plural(len(gone), 'stage')} that no cell uses")


def _kept(found: Collected) -> str:
    """Return the reasons for keeping runs: unfinished cells, policies of other studies, and paths in studies."""
    kept = f"; {found.needed} more are kept for unfinished cells" if found.needed else ""
    policies = [f"{folder.name}: keep {policy}" for folder, policy in found.keepers.items()]
    for count, why, of in (
        (found.kept_runs, "by other studies of the store", policies),
        (found.named_runs, "because studies name them by path", [folder.name for folder in found.namers]),
    ):
        kept += f"; {plural(count, 'run')} kept {why} ({first_few(of, STUDIES)})" if of else ""
    return kept


def _say_where(console: Console, folder: Path, paths: ReportPaths) -> None:
    if (folder / "results.csv").exists():
        _say(console, f"results: {folder / 'results.csv'}")
    _say(console, f"report:  {paths.html.resolve()}")


def _say(console: Console, text: str, style: str | None = None) -> None:
    console.print(text, style=style, soft_wrap=True, markup=False, emoji=False, highlight=False if style else None)
