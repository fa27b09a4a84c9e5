"""A study from its start to its results: what it leaves and what its cells share; what a start would do."""

import io
import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from rich.console import Console

from probes.stages.done import is_done
from probes.stages.pretrain import PretrainStage
from probes.study import runner
from probes.study.cells import expand, load_study
from probes.study.config import StudyConfig
from probes.study.executors import resources
from probes.study.graph import graph
from probes.study.options import StudyOptions
from probes.study.plan import plan
from probes.study.runner import StudyRun
from synthlang.config import parse
from synthlang.files import read_json
from synthlang.store import Store
from tests.runs import run_anew
from tests.study_cases import (
    TINY,
    cells_in,
    rows_of,
    run_here,
    stages_of,
    tables,
)
from tests.study_finished import finish_all
from tests.study_graphs import FULL
from tests.tiny import STUDY, changed

ROOT = Path(__file__).parent.parent


def test_the_results_of_the_tiny_study(reference):
    rows = rows_of(reference)
    assert [(r["cell"], r["objective"], r["seed"]) for r in rows] == [
        ("trans, mlm", "mlm", "0"),
        ("trans, mlm", "mlm", "1"),
        ("trans, align_mlm", "align_mlm", "0"),
        ("trans, align_mlm", "align_mlm", "1"),
    ]
    for row in rows:
        assert float(row["delta"]) == pytest.approx(float(row["sup"]) - float(row["zs"]), abs=1e-3)
        assert (row["language"], row["task"], row["task_name"]) == ("trans", "pos", "pos")
        assert (row["source"], row["adjust"], row["pretrain_seed"]) == (STUDY["source"], "", "0")
        assert json.loads(row["labels"])["pretrain.objective.kind"] == row["objective"]
    # only the aligned objective pulls pairs of the dictionary together
    aligned = [float(row["alignment_dictionary"]) for row in rows]
    assert aligned[0] < 20 < 60 < aligned[2]


def test_the_study_folder(reference):
    folder = reference
    study = json.loads((folder / "study.json").read_text())
    settings = parse(StudyConfig, TINY)
    expand(settings)
    assert (study["format"], study["fingerprint"]) == (2, settings.fingerprint)
    assert study["axes"] == ["pretrain.language", "pretrain.objective.kind"]
    assert [cell["status"] for cell in study["cells"]] == ["done", "done"]
    names = {p.name for p in folder.iterdir()} - {"tables"}
    assert names == {
        *("study.json", "measurements.parquet"),
        *("results.csv", "results.parquet", "measures.csv", "measures.parquet"),
        *("report.html", "report.md", "report.json", "figures", "stages"),
    }
    for page in ("report.html", "report.md"):
        assert "align_mlm" in (folder / page).read_text(encoding="utf-8")
    assert [len(stages_of(folder, kind)) for kind in ("pretrain", "alignment", "transfer")] == [2, 2, 4]
    for cell, rows in zip(study["cells"], (rows_of(folder)[:2], rows_of(folder)[2:]), strict=True):
        assert list(cell["keys"]) == ["alignment", "pretrain", "transfer pos seed 0", "transfer pos seed 1"]
        assert (folder / cell["run"]).name == f"pretrain-{cell['stages']['pretrain']}"
        for row in rows:
            made = {kind: cell["stages"][kind] for kind in ("pretrain", "alignment")}
            made["transfer"] = cell["stages"][f"transfer pos seed {row['seed']}"]
            assert made == {"pretrain": row["pretrain"], "alignment": row["probe"], "transfer": row["transfer"]}
            for kind, name in made.items():
                assert (folder / "stages" / f"{kind}-{name}").is_dir()
                assert f"{kind}-{name}" in study["seconds"]
    assert study["dropped"]["transfer pos"]["source test"]["words beyond the length"]["most"] > 0
    left = study["dropped"]["pretrain"]["trans train"]["tokens left over"]
    assert left["stages"] == left["of"] == 2 and 0 < left["least"] <= left["most"]
    assert not list(folder.rglob(".tmp-*"))
    assert not list(folder.rglob("*.work"))


