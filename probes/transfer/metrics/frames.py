"""Scores of slot filling with intent: {"slots": [tags], "intent": name}."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from probes.transfer.metrics.items import f1, item_metric
from probes.transfer.metrics.metric import Floats, Metric
from probes.transfer.metrics.repair import Repair, repaired
from probes.transfer.metrics.spans import span_counts

SLOT_F1 = "slot_f1"


def frame_metrics(repair: Repair = "none") -> dict[str, Metric]:
    """Slot F1 (strict spans), intent accuracy, and the share of items whose slots and intent are all right.

    Slots are right when the same mentions are found: an I that is no mention neither helps nor hurts. Predicted slots
    are repaired first if ``repair`` says so.
    """

    def slots(gold: Sequence[Any], predictions: Sequence[Any]) -> Floats:
        return span_counts([g["slots"] for g in gold], [repaired(p["slots"], repair) for p in predictions])

    def frames(gold: Sequence[Any], predictions: Sequence[Any]) -> Any:
        counts = slots(gold, predictions)
        return (counts == counts[:, :1]).all(axis=1) & np.asarray(_intents(gold, predictions), bool)

    return {
        SLOT_F1: Metric(SLOT_F1, slots, f1),
        "intent_accuracy": item_metric("intent_accuracy", _intents),
        "frame_accuracy": item_metric("frame_accuracy", frames),
    }


def _intents(gold: Sequence[Any], predictions: Sequence[Any]) -> list[bool]:
    return [g["intent"] == p["intent"] for g, p in zip(gold, predictions, strict=True)]
