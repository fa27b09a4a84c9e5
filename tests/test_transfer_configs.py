"""The settings in configs/transfer: every file is a config, and says what its paper says."""

from pathlib import Path

import pytest

from probes.transfer.command import read_transfer_config
from probes.transfer.config import TransferConfig, combinations
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError

FOLDER = Path(__file__).parents[1] / "configs" / "transfer"
FILES = sorted(path for path in FOLDER.rglob("*.yaml") if path.parent.name != "parts")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FOLDER)))
def test_every_file_is_a_config_of_its_task(path):
    config = read_transfer_config(path, {}, {}, [])
    assert config.task in path.stem.split("-")
    assert combinations(config)


@pytest.mark.parametrize(
    ("name", "epochs", "rows", "rate"),
    [
        ("align-mlm-nli", 5, 32, 2e-5),  # table 11
        ("align-mlm-ner", 10, 32, 2e-5),
        ("align-mlm-pos", 10, 32, 2e-5),
        ("cao2020-nli", 3, 32, 5e-5),  # appendix A.1
    ],
)
def test_what_the_tables_print(name, epochs, rows, rate):
    tuning = read_transfer_config(FOLDER / f"{name}.yaml", {}, {}, []).fine_tune
    assert (tuning.epochs, tuning.rows, tuning.learning_rate) == (epochs, rows, rate)


@pytest.mark.parametrize(("name", "count"), [("emerging-ner", 6), ("emerging-parsing", 6), ("emerging-nli", 18)])
def test_searches_are_as_large_as_printed(name, count):
    config = read_transfer_config(FOLDER / f"{name}.yaml", {}, {}, [])
    assert (len(combinations(config)), config.best) == (count, 2)


def test_options_stand_above_the_file():
    path = FOLDER / "tiny" / "ner.yaml"
    config = read_transfer_config(path, {"task": "pos", "train": "a", "dev": None}, {"test": "b"}, ["length=20"])
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
    for path in FILES:
        assert read_transfer_config(path, {}, {}, []).idle == [], path


def test_a_search_is_told_how_its_keys_are_written():
    with pytest.raises(
        InputError, match=r"must be a dotted key with a list of values, as in {fine_tune\.NAME: \[1, 2\]}"
    ):
        read_transfer_config(None, {}, {}, ["search.fine_tune.rows=[8]"])
    with pytest.raises(InputError, match="--target-train and --target-dev go with --target-test"):
        read_transfer_config(None, {}, {"train": "a"}, [])


def test_a_model_that_is_not_there():
    with pytest.raises(InputError, match="there is no such folder; name a run"):
        open_pretrained("/nowhere/at/all", None)
