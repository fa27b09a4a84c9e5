"""A study from its start to its results: what it leaves, what it shares, whose folder it is."""

import json
import os
import shutil

import pyarrow.parquet as pq
import pytest

from pretrain.run import pretrain as run_pretraining
from probes.study import runner, work
from probes.study.cells import expand, selected
from probes.study.config import StudyConfig
from probes.study.runner import RunOptions, StudyRun
from probes.study.stage import graph
from synthlang.config import parse
from synthlang.errors import InputError
from tests.study_cases import (
    TINY,
    cells_in,
    command,
    config_file,
    finished_study,
    opened,
    rows_of,
    run_here,
    stages_of,
    tables,
    times,
)
from tests.study_finished import finish_all
from tests.tiny import STUDY, changed


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    return config_file(tmp_path_factory)


@pytest.fixture(scope="module")
def reference(tmp_path_factory):
    return finished_study(tmp_path_factory)


@pytest.fixture(scope="module")
def local(tmp_path_factory, config):
    """The same study on two worker processes."""
    folder = tmp_path_factory.mktemp("local") / "out"
    with pytest.MonkeyPatch.context() as patch:
        assert command(patch, "study", config, "--out", folder, "--workers", 2) == 0
    return folder


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


def test_two_workers_give_the_results_of_one_process(reference, local):
    assert tables(local) == tables(reference)


@pytest.mark.parametrize("name", ["results", "measures"])
def test_parquet_equals_csv(name, reference):
    table = pq.read_table(reference / f"{name}.parquet").to_pylist()
    text = [{name: "" if value is None else str(value) for name, value in row.items()} for row in table]
    assert text == rows_of(reference, f"{name}.csv")


@pytest.mark.parametrize("which", ["reference", "local"])
def test_the_study_folder(which, request):
    folder = request.getfixturevalue(which)
    study = json.loads((folder / "study.json").read_text())
    settings = parse(StudyConfig, TINY)
    expand(settings)
    assert (study["format"], study["fingerprint"]) == (2, settings.fingerprint)
    assert study["axes"] == ["pretrain.language", "pretrain.objective.kind"]
    assert [cell["status"] for cell in study["cells"]] == ["done", "done"]
    names = {p.name for p in folder.iterdir()} - {".lock", "tables"}
    assert names == {
        *("study.json", "results.csv", "results.parquet", "measures.csv", "measures.parquet"),
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


def test_a_finished_study_is_not_run_again(local, config, reference, monkeypatch):
    before = times(local / "stages")
    assert len(before) > 50
    assert command(monkeypatch, "study", config, "--out", local, "--workers", 2) == 0
    assert times(local / "stages") == before
    assert tables(local) == tables(reference)


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


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("align", {"trans, align_mlm"}),
        ("mlm", {"trans, mlm", "trans, align_mlm"}),
        ("pretrain.objective.kind=mlm", {"trans, mlm"}),
        ("kind=mlm", {"trans, mlm"}),
        ("objective=mlm", {"trans, mlm"}),
    ],
)
def test_what_only_chooses(text, names, tmp_path):
    assert opened(tmp_path / "out", only=(text,)).chosen == names
    assert opened(tmp_path / "out", only=(text, "trans, mlm")).chosen == names | {"trans, mlm"}


@pytest.mark.parametrize(
    ("text", "alphas"),
    [
        ("alpha=10", ["10.0"]),
        ("alpha=10.0", ["10.0"]),
        ("alpha=1e2", ["100.0"]),
        ("alpha=1", ["1.0"]),
        ("dose=0.50", ["1.0"]),
    ],
)
def test_an_axis_by_its_last_part_takes_its_label_exactly(text, alphas):
    axes = {"pretrain.objective.kind": ["align_mlm"], "pretrain.objective.alpha": [1.0, 10.0, 100.0]}
    doses = {"0.5": {"pretrain.seed": 1}, "50%": {"pretrain.seed": 2}}
    cells = expand(
        parse(StudyConfig, changed(STUDY, pretrain__language="trans", grid={"product": {"dose": doses, **axes}}))
    )
    chosen = [cell for cell in cells if cell.name in selected(cells, (text,))]
    found = [cell.labels["pretrain.objective.alpha"] for cell in chosen]
    assert found == (alphas * 2 if text.startswith("alpha") else ["1.0", "10.0", "100.0"])


