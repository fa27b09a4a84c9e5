"""The rows of a study's tables, read from the results of its stages in the store."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from probes.study import measures
from probes.study.cell import Cell
from probes.study.measures import Measured, alignment_measures, probe_measures
from probes.study.results import alignment_columns, run_columns, transfer_columns
from probes.study.stage import DONE, PROBES, RESULT, RUNS
from synthlang.files import read_json
from synthlang.store import Store

Drops = Mapping[str, Mapping[str, int]]
"""Data → reason → how many were left out or changed."""


class Tables:
    """The tables of the cells of a study; ``of_cell``: name of a cell → stage → key (stage.py), ``seeds`` those of the
    transfer.

    Results of trainings, transfers and alignments are read once, what probes found each time, since it may be large.
    """

    def __init__(
        self, cells: Sequence[Cell], of_cell: Mapping[str, Mapping[str, str]], seeds: Sequence[int], store: Store
    ) -> None:
        self._cells, self._of_cell, self._seeds, self._store = cells, of_cell, seeds, store
        self._read: dict[str, dict[str, Any]] = {}
        self._drops: dict[str, Drops] = {}

    def rows(self, done: Collection[str]) -> Iterator[dict[str, Any]]:
        """A row for each transfer whose key is in ``done`` with all that its row tells of the model."""
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            if any(stages[name] not in done for name in ("pretrain", "alignment", "adjust") if name in stages):
                continue
            common = self._common(cell, stages)
            for name in cell.tasks:
                for seed in self._seeds:
                    key = stages[f"transfer {name} seed {seed}"]
                    if key in done:
                        yield {**common, **self._transfer(key), "task_name": name, "transfer": key}

    def measures(self, done: Collection[str]) -> Iterator[dict[str, Any]]:
        """A row for each number of each probe of each cell, the quick alignment first."""
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            common = {**_named(cell), "pretrain_seed": run_columns(cell.pretrain)["pretrain_seed"]}
            if stages.get("alignment") in done:
                result = read_json(self._store.path("alignment", stages["alignment"]) / RESULT)
                yield from _measure_rows(common, measures.ALIGNMENT, alignment_measures(result))
            for name in cell.probes:
                key = stages[f"probe {name}"]
                if key in done:
                    record = read_json(self._store.path("probe", key) / PROBES)
                    yield from _measure_rows(common, name, probe_measures(record))

    def dropped(self, done: Collection[str]) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
        """Stage → data → reason → how many sentences, pairs, words … were left out or changed.

        ``least`` and ``most`` in one stage, in how many ``stages`` any, ``of`` how many that read such data. A stage
        that cells share counts once.
        """
        found: dict[str, dict[str, Drops]] = {}
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            named = [(stage, stages[stage]) for stage in RUNS if stage in stages]
            for name in cell.tasks:
                named += [(f"transfer {name}", stages[f"transfer {name} seed {seed}"]) for seed in self._seeds]
            for stage, key in named:
                if key in done:
                    found.setdefault(stage, {})[key] = self._drops_of(stage, key)
        return {stage: _extents(list(drops.values())) for stage, drops in found.items()}

    def _common(self, cell: Cell, stages: Mapping[str, str]) -> dict[str, Any]:
        names = {"pretrain": "pretrain", "adjust": "adjust", "probe": "alignment"}
        found = {column: stages.get(stage) for column, stage in names.items()}
        aligned = self._alignment(stages["alignment"]) if "alignment" in stages else {}
        return {**_named(cell), **run_columns(cell.pretrain), **found, **aligned}

    def _transfer(self, name: str) -> dict[str, Any]:
        if name not in self._read:
            result = read_json(self._store.path("transfer", name) / RESULT)
            self._read[name] = transfer_columns(result)
            texts = {f"aligned text {text}": held["counts"] for text, held in result.get("aligned", {}).items()}
            self._drops[name] = {**result.get("drops", {}), **texts}
        return self._read[name]

    def _drops_of(self, stage: str, name: str) -> Drops:
        if stage.startswith("transfer "):
            self._transfer(name)
        elif name not in self._drops:
            self._drops[name] = read_json(self._store.path(RUNS[stage], name) / DONE).get("counts", {})
        return self._drops[name]

    def _alignment(self, name: str) -> dict[str, Any]:
        if name not in self._read:
            self._read[name] = alignment_columns(read_json(self._store.path("alignment", name) / RESULT))
        return self._read[name]


def _extents(of_stages: Sequence[Drops]) -> dict[str, dict[str, dict[str, int]]]:
    """Data → reason → the extent of the counts of several stages; counts of 0 are no reason."""
    reading = Counter(data for drops in of_stages for data in drops)
    counts: dict[str, dict[str, list[int]]] = {}
    for drops in of_stages:
        for data, reasons in drops.items():
            for reason, count in reasons.items():
                if count:
                    counts.setdefault(data, {}).setdefault(reason, []).append(count)
    return {
        data: {
            reason: {"least": min(held) if len(held) == reading[data] else 0, "most": max(held)}
            | {"stages": len(held), "of": reading[data]}
            for reason, held in reasons.items()
        }
        for data, reasons in counts.items()
    }


def _named(cell: Cell) -> dict[str, str]:
    return {"cell": cell.name, "labels": json.dumps(dict(cell.labels), ensure_ascii=False)}


def _measure_rows(common: Mapping[str, Any], probe: str, found: Iterator[Measured]) -> Iterator[dict[str, Any]]:
    for measure, layer, step, value in found:
        yield {**common, "probe": probe, "measure": measure, "layer": layer, "step": step, "value": value}
