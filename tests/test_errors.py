"""An error is a place, a reason and a hint; the message is made of them."""

import pytest

from synthlang.errors import InputError
from tests.refusals import place_and_code

MESSAGES = [
    (InputError("no such file"), "no such file"),
    (InputError("no such file", "a.yaml"), "a.yaml: no such file"),
    (InputError("not a number", "a.txt", 3), "a.txt:3: not a number"),
    (InputError("must be at least 1", keys="pretrain.steps"), "pretrain.steps: must be at least 1"),
    (
        InputError("unknown key", "a.yaml", 2, keys=["b", "c"], hint="delete it"),
        "a.yaml:2: b.c: unknown key; delete it",
    ),
    (InputError(f"a{'b' * 999}c", keys="k" * 999), f"{'k' * 497} … {'k' * 100}: a{'b' * 496} … {'b' * 99}c"),
    (InputError("two\n lines", hint="one\n more"), "two lines; one more"),
    (InputError("x", keys="a", others=[InputError("y", keys="b")]), "a: x; b: y"),
    (InputError("x", keys="a", others=[InputError("y", keys=k) for k in "bcde"]), "a: x; b: y; c: y; and 2 more"),
]


@pytest.mark.parametrize(("error", "message"), MESSAGES)
def test_the_message_is_made_of_the_parts(error, message):
    assert str(error) == message


def test_an_error_of_a_part_is_one_of_the_whole():
    inner = InputError("must be at least 1", keys="steps", code="range", others=[InputError("unknown key", keys="x")])
    outer = inner.inside("grid", "pretrain", path="study.yaml", line=4)
    assert str(outer) == "study.yaml:4: grid.pretrain.steps: must be at least 1; grid.pretrain.x: unknown key"
    assert place_and_code(outer) == ("study.yaml:4 grid.pretrain.steps", "range")
    assert str(inner) == "steps: must be at least 1; x: unknown key"


def test_a_file_that_the_error_names_stays():
    assert str(InputError("empty", "data.txt", 1).inside("train", path="study.yaml")) == "data.txt:1: train: empty"