def test_the_whole_name_of_a_cell_stands_for_it():
    axes = {"pretrain.objective.alpha": [1.0, 10.0], "pretrain.seed": [0, 1]}
    data = changed(STUDY, pretrain__language="trans", pretrain__objective__kind="align_mlm", grid={"product": axes})
    cells = expand(parse(StudyConfig, data))
    for cell in cells:
        assert selected(cells, (cell.name,)) == {cell.name}
    assert cells[0].name == "alpha=1.0, pretrain seed=0"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("xlm", "--only xlm: no cell has it; the cells are: trans, mlm; trans, align_mlm"),
        ("", "--only : no cell has it"),
        ("objective=xlm", "--only objective=xlm: no cell has it; the labels of objective are: mlm; align_mlm"),
        ("nothing=mlm", "--only nothing=mlm: no cell has it; the cells are"),
        ("pretrain.objective.kind=xlm", "the labels of pretrain.objective.kind are: mlm; align_mlm"),
    ],
)
def test_only_what_is_not_there(text, message, tmp_path):
    with pytest.raises(InputError) as raised:
        opened(tmp_path / "out", only=(text,))
    assert message in str(raised.value)
    assert not (tmp_path / "out").exists()


# --- what cells share ---


def test_cells_share_their_stages(tmp_path, monkeypatch):
    """Cells that differ in transfer only share a run; two spellings of a language are one cell."""
    trained = []

    def counted(config, run, *rest, **more):
        trained.append(run.name)
        return run_pretraining(config, run, *rest, **more)

    monkeypatch.setattr(work, "pretrain", counted)
    product: dict[str, list[object]] = {"pretrain.language": ["trans"], "transfer.fine_tune.epochs": [1, 2]}
    out = tmp_path / "out"
    run_here(out, changed(STUDY, seeds=[0], grid={"product": product}))
    rows = rows_of(out)
    assert [row["cell"] for row in rows] == [f"trans, epochs={e}" for e in (1, 2)]
    assert len(trained) == 1
    assert len({row["pretrain"] for row in rows}) == len(stages_of(out, "pretrain")) == 1
    assert len({row["probe"] for row in rows}) == len(stages_of(out, "alignment")) == 1
    assert len({row["transfer"] for row in rows}) == len(stages_of(out, "transfer")) == 2
    assert rows[0]["transfer"] != rows[1]["transfer"]
    product["pretrain.language"].append("trans:1.0")
    with pytest.raises(InputError, match=r"two cells of the grid are the same: 'trans, epochs=1' and 'trans:1.0, epo"):
        run_here(tmp_path / "twice", changed(STUDY, seeds=[0], grid={"product": product}))


# --- a thousand cells ---


def test_a_finished_study_of_a_thousand_cells_starts_and_ends_at_once(tmp_path, monkeypatch):
    """By processor time, so that a busy machine does not count: 10 s are promised on the clock."""
    product = {
        "pretrain.language": ["trans", "trans+inv"],
        "pretrain.objective.kind": ["mlm", "align_mlm"],
        "pretrain.seed": list(range(250)),
    }
    study = parse(StudyConfig, changed(STUDY, grid={"product": product}))
    cells = expand(study)
    finish_all(graph(cells, study.seeds).stages.values(), tmp_path / "stages")
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is to be run
    before = os.times()
    written: list[int] = []
    monkeypatch.setattr(StudyRun, "_write_record", counting(StudyRun._write_record, written))
    run = StudyRun(study, cells, tmp_path, RunOptions())
    run.run()
    after = os.times()
    assert after.user + after.system - before.user - before.system < 10
    assert len(written) == 2  # as it starts and as it ends
    assert {cell.status for cell in run.cells} == {"done"}
    assert len(rows_of(tmp_path)) == 2000
    assert len(rows_of(tmp_path, "measures.csv")) == 7 * 1000
    assert (tmp_path / "report.html").exists()


def test_what_another_runner_finished_since_the_start_is_seen(tmp_path, monkeypatch):
    study = parse(StudyConfig, STUDY)
    cells = expand(study)
    tasks = graph(cells, study.seeds).stages
    run = StudyRun(study, cells, tmp_path, RunOptions())
    assert len(run.to_do()) == len(tasks)
    finish_all(tasks.values(), tmp_path / "stages")
    monkeypatch.setattr(runner, "open_executor", None)  # nothing is left to be run
    run.run()
    assert {cell.status for cell in run.cells} == {"done"}


def counting(function, calls):
    def counted(*arguments):
        calls.append(1)
        return function(*arguments)

    return counted
