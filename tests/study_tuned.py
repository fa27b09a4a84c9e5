"""A small study whose probes read a fine-tuned model."""

from typing import Any

from tests.study_graphs import FULL
from tests.tiny import changed

TASK = {"length": 48, "train_items": 60, "dev_items": 20, "test_items": 20}
TUNED: dict[str, Any] = {"task": "pos", **TASK, "fine_tune": {"epochs": 2, "learning_rate": 0.01}}
CONTINUAL = {"alpha": 1.0, "rows": 4, "data": {"dev": 0, "sentences": 40}}
PROBE = {"probes": ["retrieval"], "layers": [-1], "data": {"dev": 20, "sentences": 40}, "seed": 1}
PROBES = {"d": PROBE}
DISTANCES = {**PROBE, "probes": ["distances"], "distances": {"before": {"before": "cell:model"}, "picture": "none"}}
BASE = {**changed(FULL, pretrain__language="trans", seeds=[3, 4], tasks={}, probes=PROBES), "tuned": TUNED}
