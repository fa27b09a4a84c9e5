"""One report of several study folders, or of what was carried away of them: study.json and the two parquet files.

Folders of one study, each with some of its cells, are put together again; studies of other settings stand side by
side, told apart by the axes ``study`` and ``scale``, and runs that several of them have count once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from probes.report.numbers import plural
from probes.study.report.data import Cell, Study, names_of
from probes.study.report.pools import names_of_parts
from probes.study.report.scores import grouped
from probes.study.table import ALIGNMENTS, concat, distinct, is_score, labels_of
from synthlang.fingerprint import fingerprint

RANK = {"done": 0, "failed": 1}
"""Of the states of one cell in several folders the first counts; any other is a cell not yet run."""
STUDY, SCALE = "study", "scale"


def same_together(studies: Sequence[Study]) -> list[Study]:
    """Studies of the same name and fingerprint become one, in order of appearance.

    A cell is taken from the folder where it is done, of several such from the first; its rows and measures with it.
    """
    groups = grouped(studies, lambda study: (study.name, study.fingerprint))
    return [held[0] if len(held) == 1 else _merged(held) for held in groups.values()]


def _merged(studies: Sequence[Study]) -> Study:
    best: dict[str, tuple[int, int, Cell]] = {}
    for number, study in enumerate(studies):
        for cell in study.cells:
            rank = RANK.get(cell.status, len(RANK))
            if cell.name not in best or rank < best[cell.name][0]:
                best[cell.name] = (rank, number, cell)
    mine = [{name for name, (_, number, _) in best.items() if number == i} for i in range(len(studies))]
    pairs = list(zip(studies, mine, strict=True))
    seconds = {stage: held for study in studies for stage, held in study.seconds.items()}
    return replace(
        studies[0],
        scale=next((study.scale for study in studies if study.scale), ""),
        cells=tuple(cell for _, _, cell in best.values()),
        table=concat([study.table[study.table["cell"].isin(names)] for study, names in pairs]),
        seconds=seconds,
        environment=_by_name([(f"folder {i}", s.environment) for i, s in enumerate(studies, 1)], same=True),
        dropped=_by_name([(f"folder {i}", s.dropped) for i, s in enumerate(studies, 1) if s.dropped], same=True),
        notes=tuple(dict.fromkeys(note for study in studies for note in study.notes)),
    )


def without_repeats(studies: Sequence[Study]) -> list[Study]:
    """The studies without what an earlier one has: rows, measures and whole cells of equal stage fingerprints.

    A row of results is the same run where pretraining, adjustment and transfer are; one whose run is not known stays. A
    note of a study says how many of its rows count elsewhere.
    """
    runs: dict[str, str] = {}
    stages: set[str] = set()
    found = []
    for study, name in zip(studies, names_of(studies), strict=True):
        found.append(_without(study, runs, stages))
        runs = dict.fromkeys(study.table.loc[_is_scored(study.table), "run"].unique(), name) | runs
        stages |= {stage for cell in study.cells for stage in _stages(cell)}
    return found


def _is_scored(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows tell the run of a row of results."""
    return is_score(table) & (table["run"] != "") & ~table["measure"].isin(list(ALIGNMENTS))


def _stages(cell: Cell) -> set[str]:
    """Kind and fingerprint of each."""
    return {f"{stage.split(' ')[0]} {fingerprint}" for stage, fingerprint in cell.stages.items() if fingerprint}


def _without(study: Study, runs: Mapping[str, str], stages: set[str]) -> Study:
    table = study.table
    again = table[_is_scored(table) & table["run"].isin(list(runs))]
    gone = is_score(table) & table["row"].isin(again["row"]) | ~is_score(table) & table["run"].isin(list(stages))
    kept = table[~gone]
    scored = set(kept.loc[is_score(kept), "cell"].unique())
    cells = [c for c in study.cells if c.status != "done" or c.name in scored or _stages(c) - stages]
    first = ", ".join(dict.fromkeys(runs[run] for run in again["run"]))
    number, total = again["row"].nunique(), table.loc[is_score(table), "row"].nunique()
    told = f"{number:,} of {plural(total, 'row')} of results are the same runs as in {first} (equal fingerprints of "
    told += "all their stages): they count once, there."
    return replace(study, cells=tuple(cells), table=kept, notes=(*study.notes, told) if number else study.notes)


def joined(several: Sequence[Study]) -> Study:
    """All studies as one, runs that several have once: cells called ``STUDY: CELL``, with the labels ``study`` (by
    ``names_of_parts``) and ``scale`` where these differ."""
    studies, parts_of = without_repeats(several), names_of_parts(several)
    if len(studies) == 1:
        return studies[0]
    names = names_of(studies)
    scales = len({study.scale for study in studies}) > 1
    # studies that differ in nothing but their scale are rows of one table; the name of the study would say it again
    told = len({study.scale for study in studies}) == len(studies) and len({_bare(study) for study in studies}) == 1
    told = told or len(set(parts_of)) == 1
    parts = [
        _part(study, name, {**({} if told else {STUDY: part}), **({SCALE: study.scale or "–"} if scales else {})})
        for study, name, part in zip(studies, names, parts_of, strict=True)
    ]
    axes = [*([] if told else [STUDY]), *([SCALE] if scales else []), *(axis for part in parts for axis in part.axes)]
    both = list(zip(names, parts, strict=True))
    return replace(
        parts[0],
        name="joined",
        title="; ".join(dict.fromkeys(study.title for study in studies)),
        fingerprint=fingerprint("joined", studies=[study.fingerprint for study in studies]),
        scale="; ".join(dict.fromkeys(study.scale for study in studies if study.scale)),
        config={name: dict(part.config) for name, part in both},
        settings={name: dict(part.settings) for name, part in both if part.settings},
        environment=_by_name([(name, part.environment) for name, part in both], same=True),
        axes=tuple(dict.fromkeys(axes)),
        cells=tuple(cell for part in parts for cell in part.cells),
        seconds={stage: held for part in parts for stage, held in part.seconds.items()},
        dropped=_by_name([(name, part.dropped) for name, part in both if part.dropped], same=False),
        table=concat([part.table for part in parts]),
        notes=tuple(f"{name}: {note}" for name, part in both for note in part.notes),
    )


def _bare(study: Study) -> str:
    return study.name.replace(study.scale, "").strip("-_ ") if study.scale else study.name


def _part(study: Study, name: str, labels: dict[str, str]) -> Study:
    def named(cell: str) -> str:
        return f"{name}: {cell}"

    pairs = distinct(study.table, "cell", "labels")
    texts = {cell: json.dumps({**labels, **(labels_of(text) or {"cell": cell})}) for cell, text in pairs}
    return replace(
        study,
        cells=tuple(replace(c, name=named(c.name), labels={**labels, **c.labels}) for c in study.cells),
        table=study.table.assign(cell=study.table["cell"].map(named), labels=study.table["cell"].map(texts)),
    )


def _by_name(parts: Sequence[tuple[str, Any]], *, same: bool) -> Any:
    """Values by name; with ``same``, only one where all are equal."""
    values = [value for _, value in parts]
    if same and values and all(value == values[0] for value in values):
        return values[0]
    return dict(parts)
