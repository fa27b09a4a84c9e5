"""The stages of cells, their keys and their JSON. Nothing is made."""

import json
from typing import Any

import pytest

from pretrain.config import CheckpointConfig, PretrainConfig
from pretrain.folder import kept_steps
from probes.models.names import CellModel
from probes.stages.adjust import AdjustStage
from probes.stages.base import DATA_FORMATS, StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.finetune import TuneStage
from probes.stages.kinds import stage_from_json
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.study.cells import expand
from probes.study.common_settings import DIFFERS, common_settings
from probes.study.graph import graph
from synthlang.config import parse
from synthlang.errors import InputError
from tests.refusals import refusal
from tests.study_graphs import (
    ADJUST,
    ADJUSTED,
    BASE,
    CELLS,
    FULL,
    GRID,
    PAIR,
    SOURCE,
    STARTED,
    TWO,
    graph_of,
    keyed,
    of_kind,
    study_of,
)
from tests.tiny import changed

WORDS = {"probes": ["words"]}
MADE = {"pretrain", "alignment", "probe", "transfer"}
STUDIES = {"full": FULL, "two": TWO, "adjusted": ADJUSTED, "started": STARTED, "tuned": CELLS}


def named(data):
    """The stages of a study of one cell, by what the cell calls them."""
    whole, (cell,) = graph_of(data)
    return {name: whole.stages[key] for name, key in whole.of_cell[cell.name].items()}, cell


def keys_of(*stages):
    return [stage.key for stage in stages]


# --- which there are ---


def test_the_stages_of_a_cell():
    whole, (cell,) = graph_of(FULL)
    keys = whole.of_cell[cell.name]
    transfers = [f"transfer {task} seed {seed}" for task in ("pos", "ner") for seed in (0, 1)]
    assert list(keys) == ["pretrain", "alignment", "probe words", *transfers]
    assert list(keys.values()) == list(whole.stages)
    assert [whole.stages[keys[name]].config.task for name in transfers] == ["pos", "pos", "ner", "ner"]
    for key, stage in whole.stages.items():
        assert stage.key == key
        assert keys_of(*stage.parents) == ([keys["pretrain"]] if stage.kind != "pretrain" else [])


def test_cells_share_stages_and_every_parent_comes_first():
    grid = {"product": {"pretrain.seed": [0, 1], "transfer.fine_tune.epochs": [1, 2]}}
    whole, cells = graph_of(changed(FULL, grid=grid))
    assert len(cells) == 4
    assert [len(of_kind(whole, kind)) for kind in (PretrainStage, ProbeStage, TransferStage)] == [2, 2, 4 * 2 * 2]
    order = list(whole.stages)
    for key, stage in whole.stages.items():
        assert all(order.index(parent) < order.index(key) for parent in keys_of(*stage.parents))


def test_a_probe_of_all_checkpoints_has_a_stage_for_each_named_step():
    """Stages of one checkpoint have the key that they have without the others."""
    named_at = changed(FULL, pretrain__checkpoints={"at": [1, 0.5]}, probes={"w": {**WORDS, "checkpoints": "all"}})
    stages, cell = named(named_at)
    assert list(stages)[2:5] == ["probe w", "probe w step 1", "probe w step 3"]
    assert cell.probed_checkpoints("w") == {1: "probe w step 1", 3: "probe w step 3", 6: "probe w"}
    assert [stages[f"probe w step {step}"].step for step in (1, 3)] == [1, 3]
    alone, _ = named(changed(FULL, probes={"w": {**WORDS, "words": {"checkpoints": False}}}))
    assert alone["probe w"].key == stages["probe w"].key != stages["probe w step 1"].key
    more, _ = named(changed(named_at, pretrain__checkpoints={"at": {"log": 4}}))
    assert {stages[f"probe w step {step}"].key for step in (1, 3)} & {one.key for one in more.values()} == {
        stages["probe w step 1"].key,
        stages["probe w step 3"].key,
    }
    assert more["pretrain"].key == stages["pretrain"].key == named(FULL)[0]["pretrain"].key
    best = {"at": [1], "select": "best"}
    assert list(named(changed(named_at, pretrain__checkpoints=best))[0])[2:5] == [
        *("probe w", "probe w step 1", "probe w step 6")
    ]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"pretrain__checkpoints": {"every": 2}}, "missing"),
        ({"adjust": ADJUST, "tasks": {"pos": {}}}, "conflict"),
        ({"finetuned": {"task": "pos"}}, "conflict"),
        ({"target_model": {**FULL["pretrain"], "seed": 7}, "tasks": {}}, "conflict"),
    ],
)
def test_all_checkpoints_are_those_of_a_pretraining_that_names_some(change, code):
    data = changed(FULL, pretrain__checkpoints={"at": [1]}, probes={"w": {**WORDS, "checkpoints": "all"}})
    assert refusal(graph_of, changed(data, **change)).keys == ("probes", "w", "checkpoints")
    assert refusal(graph_of, changed(data, **change)).code == code


