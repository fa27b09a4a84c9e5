"""Finished studies kept in the project: what claims, tables and figures read of them, small enough for a repository.

KEPT/NAME-SCALE/study.json       the study, its cells and the digests of the tables; nothing of the machine that ran it
KEPT/NAME-SCALE/results.parquet  as the study wrote it
KEPT/NAME-SCALE/measures.parquet the measures that claims, printed tables and figures read, and what every run has

A kept folder is a study folder, too: ``synthlang report`` reads it. A study that takes longer than a machine is there
can be run and kept in parts: cells that are not run yet in the next part stay as they were kept. So it can grow, by
seeds for instance: what is kept are cells of the larger study where their stages have the keys that are planned there.
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
from probes.report.findings_study import measures_drawn
from probes.report.join import RANK, cells_of_parts
from probes.report.numbers import plural
from probes.results.archived import LATER
from probes.results.columns import read_columns
from probes.results.labels import unseeded
from probes.results.measures import ALIGNMENT_MEASURES, PERPLEXITIES
from probes.results.scores import ALIGNMENT
from probes.results.views import MEASURES as MEASURE_COLUMNS
from probes.results.views import RESULTS as RESULT_COLUMNS
from probes.study.record import FORMAT as STUDY_FORMAT
from probes.study.record import STUDY
from synthlang.catalogue import YAML
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import sha256_file

FORMAT = 1
RESULTS, MEASURES = "results.parquet", "measures.parquet"
KEPT, DIGESTS = "kept", "sha256"
"""Keys of study.json."""
TRANSFER = "transfer "
"""How the stages begin that rows of results name themselves."""
PLACE = re.compile(r"(^|:)/(?=[^/])[^:?]*?(?=[^/:?]+(?:/[^/:?]+)?/?(?:[:?]|$))")
"""The front of an absolute path, in a text of its own or after ``text:``, up to its last two parts."""
ABOVE = "…/"
"""Stands for it."""


@dataclass(frozen=True)
class KeptStudy:
    """A study as it is kept, by the name of its folder."""

    name: str
    study: Study


@dataclass(frozen=True)
class KeptFolder:
    """Where a study is kept, the size of its files in bytes, and how many of its cells are not run yet."""

    folder: Path
    size: int
    waiting: int


@dataclass(frozen=True)
class _Content:
    name: str
    study: Study
    tables: Mapping[str, pa.Table]


def keep_studies(folders: Sequence[Path], into: Path) -> list[KeptFolder]:
    """Keep these studies, each in place of what was kept of it before; nothing is written unless all can be kept.

    A study that is not finished adds the cells that it has run to those of it that are kept. InputError where these are
    not of the same work, for a study without results, and for one whose claims or papers do not come along.
    """
    contents = dict[str, _Content]()
    for folder in folders:
        content = _content(folder)
        if content.study.waiting and (before := contents.get(content.name) or _kept(into / content.name)):
            if other := _of_other_work(before, content.study):
                told = f"{plural(content.study.waiting, 'cell')} of {len(content.study.cells)} not run yet"
                raise InputError(
                    f"{told}, and what is kept of {other} has other settings: finish the study first", folder
                )
            content = _together([content, before])
        contents[content.name] = content
    return [_write(content, into) for content in contents.values()]


def read_kept(kept: Path) -> list[KeptStudy]:
    """The studies that are kept, by their names; none where there is no such folder.

    InputError for one that is damaged, or was kept by another version.
    """
    folders = sorted(path for path in kept.iterdir() if path.is_dir()) if kept.is_dir() else []
    for folder in folders:
        _check(folder)
    return [KeptStudy(folder.name, read_study(folder)) for folder in folders]


def _check(folder: Path) -> None:
    path = folder / STUDY
    again = "keep the whole study again (synthlang findings --keep)"
    if not path.is_file():
        raise InputError(f"is no study that was kept: {STUDY} is missing; {again}", folder)
    record = read_json(path)
    told = record.get(KEPT) if isinstance(record, dict) else None
    if not isinstance(told, dict):
        raise InputError(f"is no record of a study that was kept; {again}", path)
    if told.get("format") != FORMAT:
        raise InputError(f"was kept in format {told.get('format')}, this version reads {FORMAT}; {again}", path)
    digests = told.get(DIGESTS)
    for name in (RESULTS, MEASURES):
        if not (folder / name).is_file():
            raise InputError(f"{name} is missing; {again}", folder)
        if not isinstance(digests, dict) or digests.get(name) != sha256_file(folder / name):
            raise InputError(f"is damaged, not what was kept; {again}", folder / name)


def _write(content: _Content, into: Path) -> KeptFolder:
    path = into / content.name
    with atomic_folder(path, replace=True) as folder:
        for name, table in content.tables.items():
            pq.write_table(table, folder / name, compression="zstd")
        digests = {name: sha256_file(folder / name) for name in content.tables}
        record = {**_record(content.study), KEPT: {"format": FORMAT, DIGESTS: digests}}
        write_json(folder / STUDY, record, indent=None)
    return KeptFolder(path, sum(file.stat().st_size for file in path.iterdir()), content.study.waiting)


def _content(folder: Path) -> _Content:
    study = read_study(folder)
    if not (folder / RESULTS).is_file():
        raise InputError(f"has no {RESULTS}: there is nothing to keep", folder)
    scored = read_columns(folder / RESULTS, RESULT_COLUMNS, LATER)
    sources = [None if text is None else _without_place(text) for text in scored["source"].to_pylist()]
    scored = scored.set_column(scored.column_names.index("source"), "source", pa.array(sources, pa.string()))
    tables = {RESULTS: scored, MEASURES: _measures(folder / MEASURES, study)}
    return _Content(_name(study, folder), study, tables)


def _kept(folder: Path) -> _Content | None:
    """What is kept in this folder; None where nothing is."""
    if not folder.is_dir():
        return None
    _check(folder)
    return _content(folder)


def _of_other_work(before: _Content, study: Study) -> str:
    """The first cell that was kept and is none of the study, or has stages that are not those planned there; or ""."""
    made = {cell.name: {*cell.stages.values()} for cell in before.study.cells if cell.status in RANK}
    rows = before.tables[RESULTS]
    for cell, transfer in zip(rows["cell"].to_pylist(), rows["transfer"].to_pylist(), strict=True):
        if cell in made and transfer:
            made[cell].add(transfer)
    planned = {cell.name: {*cell.keys.values()} for cell in study.cells}
    return next((name for name, keys in made.items() if not keys <= planned.get(name, set())), "")


def _together(parts: Sequence[_Content]) -> _Content:
    """Parts of one study as one: each cell, with its rows, from the part that has gone furthest with it."""
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
    """The study's name with its scale, where it says one: studies of several scales have one name."""
    scale = str(study.config.get("scale") or "")
    words = re.findall(r"[A-Za-z0-9_.+]+", study.name if scale in study.name else f"{study.name} {scale}")
    if not words:
        raise InputError(f"the name of the study ({study.name!r}) has no letter that a folder can have", folder)
    return "-".join(words)


