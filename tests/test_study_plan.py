"""What a study would do before it starts: counts, sharing, time and disk; how fast a thousand cells are looked at."""

import io
import time

import pytest
from probes.study.costs import Size, disk, operations, size_of_model
from probes.study.finished import all_finished
from rich.console import Console

from probes.study import plan as plans
from probes.study.cells import expand
from probes.study.plan import plan, shown_bytes
from probes.study.stage import AdjustStage, PretrainStage, TransferStage, finish, graph
from synthlang.store import Store
from tests.study_graphs import ADJUSTED, FULL, TWO, graph_of, study_of
from tests.tiny import changed

GRID = {"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}}


def planned(data, store):
    study = study_of(data)
    whole = graph(expand(study), study.seeds)
    return plan(study, whole, store, all_finished(store, whole.stages)), whole


def stage_of(store, task, name):
    """A stage that looks whole."""
    folder = store.path(task.kind, name)
    folder.mkdir(parents=True)
    for file in task.content:
        (folder / file).write_text('{\n  "made": true\n}\n')


def made(store, tasks, seconds=10.0):
    """Entries and stages, as of a runner that did them."""
    for number, task in enumerate(tasks):
        name = f"{number:016x}"
        stage_of(store, task, name)
        finish(store, task, name, seconds)


def shown(found) -> str:
    file = io.StringIO()
    Console(file=file, width=140).print(found)
    return file.getvalue()


@pytest.fixture(autouse=True)
def _machine(monkeypatch):
    """A machine of 10⁹ operations a second."""
    monkeypatch.setattr(plans, "_SPEED", [1e9])


def test_an_empty_store(tmp_path):
    found, whole = planned(changed(FULL, grid=GRID), Store(tmp_path / "none"))
    kinds = {kind.kind: kind for kind in found.kinds}
    assert list(kinds) == ["pretrain", "alignment", "probe", "transfer"]
    # two runs for four cells; the tasks and seeds of each cell are its own
    counts = {name: (kind.tasks, kind.shared, kind.done) for name, kind in kinds.items()}
    assert counts == {"pretrain": (2, 2, 0), "alignment": (2, 2, 0), "probe": (2, 2, 0), "transfer": (16, 0, 0)}
    runs = [task for task in whole.stages.values() if isinstance(task, PretrainStage)]
    work = sum(operations(task) for task in runs)
    assert kinds["pretrain"].seconds == pytest.approx(2 * plans.START + work / (plans.SHARE * 1e9))
    assert kinds["pretrain"].told_by == "a matrix product"
    assert found.seconds == pytest.approx(sum(kind.seconds for kind in found.kinds))
    assert found.size == pytest.approx(sum(disk(task) for task in whole.stages.values()))
    assert set(found.cells.values()) == {1 + 1 + 1 + 4}
    assert not (tmp_path / "none").exists()  # nothing is written


def test_what_is_done_and_what_it_took_tell_the_rest(tmp_path):
    store, data = Store(tmp_path), changed(FULL, grid=GRID)
    _, whole = planned(data, store)
    runs = [task for task in whole.stages.values() if isinstance(task, PretrainStage)]
    made(store, runs[:1])
    found, _ = planned(data, store)
    kinds = {kind.kind: kind for kind in found.kinds}
    assert (kinds["pretrain"].done, kinds["pretrain"].to_do) == (1, 1)
    assert kinds["pretrain"].seconds == pytest.approx(10.0)  # the other run is as large
    assert kinds["pretrain"].told_by == "1 done"
    assert kinds["transfer"].told_by == "1 done, other kinds"
    work = sum(operations(task) for task in whole.stages.values() if isinstance(task, TransferStage))
    assert kinds["transfer"].seconds == pytest.approx(10.0 * work / operations(runs[0]))
    made(store, [])
    assert sorted(found.cells.values()) == [6, 6, 7, 7]


def test_all_done(tmp_path):
    store = Store(tmp_path)
    _, whole = planned(FULL, store)
    made(store, whole.stages.values())
    found, _ = planned(FULL, store)
    assert (found.seconds, found.size) == (0, 0)
    assert all(kind.to_do == 0 for kind in found.kinds)
    assert "done" in shown(found)


def test_what_it_shows(tmp_path):
    axes = {"pretrain.language": ["trans"], "pretrain.seed": list(range(50))}
    found, _ = planned(changed(FULL, grid={"product": axes}), Store(tmp_path))
    text = shown(found)
    assert "full: 50 cells × 2 fine-tuning seeds" in text
    assert all(f"trans, pretrain seed={seed} " in text for seed in range(50))
    one, _ = planned(changed(FULL, seeds=[0], pretrain__language="trans"), Store(tmp_path))
    assert "full: 1 cell × 1 fine-tuning seed\n" in "\n".join(map(str.rstrip, shown(one).split("\n"))) + "\n"
    assert "a matrix product" in text


# --- costs ---


def test_operations_grow_as_the_settings_do():
    def of(kind, **values):
        tasks = graph_of(changed(FULL, **values))[0].tasks.values()
        return sum(operations(task) for task in tasks if task.kind == kind)

    runs = of("pretrain")
    assert of("pretrain", pretrain__steps=12) == pytest.approx(2 * runs)
    assert of("pretrain", pretrain__batch={"rows": 16, "length": 48}) == pytest.approx(2 * runs)
    tests = of("transfer")
    twice = {**FULL["transfer"], "fine_tune": {"epochs": 2, "learning_rate": 0.01}}
    assert tests < of("transfer", transfer=twice) < 2 * tests
    search = {**FULL["transfer"], "search": {"fine_tune.rows": [4, 8, 16]}}
    assert of("transfer", transfer=search) > 1.5 * tests
    assert of("transfer", transfer={**FULL["transfer"], "features": {"tune": "none"}}) < tests


def test_the_size_of_a_model_is_that_of_the_model():
    """Against the weights of the encoder itself, for languages that share and those that do not."""
    from pretrain.model.encoder import MaskedLM

    whole, _ = graph_of(FULL)
    run = next(iter(whole.stages.values()))
    size = size_of_model(run)
    assert size.ids == 600  # a copy of each of the 300 tokens
    config = run.config
    model = MaskedLM(
        config.model, config.sharing, ids=[], size=size.ids, positions=48, pad=1, language_ids=False, seed=0
    )
    matrices = sum(p.numel() for p in model.parameters() if p.ndim > 1)
    assert size.weights == pytest.approx(matrices, rel=0.1)
    separate = changed(
        FULL, pretrain__sharing={"embeddings": "separate"}, pretrain__vocabulary={"kind": "joint", "size": 300}
    )
    assert size_of_model(next(iter(graph_of(separate)[0].tasks.values()))).ids == 600
    assert size_of_model("no/such-model") == Size()


def test_disk_is_that_of_the_checkpoints_that_stay():
    def of(**values):
        return disk(next(iter(graph_of(changed(FULL, **values))[0].tasks.values())))

    weights = size_of_model(next(iter(graph_of(FULL)[0].tasks.values()))).weights
    assert of() == 4 * weights * (3 * 2 + 2)  # the last two checkpoints and two exports
    assert of(pretrain__checkpoints={"every": 1, "archive": 2}) == 4 * weights * (3 * 5 + 2)
    assert of(pretrain__checkpoints={"every": 6}) == 4 * weights * (3 * 1 + 2)


@pytest.mark.parametrize("data", [TWO, ADJUSTED], ids=["two", "adjusted"])
def test_every_kind_has_costs(data):
    tasks = list(graph_of(data)[0].tasks.values())
    assert any(isinstance(task, AdjustStage) for task in tasks) == (data is ADJUSTED)
    assert all(operations(task) > 0 and disk(task) > 0 for task in tasks)


@pytest.mark.parametrize(
    ("size", "text"), [(0, "0 bytes"), (999, "999 bytes"), (1500, "1.5 kB"), (150e6, "150 MB"), (7.5e15, "7500 TB")]
)
def test_sizes_as_text(size, text):
    assert shown_bytes(size) == text


# --- a thousand cells ---


def test_a_finished_study_of_a_thousand_cells_is_looked_at_quickly(tmp_path):
    axes = {"pretrain.seed": list(range(100)), "pretrain.dictionary.coverage": [i / 10 for i in range(1, 11)]}
    study = study_of(changed(FULL, tasks={"pos": {}}, grid={"product": axes}))
    cells = expand(study)
    whole = graph(cells, study.seeds)
    store = Store(tmp_path)
    (tmp_path / "index").mkdir()
    for task in whole.stages.values():
        stage_of(store, task, task.key)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthlang.files.os.fsync", lambda handle: None)  # of 5,000 small files
        for task in whole.stages.values():
            finish(store, task, task.key, 1.0)
    start = time.process_time()
    done = all_finished(store, whole.stages)
    assert done.keys() == whole.stages.keys()
    found = plan(study, whole, store, done)
    took = time.process_time() - start
    assert len(whole.stages) == 5000
    assert all(kind.to_do == 0 for kind in found.kinds)
    assert took < 4
