"""What cells, studies and working folders share of a store, and what they must not."""

import os
import shutil
from pathlib import Path

import pytest
from probes.study.index import entries, finish, seen_now

from pretrain.config import CheckpointConfig, PretrainConfig
from pretrain.folder import kept_steps, steps_in
from probes.study import work
from probes.study.executors import run_stage
from probes.study.stage import PretrainStage, finished, stage_from_json
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_fakes import RUN, FakeTask
from tests.study_graphs import ADJUSTED, FULL, contents, graph_of, run_all, write_treebank
from tests.tiny import changed

PLAIN = changed(FULL, seeds=[0], probes={}, tasks={})  # a run and its alignment
WORDS = {"w": {"probes": ["words"]}}


def of_kind(whole, made, kind):
    return [made[key] for key, task in whole.stages.items() if task.kind == kind and key in made]


def test_two_working_folders_are_not_mixed_up(tmp_path, monkeypatch):
    """The same relative name is another text in another folder; the same text is the same run."""
    for folder, seed in (("w1", 0), ("w2", 1), ("w3", 0)):
        write_treebank(tmp_path / folder / "d", seed)
    store = Store(tmp_path / "store")
    made: dict[str, dict[str, str]] = {}
    for folder in ("w1", "w2", "w3", "w1"):
        monkeypatch.chdir(tmp_path / folder)
        whole, _ = graph_of(changed(PLAIN, source="conllu:d"))  # the configs are equal, and so are the keys
        assert [finished(store, task) for task in whole.stages.values()] == [None, None]
        before = made.get(folder)
        made[folder] = run_all(whole.stages, store)
        assert before in (None, made[folder])
        assert all(finished(store, task) for task in whole.stages.values())
    assert made["w1"] == made["w3"]
    assert not {*made["w1"].values()} & {*made["w2"].values()}
    monkeypatch.chdir(tmp_path / "w2")
    with pytest.raises(InputError, match="is not finished; start again"):
        work._stage(store, next(iter(whole.stages.values())))  # that of w1 stands in the index


def test_cells_of_one_run_that_spell_it_otherwise(tmp_path, monkeypatch):
    """A stage is named by what a run is: not by paths, nor by a dictionary that its objective does not read."""
    write_treebank(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    store, names = Store(tmp_path / "store"), []
    data = changed(PLAIN, source="conllu:d", grid={"product": {"pretrain.dictionary.coverage": [0.25, 0.75]}})
    for spec in ("conllu:d", f"conllu:{tmp_path}/d"):
        whole, _ = graph_of(changed(data, source=spec))
        made = run_all(whole.stages, store)
        names.append((of_kind(whole, made, "pretrain"), of_kind(whole, made, "alignment")))
    (runs, alignments), again = names
    assert len({*runs}) == 1 and len({*alignments}) == 2
    assert again == (runs, alignments)
    share = [
        read_json(store.path("alignment", name) / "result.json")["scores"]["in_dictionary"]["n"] for name in alignments
    ]
    assert share[0] < share[1]


def test_the_words_of_a_shared_run_are_those_of_each_cell(tmp_path):
    grid = {"product": {"pretrain.dictionary.coverage": [0.25, 0.75]}}
    store = Store(tmp_path / "store")
    whole, _ = graph_of(changed(PLAIN, probes=WORDS, grid=grid))
    made = run_all(whole.stages, store)
    assert len({*of_kind(whole, made, "pretrain")}) == 1
    found = [read_json(store.path("probe", name) / "probes.json") for name in of_kind(whole, made, "probe")]
    known = [read_json(store.path("alignment", n) / "result.json") for n in of_kind(whole, made, "alignment")]
    assert [f["probes"]["words"]["scores"] for f in found] == [a["scores"] for a in known]
    assert known[0]["scores"] != known[1]["scores"]


def test_a_probe_reads_the_checkpoints_of_its_own_config(tmp_path):
    """A run shared with a study that keeps fewer gets those that are missing; results are those of an empty store."""
    few, many = {"every": 3, "keep": 1}, {"every": 2, "keep": 1, "archive": 2}
    shared, alone = Store(tmp_path / "shared"), Store(tmp_path / "alone")
    steps, probes = [], []
    for policy, probed, store in ((few, {}, shared), (many, WORDS, shared), (few, WORDS, shared), (many, WORDS, alone)):
        whole, _ = graph_of(changed(PLAIN, pretrain__checkpoints=policy, probes=probed))
        run_all(whole.stages, store)
        made = {key: finished(store, task) for key, task in whole.stages.items()}
        (run,) = of_kind(whole, made, "pretrain")
        steps.append(steps_in(store.path("pretrain", run) / "checkpoints"))
        for name in of_kind(whole, made, "probe"):
            found = read_json(store.path("probe", name) / "probes.json")["probes"]["words"]["checkpoints"]
            probes.append((name, [held["step"] for held in found]))
    assert steps == [[6], [2, 4, 6], [2, 4, 6], [2, 4, 6]]
    assert [held for _, held in probes] == [[2, 4, 6], [6], [2, 4, 6]]
    assert probes[0] == probes[2] != probes[1]
    kinds = ("probe", "alignment")
    assert contents(alone, kinds).items() <= contents(shared, kinds).items()
    assert not list(shared.root.glob("*.again"))


def natural(tmp_path: Path, words: int):
    """Two natural languages whose dictionary no objective reads; it pairs the first ``words`` words with themselves."""
    for seed, name in enumerate(("en", "de")):
        if not (tmp_path / name).exists():
            write_treebank(tmp_path / name, seed)
    (tmp_path / "words.txt").write_text("".join(f"w{n} w{n}\n" for n in range(words)))
    languages = [{"name": name, "source": f"conllu:{tmp_path / name}"} for name in ("en", "de")]
    run = {**FULL["pretrain"], "languages": languages, "vocabulary": {"kind": "joined", "size": 300}}
    run["dictionary"] = {"path": str(tmp_path / "words.txt"), "coverage": 0.5}
    run["sharing"] = {"embeddings": "separate"}
    del run["language"]
    return graph_of({"name": "n", "pretrain": run, "tasks": {}, "probes": {}})[0]


def test_a_dictionary_that_no_objective_reads_counts_by_its_content(tmp_path):
    store = Store(tmp_path / "store")
    whole = natural(tmp_path, 10)
    first = run_all(whole.stages, store)
    whole = natural(tmp_path, 20)
    second = run_all(whole.stages, store)
    assert list(second) == list(first)  # both were looked at again
    assert of_kind(whole, first, "pretrain") == of_kind(whole, second, "pretrain")
    results = [
        read_json(store.path("alignment", of_kind(whole, made, "alignment")[0]) / "result.json")
        for made in (first, second)
    ]
    assert [held["types"] for held in results] == [10, 20]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("plain"))
    whole, _ = graph_of(changed(PLAIN, tasks={"pos": {}}))
    return store, whole, run_all(whole.stages, store)


