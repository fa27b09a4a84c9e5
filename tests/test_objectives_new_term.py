"""A term of the objective is a file and its line in the table: a copy of the package gets one, and trains with it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
TRAIN = """
import json, sys
from pathlib import Path
from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.run import pretrain
from synthlang.config import parse

run = Path(sys.argv[1])
pretrain(parse(PretrainConfig, json.loads(sys.argv[2])), run)
print(json.dumps(read_metrics(run / "metrics.jsonl")))
"""
SETTINGS = {
    "source": "builtin:mini-english?types=500&sentences=60&dev=10&test=0",
    "language": "trans",
    "steps": 3,
    "vocabulary": {"size": 300},
    "model": {"layers": 1, "heads": 2, "hidden": 16, "feed_forward": 32},
    "objective": {"kind": "small_mlm", "small_rate": 2.0},
    "batch": {"rows": 4, "length": 16},
    "optimizer": {"warmup_steps": 0},
    "log_every": 1,
}


def test_a_new_term_is_one_file_and_one_line(tmp_path):
    for package in ("pretrain", "synthlang"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    objectives = tmp_path / "pretrain" / "objectives"
    shutil.copy(ROOT / "tests" / "small_term.py", objectives / "small.py")
    table = (objectives / "table.py").read_text()
    table = table.replace("    Align,\n", "    Align,\n    Small,\n")
    table = table.replace("\nOURS", "\nfrom pretrain.objectives.small import Small\nOURS", 1)
    assert table.count("Small") == 2, "its line in the table, and the import"
    (objectives / "table.py").write_text(table)
    command = [sys.executable, "-c", TRAIN, str(tmp_path / "run"), json.dumps(SETTINGS)]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    rows = json.loads(done.stdout.splitlines()[-1])
    assert [row["step"] for row in rows] == [1, 2, 3]
    for row in rows:
        assert 0 < row["small"] < 0.02 and abs(row["loss"] - row["mlm"] - 2.0 * row["small"]) < 1e-4
    config = (tmp_path / "run" / "config.yaml").read_text()
    assert "kind: small_mlm" in config and "small_rate: 2.0" in config
