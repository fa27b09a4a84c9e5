"""Settings of transfers in the catalogue: each of a task is a config and says what its paper says; searches."""

import re
from pathlib import Path

import pytest

from probes.models.opening import open_pretrained
from probes.transfer.config import TransferConfig, combinations
from probes.transfer.transfer_command import read_transfer_config
from synthlang.catalogue import find, names
from synthlang.config import parse
from tests.refusals import place_and_code, refusal, refused

NAMES = [name for name in names("transfer") if "task" in find("transfer", name).data]


def entry(name):
    return read_transfer_config(Path(name), {}, {}, [])


@pytest.mark.parametrize("name", NAMES)
def test_every_entry_is_of_its_task(name):
    config = entry(name)
    assert config.task in re.split("[-/]", name)
    assert combinations(config)


def test_options_stand_above_the_file():
    config = read_transfer_config(
        Path("ner/tiny"), {"task": "pos", "train": "a", "dev": None}, {"test": "b"}, ["length=20"]
    )
    assert (config.task, config.train, config.dev, config.length) == ("pos", "a", None, 20)
    assert config.target is not None and (config.target.test, config.target.train) == ("b", None)


def test_settings_that_mean_nothing_for_a_task_are_told():
    asked = {"head": {"kind": "crf", "arc": 5}, "stride": 8, "score": {"repair": "final-type"}}
    idle = {task: parse(TransferConfig, {"task": task, **asked}).idle for task in ("nli", "ner", "parsing", "qa")}
    assert idle == {
        "nli": ["head.arc", "head.kind", "score.repair", "stride"],
        "ner": ["head.arc", "stride"],
        "parsing": ["head.kind", "score.repair", "stride"],
        "qa": ["head.arc", "head.kind", "score.repair"],
    }
    assert [name for name in NAMES if entry(name).idle] == []


def test_options_that_are_refused():
    dotted = ("transfer search.fine_tune", "type")
    assert refused(read_transfer_config, None, {}, {}, ["search.fine_tune.rows=[8]"]) == dotted
    assert refused(read_transfer_config, None, {}, {"train": "a"}, []) == ("--target-test", "missing")
    found = read_transfer_config(None, {}, {"train": "a"}, ["target.test=b"]).target
    assert found is not None and (found.train, found.test) == ("a", "b")
    refusal(open_pretrained, "/nowhere/at/all", None)


@pytest.mark.parametrize("options", [{}, {"test": "a"}, {"train": "a"}])
@pytest.mark.parametrize("value", ["conllu:x", "[a, b]", "5"])
def test_a_target_in_the_config_must_be_a_section(options, value, tmp_path):
    (tmp_path / "a.yaml").write_text(f"task: pos\ntarget: {value}\n")
    assert refused(read_transfer_config, tmp_path / "a.yaml", {}, options, []) == ("a.yaml target", "type")


def searched(**search) -> TransferConfig:
    return parse(TransferConfig, {"search": {key.replace("__", "."): values for key, values in search.items()}})


def test_every_combination():
    config = searched(fine_tune__learning_rate=[1e-5, 2e-5], head__kind=["linear", "crf"], features__layers=[[-1]])
    found = combinations(config)
    assert [label for label, _ in found] == [
        f"fine_tune.learning_rate={rate} head.kind={kind} features.layers=[-1]"
        for rate in ("1e-05", "2e-05")
        for kind in ("linear", "crf")
    ]
    last = found[-1][1]
    assert last.fine_tune.learning_rate == 2e-5 and last.head.kind == "crf" and last.features.layers == (-1,)
    unchanged = last.model_copy(update={"fine_tune": config.fine_tune, "head": config.head, "search": config.search})
    assert unchanged == config and last.search == {}
    assert len(combinations(searched(fine_tune__epochs=[3, 3, 4]))) == 2
    assert combinations(TransferConfig()) == [("", TransferConfig())]


REFUSED_SEARCHES = [
    ({"fine_tune__learning_rat": [1.0]}, "search.fine_tune.learning_rat", "unknown"),
    ({"fine_tune__epochs": [1, "many"]}, "search.fine_tune.epochs", "type"),
    ({"fine_tune__epochs__x": [1]}, "search.fine_tune.epochs", "type"),
    ({"head__dropout": [0.1, 1.5]}, "search.head.dropout", "range"),
    ({"head__dropout": []}, "search.head.dropout", "empty"),
    ({"length": [8, 16]}, "search.length", "unknown"),
    ({"length": {"x": [8]}}, "search.length", "unknown"),
]


@pytest.mark.parametrize(("search", "place", "code"), REFUSED_SEARCHES)
def test_a_search_over_what_is_not_there(search, place, code):
    assert refused(lambda: combinations(searched(**search))) == (place, code)


def test_a_searched_value_that_another_key_excludes():
    settings = {"features": {"tune": "none"}, "target_model": "x", "search": {"features.tune": ["none", "all"]}}
    error = refusal(combinations, parse(TransferConfig, settings))
    assert (place_and_code(error), error.hint) == (
        ("target_model", "conflict"),
        "set features.tune to none; search has features.tune=all",
    )


REFUSED_SETTINGS = [
    ({"target_model": "x"}, "target_model", "conflict"),
    ({"features": {"tune": "none"}, "continual": {}}, "continual", "conflict"),
    ({"mixed": True}, "mixed", "conflict"),
    ({"task": "nli", "mixed": True, "target_model": "x", "features": {"tune": "none"}}, "mixed", "conflict"),
    ({"task": "nli", "mixed": True, "rotation": {}}, "mixed", "conflict"),
    ({"chosen_by": "target", "target": {"test": "x"}}, "chosen_by", "conflict"),
    ({"tested_on": "dev", "target": {"test": "x"}}, "tested_on", "conflict"),
    ({"dev_also": [{"language": "de"}]}, "dev_also", "no_effect"),
    ({"chosen_by": "mean", "dev_also": [{"language": "de"}], "rotation": {}}, "dev_also", "conflict"),
]


@pytest.mark.parametrize(("settings", "place", "code"), REFUSED_SETTINGS)
def test_settings_that_contradict_each_other(settings, place, code):
    assert refused(parse, TransferConfig, settings) == (place, code)