@pytest.mark.parametrize("damage", ["gone", "truncated", "{}", "predictions", "done"])
def test_a_damaged_stage_is_made_again(damage, plain, tmp_path):
    store, whole, made = plain
    other = Store(tmp_path / "copy")
    shutil.copytree(store.root, other.root)
    before = contents(store, ("transfer", "alignment"))
    pretrain, transfer = (next(t for t in whole.stages.values() if t.kind == kind) for kind in ("pretrain", "transfer"))
    result = other.path("transfer", made[transfer.key]) / "result.json"
    if damage == "gone":
        result.unlink()
    elif damage == "truncated":
        result.write_bytes(result.read_bytes()[:-20])
    elif damage == "{}":
        write_json(result, {})
    elif damage == "predictions":
        result.with_name("predictions.parquet").unlink()
    else:
        (other.path("pretrain", made[pretrain.key]) / "done.json").unlink()
        shutil.rmtree(other.path("transfer", made[transfer.key]))
    assert {task.key for task in whole.stages.values() if finished(other, task) is None} == (
        {pretrain.key, transfer.key} if damage == "done" else {transfer.key}
    )
    again = run_all(whole.stages, other)
    assert again.items() <= made.items() and transfer.key in again
    assert contents(other, ("transfer", "alignment")) == before
    assert all(finished(other, task) for task in whole.stages.values())


def test_an_adjustment_is_named_by_what_changes_its_weights(tmp_path, monkeypatch):
    store, names = Store(tmp_path / "store"), []
    monkeypatch.setattr(work, "_place", lambda store, model: "model")
    monkeypatch.setattr(work, "content_of", lambda model: "content")

    def adjusted(config, folder, report, stop):
        write_json(folder / "done.json", {"by": config.model})

    monkeypatch.setattr(work, "adjust", adjusted)
    for more in ({}, {"log_every": 7, "measure": 3, "checkpoints": {"every": 5}}, {"seed": 1}):
        whole, _ = graph_of(changed(ADJUSTED, adjust={**ADJUSTED["adjust"], **more}))
        names += [task.run(store, silent) for task in whole.stages.values() if task.kind == "adjust"]
    assert names[0] == names[1] != names[2]