def test_a_study_stopped_as_it_starts_keeps_the_results_it_had(reference, tmp_path, monkeypatch):
    shutil.copytree(reference, tmp_path / "out")
    lost = cells_in(reference)["trans, mlm"]["stages"]["transfer pos seed 1"]
    shutil.rmtree(tmp_path / "out" / "stages" / f"transfer-{lost}")

    def stopped(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "open_executor", stopped)
    with pytest.raises(KeyboardInterrupt):
        run_here(tmp_path / "out")
    rows = (reference / "results.csv").read_bytes().splitlines()
    assert (tmp_path / "out" / "results.csv").read_bytes().splitlines() == [rows[i] for i in (0, 1, 3, 4)]
    assert [cell["status"] for cell in cells_in(tmp_path / "out").values()] == ["pending", "done"]


# --- which cells ---


def test_only_some_cells_and_then_the_others(reference, tmp_path):
    run = run_here(tmp_path / "out", only=("pretrain.objective.kind=align_mlm",))
    assert [cell.status for cell in run.cells] == ["pending", "done"]
    assert [row["cell"] for row in rows_of(tmp_path / "out")] == ["trans, align_mlm"] * 2
    run = run_here(tmp_path / "out", only=("trans, mlm",))
    assert [cell.status for cell in run.cells] == ["done", "done"]
    assert tables(tmp_path / "out") == tables(reference)


# --- what cells share ---


# --- studies that look finished: stages made up, nothing trained ---


def test_a_finished_study_of_many_cells_starts_and_ends_at_once(tmp_path, monkeypatch):
    """By processor time, so that a busy machine does not count: 10 s are promised on the clock for 1,000 cells, and 5 s
    of a start that finds all of it done and reported."""
    product = {
        "pretrain.language": ["trans", "trans+inv"],
        "pretrain.objective.kind": ["mlm", "align_mlm"],
        "pretrain.seed": list(range(125)),
    }
    study = parse(StudyConfig, changed(STUDY, grid={"product": product}))
    before = time.process_time()
    cells = expand(study)
    stages = graph(cells, study.seeds).stages
    assert (len(cells), len(stages)) == (500, 2000) and time.process_time() - before < 5
    finish_all(stages.values(), tmp_path / "stages")
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is to be run
    written: list[int] = []
    monkeypatch.setattr(StudyRun, "_write_record", counting(StudyRun._write_record, written))
    said: list[str] = []
    for limit, writings in ((5, 2), (2.5, 0)):  # as it starts and as it ends; not again
        written.clear()
        before = time.process_time()
        run = StudyRun(study, cells, tmp_path, StudyOptions())
        run.run(say=said.append)
        assert time.process_time() - before < limit and len(written) == writings
    assert said[-1] == "nothing is left to do, and the report is up to date"
    assert {cell.status for cell in run.cells} == {"done"}
    assert len(rows_of(tmp_path)) == 1000
    assert len(rows_of(tmp_path, "measures.csv")) == 7 * 500
    assert (tmp_path / "report.html").exists()
    found = plan(study, run.graph, run.store, run.done)
    assert all(kind.to_do == 0 for kind in found.kinds) and set(found.cells.values()) == {0}


def counting(function, calls):
    def counted(*arguments):
        calls.append(1)
        return function(*arguments)

    return counted


def test_what_another_runner_finished_since_the_start_is_seen(tmp_path, monkeypatch):
    study = parse(StudyConfig, STUDY)
    cells = expand(study)
    tasks = graph(cells, study.seeds).stages
    run = StudyRun(study, cells, tmp_path, StudyOptions())
    assert len(run.to_do()) == len(tasks)
    finish_all(tasks.values(), tmp_path / "stages")
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is left to be run
    run.run()
    assert {cell.status for cell in run.cells} == {"done"}


@pytest.fixture
def started(tmp_path, monkeypatch) -> Callable[..., dict[str, Any]]:
    """Starts a study in ``out``, whose stages of before are all there, and gives its record."""
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is to be run
    monkeypatch.setattr(resources, "version", lambda name: "1.0")
    path, out = tmp_path / "study.yaml", tmp_path / "out"

    def start(study: dict[str, Any], finish: bool = True) -> dict[str, Any]:
        path.write_text(yaml.safe_dump(study))
        config, cells = load_study(path, [])
        if finish:
            finish_all(graph(cells, config.seeds).stages.values(), out / "stages")
        StudyRun(config, cells, out, StudyOptions()).run()
        return dict(read_json(out / "study.json"))

    return start


