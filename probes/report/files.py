"""Files of a report: report.html, report.md, tables/*.csv and *.tex, figures/*.svg, and report.json, which lists them.

Only files in this list are deleted when the report is written again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.claims.papers import claims_files, names_in, tables_file
from probes.study.record import STUDY
from synthlang import catalogue
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_json, write_json, writing

LIST = "report.json"
HTML, MARKDOWN, FIGURES, TABLES = "report.html", "report.md", "figures", "tables"
MADE_BY = "synthlang report"
FREE = "name a new or empty folder for the report"
PROGRAM = Path(__file__).resolve().parents[2]
PACKAGES = ("probes", "pretrain", "synthlang")
READ = (STUDY, "results.csv", "results.parquet", "measures.csv", "measures.parquet")


@dataclass(frozen=True)
class ReportPaths:
    """Paths of the report in a folder."""

    folder: Path

    @property
    def html(self) -> Path:
        """The page as HTML."""
        return self.folder / HTML

    @property
    def markdown(self) -> Path:
        """The page as Markdown."""
        return self.folder / MARKDOWN

    @property
    def figures(self) -> Path:
        """The folder of the figures (SVG)."""
        return self.folder / FIGURES

    @property
    def tables(self) -> Path:
        """The folder of the tables (CSV and LaTeX)."""
        return self.folder / TABLES


def check_folder(folder: Path) -> None:
    """Check that a report may be written to ``folder``.

    Raises:
        InputError: The path is a file, or a folder that is not empty and holds no report.
    """
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file, not a folder", folder, hint=FREE, code="exists")
    if folder.exists() and any(folder.iterdir()) and not report_files(folder):
        reason = f"is not empty, and its {LIST} is missing or lists no report of synthlang"
        raise InputError(reason, folder, hint=FREE, code="exists")


def write_files(folder: Path, texts: Mapping[str, str]) -> ReportPaths:
    """Write the files of a report, delete other files of the former report, and return the paths of the report.

    Args:
        folder: The folder of the report, which is made if it does not exist.
        texts: Name of each file, relative to the folder → content.

    Raises:
        DiskError: A file cannot be written.
    """
    former = report_files(folder)
    _list(folder, former | texts.keys())  # first, so that after a kill all files are known
    for place in (folder / FIGURES, folder / TABLES):
        with writing(place):
            place.mkdir(exist_ok=True)
    for name in former - texts.keys():
        (folder / name).unlink(missing_ok=True)
    for name, text in texts.items():
        with atomic_file(folder / name, "w") as handle:
            handle.write(text)
    _list(folder, texts.keys())
    return ReportPaths(folder)


def _list(folder: Path, names: Collection[str]) -> None:
    write_json(folder / LIST, {"made_by": MADE_BY, "files": sorted(names)})


def report_files(folder: Path) -> set[str]:
    """Return the names of the files that the report in ``folder`` lists, or no names if there is no report."""
    try:
        record: Any = read_json(folder / LIST)
        return {name for name in map(str, record["files"]) if record["made_by"] == MADE_BY and _is_report_file(name)}
    except (InputError, KeyError, TypeError):
        return set()


def _is_report_file(name: str) -> bool:
    """Return whether a report may have a file of this name. Users can edit the list, so its names are checked."""
    place, _, file = name.rpartition("/")
    return name in (HTML, MARKDOWN) or (place in (FIGURES, TABLES) and file not in ("", ".", ".."))


def newest_report(folder: Path, config: Mapping[str, Any]) -> ReportPaths | None:
    """Return the report in ``folder``, or None if there is no report or the report is not up to date.

    A report is up to date if none of its files is missing and no source is newer. Sources are the tables of the study,
    the claims and papers that ``config`` names, and the program itself.
    """
    try:
        named = [folder / str(name) for name in read_json(folder / LIST)["files"]]
        written = (folder / LIST).stat().st_mtime_ns
        newest = max(path.stat().st_mtime_ns for path in _read(folder, config))
    except (InputError, OSError, KeyError, TypeError):
        return None  # an unreadable report is written again
    return ReportPaths(folder) if newest <= written and named and all(path.is_file() for path in named) else None


def _read(folder: Path, config: Mapping[str, Any]) -> Iterator[Path]:
    yield from (folder / name for name in READ)
    for name in names_in(config.get("claims")):
        yield from claims_files(name)
    for name in names_in(config.get("paper")):
        yield tables_file(name)
    yield from catalogue.folder().rglob("*.yaml")
    for package in PACKAGES:
        yield from (PROGRAM / package).rglob("*.py")
