"""Which stages the cells of a study have; equal work is one stage, whoever needs it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from probes.study.cell import Cell
from probes.study.digests import Digests
from probes.study.stage import (
    AdjustStage,
    AlignmentStage,
    PretrainStage,
    ProbeStage,
    Stage,
    StageKeys,
    TransferStage,
    TuneStage,
    Untuned,
)


@dataclass(frozen=True)
class Graph:
    """stages: key → stage, each once, parents before those that need them; of_cell: name of a cell → what each of its
    stages is called there (``pretrain``, ``probe NAME``, ``transfer TASK seed N`` …) → key, parents first."""

    stages: dict[str, Stage] = field(default_factory=dict)
    of_cell: dict[str, dict[str, str]] = field(default_factory=dict)

    def chosen(self, cells: Collection[str]) -> Graph:
        of_cell = {name: keys for name, keys in self.of_cell.items() if name in cells}
        wanted = {key for keys in of_cell.values() for key in keys.values()}
        return Graph({key: stage for key, stage in self.stages.items() if key in wanted}, of_cell)


def graph(cells: Sequence[Cell], seeds: Sequence[int], stage_keys: StageKeys | None = None) -> Graph:
    """The stages of all cells."""
    whole, stage_keys = Graph(), stage_keys or StageKeys(Digests())
    for cell in cells:
        keys = whole.of_cell[cell.name] = {}
        for name, stage in _stages_of(cell, seeds, stage_keys):
            keys[name] = stage.key
            whole.stages.setdefault(stage.key, stage)
    return whole


def _stages_of(cell: Cell, seeds: Sequence[int], stage_keys: StageKeys) -> Iterator[tuple[str, Stage]]:
    """Those of one cell, with its own settings also where another cell has the same work."""
    start = pretrained = second = None
    model: Untuned = cell.model or ""
    if cell.start is not None:
        start = stage_keys.keyed(PretrainStage(config=cell.start))
        yield "start", start
    if cell.pretrain is not None:
        model = pretrained = stage_keys.keyed(PretrainStage(config=cell.pretrain, start=start))
        yield "pretrain", pretrained
    if cell.second is not None:
        second = stage_keys.keyed(PretrainStage(config=cell.second))
        yield "second", second
    if cell.adjust is not None:
        assert not isinstance(model, AdjustStage), "no model is adjusted twice"
        model = stage_keys.keyed(AdjustStage(config=cell.adjust, model=model))
        yield "adjust", model
    probed: Any = model
    if cell.tuned is not None:
        probed = stage_keys.keyed(TuneStage(config=cell.tuned, seed=cell.tuned_seed, model=model))
        yield "tuned", probed
    if pretrained is not None:
        yield "alignment", stage_keys.keyed(AlignmentStage(pretrained=pretrained))
    for name, probe in cell.probes.items():
        yield f"probe {name}", stage_keys.keyed(ProbeStage(config=probe, name=name, model=probed, second=second))
    for name, task in cell.tasks.items():
        for seed in seeds:
            stage = TransferStage(config=task, name=name, seed=seed, model=model, second=second)
            yield f"transfer {name} seed {seed}", stage_keys.keyed(stage)