def test_a_cell_of_two_models():
    stages, cell = named(TWO)
    assert [stages[name].config.seed for name in ("pretrain", "second")] == [0, 7]
    for name in ("probe cka", "probe plain", "transfer pos seed 0"):
        assert stages[name].parents == (stages["pretrain"], stages["second"])
    assert stages["alignment"].parents == (stages["pretrain"],)
    assert cell.tasks["pos"].target_model == cell.probes["plain"].model2 == CellModel.TARGET
    assert cell.probes["cka"].model2 is None


def test_a_cell_of_an_adjusted_model():
    stages, cell = named(ADJUSTED)
    assert cell.adjust.model == CellModel.ORIGINAL
    assert stages["adjust"].parents == stages["alignment"].parents == (stages["pretrain"],)
    assert stages["probe d"].parents == stages["transfer pos seed 0"].parents == (stages["adjust"],)
    data = {k: v for k, v in ADJUSTED.items() if k not in ("pretrain", "probes", "source")} | {"model": "bert"}
    whole = graph(expand(study_of(data)), [0])
    assert [stage.kind for stage in whole.stages.values()] == ["adjust", "transfer", "transfer"]
    assert of_kind(whole, AdjustStage)[0].model == "bert"


def test_a_cell_whose_pretraining_starts_from_another():
    stages, cell = named(STARTED)
    assert cell.pretrain.start.model == CellModel.INIT
    assert list(stages) == ["start", "pretrain", "alignment", "probe words", "transfer pos seed 0"]
    assert stages["pretrain"].parents == (stages["start"],)
    whole, _ = graph_of({**STARTED, "grid": {"product": {"pretrain.seed": [0, 1]}}})
    assert [stage.init_from is None for stage in of_kind(whole, PretrainStage)] == [True, False, False]
    whole, _ = graph_of({**STARTED, "grid": {"product": {"init_from.seed": [0, 1]}}})
    assert len(of_kind(whole, PretrainStage)) == 4


def test_cells_of_other_target_languages_share_the_fine_tuning_for_probes():
    languages = {"a": {"finetuned.language": "trans"}, "b": {"finetuned.language": "parent", "probes.d.seed": 2}}
    grid = {"product": {"language": languages, **GRID}, "exclude": [{"language": "b", "tuning": "pos+continual"}]}
    whole, cells = graph_of({**CELLS, "grid": grid})
    names = {tuple(cell.labels.values()): whole.of_cell[cell.name] for cell in cells}
    assert "tuned" not in {**names["a", "none"], **names["b", "none"]}
    assert names["a", "pos"]["tuned"] == names["b", "pos"]["tuned"] != names["a", "pos+continual"]["tuned"]
    plain, continual = of_kind(whole, TuneStage)
    assert (plain.seed, plain.config.language, continual.config.language) == (3, None, "trans")
    assert keys_of(*plain.parents) == [names["a", "pos"]["pretrain"]]
    for (_, tuning), keys in names.items():
        assert isinstance(whole.stages[keys["probe d"]].model, TuneStage) == (tuning != "none")
    assert plain.label == "tune mlm trans on pos seed 3"
    assert continual.label == "tune mlm trans on pos+continual seed 3"


def test_transfers_do_not_read_the_model_tuned_for_probes_and_its_seed_is_an_axis():
    pair = {"x": {"kind": "derived", "source": SOURCE, "left": "trans"}}
    seeds = {"grid": {"product": {"finetuned.seed": [0, 5]}}}
    whole, cells = graph_of(changed(BASE, tasks={"pos": {}}, adjust={**ADJUST, "pairs": pair}, **seeds))
    assert [stage.seed for stage in of_kind(whole, TuneStage)] == [cell.finetuned_seed for cell in cells] == [0, 5]
    assert all(isinstance(stage.model, AdjustStage) for stage in of_kind(whole, TuneStage))
    transfers = of_kind(whole, TransferStage)
    assert len(transfers) == 2 and all(isinstance(stage.model, AdjustStage) for stage in transfers)


def test_the_settings_in_full_have_the_fine_tuning_for_probes():
    found = common_settings(graph_of(CELLS)[1][1:])["tuned"]
    assert (found["task"], found["continual"], found["seed"]) == ("pos", DIFFERS, 3)
    _, cells = graph_of(changed(CELLS, grid={"product": {"finetuned.seed": [0, 5]}}))
    assert common_settings(cells)["tuned"]["seed"] == DIFFERS
    assert common_settings(graph_of(CELLS)[1])["tuned"] == DIFFERS, "one cell has none"


# --- JSON and keys ---


@pytest.mark.parametrize("name", STUDIES)
def test_json_and_back_is_the_same_stage(name):
    for stage in graph_of(STUDIES[name])[0].stages.values():
        again = stage_from_json(json.loads(json.dumps(stage.to_json())))
        assert again == stage and type(again) is type(stage)
        assert again.key == StageKeys(ContentHashes()).key(again) == stage.key


