"""A study of many cells that looks finished: index entries and stages written by hand, nothing was trained."""

import json
from pathlib import Path
from typing import Any

from probes.study.index import FORMAT
from synthlang.store import Store

ALIGNMENT = {"forward": 20.0, "backward": 20.0, "mean": 20.0}


def result_of(number: int, seed: int) -> dict[str, Any]:
    """What the result of a transfer has that results.csv reads."""
    scores = {"parent": 90.0, "sup": 80.0, "zs": 40.0 + number % 7, "delta": 40.0 - number % 7}
    return {"task": "pos", "metric": "accuracy", "language": "trans", "seed": seed, **scores, "scores": {}, "drops": {}}


def content(task, number: int) -> dict[str, dict[str, Any]]:
    """The files of a stage."""
    if task.kind == "transfer":
        return {"result.json": result_of(number, task.seed)}
    if task.kind == "alignment":
        scores = {"all": {"n": 9, "cosine": ALIGNMENT, "csls": ALIGNMENT}, "in_dictionary": None, "held_out": None}
        return {"result.json": {"types": 9, "scores": scores, "bands": [], "languages": {}}}
    if task.kind == "probe":
        return {
            "probes.json": {"model": f"run-{number}", "probes": {"words": {"scores": {"all": {"cosine": ALIGNMENT}}}}}
        }
    return {"run.json": {"fingerprint": f"{number:016x}"}, "done.json": {"fingerprint": f"{number:016x}"}}


def finish_all(tasks, root: Path) -> None:
    """Let every task (key → task, parents first) look finished in the store at ``root``."""
    store, names = Store(root), {}
    (root / "index").mkdir(parents=True)
    (root / "studies.json").write_text('{"format": 2, "studies": []}')
    for number, (key, task) in enumerate(tasks.items()):
        names[key] = f"{number:016x}"
        folder = store.path(task.kind, names[key])
        folder.mkdir()
        for name, value in content(task, number).items():
            (folder / name).write_text(json.dumps(value, indent=2) + "\n")
        if task.kind == "transfer":
            (folder / "predictions.parquet").touch()
        entry = {
            "format": FORMAT,
            "kind": task.kind,
            "fingerprint": names[key],
            "label": task.label,
            "seconds": 1.0,
            "work": 1e9,
            "inputs": {},
            "parents": {parent: names[parent] for parent in task.parents},
        }
        (root / "index" / f"{key}.json").write_text(json.dumps(entry))
