"""A search of a grid: who goes on at a rung, the bytes of the winner, what a study finds, a search that is stopped."""

import csv
import json
from typing import Any

import pytest
import yaml

from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.run import pretrain
from pretrain.stopping import Flag, Stopped
from probes import search_study
from probes.study import search
from probes.study.options import SearchOptions
from synthlang.config import load, parse
from synthlang.fingerprint import sha256_file
from tests.refusals import refused
from tests.study_cases import made_here
from tests.tiny import PRETRAIN, STUDY, changed

pytest.importorskip("optuna")
RATES = [1e-5, 1e-4, 1e-3, 1e-2]
GRID = {"product": {"pretrain.optimizer.learning_rate": RATES, "pretrain.language": ["trans"]}}
TINY = changed(
    STUDY, pretrain__steps=12, pretrain__validation={"every": 2, "rows": 8}, pretrain__log_every=4, grid=GRID
)
TINY |= {"tasks": {}}
HALVING: dict[str, Any] = {"trials": 4, "first_rung": 4, "reduction": 2}


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = tmp_path_factory.mktemp("search") / "study.yaml"
    path.write_text(yaml.safe_dump(TINY))
    return path


@pytest.fixture(scope="module")
def found(study):
    """The trials of a search, whose folder is beside the study, as is its store."""
    return search_study(study, study.parent / "search", SearchOptions(store=study.parent / "store", **HALVING))


def steps_of(store):
    """Learning rate → the steps that a run was trained for."""
    found = {}
    for run in store.glob("pretrain-*"):
        rate = load(PretrainConfig, run / "config.yaml").optimizer.learning_rate
        found[rate] = read_metrics(run / "metrics.jsonl")[-1]["step"]
    return found


def test_the_best_go_on_and_are_the_models_that_a_study_makes(study, found, tmp_path):
    store = study.parent / "store"
    assert found[0].params["pretrain.optimizer.learning_rate"] == "0.01" and found[0].last_step == 12
    reached = steps_of(store)
    assert reached[1e-2] == 12 and min(reached.values()) == 4 and set(reached.values()) <= {4, 8, 12}
    for trial in found:  # a rung is left by the best half of those that had come to it
        for rung in (4, 8):
            before = [
                t.intermediate_values[rung] for t in found if rung in t.intermediate_values and t.number <= trial.number
            ]
            if rung in trial.intermediate_values:
                goes_on = trial.intermediate_values[rung] <= sorted(before)[max(len(before) // 2 - 1, 0)]
                assert (trial.last_step > rung) == goes_on
    with (study.parent / "search" / "trials.csv").open() as lines:
        rows = list(csv.DictReader(lines))
    assert rows[0]["state"] == "complete" and len(rows) == 4
    best_alone = {"product": {"pretrain.optimizer.learning_rate": [1e-2], "pretrain.language": ["trans"]}}
    whole = made_here(tmp_path / "whole", {**TINY, "grid": best_alone})
    best = rows[0]["stage"]
    for name in ("metrics.jsonl", "export/trans/model.safetensors"):
        assert (store / best / name).exists()
    weights = "export/trans/model.safetensors"
    assert sha256_file(store / best / weights) == sha256_file(whole.store.root / best / weights)
    assert json.loads((store / "studies.json").read_text())["studies"]
    made_here(tmp_path / "again", TINY, store=store)  # those given up go on
    assert set(steps_of(store).values()) == {12}


def test_a_search_that_is_stopped_goes_on(study, found, tmp_path, monkeypatch):
    real, calls = search.Search._train, []

    def stopped(self, stage, until, stop, report):
        calls.append(until)
        if len(calls) == 3:
            raise Stopped(1)
        return real(self, stage, until, stop, report)

    monkeypatch.setattr(search.Search, "_train", stopped)
    with pytest.raises(SystemExit, match="143"):
        search_study(study, tmp_path / "two", SearchOptions(**HALVING))
    again = search_study(study, tmp_path / "two", SearchOptions(**HALVING))
    told = [[f"{t.params} {t.intermediate_values}" for t in trials] for trials in (found, again)]
    assert sorted(told[0]) == sorted(told[1])


@pytest.mark.parametrize("every", [0, 2])
def test_a_finished_run_without_perplexity_has_to_be_deleted(every, study, found, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "read_metrics", lambda path: [])
    grid = {"product": {"pretrain.optimizer.learning_rate": [1e-2], "pretrain.language": ["trans"]}}
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(changed(TINY, grid=grid, pretrain__validation__every=every)))
    options = SearchOptions(store=study.parent / "store", trials=1)
    (trial,) = search_study(tmp_path / "s.yaml", tmp_path / "search", options)
    place, reason = trial.user_attrs["error"].split(": ", maxsplit=1)
    assert place == str(options.store / trial.user_attrs["stage"])
    assert "has no perplexity at step 12" in reason and "delete this folder" in reason
    assert ("pretrain.validation.every" in reason) == (every == 0)


def test_a_run_stops_at_a_step(tmp_path):
    config = parse(PretrainConfig, {**PRETRAIN, "steps": 12, "log_every": 5, "checkpoints": {"every": 10}})
    flag = Flag()
    flag.until = 7
    with pytest.raises(Stopped) as raised:
        pretrain(config, tmp_path / "run", stop=flag)
    assert raised.value.args == (7,) and (tmp_path / "run" / "checkpoints" / "step-7").is_dir()


REFUSED: list[tuple[dict[str, Any], dict[str, Any], list[str], str, str]] = [
    ({}, {"first_rung": 3}, [], "study.yaml cell trans, learning_rate=1e-05 pretrain.validation.every", "conflict"),
    ({}, {"sampler": "grid"}, [], "--sampler", "unknown"),
    ({}, {"trials": 0}, [], "--trials", "range"),
    ({"grid": {"zip": {"pretrain.seed": [0]}}}, {}, [], "study.yaml grid.zip", "unsupported"),
    ({"grid": None}, {}, [], "study.yaml grid.product", "empty"),
    ({"grid": {**GRID, "exclude": [{"pretrain.language": "trans"}]}}, {}, [], "study.yaml grid.exclude", "empty"),
    ({"grid": {**GRID, "exclude": [{"pretrain.sed": 1}]}}, {}, [], "study.yaml grid.exclude.0.pretrain.sed", "unknown"),
    ({}, {}, ["pretrain.optimizer.learning_rate=1"], "--set pretrain.optimizer.learning_rate", "no_effect"),
    ({"pretrain": None, "model": "x"}, {}, [], "study.yaml pretrain", "missing"),
]


@pytest.mark.parametrize(("changes", "options", "overrides", "place", "code"), REFUSED)
def test_what_is_refused(tmp_path, changes, options, overrides, place, code):
    path = tmp_path / "study.yaml"
    data = {**TINY, **changes}
    if data.get("model"):
        data = {k: v for k, v in data.items() if k not in ("pretrain", "source")} | {
            "grid": {"product": {"transfer.seed": [0]}}
        }
    path.write_text(yaml.safe_dump({k: v for k, v in data.items() if v is not None}))
    out = tmp_path / "out"
    assert refused(search_study, path, out, SearchOptions(**options), overrides=overrides) == (place, code)
    assert not out.exists()


def test_rungs():
    assert SearchOptions(first_rung=100, reduction=3).rungs(1000) == [100, 300, 900]
    assert SearchOptions(first_rung=1000).rungs(1000) == [] == SearchOptions().rungs(10)
