"""The files of a report: report.html, report.md, tables/*.csv and *.tex, figures/*.svg; report.json lists them.

Only what that list names is ever deleted. Reports of earlier versions have none; they are known by the end of their
page, and what has the kind of a report's file in their two folders is theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from probes.figures.drawing import standalone_svg
from probes.report.latex import csv_table, latex_table
from probes.report.page import Figures, Section, Table, flat, html_page, markdown_page
from probes.study.judged.claims import claims_files
from probes.study.judged.papers import CONFIGS, names_in, tables_file
from probes.study.record import STUDY
from synthlang.errors import InputError
from synthlang.files import atomic_file, read_json, write_json

LIST = "report.json"
HTML, MARKDOWN, FIGURES, TABLES = "report.html", "report.md", "figures", "tables"
MADE_BY = "synthlang report"
END = f"Made by {MADE_BY}.</footer>\n</body>\n</html>\n"
"""Of the page of every version."""


@dataclass(frozen=True)
class ReportPaths:
    """Where the report lies."""

    html: Path
    markdown: Path
    figures: Path
    tables: Path


def paths_of(folder: Path) -> ReportPaths:
    """Of the report in ``folder``."""
    return ReportPaths(folder / HTML, folder / MARKDOWN, folder / FIGURES, folder / TABLES)


def check_folder(folder: Path) -> None:
    """InputError unless ``folder`` is missing, empty, or holds a report that was written here before."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise InputError("is a file; name a folder for the report", folder)
    if any(folder.iterdir()) and not _written(folder):
        raise InputError("is not empty and holds no report of synthlang; name a new or empty folder", folder)


def write_files(folder: Path, title: str, under: str, parts: Sequence[Section]) -> ReportPaths:
    """Write the report of these sections; what a former report had does not stay behind, files of others do."""
    paths = paths_of(folder)
    texts = dict(_texts(title, under, parts))
    former = _written(folder)
    _list(folder, former | texts.keys())  # before any is there: killed in between, all are still known as ours
    for path in (folder / name for name in sorted(former - texts.keys())):
        if path.is_file():
            path.unlink()
    for place in (paths.figures, paths.tables):
        if place.exists() and not place.is_dir():
            raise InputError("is a file, where the report needs a folder", place)
        place.mkdir(exist_ok=True)
    for name, text in texts.items():
        with atomic_file(folder / name, "w") as handle:
            handle.write(text)
    _list(folder, texts.keys())
    return paths


def _texts(title: str, under: str, parts: Sequence[Section]) -> Iterator[tuple[str, str]]:
    """Name and content of each file, the page last."""
    for block in (block for part in parts for block in flat(part.blocks)):
        for figure in block.figures if isinstance(block, Figures) else ():
            yield f"{FIGURES}/{figure.name}.svg", standalone_svg(figure)
        if isinstance(block, Table) and block.name:
            yield f"{TABLES}/{block.name}.csv", csv_table(block)
            yield f"{TABLES}/{block.name}.tex", latex_table(block)
    yield MARKDOWN, markdown_page(title, under, parts)
    yield HTML, html_page(title, under, parts)


def _list(folder: Path, names: Collection[str]) -> None:
    write_json(folder / LIST, {"made_by": MADE_BY, "files": sorted(names)})


def _written(folder: Path) -> set[str]:
    """The files of the report in ``folder``; none where there is no report."""
    try:
        held: Any = read_json(folder / LIST) if (folder / LIST).is_file() else None
        if isinstance(held, dict) and held.get("made_by") == MADE_BY and isinstance(held.get("files"), list):
            return {name for name in held["files"] if isinstance(name, str) and _may_be(name)}
        if not (folder / HTML).read_text(encoding="utf-8").endswith(END):
            return set()
    except (InputError, OSError, UnicodeDecodeError):
        return set()
    kinds = ((FIGURES, "*.svg"), (TABLES, "*.csv"), (TABLES, "*.tex"))
    found = {f"{place}/{path.name}" for place, kind in kinds for path in (folder / place).glob(kind)}
    return found | {HTML, MARKDOWN}


def _may_be(name: str) -> bool:
    """Whether a report may have a file of this name: the list may have been written by anyone."""
    place, slash, file = name.rpartition("/")
    return name in (HTML, MARKDOWN) or (bool(slash) and place in (FIGURES, TABLES) and file not in ("", ".", ".."))


PROGRAM = CONFIGS.parent
PACKAGES = ("probes", "pretrain", "synthlang")
READ = ("results.csv", "results.parquet", "measures.csv", "measures.parquet")


def newest_report(folder: Path, config: Mapping[str, Any]) -> ReportPaths | None:
    """The report in ``folder`` if it was written after all that it is made of: the study's record and tables, the
    claims and papers that its ``config`` names, and this program. None if it is older, or a file of it is gone."""
    try:
        held = read_json(folder / LIST)
        named = [folder / str(name) for name in held["files"]]
        written = (folder / LIST).stat().st_mtime_ns
        newest = max(path.stat().st_mtime_ns for path in _read(folder, config))
    except (InputError, OSError, KeyError, TypeError):
        return None  # whatever is wrong with it, it is written again
    return paths_of(folder) if newest <= written and named and all(path.is_file() for path in named) else None


def _read(folder: Path, config: Mapping[str, Any]) -> Iterator[Path]:
    yield folder / STUDY
    yield from (folder / name for name in READ)
    for name in names_in(config.get("claims")):
        yield from claims_files(name)
    for name in names_in(config.get("paper")):
        yield tables_file(name)
    yield from CONFIGS.rglob("*.yaml")
    for package in PACKAGES:
        yield from (PROGRAM / package).rglob("*.py")
