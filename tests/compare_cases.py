"""Result files with so many right predictions, for comparisons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from probes.transfer.compare import metrics_of
from probes.transfer.predictions import Predictions, read_predictions, write_predictions
from synthlang.files import write_json

TAGS = ("O", "B-X", "I-X")
NLI, NER = (metrics_of(task, {}) for task in ("nli", "ner"))
METRICS = {"nli": NLI, "ner": NER}
TESTS = ("parent", "zs")


def gold_of(task: str, items: int) -> list[Any]:
    rng = np.random.default_rng(0)
    if task == "nli":
        return [str(label) for label in rng.choice(["yes", "no", "so"], items)]
    return [[TAGS[t] for t in rng.integers(0, 3, 6)] for _ in range(items)]


def guessed(gold: list[Any], right: float, seed: int) -> list[Any]:
    """Each label or word is right with that probability, else a guess."""
    rng = np.random.default_rng(seed)

    def guess(label: str, names: tuple[str, ...]) -> str:
        return label if rng.random() < right else str(rng.choice(names))

    if isinstance(gold[0], str):
        return [guess(label, ("yes", "no", "so")) for label in gold]
    return [[guess(tag, TAGS) for tag in tags] for tags in gold]


def result(
    path: Path,
    task: str,
    right: dict[str, float],
    *,
    items: int = 150,
    seeds: tuple[int, ...] = (0, 1),
    settings: int = 1,
    salt: int = 0,
    change: Callable[[dict[str, Any]], None] | None = None,
) -> Path:
    """A result file: on each test so large a share of the labels is right."""
    parts = [
        Predictions(test, seed, setting, tuple(f"i{i}" for i in range(items)), gold, guessed(gold, share, key))
        for n, (test, share) in enumerate(right.items())
        for seed in seeds
        for setting in range(settings)
        for gold, key in [(gold_of(task, items), 1000 * salt + 100 * n + 10 * seed + setting)]
    ]
    scores: dict[int, dict[str, dict[str, float]]] = {seed: {} for seed in seeds}
    for seed in seeds:
        for test in right:
            mine = [part for part in parts if (part.test, part.seed) == (test, seed)]
            scores[seed][test] = {
                name: round(float(np.mean([metric(p.gold, p.predicted) for p in mine])), 4)
                for name, metric in METRICS[task].items()
            }
    held = {
        "format": 1,
        "fingerprint": f"{path.stem}-{salt}",
        "task": task,
        "metric": next(iter(METRICS[task])),
        "settings": {"task": task},
        "seeds": [{"seed": seed, "scores": scores[seed]} for seed in seeds],
        "predictions": f"{path.stem}.predictions.parquet",
    }
    if change:
        change(held)
    write_predictions(path.with_name(f"{path.stem}.predictions.parquet"), parts)
    write_json(path, held)
    return path


def pair(folder: Path, task: str, other: dict[str, float], **options: Any) -> list[Path]:
    """A system with half of the labels right on both tests, and another one."""
    first = result(folder / "a.json", task, dict.fromkeys(TESTS, 0.5), salt=1)
    return [first, result(folder / "b.json", task, other, salt=2, **options)]


def predicted(path: Path, test: str) -> list[Predictions]:
    return [part for part in read_predictions(path.with_name(f"{path.stem}.predictions.parquet")) if part.test == test]
