"""Whether the report of a study has to be written again: files and their times, as make has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from probes.study.judged.claims import claims_files
from probes.study.judged.papers import names_in, tables_file
from probes.study.record import STUDY
from probes.study.report.files import LIST, ReportPaths, paths_of
from synthlang import catalogue
from synthlang.errors import InputError
from synthlang.files import read_json

PROGRAM = Path(__file__).resolve().parents[3]
PACKAGES = ("probes", "pretrain", "synthlang")
TABLES = ("results.csv", "results.parquet", "measures.csv", "measures.parquet")


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
    yield from (folder / name for name in TABLES)
    for name in names_in(config.get("claims")):
        yield from claims_files(name)
    for name in names_in(config.get("paper")):
        yield tables_file(name)
    yield from catalogue.folder().rglob("*.yaml")
    for package in PACKAGES:
        yield from (PROGRAM / package).rglob("*.py")
