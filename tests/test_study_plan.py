"""What a study would do before it starts: counts, sharing and time; how fast a thousand cells are looked at."""

import io
import time

from rich.console import Console

from probes.study.cells import expand
from probes.study.done import is_done
from probes.study.plan import plan
from probes.study.stage import PretrainStage, graph
from synthlang.store import Store
from tests.study_finished import finish_all
from tests.study_graphs import FULL, study_of
from tests.tiny import changed

GRID = {"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}}


def planned(data, store):
    study = study_of(data)
    whole = graph(expand(study), study.seeds)
    return plan(study, whole, store, {key for key, stage in whole.stages.items() if is_done(store, stage)}), whole


def shown(found) -> str:
    file = io.StringIO()
    Console(file=file, width=140).print(found)
    return file.getvalue()


def test_an_empty_store(tmp_path):
    found, _ = planned(changed(FULL, grid=GRID), Store(tmp_path / "none"))
    kinds = {kind.kind: kind for kind in found.kinds}
    assert list(kinds) == ["pretrain", "alignment", "probe", "transfer"]
    # two runs for four cells; the tasks and seeds of each cell are its own
    counts = {name: (kind.stages, kind.shared, kind.done) for name, kind in kinds.items()}
    assert counts == {"pretrain": (2, 2, 0), "alignment": (2, 2, 0), "probe": (2, 2, 0), "transfer": (16, 0, 0)}
    assert {kind.told for kind in found.kinds} == {("unknown yet", "")}
    assert set(found.cells.values()) == {1 + 1 + 1 + 4}
    assert not (tmp_path / "none").exists()  # nothing is written


def test_what_is_done_and_what_it_took_tell_the_rest(tmp_path):
    store, data = Store(tmp_path), changed(FULL, grid=GRID)
    _, whole = planned(data, store)
    finish_all([stage for stage in whole.stages.values() if isinstance(stage, PretrainStage)][:1], tmp_path)
    found, _ = planned(data, store)
    kinds = {kind.kind: kind for kind in found.kinds}
    assert (kinds["pretrain"].done, kinds["pretrain"].to_do) == (1, 1)
    assert (kinds["pretrain"].seconds, kinds["pretrain"].told[1]) == (1.0, "1 done")
    assert kinds["transfer"].seconds is None
    assert sorted(found.cells.values()) == [6, 6, 7, 7]
    assert "at least 1 s" in shown(found)


def test_all_done(tmp_path):
    store = Store(tmp_path)
    _, whole = planned(FULL, store)
    finish_all(whole.stages.values(), tmp_path)
    found, _ = planned(FULL, store)
    assert {kind.told for kind in found.kinds} == {("", "")}
    assert set(found.cells.values()) == {0}
    assert "done" in shown(found) and "unknown" not in shown(found)


def test_what_it_shows(tmp_path):
    axes = {"pretrain.language": ["trans"], "pretrain.seed": list(range(50))}
    found, _ = planned(changed(FULL, grid={"product": axes}), Store(tmp_path))
    text = shown(found)
    assert "full: 50 cells × 2 fine-tuning seeds" in text
    assert all(f"trans, pretrain seed={seed} " in text for seed in range(50))
    one, _ = planned(changed(FULL, seeds=[0], pretrain__language="trans"), Store(tmp_path))
    assert "full: 1 cell × 1 fine-tuning seed\n" in "\n".join(map(str.rstrip, shown(one).split("\n"))) + "\n"
    assert "unknown yet" in text


# --- a thousand cells ---


def test_a_finished_study_of_a_thousand_cells_is_looked_at_quickly(tmp_path):
    study = study_of(changed(FULL, tasks={"pos": {}}, grid={"product": {"pretrain.seed": list(range(1000))}}))
    whole = graph(expand(study), study.seeds)
    store = Store(tmp_path)
    finish_all(whole.stages.values(), tmp_path)
    start = time.process_time()
    done = {key for key, stage in whole.stages.items() if is_done(store, stage)}
    found = plan(study, whole, store, done)
    took = time.process_time() - start
    assert len(done) == len(whole.stages) == 5000
    assert all(kind.to_do == 0 for kind in found.kinds)
    assert took < 4
