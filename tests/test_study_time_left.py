"""The time that a study still takes, by what earlier stages of each kind took."""

from types import SimpleNamespace

import pytest

from probes.study.time_left import UNKNOWN, TimeLeft


def stage(kind, number, task=""):
    return SimpleNamespace(kind=kind, key=f"{kind}{number}", config=SimpleNamespace(task=task))


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("probes.study.time_left.time.monotonic", lambda: now.seconds)
    return now


def test_trainings_that_are_left_count_more_than_the_many_short_stages(clock):
    """Two models of 100 s, each with ten stages of a second: after one model half of the time is left."""
    models = [stage("pretrain", i) for i in range(2)]
    short = [stage("transfer", i, "pos") for i in range(20)]
    left = TimeLeft([*models, *short], [])
    assert left.told() == UNKNOWN
    for one, seconds in ((models[0], 100), *((one, 1) for one in short[:10])):
        left.started(one)
        clock.seconds += seconds
        left.ended(one.key)
    assert left.told() == "about 110 s left"
    left.started(models[1])
    clock.seconds += 60
    assert left.told() == "about 50 s left"
    left.started(short[10])
    assert left.told() == "about 25 s left", "two at a time"
    clock.seconds += 500
    assert left.told() == "about 4 s left", "what takes longer than before counts for nothing more"


def test_what_was_done_before_and_other_tasks_tell(clock):
    left = TimeLeft([stage("transfer", 1, "nli"), stage("transfer", 2, "pos")], [(stage("transfer", 3, "nli"), 30.0)])
    assert left.told() == UNKNOWN, "pos may take longer"
    left.ended("transfer2")  # failed with the training that it needs
    assert left.told() == "about 30 s left"
    left.ended("transfer1")
    assert left.told() == ""
