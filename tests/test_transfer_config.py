"""Settings of transfers in the catalogue: each of a task is a config and says what its paper says; searches."""

import re
from pathlib import Path

import pytest

from probes.pretrained import open_pretrained
from probes.transfer.config import TransferConfig, combinations
from probes.transfer.transfer_command import read_transfer_config
from synthlang.catalogue import find, names
from synthlang.config import parse
from synthlang.errors import InputError

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
    dotted = r"must be a dotted key with a list of values, as in {fine_tune\.NAME: \[1, 2\]}"
    with pytest.raises(InputError, match=dotted):
        read_transfer_config(None, {}, {}, ["search.fine_tune.rows=[8]"])
    with pytest.raises(InputError, match="--target-train and --target-dev go with --target-test"):
        read_transfer_config(None, {}, {"train": "a"}, [])
    with pytest.raises(InputError, match="there is no such folder; name a run"):
        open_pretrained("/nowhere/at/all", None)


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


@pytest.mark.parametrize(
    ("search", "message"),
    [
        ({"fine_tune__learning_rat": [1.0]}, r"search: fine_tune.learning_rat=1.0: .*learning_rat"),
        ({"fine_tune__epochs": [1, "many"]}, r"search: fine_tune.epochs=many: .*fine_tune.epochs"),
        ({"fine_tune__epochs__x": [1]}, r"search: fine_tune.epochs.x=1: .*fine_tune.epochs"),
        ({"head__dropout": [0.1, 1.5]}, r"search: head.dropout=1.5: .*head.dropout"),
        ({"head__dropout": []}, "'head.dropout' has no values"),
        ({"length": [8, 16]}, "must be a key of fine_tune, head or features"),
    ],
    ids=["key", "type", "inside", "range", "empty", "place"],
)
def test_a_search_over_what_is_not_there(search, message):
    with pytest.raises(InputError, match=message):
        combinations(searched(**search))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"target_model": "x"}, "target_model needs features that stay as they are"),
        ({"features": {"tune": "none"}, "continual": {}}, "continual learning moves the body"),
        ({"mixed": True}, "mixed is for tasks of pairs: nli and qa"),
        ({"task": "nli", "mixed": True, "target_model": "x", "features": {"tune": "none"}}, "mixed needs one model"),
        ({"task": "nli", "mixed": True, "rotation": {}}, "mixed rows have both languages"),
        ({"chosen_by": "target", "target": {"test": "x"}}, r"chosen_by target needs target\.dev"),
        ({"tested_on": "dev", "target": {"test": "x"}}, r"tested_on dev needs target\.dev"),
        ({"dev_also": [{"language": "de"}]}, "dev_also has no effect unless chosen_by is mean"),
        (
            {"chosen_by": "mean", "dev_also": [{"language": "de"}], "rotation": {}},
            "dev_also needs one model that reads every language as it is",
        ),
    ],
)
def test_settings_that_contradict_each_other(settings, message):
    with pytest.raises(InputError, match=message):
        parse(TransferConfig, settings)
