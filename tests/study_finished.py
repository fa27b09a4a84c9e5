"""A study of many cells that looks finished. Its stages are written by hand, without training."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from probes.stages.base import Stage
from probes.stages.transfer import TransferStage
from probes.study.record import STORE_FORMAT
from synthlang.store import Store

ALIGNMENT = {"forward": 20.0, "backward": 20.0, "mean": 20.0}


def result_of(number: int, seed: int) -> dict[str, Any]:
    """Return the parts of the result of a transfer that results.csv reads."""
    scores = {"parent": 90.0, "sup": 80.0, "zs": 40.0 + number % 7, "delta": 40.0 - number % 7}
    return {"task": "pos", "metric": "accuracy", "language": "trans", "seed": seed, **scores, "scores": {}, "drops": {}}


def content(stage: Stage, number: int) -> dict[str, dict[str, Any]]:
    """The files of a stage."""
    if isinstance(stage, TransferStage):
        return {"result.json": result_of(number, stage.seed)}
    if stage.kind == "alignment":
        scores = {"all": {"n": 9, "cosine": ALIGNMENT, "csls": ALIGNMENT}, "in_dictionary": None, "held_out": None}
        return {"result.json": {"types": 9, "scores": scores, "bands": [], "languages": {}}}
    if stage.kind == "probe":
        return {
            "probes.json": {"model": f"run-{number}", "probes": {"words": {"scores": {"all": {"cosine": ALIGNMENT}}}}}
        }
    return {"run.json": {"fingerprint": f"{number:016x}"}, "done.json": {"fingerprint": f"{number:016x}"}}


def finish_all(stages: Iterable[Stage], root: Path) -> None:
    """Make every stage look finished in the store at ``root``, within a second."""
    store = Store(root)
    root.mkdir(parents=True, exist_ok=True)
    if not (root / "studies.json").exists():
        (root / "studies.json").write_text(json.dumps({"format": STORE_FORMAT, "studies": []}))
    for number, stage in enumerate(stages):
        folder = store.path(stage.kind, stage.key)
        folder.mkdir(exist_ok=True)
        for name, value in {**content(stage, number), "stage.json": {"label": stage.label, "seconds": 1.0}}.items():
            (folder / name).write_text(json.dumps(value, indent=2) + "\n")
        if stage.kind == "transfer":
            (folder / "predictions.parquet").touch()
