"""Archive of studies, which is small enough for git and has all data for claims, tables and figures.

ARCHIVE/NAME-SCALE/study.json        the study, its cells and the hashes of the tables, without paths of the machine
ARCHIVE/NAME-SCALE/results.parquet   the results of the study, with shortened paths of sources
ARCHIVE/NAME-SCALE/measures.parquet  the perplexities, and the measures for claims, printed tables and figures

An archived study is a study folder, so ``synthlang report`` reads it. A long study can be run and archived in parts:
cells that the next part has not run stay in the archive. A study can also grow, for instance by seeds. Its archived
cells belong to the larger study if their stages have the keys that are planned there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from probes.claims.papers import names_in, read_claims, read_tables
from probes.claims.spec import Quantity, probe_measures
from probes.report.data import LIKE, Cell, Study, read_study
from probes.report.findings_data import read_named
from probes.report.findings_figures import measures_drawn
from probes.report.join import RANK, cells_of_parts
from probes.results.archived import LATER
from probes.results.columns import read_columns
from probes.results.labels import unseeded
from probes.results.measures import ALIGNMENT_MEASURES, PERPLEXITIES
from probes.results.scores import ALIGNMENT
from probes.results.views import MEASURES as MEASURE_COLUMNS
from probes.results.views import RESULTS as RESULT_COLUMNS
from probes.study.record import ARCHIVED, STUDY
from probes.study.record import FORMAT as STUDY_FORMAT
from synthlang.catalogue import YAML
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import sha256_file
from synthlang.wording import plural

FORMAT = 1
AGAIN = (
    "restore the file, or move its folder out of the archive and archive the study again: "
    "synthlang findings FOLDER --archive STUDY"
)
RESULTS, MEASURES = "results.parquet", "measures.parquet"
DIGESTS = "sha256"
"""Key of the section ARCHIVED in study.json."""
TRANSFER = "transfer "
"""Prefix of the names of transfer stages, whose keys are in the rows of results."""
PLACE = re.compile(r"(^|:)/(?=[^/])[^:?]*?(?=[^/:?]+(?:/[^/:?]+)?/?(?:[:?]|$))")
"""Pattern of an absolute path up to its last two parts. The path is the whole text, or follows ``text:``."""
ABOVE = "…/"
"""Replacement of the front of a path."""


@dataclass(frozen=True)
class ArchivedFolder:
    """An archived study.

    Attributes:
        folder: The folder in the archive.
        size: The size of its files in bytes.
        waiting: Number of cells that have not been run yet.
    """

    folder: Path
    size: int
    waiting: int


@dataclass(frozen=True)
class _Content:
    name: str
    study: Study
    tables: Mapping[str, pa.Table]


def archive_studies(folders: Sequence[Path], into: Path) -> list[ArchivedFolder]:
    """Write the settings, results and measures of studies to an archive.

    A study replaces its former archive, but an unfinished study only adds its finished cells. Nothing is written
    unless all studies can be archived.

    Args:
        folders: Folders of the studies.
        into: Folder of the archive.

    Returns:
        The archived studies, one for each name with its scale. If several folders hold finished studies of one name,
        the last of them counts.

    Raises:
        InputError: A folder holds no readable study, a study has no results, or its name has no letter or digit. The
            error is also raised if a study names claims or papers that cannot be read or are not part of synthlang, or
            if its former archive is damaged. An unfinished study is refused if archived cells have other settings.
        DiskError: The archive cannot be written.
    """
    contents = dict[str, _Content]()
    for folder in folders:
        content = _content(folder)
        if content.study.waiting and (before := contents.get(content.name) or _archived(into / content.name)):
            if other := _of_other_work(before, content.study):
                waiting, verb = content.study.waiting, "is" if content.study.waiting == 1 else "are"
                left = f"{waiting:,} of {plural(len(content.study.cells), 'cell')} {verb} not run"
                reason = (
                    f"the study is not finished ({left}), and the cell {other!r}, which is archived under the same "
                )
                reason += "name, has other settings here or is not a cell here"
                hint = "finish the study, which then replaces the archived one"
                raise InputError(reason, folder, hint=hint, code="changed")
            content = _together([content, before])
        contents[content.name] = content
    return [_write(content, into) for content in contents.values()]


def read_archive(folder: Path) -> dict[str, Study]:
    """Return the studies of an archive: name of the folder → study. The result is empty if the folder does not exist.

    Raises:
        InputError: A study is damaged, or was archived by another version.
    """
    folders = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    for path in folders:
        _check(path)
    return {path.name: read_study(path) for path in folders}


def _check(folder: Path) -> None:
    record = read_json(folder / STUDY)
    archived = record.get(ARCHIVED) if isinstance(record, dict) else None
    if not isinstance(archived, dict) or archived.get("format") != FORMAT:
        reason = f"is not the record of a study in the format {FORMAT} of archives"
        raise InputError(reason, folder / STUDY, hint=AGAIN, code="format")
    for name in (RESULTS, MEASURES):
        if not (folder / name).is_file():
            raise InputError("is missing in the archive", folder / name, hint=AGAIN, code="missing")
        if archived.get(DIGESTS, {}).get(name) != sha256_file(folder / name):
            raise InputError(f"differs from its hash in {STUDY}", folder / name, hint=AGAIN, code="damaged")


def _write(content: _Content, into: Path) -> ArchivedFolder:
    path = into / content.name
    with atomic_folder(path, replace=True) as folder:
        for name, table in content.tables.items():
            pq.write_table(table, folder / name, compression="zstd")
        digests = {name: sha256_file(folder / name) for name in content.tables}
        record = {**_record(content.study), ARCHIVED: {"format": FORMAT, DIGESTS: digests}}
        write_json(folder / STUDY, record, indent=None)
    return ArchivedFolder(path, sum(file.stat().st_size for file in path.iterdir()), content.study.waiting)


def _content(folder: Path) -> _Content:
    study = read_study(folder)
    if not (folder / RESULTS).is_file():
        hint = "run the study, which writes this file"
        raise InputError("is missing, so there is nothing to archive", folder / RESULTS, hint=hint, code="missing")
    scored = read_columns(folder / RESULTS, RESULT_COLUMNS, LATER)
    sources = [None if text is None else without_place(text) for text in scored["source"].to_pylist()]
    scored = scored.set_column(scored.column_names.index("source"), "source", pa.array(sources, pa.string()))
    tables = {RESULTS: scored, MEASURES: _measures(folder / MEASURES, study)}
    return _Content(_name(study, folder), study, tables)


def _archived(folder: Path) -> _Content | None:
    """Return the content of an archived folder, or None if it does not exist."""
    if not folder.is_dir():
        return None
    _check(folder)
    return _content(folder)


def _of_other_work(before: _Content, study: Study) -> str:
    """Return the name of the first archived cell with stages that the study does not plan, or ""."""
    made = {cell.name: {*cell.stages.values()} for cell in before.study.cells if cell.status in RANK}
    rows = before.tables[RESULTS]
    for cell, transfer in zip(rows["cell"].to_pylist(), rows["transfer"].to_pylist(), strict=True):
        if cell in made and transfer:
            made[cell].add(transfer)
    planned = {cell.name: {*cell.keys.values()} for cell in study.cells}
    return next((name for name, keys in made.items() if not keys <= planned.get(name, set())), "")


def _together(parts: Sequence[_Content]) -> _Content:
    """Merge the parts of a study. Each cell and its rows come from the part where its status is best."""
    chosen = cells_of_parts([part.study for part in parts])
    names, of = pa.array([cell.name for cell, _ in chosen], pa.string()), pa.array([number for _, number in chosen])
    tables = {}
    for table in parts[0].tables:
        rows = [
            part.tables[table].filter(pc.is_in(part.tables[table]["cell"], names.filter(pc.equal(of, i))))
            for i, part in enumerate(parts)
        ]
        joined = pa.concat_tables(rows)
        tables[table] = joined.take(pc.sort_indices(pc.index_in(joined["cell"], names))).combine_chunks()
    return _Content(parts[0].name, replace(parts[0].study, cells=tuple(cell for cell, _ in chosen)), tables)


def _name(study: Study, folder: Path) -> str:
    """Return the name of the study with its declared scale, because studies of several scales share a name."""
    scale = str(study.config.get("scale") or "")
    words = re.findall(r"[A-Za-z0-9_.+]+", study.name if scale in study.name else f"{study.name} {scale}")
    if not words:
        reason = f"the name {study.name!r} has no letter (A–Z) or digit for the name of a folder"
        hint = "write a name that has one, such as my-study"
        raise InputError(reason, folder / STUDY, keys="name", hint=hint, code="format")
    return "-".join(words)


def _record(study: Study) -> dict[str, Any]:
    """Return the content of study.json, with the scale of the study even if its config does not declare one."""
    config = {**study.config, **({"scale": study.scale} if study.scale else {})}
    return {
        "format": STUDY_FORMAT,
        "name": study.name,
        "title": study.title,
        "fingerprint": study.fingerprint,
        "config": without_places(config),
        "settings": without_places(study.settings),
        "axes": list(study.axes),
        "cells": list(_cells(study.cells)),
    }


def _cells(cells: Iterable[Cell]) -> Iterator[dict[str, Any]]:
    """Yield the record of each cell.

    The first of several cells that differ only in seeds has all of its overrides. The other cells refer to the first
    one (``like``) and have only the overrides that differ.
    """
    firsts = dict[str, Cell]()
    for cell in cells:
        first = firsts.setdefault(unseeded(cell.labels), cell)
        like = first is not cell and first.overrides.keys() == cell.overrides.keys()
        changes = {k: v for k, v in cell.overrides.items() if not like or v != first.overrides[k]}
        yield {
            "name": cell.name,
            "labels": dict(cell.labels),
            **({LIKE: first.name} if like else {}),
            "overrides": without_places(changes),
            "status": cell.status,
            "stages": {name: key for name, key in cell.stages.items() if not name.startswith(TRANSFER)},
        }


def _measures(path: Path, study: Study) -> pa.Table:
    """Return the rows of measures.parquet that reports read, or an empty table if the file does not exist."""
    if not path.exists():
        return pa.table({name: pa.array([], kind) for name, kind in MEASURE_COLUMNS.items()})
    table = read_columns(path, MEASURE_COLUMNS)
    wanted = {
        *probe_measures(_quantities(study)),
        *measures_drawn(study),
        *ALIGNMENT_MEASURES.values(),
        *_after_tuning(study),
    }
    names = pa.array(sorted(wanted), pa.string())
    of_runs = pc.starts_with(table["measure"], PERPLEXITIES)
    return table.filter(pc.or_(pc.is_in(table["measure"], names), of_runs)).combine_chunks()


def _after_tuning(study: Study) -> list[str]:
    """Return the names of alignments that probes measured after fine-tuning."""
    settings = [study.config.get(key) for key in ("finetuned", "tuned")]  # archived under either name
    probes = {} if settings == [None, None] else study.config.get("probes") or {}
    return [f"{probe}.{ALIGNMENT_MEASURES[ALIGNMENT].partition('.')[2]}" for probe in probes]


def _quantities(study: Study) -> Iterator[Quantity]:
    """Yield every quantity that the claims and printed tables of the study look up.

    Raises:
        InputError: The study names files that are not part of synthlang, or names that are not in the catalogue.
    """
    for key, kind in (("claims", "claims"), ("paper", "papers")):
        for name in names_in(study.config.get(key)):
            if name.endswith(YAML) or any(f"{ending}/" in name for ending in YAML):
                reason = f"{name} is a file, which cannot be archived with the study"
                hint = f"name entries of the catalogue (synthlang configs {kind}), and run the study again"
                raise InputError(reason, study.folder / STUDY, keys=["config", key], hint=hint, code="unsupported")
    for claims in read_named(study, "claims", read_claims):
        for claim in claims:
            yield from claim.quantities()
    for tables in read_named(study, "paper", read_tables):
        for cell in (cell for table in tables for cell in table.numbers):
            yield from (quantity for quantity in (cell.quantity, cell.against) if quantity is not None)


def without_places(value: Any) -> Any:
    """Shorten absolute paths in settings: ``text:/home/me/data/text/en`` becomes ``text:…/text/en``."""
    if isinstance(value, Mapping):
        return {key: without_places(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [without_places(inner) for inner in value]
    return without_place(value) if isinstance(value, str) else value


def without_place(text: str) -> str:
    """Replace the first folders of absolute paths by an ellipsis.

    >>> without_place("text:/home/me/data/text/en?x=1"), without_place("/data/ner"), without_place("text:data/en")
    ('text:…/text/en?x=1', '…/data/ner', 'text:data/en')
    """
    return PLACE.sub(rf"\g<1>{ABOVE}", text)
