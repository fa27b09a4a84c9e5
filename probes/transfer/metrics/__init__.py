"""Scores of all tasks, as sums over items."""

from probes.transfer.metrics.answers import answer_metrics
from probes.transfer.metrics.classes import class_metrics
from probes.transfer.metrics.frames import frame_metrics
from probes.transfer.metrics.items import ItemMetric, item_metric
from probes.transfer.metrics.metric import Metric
from probes.transfer.metrics.repair import Repair, repaired
from probes.transfer.metrics.spans import mentions_of, span_metrics
from probes.transfer.metrics.tokens import token_f1, token_metrics
from probes.transfer.metrics.trees import tree_metrics

__all__ = [
    "ItemMetric",
    "Metric",
    "Repair",
    "answer_metrics",
    "class_metrics",
    "frame_metrics",
    "item_metric",
    "mentions_of",
    "repaired",
    "span_metrics",
    "token_f1",
    "token_metrics",
    "tree_metrics",
]
