"""Graph of the stages of all cells. Cells that need equal work share one stage."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from probes.stages.adjust import AdjustStage
from probes.stages.alignment import AlignmentStage
from probes.stages.base import Stage, StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.finetune import TuneStage, Untuned
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.study.cell import RECORDED_AS, Cell


class CellStage(NamedTuple):
    """A stage of a cell.

    Attributes:
        name: Name in the cell and in ``study.json``: ``start``, ``pretrain``, ``second``, ``adjust``, ``tuned``,
            ``alignment``, ``probe NAME``, ``probe NAME step N`` or ``transfer TASK seed N``.
        section: Keys of the config of the stage in the study file. The alignment has no config and no keys.
        stage: The stage, with its key.
    """

    name: str
    section: tuple[str, ...]
    stage: Stage


@dataclass(frozen=True)
class Graph:
    """The stages of a study.

    Attributes:
        stages: Key → stage. Each stage occurs once, and parents come before the stages that need them.
        of_cell: Name of a cell → name of a stage → key, parents first.
    """

    stages: dict[str, Stage] = field(default_factory=dict)
    of_cell: dict[str, dict[str, str]] = field(default_factory=dict)

    def chosen(self, cells: Collection[str]) -> Graph:
        """Return the part of the graph that the named cells need."""
        of_cell = {name: keys for name, keys in self.of_cell.items() if name in cells}
        wanted = {key for keys in of_cell.values() for key in keys.values()}
        return Graph({key: stage for key, stage in self.stages.items() if key in wanted}, of_cell)


def graph(cells: Sequence[Cell], seeds: Sequence[int], keys: StageKeys | None = None) -> Graph:
    """Return the graph of the stages of all cells.

    Args:
        cells: The cells.
        seeds: The seeds of fine-tuning.
        keys: Cache of the keys of stages (default: keys that cover the content of references).
    """
    whole, keys = Graph(), keys or StageKeys(ContentHashes())
    for cell in cells:
        of_cell = whole.of_cell[cell.name] = {}
        for name, _, stage in stages_of(cell, seeds, keys):
            of_cell[name] = stage.key
            whole.stages.setdefault(stage.key, stage)
    return whole


def stages_of(cell: Cell, seeds: Sequence[int], keys: StageKeys) -> Iterator[CellStage]:
    """Yield the stages of one cell, parents first.

    Args:
        cell: The cell.
        seeds: The seeds of fine-tuning.
        keys: Cache of the keys of stages.
    """

    def of_section(section: str, stage: Stage) -> CellStage:
        return CellStage(RECORDED_AS.get(section, section), (section,), stage)

    init_from = pretrained = target_model = None
    model: Untuned = cell.model or ""
    if cell.init_from is not None:
        init_from = keys.keyed(PretrainStage(config=cell.init_from))
        yield of_section("init_from", init_from)
    if cell.pretrain is not None:
        model = pretrained = keys.keyed(PretrainStage(config=cell.pretrain, init_from=init_from))
        yield of_section("pretrain", pretrained)
    if cell.target_model is not None:
        target_model = keys.keyed(PretrainStage(config=cell.target_model))
        yield of_section("target_model", target_model)
    if cell.adjust is not None:
        assert not isinstance(model, AdjustStage), "no model is adjusted twice"
        model = keys.keyed(AdjustStage(config=cell.adjust, model=model))
        yield of_section("adjust", model)
    probed: Any = model
    if cell.finetuned is not None:
        probed = keys.keyed(TuneStage(config=cell.finetuned, seed=cell.finetuned_seed, model=model))
        yield of_section("finetuned", probed)
    if pretrained is not None:
        yield CellStage("alignment", (), keys.keyed(AlignmentStage(pretrained=pretrained)))
    for name, config in cell.probes.items():
        probe = ProbeStage(config=config.of_one_checkpoint, name=name, model=probed, target_model=target_model)
        yield CellStage(f"probe {name}", ("probes", name), keys.keyed(probe))
        for step, stage in cell.probed_checkpoints(name).items():
            if stage != f"probe {name}":
                at_step = probe.model_copy(update={"step": step})
                yield CellStage(stage, ("probes", name), keys.keyed(at_step))
    for name, task in cell.tasks.items():
        section = ("transfer",) if list(cell.tasks) == [task.task] else ("tasks", name)
        for seed in seeds:
            transfer = TransferStage(config=task, name=name, seed=seed, model=model, target_model=target_model)
            yield CellStage(f"transfer {name} seed {seed}", section, keys.keyed(transfer))
