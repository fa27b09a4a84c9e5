"""A start of a study that is finished: nothing is written anew, and no library is loaded that it does not need."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from probes.study import runner
from probes.study.cells import load_study
from probes.study.executors import resources
from probes.study.runner import RunOptions, StudyRun
from probes.study.stage import graph
from tests.study_finished import finish_all
from tests.tiny import STUDY, changed

ROOT = Path(__file__).parent.parent
HEAVY = ("torch", "transformers", "accelerate", "datasets", "spacy", "stanza")


@pytest.fixture
def start(tmp_path, monkeypatch) -> Callable[..., dict[str, Any]]:
    """Starts a study in ``out``, whose stages of before are all there, and gives its record."""
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is to be run
    monkeypatch.setattr(resources, "version", lambda name: "1.0")
    path, out = tmp_path / "study.yaml", tmp_path / "out"

    def started(study: dict[str, Any], finish: bool = True) -> dict[str, Any]:
        path.write_text(yaml.safe_dump(study))
        config, cells = load_study(path, [])
        if finish:
            finish_all(graph(cells, config.seeds).stages.values(), out / "stages")
        StudyRun(config, cells, out, RunOptions()).run()
        record: dict[str, Any] = json.loads((out / "study.json").read_text())
        return record

    return started


def test_the_environment_is_that_of_the_work(start, monkeypatch, tmp_path):
    study = changed(STUDY, seeds=[0])
    first = start(study)
    assert first["environment"]["torch"] == "1.0"
    monkeypatch.setattr(resources, "version", lambda name: "2.0")
    assert start(study, finish=False) == first  # nothing ran in the new one
    assert start(changed(study, title="Other words"), finish=False)["environment"] == first["environment"]
    more = changed(study, seeds=[0, 1])
    with pytest.raises(TypeError):  # there is no executor, but it has begun
        start(more, finish=False)
    assert json.loads((tmp_path / "out" / "study.json").read_text())["environment"]["torch"] == "2.0"


@pytest.mark.parametrize("command", ["study", "report"])
def test_no_model_is_in_the_way_of_a_finished_study(start, tmp_path, command):
    start(changed(STUDY, seeds=[0]))
    out = tmp_path / "out"
    arguments = (
        ["study", str(tmp_path / "study.yaml"), "--out", str(out)] if command == "study" else ["report", str(out)]
    )
    code = f"""
import json, sys
from probes.cli import main
sys.argv = ["synthlang", *{arguments!r}]
try:
    main()
finally:
    print(json.dumps([name for name in (*{HEAVY!r}, "numpy") if name in sys.modules]))
"""
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, cwd=ROOT)
    assert json.loads(done.stdout.splitlines()[-1]) == ["numpy"]
