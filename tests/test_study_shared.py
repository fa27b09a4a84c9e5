"""What cells, studies and working folders share of a store, and what they must not."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from pretrain.config import CheckpointConfig, PretrainConfig
from pretrain.folder import kept_steps, steps_in
from probes.study.done import is_done
from probes.study.executors.base import run_stage
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import silent
from synthlang.store import Store
from tests.study_fakes import FakeStage
from tests.study_graphs import ADJUSTED, FULL, contents, graph_of, run_all, write_treebank
from tests.tiny import changed

PLAIN = changed(FULL, seeds=[0], probes={}, tasks={})  # a run and its alignment
WORDS = {"w": {"probes": ["words"]}}


def of_kind(whole, kind):
    return [key for key, stage in whole.stages.items() if stage.kind == kind]


def of_cells(whole, name):
    return [held[name] for held in whole.of_cell.values()]


def test_two_working_folders_are_not_mixed_up(tmp_path, monkeypatch):
    """The same relative name is another text in another folder; the same text is the same run."""
    for folder, seed in (("w1", 0), ("w2", 1), ("w3", 0)):
        write_treebank(tmp_path / folder / "d", seed)
    store = Store(tmp_path / "store")
    made: dict[str, list[str]] = {}
    for folder in ("w1", "w2", "w3", "w1"):
        monkeypatch.chdir(tmp_path / folder)
        whole, _ = graph_of(changed(PLAIN, source="conllu:d"))
        made[folder] = list(whole.stages)
        assert run_all(whole.stages, store) == ([] if "w3" in made else made[folder])
    assert made["w1"] == made["w3"]
    assert not {*made["w1"]} & {*made["w2"]}


def test_cells_of_one_run_that_spell_it_otherwise(tmp_path, monkeypatch):
    """A stage is named by what a run is: not by paths, nor by a dictionary that its objective does not read."""
    write_treebank(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    store, names = Store(tmp_path / "store"), []
    data = changed(PLAIN, source="conllu:d", grid={"product": {"pretrain.dictionary.coverage": [0.25, 0.75]}})
    for spec in ("conllu:d", f"conllu:{tmp_path}/d"):
        whole, _ = graph_of(changed(data, source=spec))
        run_all(whole.stages, store)
        names.append((of_kind(whole, "pretrain"), of_kind(whole, "alignment")))
    (runs, alignments), again = names
    assert len(runs) == 1 and len(alignments) == 2
    assert again == (runs, alignments)
    share = [
        read_json(store.path("alignment", name) / "result.json")["scores"]["in_dictionary"]["n"] for name in alignments
    ]
    assert share[0] < share[1]


def test_the_words_of_a_shared_run_are_those_of_each_cell(tmp_path):
    grid = {"product": {"pretrain.dictionary.coverage": [0.25, 0.75]}}
    store = Store(tmp_path / "store")
    whole, _ = graph_of(changed(PLAIN, probes=WORDS, grid=grid))
    run_all(whole.stages, store)
    assert len(of_kind(whole, "pretrain")) == 1
    found = [read_json(store.path("probe", key) / "probes.json") for key in of_cells(whole, "probe w")]
    known = [read_json(store.path("alignment", key) / "result.json") for key in of_cells(whole, "alignment")]
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
        (run,) = of_kind(whole, "pretrain")
        steps.append(steps_in(store.path("pretrain", run) / "checkpoints"))
        for name in of_kind(whole, "probe"):
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
    store, runs, types = Store(tmp_path / "store"), [], []
    for words in (10, 20):
        whole = natural(tmp_path, words)
        run_all(whole.stages, store)
        runs += of_kind(whole, "pretrain")
        (alignment,) = of_kind(whole, "alignment")
        types.append(read_json(store.path("alignment", alignment) / "result.json")["types"])
    assert runs[0] == runs[1]
    assert types == [10, 20]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("plain"))
    whole, _ = graph_of(changed(PLAIN, tasks={"pos": {}}))
    run_all(whole.stages, store)
    return store, whole


@pytest.mark.parametrize("damage", ["gone", "truncated", "{}", "predictions", "done"])
def test_a_damaged_stage_is_made_again(damage, plain, tmp_path):
    store, whole = plain
    other = Store(tmp_path / "copy")
    shutil.copytree(store.root, other.root)
    before = contents(store, ("transfer", "alignment"))
    (pretrain,), (transfer,) = of_kind(whole, "pretrain"), of_kind(whole, "transfer")
    result = other.path("transfer", transfer) / "result.json"
    if damage == "gone":
        result.unlink()
    elif damage == "truncated":
        result.write_bytes(result.read_bytes()[:-20])
    elif damage == "{}":
        write_json(result, {})
    elif damage == "predictions":
        result.with_name("predictions.parquet").unlink()
    else:
        (other.path("pretrain", pretrain) / "done.json").unlink()
        shutil.rmtree(other.path("transfer", transfer))
    assert run_all(whole.stages, other) == ([pretrain, transfer] if damage == "done" else [transfer])
    assert contents(other, ("transfer", "alignment")) == before
    assert all(is_done(other, stage) for stage in whole.stages.values())


@pytest.mark.parametrize(
    ("more", "same"), [({"log_every": 7, "measure": 3, "checkpoints": {"every": 5}}, True), ({"seed": 1}, False)]
)
def test_an_adjustment_is_named_by_what_changes_its_weights(more, same):
    keys = [
        of_kind(graph_of(changed(ADJUSTED, adjust={**ADJUSTED["adjust"], **changes}))[0], "adjust")
        for changes in (dict[str, Any](), more)
    ]
    assert (keys[0] == keys[1]) == same


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
        run_all(whole.stages, store)
        runs += of_kind(whole, "pretrain")
        assert {path.name for path in (store.path("pretrain", runs[-1]) / "export").iterdir()} == {left, right}
    assert len(set(runs)) == 2


# --- who makes a stage ---


class Piped(FakeStage):
    def _pipe(self, store):
        raise BrokenPipeError("the aligner has died")


def test_a_broken_pipe_of_the_task_is_its_own_and_one_of_the_listener_is_not(tmp_path):
    outcome = run_stage(Piped(key="p", does="pipe"), Store(tmp_path), silent)
    assert outcome.error == "BrokenPipeError: the aligner has died"

    def deaf(*told):
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_stage(FakeStage(key="q"), Store(tmp_path), deaf)


def test_a_file_that_a_language_names_is_read_when_the_work_starts(tmp_path, monkeypatch):
    """A study may wait for hours: what it has read of the file at its start is not what is there by then."""
    switch = {"kind": "code_switch", "dictionary": "words.txt", "probability": 1.0, "cap": 1.0}
    monkeypatch.chdir(tmp_path)
    (tmp_path / "words.txt").write_text("the a\n")
    language = {"name": "switched", "transforms": [switch]}
    whole, _ = graph_of(changed(PLAIN, pretrain__language=language))
    (tmp_path / "words.txt").write_text("the b\n")
    outcome = run_stage(next(iter(whole.stages.values())), Store(tmp_path / "store"), silent)
    assert outcome.error == "pretrain mlm switched: a file has changed since the study was started; start again"


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
