"""The files of a report: report.html, report.md, tables/*.csv and *.tex, figures/*.svg; report.json lists them.

Only what that list names is ever deleted. Reports of earlier versions have none; they are known by the end of their
page, and what has the kind of a report's file in their two folders is theirs.
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
from synthlang.files import atomic_file, read_json, write_json

LIST = "report.json"
HTML, MARKDOWN, FIGURES, TABLES = "report.html", "report.md", "figures", "tables"
MADE_BY = "synthlang report"
END = f"Made by {MADE_BY}.</footer>\n</body>\n</html>\n"
"""Of the page of every version."""
PROGRAM = Path(__file__).resolve().parents[2]
PACKAGES = ("probes", "pretrain", "synthlang")
READ = (STUDY, "results.csv", "results.parquet", "measures.csv", "measures.parquet")


@dataclass(frozen=True)
class ReportPaths:
    """Where the report of a folder lies."""

    folder: Path

    @property
    def html(self) -> Path:
        return self.folder / HTML

    @property
    def markdown(self) -> Path:
        return self.folder / MARKDOWN

    @property
    def figures(self) -> Path:
        return self.folder / FIGURES

    @property
    def tables(self) -> Path:
        return self.folder / TABLES


def check_folder(folder: Path) -> None:
    """InputError unless ``folder`` is missing, empty, or holds a report that was written here before."""
    if folder.exists() and not folder.is_dir():
        raise InputError("is a file; name a folder for the report", folder)
    if folder.exists() and any(folder.iterdir()) and not _written(folder):
        raise InputError("is not empty and holds no report of synthlang; name a new or empty folder", folder)


def write_files(folder: Path, texts: Mapping[str, str]) -> ReportPaths:
    """Write these files of a report; what a former one had does not stay behind, files of others do."""
    former = _written(folder)
    _list(folder, former | texts.keys())  # before any is there: killed in between, all are still known as ours
    for place in (folder / FIGURES, folder / TABLES):
        if place.exists() and not place.is_dir():
            raise InputError("is a file, where the report needs a folder", place)
        place.mkdir(exist_ok=True)
    for name in former - texts.keys():
        if not (folder / name).is_dir():
            (folder / name).unlink(missing_ok=True)
    for name, text in texts.items():
        with atomic_file(folder / name, "w") as handle:
            handle.write(text)
    _list(folder, texts.keys())
    return ReportPaths(folder)


def _list(folder: Path, names: Collection[str]) -> None:
    write_json(folder / LIST, {"made_by": MADE_BY, "files": sorted(names)})


def _written(folder: Path) -> set[str]:
    """The files of the report in ``folder``; none where there is no report."""
    try:
        record: Any = read_json(folder / LIST) if (folder / LIST).is_file() else None
        if isinstance(record, dict) and record.get("made_by") == MADE_BY:
            return {name for name in map(str, record["files"]) if _is_report_file(name)}
        if not (folder / HTML).read_text(encoding="utf-8").endswith(END):
            return set()
    except (InputError, OSError, UnicodeDecodeError, KeyError, TypeError):
        return set()
    kinds = (f"{FIGURES}/*.svg", f"{TABLES}/*.csv", f"{TABLES}/*.tex")
    return {HTML, MARKDOWN, *(str(path.relative_to(folder)) for kind in kinds for path in folder.glob(kind))}


def _is_report_file(name: str) -> bool:
    """Whether a report may have a file of this name: the list may have been written by anyone."""
    place, _, file = name.rpartition("/")
    return name in (HTML, MARKDOWN) or (place in (FIGURES, TABLES) and file not in ("", ".", ".."))


def newest_report(folder: Path, config: Mapping[str, Any]) -> ReportPaths | None:
    """The report in ``folder`` if it was written after all that it is made of: the study's record and tables, the
    claims and papers that its ``config`` names, and this program. None if it is older, or a file of it is gone."""
    try:
        named = [folder / str(name) for name in read_json(folder / LIST)["files"]]
        written = (folder / LIST).stat().st_mtime_ns
        newest = max(path.stat().st_mtime_ns for path in _read(folder, config))
    except (InputError, OSError, KeyError, TypeError):
        return None  # whatever is wrong with it, it is written again
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
