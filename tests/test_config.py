"""YAML, strict settings, assignments and files over files."""

from __future__ import annotations

import copy
import json
import math
import warnings
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pydantic
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field

from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, dump_yaml, load, override, parse, renamed_values
from tests.refusals import refusal, refused


class Mlm(StrictModel):
    kind: Literal["mlm"] = "mlm"
    alpha: float = Field(default=0.5, gt=0, le=1)


class Tlm(StrictModel):
    kind: Literal["tlm"]
    mlm: int = 3  # a field named as the tag of the other


class Device(Enum):
    CPU = "cpu"
    GPU = "gpu"


class Run(StrictModel):
    steps: int
    objective: Annotated[Mlm | Tlm, Field(discriminator="kind")] = Mlm()
    stages: tuple[Annotated[Mlm | Tlm, Field(discriminator="kind")], ...] = ()
    table: dict[str, Mlm] = Field(default_factory=dict)
    either: int | str | None = None
    out: Path = Path("runs")
    flag: bool = False
    device: Device = Device.CPU
    mode: Literal["fast", "slow"] = "fast"

    @pydantic.field_validator("mode")
    @classmethod
    def _mode(cls, value):
        if value == "slow":
            raise ValueError("slow is for the night")
        return value

    @pydantic.model_validator(mode="after")
    def _run(self):
        if self.steps == 13:
            raise ValueError("steps 13 brings bad luck")
        return self


KEYS = "steps, objective, stages, table, either, out, flag, device, mode"
YAML = [
    ("a: no\nb: yes\nc: on\nd: off\nno: y", {"a": "no", "b": "yes", "c": "on", "d": "off", "no": "y"}),
    ("a: true\nb: False\nc: TRUE", {"a": True, "b": False, "c": True}),
    ("a: 1e-4\nb: .5\nc: 3.\nd: 1E5\ne: -2.5e+3", {"a": 1e-4, "b": 0.5, "c": 3.0, "d": 1e5, "e": -2500.0}),
    ("a: 010\nb: 0x1F\nc: 0o17\nd: -7", {"a": 10, "b": 31, "c": 15, "d": -7}),
    ("a: 1:30\nb: 2024-01-01\nd: 1.2.3", {"a": "1:30", "b": "2024-01-01", "d": "1.2.3"}),
    ("a:\nb: ~\nc: null\nd: ''\ne: 'null'", {"a": None, "b": None, "c": None, "d": "", "e": "null"}),
    ("a: .inf\nb: -.Inf", {"a": math.inf, "b": -math.inf}),
    (
        "a: &x {p: 1, q: 2}\nb: {<<: *x, q: 3}\nc: *x",
        {"a": {"p": 1, "q": 2}, "b": {"p": 1, "q": 3}, "c": {"p": 1, "q": 2}},
    ),
    ("a: &x {p: 1}\nb: &y {<<: *x, p: 2}\nc: {<<: *y}", {"a": {"p": 1}, "b": {"p": 2}, "c": {"p": 2}}),
    ("\ufeff1: a\n# comment\nb: [x, 2]", {"1": "a", "b": ["x", 2]}),
    ("a: !!str 5\nb: !!float 5", {"a": "5", "b": 5.0}),
    ("%YAML 1.2\n---\na: |\n  x\n  %YAML 1.1\n", {"a": "x\n%YAML 1.1\n"}),
]
BAD_YAML = [
    ("a: 1\nb: 2\na: 3", "c.yaml:3", "duplicate"),
    ("a:\n  b: 1\n  'b': 2", "c.yaml:3", "duplicate"),
    ("a: &x [1, *x]", "c.yaml", "format"),
    ("a: !!python/object/apply:os.system [ls]", "c.yaml:1", "format"),
    ("a: 1\nb: " + "9" * 5000, "c.yaml:2", "format"),
    ("a: 1\nb: !!int x", "c.yaml:2", "format"),
    ("a: 1\nb: !!float ''", "c.yaml:2", "format"),
    ("a: !!map x", "c.yaml:1", "format"),
    ("a: 1\ntrue: 2", "c.yaml:2", "format"),
    ("a: 1\nb: {{ x }}", "c.yaml:2", "format"),
    ("a: 1\n? [a, [b]]\n: 2", "c.yaml:2", "format"),
    ("a: 1\n---\nb: 2", "c.yaml:2", "format"),
    ("a: &x {k: 0}\nb: {<<: *x, k: 1, k: 2}", "c.yaml:2", "duplicate"),
    ('a: "\\U00110000"', "c.yaml:1", "format"),
    ('a: "\\U0010FFFF"\nb: "\\UFFFFFFFF"', "c.yaml:2", "format"),
    ("<<: 3", "c.yaml:1", "format"),
    ("<<: {a: 1}\n<<: {b: 1}", "c.yaml:2", "format"),
    ("", "c.yaml", "empty"),
    ("- 1", "c.yaml", "type"),
    (b"a: 1\nb: \xff", "c.yaml:2", "format"),
    ("a: 1\nb: \x00", "c.yaml:2", "format"),
    ("a: " + "[" * 1100, "c.yaml", "format"),
    ("1: a\n'1': b", "c.yaml:2", "duplicate"),
    ("%YAML 1.1\n---\na: 1", "c.yaml", "unsupported"),
]


