"""Table of the kinds of stages. Folders of the store begin with these names."""

from __future__ import annotations

from typing import Any

from probes.stages.adjust import AdjustStage
from probes.stages.alignment import AlignmentStage
from probes.stages.base import Stage
from probes.stages.finetune import TuneStage
from probes.stages.parse import ParseStage
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage

STAGE_KINDS: dict[str, type[Stage]] = {
    kind.model_fields["kind"].default: kind
    for kind in (PretrainStage, AdjustStage, TuneStage, AlignmentStage, ProbeStage, TransferStage, ParseStage)
}
"""Kind → the class of its stages."""


def stage_from_json(data: Any) -> Stage:
    """Return the stage that ``Stage.to_json`` wrote."""
    return STAGE_KINDS[data["kind"]].model_validate(data)


RUN_STAGES = {"start": "pretrain", "pretrain": "pretrain", "second": "pretrain", "adjust": "adjust", "tuned": "tune"}
"""Name of a stage with weights in a cell → kind of the stage, parents first."""
