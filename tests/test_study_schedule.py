"""The order of the stages of a study, against a plain search over all of them, and what failures do to it.

And the forecast of the time that is left.
"""

import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from probes.study.executors.base import StageOutcome
from probes.study.schedule import UNKNOWN, Schedule, TimeLeft


@dataclass(frozen=True)
class Fake:
    key: str
    needs: tuple[str, ...] = ()
    kind: str = "fake"

    @property
    def parents(self):
        return [Fake(key) for key in self.needs]

    @property
    def label(self):
        return f"stage {self.key}"


def tasks_of(**parents):
    return {key: Fake(key, tuple(names.split())) for key, names in parents.items()}


def good(key):
    return StageOutcome(key)


def bad(key, error="it broke"):
    return StageOutcome(key, error, "Traceback")


def next_key(schedule: Schedule) -> str:
    stage = schedule.next()
    assert stage is not None
    return stage.key


def test_a_started_cell_is_finished_before_another_is_begun():
    stages = tasks_of(p1="", a1="p1", t1="p1", p2="", a2="p2", t2="p2")
    schedule, order = Schedule(stages, set()), []
    while (stage := schedule.next()) is not None:
        order.append(stage.key)
        assert schedule.ended(good(stage.key)) == [good(stage.key)]
    assert order == ["p1", "a1", "t1", "p2", "a2", "t2"] and schedule.is_over
    over = Schedule(stages, {*stages})
    assert over.is_over and over.next() is None


def test_what_waits_for_another_comes_after_what_does_not():
    schedule, order = Schedule(tasks_of(a="", b="", c="", d="c"), set()), []
    while (stage := schedule.next(lambda key: key in "ac")) is not None:
        order.append(stage.key)
        schedule.ended(good(stage.key))
    assert order == ["b", "a", "c", "d"]  # in the order of cells where all wait, and without them none is left out


def test_a_failed_task_fails_what_needs_it_once_and_nothing_else():
    stages = tasks_of(p="", q="", a="p", b="a", c="a q", d="q")
    schedule = Schedule(stages, set())
    assert [next_key(schedule), next_key(schedule), schedule.next()] == ["p", "q", None]
    over = schedule.ended(bad("p"))
    assert over[0] == bad("p")
    assert {o.key: o.error for o in over[1:]} == dict.fromkeys("abc", "not run, because stage p failed: it broke")
    assert [outcome.key for outcome in schedule.ended(bad("q", "too"))] == ["q", "d"]
    assert schedule.is_over and schedule.failed.keys() == {*stages}


@pytest.mark.parametrize("retry", [0, 1, 3])
@pytest.mark.parametrize("works", [True, False])
def test_retry(retry, works):
    schedule = Schedule(tasks_of(p="", a="p"), set(), retry)
    for _ in range(retry):
        assert next_key(schedule) == "p"
        assert schedule.next() is None
        assert schedule.ended(bad("p")) == []
        assert not schedule.is_over
    assert next_key(schedule) == "p"
    if works:
        assert schedule.ended(good("p")) == [good("p")] and not schedule.failed
        assert next_key(schedule) == "a"
    else:
        assert [o.key for o in schedule.ended(bad("p"))] == ["p", "a"]
    assert schedule.is_over != works


def plain_next(stages, running, done, failed):
    """The stage to start, by looking at all of them."""
    over = running | done | failed
    ready = (key for key, stage in stages.items() if key not in over and done.issuperset(stage.needs))
    return next(ready, None)


@pytest.mark.parametrize("seed", range(20))
def test_against_a_plain_search(seed):
    draw = random.Random(seed)
    names = [f"k{i}" for i in range(25)]
    stages: dict[str, Any] = {}
    for i, name in enumerate(names):
        stages[name] = Fake(name, tuple(draw.sample(names[:i], min(i, draw.randint(0, 2)))))
    done = {name for name in names[:5] if draw.random() < 0.5 and not stages[name].needs}
    schedule = Schedule(stages, done)
    running, failed = set[str](), set[str]()
    while not schedule.is_over:
        if len(running) < 3 and (stage := schedule.next()) is not None:
            assert stage.key == plain_next(stages, running, done, failed)
            running.add(stage.key)
            continue
        if len(running) < 3:
            assert plain_next(stages, running, done, failed) is None
        key = draw.choice(sorted(running))
        running.remove(key)
        if draw.random() < 0.1:
            failed |= {outcome.key for outcome in schedule.ended(bad(key))}
        else:
            done.add(key)
            schedule.ended(good(key))
    assert failed == schedule.failed.keys()
    assert done | failed == set(names)


# --- the time that a study still takes, by what earlier stages of each kind took ---


def stage(kind, number, task=""):
    return SimpleNamespace(kind=kind, key=f"{kind}{number}", config=SimpleNamespace(task=task))


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr("probes.study.schedule.time.monotonic", lambda: now.seconds)
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