def write(folder: Path, text: str | bytes) -> Path:
    path = folder / "c.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(("text", "expected"), YAML)
def test_yaml(tmp_path, text, expected):
    found = load_yaml(write(tmp_path, text))
    assert found == expected
    assert json.dumps(found) == json.dumps(expected)  # types too: 1 is not 1.0


@pytest.mark.parametrize(("text", "place", "code"), BAD_YAML)
def test_wrong_yaml(tmp_path, text, place, code):
    assert refused(load_yaml, write(tmp_path, text)) == (place, code)


OVERRIDES = [
    (["a.b=5"], {"a": {"b": 5, "c": [1, {"d": 2}]}, "e": None}),
    (["a.x.y=no"], {"a": {"b": 1, "c": [1, {"d": 2}], "x": {"y": "no"}}, "e": None}),
    (["a=1e-4"], {"a": 1e-4, "e": None}),
    (["a.c.1.d=7", "a.c.0=x"], {"a": {"b": 1, "c": ["x", {"d": 7}]}, "e": None}),
    (["e.f={g: [true, on]}"], {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": {"f": {"g": [True, "on"]}}}),
    (["e=a=b"], {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": "a=b"}),
    (["e=null", "a=''", "a=2"], {"a": 2, "e": None}),
    ([], {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": None}),
]


@pytest.mark.parametrize(("assignments", "expected"), OVERRIDES)
def test_override(assignments, expected):
    config = {"a": {"b": 1, "c": [1, {"d": 2}]}, "e": None}
    before = copy.deepcopy(config)
    assert override(config, assignments) == expected
    assert config == before


@pytest.mark.parametrize(
    ("assignment", "place", "code"),
    [
        ("a", "--set a", "format"),
        ("a..b=5", "--set a..b=5", "format"),
        ("a=", "--set a=", "empty"),
        ("a=[1", "--set a=[1", "format"),
        ("a=!!python/name:os.system x", "name:os.system x", "format"),
        ("a.b.c=5", "--set a.b.c=5", "type"),
        ("l.2=5", "--set l.2=5", "range"),
        ("l.-1=5", "--set l.-1=5", "range"),
    ],
)
def test_wrong_override(assignment, place, code):
    assert refused(override, {"a": {"b": 1}, "l": [1, 2]}, [assignment]) == (place, code)


BAD_CONFIG = [
    ({}, "c.yaml steps", "missing"),
    ({"stesp": 1, "steps": 1}, "c.yaml stesp", "unknown"),
    ({"steps": "5"}, "c.yaml steps", "type"),
    ({"steps": 1, "flag": "no"}, "c.yaml flag", "type"),
    ({"steps": 1, "device": "tpu"}, "c.yaml device", "unknown"),
    ({"steps": 1, "mode": "slow"}, "c.yaml mode", "invalid"),
    ({"steps": 13}, "c.yaml", "invalid"),
    ({"steps": 1, "either": [1]}, "c.yaml either", "type"),
    ({"steps": 1, "objective": 5}, "c.yaml objective", "type"),
    ({"steps": 1, "objective": {"alpha": 1}}, "c.yaml objective.kind", "missing"),
    ({"steps": 1, "objective": {"kind": "x"}}, "c.yaml objective.kind", "unknown"),
    ({"steps": 1, "objective": {"kind": "mlm", "alpha": math.inf}}, "c.yaml objective.alpha", "range"),
    ({"steps": 1, "stages": [{"kind": "mlm"}, {"kind": "tlm", "mlm": [1]}]}, "c.yaml stages.1.mlm", "type"),
    ({"steps": 1, "table": {"t": {"a": 1}}}, "c.yaml table.t.a", "unknown"),
    ({"steps": 1, "table": {"t": {"alpha": "x" * 99}}}, "c.yaml table.t.alpha", "type"),
    ({"a": 1, "b": 1, "c": 1, "d": 1, "steps": 1}, "c.yaml a", "unknown"),
]


@pytest.mark.parametrize(("data", "place", "code"), BAD_CONFIG)
def test_wrong_config(data, place, code):
    assert refused(parse, Run, data, "c.yaml") == (place, code)


SAMPLES = [
    ({"steps": 1, "stages": [5]}, "stages.0: 5 must be a section of keys; write - {KEY: VALUE}"),
    ({"steps": 1, "objective": 5}, "objective: 5 must be a section of keys; write objective: {KEY: VALUE}"),
    ({"steps": 1, "table": {"t": {"alpha": "x" * 99}}}, f"table.t.alpha: '{'x' * 59}… must be a number"),
    ({"steps": "a", "flag": 2}, "steps: 'a' must be an integer; flag: 2 must be true or false"),
]


@pytest.mark.parametrize(("data", "message"), SAMPLES)
def test_messages(data, message):
    assert str(refusal(parse, Run, data, "c.yaml")) == f"c.yaml: {message}"


def test_a_message_shows_three_faults_and_counts_the_rest():
    error = refusal(parse, Run, {"a": 1, "b": 1, "c": 1, "d": 1, "steps": 1}, "c.yaml")
    assert [fault.keys for fault in (error, *error.others)] == [("a",), ("b",), ("c",), ("d",)]
    assert str(error).endswith(f"c: unknown key; allowed: {KEYS}; and 1 more")


class Loose(StrictModel):
    share: float = 2.0

    @pydantic.field_validator("share")
    @classmethod
    def _share(cls, value):
        if value > 1:
            raise ValueError("at most 1")
        return value


def test_load_dump_load(tmp_path):
    path = write(tmp_path, "steps: 5\nstages: [{kind: tlm}]\nout: /tmp/x\ndevice: gpu\n")
    run = load(Run, path, ["objective.kind=mlm", "objective.alpha=1e-4", "either=no"])
    assert run == Run(
        steps=5,
        objective=Mlm(alpha=1e-4),
        stages=(Tlm(kind="tlm"),),
        either="no",
        out=Path("/tmp/x"),
        device=Device.GPU,
    )
    text = dump_yaml(run)
    assert load(Run, write(tmp_path, text)) == run
    assert list(yaml.safe_load(text)) == KEYS.split(", ")  # complete, in the order of the fields
    assert dump_yaml(load(Run, write(tmp_path, text))) == text


class Any1(StrictModel):
    text: str
    number: float
    count: int
    more: dict[str, list[str | int | float | bool | None]] = Field(default_factory=dict)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NASTY = st.sampled_from(["no", "1e-4", "0o7", "0x1", "~", "", "null", "1:30", "<<", "2024-01-01", "1_0", ".inf", "="])
NASTY |= st.sampled_from([" a", "a: b", "- a", "#", "\x85", "\u2028", "\ufeff", "a\n b", "\t"])
STRING = TEXT | NASTY
VALUE = STRING | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()


@settings(max_examples=40)
@given(
    STRING, st.floats(allow_nan=False, allow_infinity=False), st.integers(), st.dictionaries(STRING, st.lists(VALUE))
)
def test_any_config_is_read_back(tmp_path_factory, text, number, count, more):
    model = Any1(text=text, number=number, count=count, more=more)
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_bytes(dump_yaml(model).encode())
    found = load(Any1, path)
    assert found == model
    assert repr(found) == repr(model)


class Inner(StrictModel):
    rows: int = 1
    names: tuple[str, ...] = ()


class Over(StrictModel):
    steps: int = 10
    inner: Inner = Inner()


def write_files(folder: Path, **files: str) -> None:
    """A file NAME.yaml for each argument; ``__`` in a name is a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


GOOD_BASES: list[tuple[dict[str, str], Any]] = [
    # mappings are merged key by key at any depth, anything else is replaced, lists included
    (
        {"b": "a: {x: 1, y: {z: 2}}\nl: [1, 2]\nk: 5", "a": "base: b.yaml\na: {y: {w: 3}}\nl: [9]"},
        {"a": {"x": 1, "y": {"z": 2, "w": 3}}, "l": [9], "k": 5},
    ),
    ({"b": "a: {x: 1}", "a": "base: b.yaml\na: null"}, {"a": None}),
    ({"b": "a: 5", "a": "base: b.yaml\na: {x: 1}"}, {"a": {"x": 1}}),
    ({"b": "a: {x: 1}", "a": "base: b.yaml"}, {"a": {"x": 1}}),
    ({"b": "{}", "a": "base: b.yaml\nk: 1"}, {"k": 1}),
    # a chain: the nearer file wins
    ({"c": "k: 1\nm: 1\nn: 1", "b": "base: c.yaml\nm: 2\nn: 2", "a": "base: b.yaml\nn: 3"}, {"k": 1, "m": 2, "n": 3}),
    # a list: the later file wins, the file itself is last
    (
        {"b": "k: {x: 1, y: 1, z: 1}", "c": "k: {y: 2, z: 2}", "a": "base: [b.yaml, c.yaml]\nk: {z: 3}"},
        {"k": {"x": 1, "y": 2, "z": 3}},
    ),
    ({"b": "k: 1", "c": "k: 2", "a": "base: [c.yaml, b.yaml]"}, {"k": 1}),
    ({"b": "k: 1", "a": "base: [b.yaml]"}, {"k": 1}),
    # two of a list may share a base
    ({"d": "k: 1", "b": "base: d.yaml\nb: 1", "c": "base: d.yaml\nc: 1", "a": "base: [b.yaml, c.yaml]"}, None),
    # a name is that of a file beside the one that names it, wherever the first one is
    ({"s__t": "k: 1", "s__b": "base: t.yaml\nm: 2", "t": "k: 9", "a": "base: s/b.yaml"}, {"k": 1, "m": 2}),
    ({"b": "k: 1", "s__c": "base: ../b.yaml\nm: 2", "a": "base: s/c.yaml"}, {"k": 1, "m": 2}),
    # only at the top is it a base
    ({"a": "k: {base: b.yaml}"}, {"k": {"base": "b.yaml"}}),
]


@pytest.mark.parametrize(("files", "expected"), GOOD_BASES)
def test_files_over_files(tmp_path, files, expected):
    write_files(tmp_path, **files)
    assert load_yaml(tmp_path / "a.yaml") == (expected or {"k": 1, "b": 1, "c": 1})


BAD_BASES = [
    ({"a": "base: b.yaml"}, "a.yaml base", "missing"),
    ({"b": "k: 1", "a": "base: [b.yaml, c.yaml]"}, "a.yaml base", "missing"),
    ({"a": "base: a.yaml"}, "a.yaml base", "conflict"),
    ({"b": "base: a.yaml", "a": "base: b.yaml"}, "b.yaml base", "conflict"),
    ({"b": "base: ./s/../a.yaml", "s__x": "{}", "a": "base: b.yaml"}, "b.yaml base", "conflict"),
    ({"c": "base: b.yaml", "b": "base: [d.yaml, c.yaml]", "d": "k: 1", "a": "base: b.yaml"}, "c.yaml base", "conflict"),
    ({"a": "base: 5"}, "a.yaml base", "type"),
    ({"b": "- 1", "a": "base: b.yaml"}, "b.yaml", "type"),
    ({"s__x": "{}", "a": "base: s"}, "s", "failed"),
    ({"a": "base: ~nobody-of-this-name/b.yaml"}, "b.yaml base", "missing"),
    ({"a": "base: rows/alignmlm"}, "a.yaml base", "unknown"),
]


@pytest.mark.parametrize(("files", "place", "code"), BAD_BASES)
def test_wrong_bases(tmp_path, files, place, code):
    write_files(tmp_path, **files)
    assert refused(load_yaml, tmp_path / "a.yaml") == (place, code)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("mlm/trans/tiny", "did you mean runs/mlm/trans/tiny?"), ("row/mlm", "did you mean rows/mlm?")],
)
def test_a_base_of_the_catalogue_is_suggested(tmp_path, name, hint):
    write_files(tmp_path, a=f"base: {name}")
    assert refusal(load_yaml, tmp_path / "a.yaml").hint.startswith(hint)


def test_overrides_come_after_the_bases(tmp_path):
    write_files(tmp_path, b="steps: 1\ninner: {rows: 2, names: [x, y]}", a="base: b.yaml\ninner: {rows: 3}")
    assert load(Over, tmp_path / "a.yaml") == Over(steps=1, inner=Inner(rows=3, names=("x", "y")))
    changed = load(Over, tmp_path / "a.yaml", ["inner.names.1=z", "steps=7"])
    assert changed == Over(steps=7, inner=Inner(rows=3, names=("x", "z")))


def test_where_bases_are_looked_for(tmp_path, monkeypatch):
    write_files(
        tmp_path, x__b="k: 1", x__a="base: b.yaml", b="k: 2", c=f"base: {tmp_path / 'x' / 'b.yaml'}", h="base: ~/b.yaml"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert [load_yaml(name) for name in ("x/a.yaml", "c.yaml", "h.yaml")] == [{"k": 1}, {"k": 1}, {"k": 2}]


def test_an_error_names_the_file_that_was_asked_for_and_a_default_may_be_wrong(tmp_path):
    write_files(tmp_path, b="inner: {rwos: 2}", a="base: b.yaml")
    assert refused(load, Over, tmp_path / "a.yaml") == ("a.yaml inner.rwos", "unknown")
    assert refused(parse, Loose, {}) == ("share", "invalid")
    assert parse(Loose, {"share": 1}).share == 1.0


class _Renamed(StrictModel):
    renamed_keys: ClassVar[Mapping[str, str]] = {"instead": "fallback_measure"}

    fallback_measure: str = ""
    relation: Literal["equivalent", "greater"] = "greater"

    _values = renamed_values("relation", near="equivalent")


class _Outer(StrictModel):
    sides: tuple[_Renamed, ...] = ()
    named: dict[str, _Renamed | None] = Field(default_factory=dict)
    inside: Mlm | _Renamed | None = None


def test_old_keys_and_values_are_read_with_a_warning_that_names_the_new_ones():
    with pytest.warns(FutureWarning, match="key 'instead' is now called 'fallback_measure'"):
        assert parse(_Renamed, {"instead": "zs"}) == _Renamed(fallback_measure="zs")
    with pytest.warns(FutureWarning, match="value of relation 'near' is now called 'equivalent'"):
        assert parse(_Renamed, {"relation": "near"}).relation == "equivalent"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert parse(_Renamed, {"fallback_measure": "zs", "relation": "equivalent"}).fallback_measure == "zs"
    old = {"instead": "zs"}
    with pytest.warns(FutureWarning):
        outer = parse(_Outer, {"sides": [old], "named": {"a": old, "b": None}, "inside": old})
    new = _Renamed(fallback_measure="zs")
    assert outer == _Outer(sides=(new,), named={"a": new, "b": None}, inside=new)


@pytest.mark.parametrize(
    ("data", "place", "code"),
    [
        ({"instead": "zs", "fallback_measure": "sup"}, "instead", "duplicate"),
        ({"relation": "nearly"}, "relation", "unknown"),
        ({"insted": "zs"}, "insted", "unknown"),
    ],
)
def test_renamed_keys_refuse(data, place, code):
    assert refused(parse, _Outer, {"sides": [{}, data]}, "a.yaml") == (f"a.yaml sides.1.{place}", code)
