"""A new downstream task is a file and a line of the table: everything else asks the task."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.transfer.command import result_table
from probes.transfer.compare import compare
from probes.transfer.config import TransferConfig
from probes.transfer.result import ResultFile
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks import TASKS, TaskEntry
from synthlang.config import parse
from synthlang.errors import InputError
from tests.aligned_runs import random_run

MINI = "builtin:mini-english?types=500&sentences=200&dev=40&test=60"


def settings(**more: Any) -> TransferConfig:
    fit = {"epochs": 6, "learning_rate": 5e-3, "rows": 16}
    return parse(TransferConfig, {"task": "length", "train": MINI, "length": 48, "fine_tune": fit, **more})


def test_a_file_and_a_line_add_a_task(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="task: 'length' must be 'nli', 'ner'"):
        settings()
    monkeypatch.setitem(TASKS, "length", TaskEntry("tests.length_task:Length"))
    run, files = random_run(tmp_path / "run"), []
    for tuned in ("all", "none"):
        config = settings(features={"tune": tuned})
        transfer = Transfer(run, load_data(config, run), config)
        transfer.check()
        file = ResultFile(tmp_path / f"{tuned}.json", transfer.fingerprint)
        for seed in (0, 1):
            file.add(transfer, transfer.run(seed))
        files.append(file.path)
    held = json.loads(files[0].read_text())
    assert held["task"] == "length" and held["metric"] == "length_accuracy" and held["labels"]["label"][0] == "long"
    assert held["all"]["parent"]["mean"] > held["majority"]["parent"] + 10, "the length of a row is easy to see"
    assert result_table(held).row_count == 4
    found = compare(files)
    assert [row["by"] for row in found.rows] == ["paired t-test"] * 3 and found.rows[0]["difference"] <= 0
    assert settings(head={"kind": "crf"}, mixed=False).idle == ["head.kind"]
    with pytest.raises(InputError, match="mixed is for tasks of pairs: nli and qa"):
        settings(mixed=True)
