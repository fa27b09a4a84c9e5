"""Runs that several studies of a report have: stages are named by content, so they are seen, and count once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from probes.report.numbers import plural
from probes.study.measures import ALIGNMENT
from probes.study.report.data import Cell, Study, names_of
from probes.study.report.rows import ResultRow

Key = tuple[str, ...]
BETWEEN = "\x00"


def without_repeats(studies: Sequence[Study]) -> list[Study]:
    """The studies without what an earlier one has: rows, measures and whole cells of equal stage fingerprints.

    A row is the same run where pretraining, adjustment and transfer are; one without the fingerprint of its transfer
    stays. A note of a study says how many of its rows count elsewhere.
    """
    names = names_of(studies)
    rows: dict[Key, str] = {}
    stages: set[Key] = set()
    found = []
    for study, name in zip(studies, names, strict=True):
        found.append(_rest(study, rows, stages) if rows or stages else study)
        for row in study.rows:
            if row.transfer:
                rows.setdefault(_run_of(row), name)
        stages |= {stage for cell in study.cells for stage in _stages(cell)}
    return found


def _run_of(row: ResultRow) -> Key:
    return row.pretrain, row.adjust, row.transfer, row.seed


def _stages(cell: Cell) -> Iterator[Key]:
    """Kind and fingerprint of each."""
    return ((stage.split(" ")[0], fingerprint) for stage, fingerprint in cell.stages.items() if fingerprint)


def _rest(study: Study, rows: dict[Key, str], stages: set[Key]) -> Study:
    again = [row for row in study.rows if row.transfer and _run_of(row) in rows]
    gone = {id(row) for row in again}
    kept = tuple(row for row in study.rows if id(row) not in gone)
    scored = {row.cell for row in kept}
    cells = tuple(
        cell for cell in study.cells if cell.status != "done" or cell.name in scored or set(_stages(cell)) - stages
    )
    probed = {
        (cell.name, stage.removeprefix("probe "))
        for cell in study.cells
        for stage, fingerprint in cell.stages.items()
        if (stage == ALIGNMENT or stage.startswith("probe ")) and (stage.split(" ")[0], fingerprint) in stages
    }
    if not again and not probed and len(cells) == len(study.cells):
        return study
    first = ", ".join(dict.fromkeys(rows[_run_of(row)] for row in again))
    told = f"{len(again):,} of {plural(len(study.rows), 'row')} of results are the same runs as in {first} (equal "
    told += "fingerprints of all their stages): they count once, there."
    return replace(
        study,
        cells=cells,
        rows=kept,
        measures=tuple(m for m in study.measures if (m.cell, m.probe) not in probed),
        numbers=None if study.numbers is None else _others(study.numbers, probed),
        notes=(*study.notes, told) if again else study.notes,
    )


def _others(numbers: pa.Table, probed: set[tuple[str, str]]) -> pa.Table:
    """The rows of measures but those of these cells and probes."""
    both = pc.binary_join_element_wise(numbers["cell"], numbers["probe"], BETWEEN)
    return numbers.filter(
        pc.invert(pc.is_in(both, pa.array([BETWEEN.join(pair) for pair in sorted(probed)], pa.string())))
    )