def test_the_environment_is_that_of_the_work(started, monkeypatch, tmp_path):
    study = changed(STUDY, seeds=[0])
    first = started(study)
    assert first["environment"]["torch"] == "1.0"
    monkeypatch.setattr(resources, "version", lambda name: "2.0")
    assert started(study, finish=False) == first  # nothing ran in the new one
    assert started(changed(study, title="Other words"), finish=False)["environment"] == first["environment"]
    with pytest.raises(TypeError):  # there is no executor, but it has begun
        started(changed(study, seeds=[0, 1]), finish=False)
    assert read_json(tmp_path / "out" / "study.json")["environment"]["torch"] == "2.0"


HEAVY = ("torch", "transformers", "accelerate", "datasets", "spacy", "stanza")


def test_no_model_is_in_the_way_of_a_finished_study(started, tmp_path):
    started(changed(STUDY, seeds=[0]))
    out = tmp_path / "out"
    code = f"""
import json, sys
for name in [name for name in sys.modules if name.partition(".")[0] in {HEAVY!r}]:
    del sys.modules[name]
from probes.cli import main
for arguments in ["study", {str(tmp_path / "study.yaml")!r}, "--out", {str(out)!r}], ["report", {str(out)!r}]:
    sys.argv = ["synthlang", *arguments]
    try:
        main()
    except SystemExit as end:
        assert not end.code
print(json.dumps([name for name in (*{HEAVY!r}, "numpy") if name in sys.modules]))
"""
    assert json.loads(run_anew(code, path=[ROOT], folder=ROOT).splitlines()[-1]) == ["numpy"]


# --- what a start would do ---

PLANNED = changed(FULL, grid={"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}})


def planned(data, store):
    study = parse(StudyConfig, data)
    whole = graph(expand(study), study.seeds)
    found = plan(study, whole, store, {key for key, stage in whole.stages.items() if is_done(store, stage)})
    file = io.StringIO()
    Console(file=file, width=140).print(found)
    return found, whole, file.getvalue()


def test_the_plan_of_an_empty_store(tmp_path):
    found, _, text = planned(PLANNED, Store(tmp_path / "none"))
    # two runs for four cells; the tasks and seeds of each cell are its own
    counts = {kind.kind: (kind.stages, kind.shared, kind.done) for kind in found.kinds}
    assert counts == {"pretrain": (2, 2, 0), "alignment": (2, 2, 0), "probe": (2, 2, 0), "transfer": (16, 0, 0)}
    assert {kind.told for kind in found.kinds} == {("unknown yet", "")}
    assert set(found.cells.values()) == {1 + 1 + 1 + 4}
    assert not (tmp_path / "none").exists()  # nothing is written
    assert "full: 4 cells × 2 fine-tuning seeds" in text and "unknown yet" in text
    assert all(f"pretrain seed={seed}, epochs={epochs} " in text for seed in (0, 1) for epochs in (1, 2))


def test_the_plan_tells_the_rest_by_what_is_done_and_what_it_took(tmp_path):
    store = Store(tmp_path)
    _, whole, _ = planned(PLANNED, store)
    finish_all([stage for stage in whole.stages.values() if isinstance(stage, PretrainStage)][:1], tmp_path)
    found, _, text = planned(PLANNED, store)
    kinds = {kind.kind: kind for kind in found.kinds}
    assert (kinds["pretrain"].done, kinds["pretrain"].to_do) == (1, 1)
    assert (kinds["pretrain"].seconds, kinds["pretrain"].told[1]) == (1.0, "1 done")
    assert kinds["transfer"].seconds is None
    assert sorted(found.cells.values()) == [6, 6, 7, 7]
    assert "at least 1 s" in text
    finish_all(whole.stages.values(), tmp_path)
    found, _, text = planned(PLANNED, store)
    assert {kind.told for kind in found.kinds} == {("", "")} and set(found.cells.values()) == {0}
    assert "done" in text and "unknown" not in text
