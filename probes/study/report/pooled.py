"""What the studies of a pool measured, as it is judged: by the labels of each, so that it loses nothing by the others.

A run that an earlier study has under the same labels but for seeds is left out; one that has other labels there stays,
and says which studies have it, so that no comparison counts it twice (judged/once.py).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from probes.study.judged.observed import ALIGNMENT as ALIGNMENTS
from probes.study.judged.observed import SCORES, Results, Run, is_after
from probes.study.labels import axes_that_set, unseeded
from probes.study.measures import ALIGNMENT
from probes.study.report.data import Study
from probes.study.report.rows import ResultRow

BETWEEN = "\x00"
Key = tuple[tuple[str, ...], str]
"""What names a run, and its labels but for seeds."""


def results_of(studies: Sequence[Study]) -> Results:
    """The rows and measures of all ``studies``."""
    later = [axes_that_set(study.config, is_after) for study in studies]
    first = {axis for study, own in zip(studies, later, strict=True) for axis in {*study.axes} - own}
    results = Results(_rows(studies), later=set().union(*later) - first)
    for table in _numbers(studies):
        results.wait_with(table)
    return results


def runs_of(study: Study) -> dict[tuple[str, ...], str]:
    """Labels, and the model or what was measured (a task and its seed, the alignment, a probe) → the fingerprint of its
    stage."""
    found: dict[tuple[str, ...], str] = {}
    for row in study.rows:
        labels = json.dumps(row.labels, sort_keys=True)
        found |= {(labels, "pretrain"): row.pretrain, (labels, "adjust"): row.adjust}
        found[labels, "transfer", row.task_name, row.seed] = row.transfer
        found[labels, ALIGNMENT] = row.probe
    labels_of = {cell.name: json.dumps(dict(cell.labels), sort_keys=True) for cell in study.cells}
    for pair, ((_, fingerprint), _) in _probed(study).items() if study.numbers is not None else ():
        cell, _, probe = pair.partition(BETWEEN)
        found[labels_of[cell], "probe", probe] = fingerprint
    return {key: fingerprint for key, fingerprint in found.items() if fingerprint}


def _rows(studies: Sequence[Study]) -> Iterator[dict[str, Any]]:
    """The rows; of several studies with ``run`` and ``untuned``, or without the numbers that an earlier one has."""
    if len(studies) == 1:
        yield from map(_row, studies[0].rows)
        return
    held = _owners([key for row in study.rows for key in (_tuned(row), _untuned(row))] for study in studies)
    for number, study in enumerate(studies):
        for row in study.rows:
            found = _row(row)
            for key, what, known, names in (
                (_tuned(row), "run", row.transfer, (*SCORES, "mixed")),
                (_untuned(row), "untuned", row.probe, tuple(ALIGNMENTS)),
            ):
                if known and _has_an_earlier(held[key], number):
                    found |= dict.fromkeys(names)
                elif known:
                    found[what] = Run(key[0], held[key])
            yield found


def _owners(keys: Iterable[Iterable[Key]]) -> dict[Key, int]:
    """Key → the studies that have it, a bit each."""
    held: dict[Key, int] = defaultdict(int)
    for number, of_study in enumerate(keys):
        for key in of_study:
            held[key] |= 1 << number
    return held


def _has_an_earlier(owners: int, number: int) -> bool:
    """Whether a study before the one of this number is among the owners."""
    return bool(owners & ((1 << number) - 1))


def _tuned(row: ResultRow) -> Key:
    return (row.pretrain, row.adjust, row.transfer, row.seed), json.dumps([row.task_name, unseeded(row.labels)])


def _untuned(row: ResultRow) -> Key:
    return (row.pretrain, row.adjust, row.probe), unseeded(row.labels)


def _row(row: ResultRow) -> dict[str, Any]:
    scores = {name: getattr(row, name) for name in (*SCORES, "task", "task_name")}
    aligned = {name: getattr(row, name) for name in ALIGNMENTS}
    seeds = {name: _whole(getattr(row, name)) for name in ("seed", "pretrain_seed")}
    seeds |= {name: getattr(row, name) for name in ("pretrain", "adjust")}
    return {**scores, **aligned, **seeds, "labels": json.dumps(dict(row.labels)), "mixed": row.mixed}


def _whole(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _numbers(studies: Sequence[Study]) -> Iterator[pa.Table]:
    """The measures of each study, with the columns ``run`` and ``studies`` where there are several."""
    measured = [(study, table) for study in studies if (table := study.numbers) is not None and len(table)]
    if len(studies) == 1:
        yield from (table for _, table in measured)
        return
    probed = [_probed(study) for study, _ in measured]
    held = _owners(keys.values() for keys in probed)
    for number, ((_, table), keys) in enumerate(zip(measured, probed, strict=True)):
        both = _cell_and_probe(table)
        gone = [pair for pair, key in keys.items() if _has_an_earlier(held[key], number)]
        place = pc.index_in(both, pa.array(list(keys), pa.string()))
        runs = pa.array([" ".join(name) for name, _ in keys.values()], pa.string())
        bits = pa.array([str(held[key]) for key in keys.values()], pa.string())
        named = table.append_column("run", runs.take(place)).append_column("studies", bits.take(place))
        yield named.filter(pc.invert(pc.is_in(both, pa.array(gone, pa.string()))))


def probes_of(study: Study) -> set[tuple[str, str]]:
    """Cell and probe, of those that the study has measures of."""
    if study.numbers is None:
        return set()
    pairs = (pair.partition(BETWEEN) for pair in _cell_and_probe(study.numbers).unique().to_pylist())
    return {(cell, probe) for cell, _, probe in pairs}


def _probed(study: Study) -> dict[str, Key]:
    """Cell and probe → what names it, of those that the study has measures of."""
    measured = probes_of(study)
    found: dict[str, Key] = {}
    for cell in study.cells:
        for stage, fingerprint in cell.stages.items():
            pair = cell.name, stage.removeprefix("probe ")
            if pair in measured and fingerprint and (stage == ALIGNMENT or stage.startswith("probe ")):
                found[BETWEEN.join(pair)] = (stage.split(" ")[0], fingerprint), unseeded(cell.labels)
    return found


def _cell_and_probe(numbers: pa.Table) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(numbers["cell"], numbers["probe"], BETWEEN)