def test_runs_whose_languages_are_called_otherwise_are_two(tmp_path):
    """Their exported models are found by these names; an adjustment names them, too."""
    store, runs = Store(tmp_path / "store"), []
    derived = FULL["pretrain"]["language"]
    for left, right in ((derived, "parent"), ("xx", "en")):
        languages = [{"name": right}, {"name": left, "language": derived}]
        pretrain = {**FULL["pretrain"], "language": None, "languages": languages}
        pair = {**ADJUSTED["adjust"]["pairs"]["x"], "tokenizers": [left, right]}
        adjust = {**ADJUSTED["adjust"], "pairs": {"x": pair}}
        whole, _ = graph_of(changed(ADJUSTED, seeds=[0], pretrain=pretrain, adjust=adjust, probes={}, tasks={}))
        made = run_all(whole.stages, store)
        runs += of_kind(whole, made, "pretrain")
        assert {path.name for path in (store.path("pretrain", runs[-1]) / "export").iterdir()} == {left, right}
    assert len(set(runs)) == 2


# --- the index, and who runs a task ---


def test_an_entry_that_is_deleted_while_the_index_is_read_is_none(tmp_path, monkeypatch):
    store = Store(tmp_path)
    finish(store, RUN, "b" * 16, 5.0)
    monkeypatch.setattr("probes.study.index.entry_of", lambda store, key: None)
    assert list(entries(store)) == []


def test_a_stage_that_several_tasks_came_to_counts_once_with_the_time_it_took(tmp_path):
    store = Store(tmp_path)
    for steps, seconds in ((6, 0.0), (7, 90.0), (8, 0.1)):
        task = PretrainStage(parse(PretrainConfig, {**FULL["pretrain"], "source": FULL["source"], "steps": steps}))
        finish(store, task, "a" * 16, seconds)
    finish(store, RUN, "b" * 16, 5.0)
    assert sorted((entry["fingerprint"][0], entry["seconds"]) for entry in entries(store)) == [("a", 90.0), ("b", 5.0)]


class Piped(FakeTask):
    def _pipe(self, store):
        raise BrokenPipeError("the aligner has died")


def test_a_broken_pipe_of_the_task_is_its_own_and_one_of_the_listener_is_not(tmp_path):
    outcome = run_stage(Piped(RUN, "p", "pipe"), Store(tmp_path), silent)
    assert outcome.error == "BrokenPipeError: the aligner has died"

    def deaf(*told):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_stage(FakeTask(RUN, "q"), Store(tmp_path), deaf)


def test_a_file_that_a_language_names_is_read_when_the_work_starts(tmp_path, monkeypatch):
    """A study may wait for hours: what it read of the file at its start is not what the index says was read."""
    switch = {"kind": "code_switch", "dictionary": "words.txt", "probability": 1.0, "cap": 1.0}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("the a\n")
    language = {"name": "switched", "transforms": [switch]}
    whole, _ = graph_of(changed(PLAIN, pretrain__language=language))
    task = next(iter(whole.stages.values()))
    (tmp_path / "words.txt").write_text("the b\n")
    fresh = stage_from_json(task.to_json())
    assert isinstance(task, PretrainStage) and isinstance(fresh, PretrainStage)
    texts = [held.config.all_languages[1].language.fingerprint for held in (task, fresh)]
    assert texts[0] != texts[1]
    read = []

    def prepared(config, *_):
        read.append(config.all_languages[1].language.fingerprint)
        raise ZeroDivisionError

    monkeypatch.setattr(work, "prepare", prepared)
    with pytest.raises(ZeroDivisionError):
        task.run(Store(tmp_path / "store"), silent)
    assert read == [texts[1]]


def test_a_folder_that_gets_a_file_while_it_is_read_is_looked_at_again(tmp_path):
    bank = write_treebank(tmp_path / "bank")
    whole, _ = graph_of(changed(PLAIN, source=f"conllu:{bank}"))
    store, task = Store(tmp_path / "store"), next(iter(whole.stages.values()))
    before, name = seen_now(store, task), task.run(store, silent)
    finish(store, task, name, 3.0, before)
    assert finished(store, task) == name
    (bank / "x-ud-dev.conllu").write_bytes((bank / "x-ud-test.conllu").read_bytes())
    finish(store, task, name, 3.0, before)
    assert finished(store, task) is None
    os.utime(bank / "x-ud-test.conllu", ns=(5, 5))  # an older file put in its place: its time is before the start
    finish(store, task, name, 3.0, before)
    assert finished(store, task) is None


@pytest.mark.parametrize("seed", [-1, 2**63, 2**80])
def test_seeds_that_no_table_can_hold(seed):
    with pytest.raises(InputError, match="seed"):
        parse(PretrainConfig, {**FULL["pretrain"], "source": FULL["source"], "seed": seed})
    with pytest.raises(InputError, match="seed"):
        graph_of(changed(ADJUSTED, adjust={**ADJUSTED["adjust"], "seed": seed}))


def test_kept_steps_are_a_function_of_the_policy():
    assert kept_steps(CheckpointConfig(every=100, keep=2, archive=400), 950) == [400, 800, 900, 950]
    assert kept_steps(CheckpointConfig(every=100, keep=1), 50) == [50]
    assert kept_steps(CheckpointConfig(every=1, keep=9), 3) == [1, 2, 3]