@pytest.mark.parametrize(
    ("values", "kinds"),
    [
        ({"title": "other", "name": "other", "learned": {"perplexity": 1.5}}, set()),
        ({"tasks": {"one": {"task": "pos"}, "ner": {}}, "probes": {"w": FULL["probes"]["words"]}}, set()),
        ({"pretrain__steps": 7}, MADE),
        ({"source": SOURCE.replace("500", "400")}, MADE),
        ({"source": SOURCE.replace("?types=500&sentences=200", "?sentences=200&types=500")}, set()),
        ({"pretrain__log_every": 3, "pretrain__validation": {"every": 2}}, set()),
        ({"pretrain__checkpoints": {"every": 2}}, set()),
        ({"pretrain__dictionary": {"coverage": 0.25}}, {"alignment", "probe"}),  # nothing else reads one
        ({"transfer__length": 40}, {"transfer"}),
        ({"transfer__search": {"fine_tune.rows": [8]}}, {"transfer"}),
        ({"seeds": [0, 1, 2]}, {"transfer"}),
        ({"probes": {"words": {"probes": ["words"], "seed": 1}}}, {"probe"}),
    ],
)
def test_keys_cover_what_the_content_depends_on_and_nothing_else(values, kinds):
    whole, base = graph_of(changed(FULL, **values))[0], graph_of(FULL)[0]
    assert {stage.kind for key, stage in whole.stages.items() if key not in base.stages} == kinds


def test_another_format_of_the_data_is_another_key(monkeypatch):
    """Also of what is made of the run; a raised format finds nothing that was made before."""
    before, _ = graph_of(FULL)
    monkeypatch.setattr("probes.stages.base.DATA_FORMATS", (*DATA_FORMATS[:-1], DATA_FORMATS[-1] + 1))
    after, _ = graph_of(FULL)
    assert len(after.stages) == len(before.stages) and not after.stages.keys() & before.stages.keys()


def test_a_probe_of_every_checkpoint_depends_on_which_there_are():
    probes = {"words": {"probes": ["words"], "words": {"checkpoints": True}}}
    one, two = (graph_of(changed(FULL, probes=probes, pretrain__checkpoints={"every": n}))[0] for n in (1, 2))
    assert {one.stages[key].kind for key in one.stages.keys() - two.stages} == {"probe"}
    assert kept_steps(CheckpointConfig(every=100, keep=2, archive=400), 950) == [400, 800, 900, 950]
    assert kept_steps(CheckpointConfig(every=100, keep=1), 50) == [50]


def test_a_probe_of_a_fine_tuned_model_depends_on_its_dictionary_and_on_no_checkpoint():
    """It has one body; what counts as translations its run says."""
    probes = {"words": {"probes": ["words"], "words": {"checkpoints": True}}}
    data = changed(BASE, probes=probes)
    keys = {
        of_kind(graph_of(changed(data, **change))[0], ProbeStage)[0].key
        for change in ({}, {"pretrain__checkpoints": {"every": 2}}, {"pretrain__dictionary": {"coverage": 0.75}})
    }
    assert len(keys) == 2


def test_keys_cover_models_by_their_names_and_the_fine_tuning_for_probes():
    first = of_kind(graph_of(FULL)[0], TransferStage)[0]
    assert len({StageKeys().key(first.model_copy(update={"model": model})) for model in ("a", "b")}) == 2
    plain, _ = of_kind(graph_of(CELLS)[0], TuneStage)
    longer = plain.config.model_copy(update={"train_items": 120})
    others = [plain.model_copy(update=change) for change in ({"config": longer}, {"seed": 4}, {"model": "a"})]
    assert len({plain.key, *(keyed(other).key for other in others)}) == 4


@pytest.mark.parametrize(
    ("more", "same"), [({"log_every": 7, "measure": 3, "checkpoints": {"every": 5}}, True), ({"seed": 1}, False)]
)
def test_an_adjustment_is_named_by_what_changes_its_weights(more, same):
    changes: tuple[dict[str, Any], ...] = ({}, more)
    studies = (changed(ADJUSTED, adjust={**ADJUSTED["adjust"], **change}) for change in changes)
    first, second = (named(data)[0]["adjust"].key for data in studies)
    assert (first == second) == same


def test_runs_whose_languages_are_called_otherwise_are_two():
    """Their exported models are found by these names; an adjustment names them, too."""
    derived, keys = FULL["pretrain"]["language"], []
    for left, right in ((derived, "parent"), ("xx", "en")):
        languages = [{"name": right}, {"name": left, "language": derived}]
        pair = {**PAIR, "tokenizers": [left, right]}
        run = {**FULL["pretrain"], "language": None, "languages": languages}
        stages, _ = named(changed(ADJUSTED, pretrain=run, adjust={**ADJUST, "pairs": {"x": pair}}))
        keys += [stages["pretrain"].key, stages["adjust"].key]
    assert len(set(keys)) == 4


@pytest.mark.parametrize("seed", [-1, 2**63, 2**80])
def test_seeds_that_no_table_can_hold(seed):
    with pytest.raises(InputError, match="seed"):
        parse(PretrainConfig, {**FULL["pretrain"], "source": FULL["source"], "seed": seed})
    with pytest.raises(InputError, match="seed"):
        graph_of(changed(ADJUSTED, adjust={**ADJUSTED["adjust"], "seed": seed}))