def _record(study: Study) -> dict[str, Any]:
    """What study.json says of the study; the scale that was read from a run folder is written down."""
    config = {**study.config, **({"scale": study.scale} if study.scale else {})}
    return {
        "format": STUDY_FORMAT,
        "name": study.name,
        "title": study.title,
        "fingerprint": study.fingerprint,
        "config": _without_places(config),
        "settings": _without_places(study.settings),
        "axes": list(study.axes),
        "cells": list(_cells(study.cells)),
    }


def _cells(cells: Iterable[Cell]) -> Iterator[dict[str, Any]]:
    """The cells; of those that differ in seeds alone all but the first are ``like`` it, with what they change in it."""
    firsts = dict[str, Cell]()
    for cell in cells:
        first = firsts.setdefault(unseeded(cell.labels), cell)
        like = first is not cell and first.overrides.keys() == cell.overrides.keys()
        changes = {k: v for k, v in cell.overrides.items() if not like or v != first.overrides[k]}
        yield {
            "name": cell.name,
            "labels": dict(cell.labels),
            **({LIKE: first.name} if like else {}),
            "overrides": _without_places(changes),
            "status": cell.status,
            "stages": {name: key for name, key in cell.stages.items() if not name.startswith(TRANSFER)},
        }


def _measures(path: Path, study: Study) -> pa.Table:
    """The rows of measures.parquet that something reads; none of a study that has no such file."""
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
    """The alignment of models that probes read after fine-tuning; that of the results is of the models before."""
    is_finetuned = any(study.config.get(key) is not None for key in ("finetuned", "tuned"))  # kept under either name
    probes = study.config.get("probes") or {} if is_finetuned else {}
    return [f"{probe}.{ALIGNMENT_MEASURES[ALIGNMENT].partition('.')[2]}" for probe in probes]


def _quantities(study: Study) -> Iterator[Quantity]:
    """All that its claims and printed tables look up; InputError for files that do not come along with synthlang."""
    claims, tables = names_in(study.config.get("claims")), names_in(study.config.get("paper"))
    for name in (*claims, *tables):
        if name.endswith(YAML) or any(f"{ending}/" in name for ending in YAML):
            raise InputError(
                f"study {study.name}: {name} is not kept with it; name claims and papers of synthlang configs"
            )
    for name in claims:
        for claim in read_claims(name):
            yield from claim.quantities()
    for name in tables:
        for table in read_tables(name):
            for cell in table.cells:
                yield from (quantity for quantity in (cell.quantity, cell.against) if quantity is not None)


def _without_places(value: Any) -> Any:
    """Settings without the folders of the machine: ``text:/home/me/data/text/en`` is ``text:…/text/en``."""
    if isinstance(value, Mapping):
        return {key: _without_places(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_places(inner) for inner in value]
    return _without_place(value) if isinstance(value, str) else value


def _without_place(text: str) -> str:
    """
    >>> _without_place("text:/home/me/data/text/en?x=1"), _without_place("/data/ner"), _without_place("text:data/en")
    ('text:…/text/en?x=1', '…/data/ner', 'text:data/en')
    """
    return PLACE.sub(rf"\g<1>{ABOVE}", text)
