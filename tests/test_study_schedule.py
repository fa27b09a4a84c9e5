"""The order of the stages of a study, against a plain search over all of them, and what failures do to it."""

import random
from dataclasses import dataclass
from typing import Any

import pytest

from probes.study.executors.base import Outcome
from probes.study.schedule import Schedule


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
    return Outcome(key)


def bad(key, error="it broke"):
    return Outcome(key, error, "Traceback")


CHAIN = tasks_of(p="", a="p", t0="p", t1="a")
TWO = tasks_of(p1="", p2="", a1="p1", a2="p2", t1="p1", t2="p2")


def next_key(schedule: Schedule) -> str:
    stage = schedule.next()
    assert stage is not None
    return stage.key


def drain(schedule):
    found = []
    while (stage := schedule.next()) is not None:
        found.append(stage.key)
    return found


def test_parents_come_first():
    schedule = Schedule(CHAIN, [list(CHAIN)], set())
    assert drain(schedule) == ["p"]
    assert schedule.ended(good("p")) == [good("p")]
    assert drain(schedule) == ["a", "t0"]
    schedule.ended(good("t0"))
    assert drain(schedule) == []
    schedule.ended(good("a"))
    assert drain(schedule) == ["t1"]
    before = schedule.is_over
    schedule.ended(good("t1"))
    assert (before, schedule.is_over) == (False, True)


def test_finished_tasks_are_not_run_and_count_as_parents():
    schedule = Schedule(CHAIN, [list(CHAIN)], {"p", "a"})
    assert drain(schedule) == ["t0", "t1"]
    over = Schedule(CHAIN, [list(CHAIN)], {*CHAIN})
    assert over.is_over
    assert over.next() is None


def test_the_cell_that_is_nearest_its_end_goes_first():
    cells = [["p1", "a1", "t1"], ["p2", "a2", "t2"]]
    schedule = Schedule(TWO, cells, set())
    assert drain(schedule) == ["p1", "p2"]
    schedule.ended(good("p2"))
    assert next_key(schedule) == "a2"
    schedule.ended(good("p1"))
    assert drain(schedule) == ["a1", "t1", "t2"]  # both have two left, so in order


def test_a_started_cell_is_finished_before_another_is_begun():
    cells = [["p1", "a1", "t1"], ["p2", "a2", "t2"]]
    schedule, order = Schedule(TWO, cells, set()), []
    while (stage := schedule.next()) is not None:
        order.append(stage.key)
        schedule.ended(good(stage.key))
    assert order == ["p1", "a1", "t1", "p2", "a2", "t2"]


def test_a_failed_task_fails_what_needs_it_and_nothing_else():
    stages = tasks_of(p="", q="", a="p", b="a", c="a q", d="q")
    schedule = Schedule(stages, [list(stages)], set())
    assert drain(schedule) == ["p", "q"]
    over = schedule.ended(bad("p"))
    assert over[0] == bad("p")
    assert {o.key: o.error for o in over[1:]} == dict.fromkeys("abc", "because stage p failed: it broke")
    schedule.ended(good("q"))
    assert drain(schedule) == ["d"]
    schedule.ended(good("d"))
    assert schedule.is_over
    assert schedule.failed.keys() == {"p", "a", "b", "c"}


def test_two_failed_parents_fail_a_task_once():
    stages = tasks_of(p="", q="", c="p q")
    schedule = Schedule(stages, [list(stages)], set())
    drain(schedule)
    assert [o.key for o in schedule.ended(bad("p"))] == ["p", "c"]
    assert [o.key for o in schedule.ended(bad("q"))] == ["q"]
    assert schedule.is_over


@pytest.mark.parametrize("retry", [0, 1, 3])
def test_retry(retry):
    schedule = Schedule(tasks_of(p="", a="p"), [["p", "a"]], set(), retry)
    for _ in range(retry):
        assert next_key(schedule) == "p"
        assert schedule.next() is None
        assert schedule.ended(bad("p")) == []
        assert not schedule.is_over
    assert next_key(schedule) == "p"
    assert [o.key for o in schedule.ended(bad("p"))] == ["p", "a"]
    assert schedule.is_over


def test_a_task_that_failed_once_and_then_worked_is_done():
    schedule = Schedule(tasks_of(p="", a="p"), [["p", "a"]], set(), 1)
    schedule.next()
    schedule.ended(bad("p"))
    schedule.next()
    schedule.ended(good("p"))
    assert next_key(schedule) == "a"
    assert not schedule.failed


def plain_next(stages, cells, running, done, failed):
    """The stage to start, by looking at all of them."""
    ready = [
        key
        for key, stage in stages.items()
        if key not in running | done | failed and all(parent in done for parent in stage.needs)
    ]

    def rank(key):
        left = [sum(k not in done for k in cell) for cell in cells if key in cell]
        return min(left, default=len(stages)), list(stages).index(key)

    return min(ready, key=rank, default=None)


@pytest.mark.parametrize("seed", range(20))
def test_against_a_plain_search(seed):
    draw = random.Random(seed)
    names = [f"k{i}" for i in range(25)]
    stages: dict[str, Any] = {}
    for i, name in enumerate(names):
        stages[name] = Fake(name, tuple(draw.sample(names[:i], min(i, draw.randint(0, 2)))))

    def with_parents(keys):
        keys = set(keys)
        for name in reversed(names):
            keys |= set(stages[name].needs) if name in keys else set()
        return [name for name in names if name in keys]

    cells = [with_parents(draw.sample(names, 2)) for _ in range(8)]
    cells.append(with_parents(names))
    schedule = Schedule(stages, cells, set())
    running, done, failed = set[str](), set[str](), set[str]()
    while not schedule.is_over:
        if len(running) < 3 and (stage := schedule.next()) is not None:
            assert stage.key == plain_next(stages, cells, running, done, failed)
            running.add(stage.key)
            continue
        if len(running) < 3:
            assert plain_next(stages, cells, running, done, failed) is None
        key = draw.choice(sorted(running))
        running.remove(key)
        if draw.random() < 0.1:
            failed |= {outcome.key for outcome in schedule.ended(bad(key))}
        else:
            done.add(key)
            schedule.ended(good(key))
    assert failed == schedule.failed.keys()
    assert done | failed == set(names)


def test_a_task_shared_by_a_thousand_cells_is_no_burden():
    shared: dict[str, Any] = {"p": Fake("p")} | {f"a{i}": Fake(f"a{i}", ("p",)) for i in range(1000)}
    schedule = Schedule(shared, [["p", f"a{i}"] for i in range(1000)], set())
    count = 0
    while (stage := schedule.next()) is not None:
        schedule.ended(good(stage.key))
        count += 1
    assert count == 1001
    assert len(schedule._heap) < 5
