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
from synthlang.errors import InputError
from tests.refusals import refused


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
    ("a: 1\nb: 2\na: 3", 3, 'found duplicate key "a"'),
    ("a:\n  b: 1\n  'b': 2", 3, 'found duplicate key "b"'),
    ("a: b: c", 1, "mapping values are not allowed here"),
    ("a: 1\nb: *x", 2, "undefined alias 'x'"),
    ("a: &x [1, *x]", None, "inside itself"),
    (
        "a: !!python/object/apply:os.system [ls]",
        1,
        "could not determine a constructor for the tag '!!python/object/apply:os.system'",
    ),
    ("a: !!int x", None, "not YAML: invalid literal for int() with base 10: 'x'"),
    ("a: " + "9" * 5000, None, "not YAML: Exceeds the limit"),
    ("? [1]\n: 2", None, "a key must be a text, not (1,)"),
    ("a: 1\ntrue: 2", None, "a key must be a text, not True"),
    ("a: 1\n---\nb: 2", 2, "expected a single document"),
    ("", None, "the file must consist of keys and values at its top level; the file is empty"),
    ("- 1", None, "it is a list"),
    ("5", None, "it is one value"),
    (b"a: 1\nb: \xff", 2, "not UTF-8"),
    ("a: \x00", None, "not YAML: unacceptable character #x0000"),
    ("a: " + "[" * 1100, None, "nested too deeply"),
    ("1: a\n'1': b", None, "the key 1 stands twice, once as a text and once as a number"),
    ("%YAML 1.1\n---\na: 1", None, "declares a YAML version other than 1.2"),
    ("# x\n\n%YAML 1.1\n---\na: 1", None, "declares a YAML version other than 1.2"),
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


@pytest.mark.parametrize(("text", "line", "message"), BAD_YAML)
def test_wrong_yaml(tmp_path, text, line, message):
    path = write(tmp_path, text)
    with pytest.raises(InputError) as info:
        load_yaml(path)
    assert message in str(info.value)
    assert str(info.value).startswith(f"{path}: " if line is None else f"{path}:{line}: ")
    assert "\n" not in str(info.value)


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
    ("assignment", "message"),
    [
        ("a", "--set a: must be KEY=VALUE with a dotted key"),
        ("=5", "must be KEY=VALUE"),
        ("a..b=5", "must be KEY=VALUE"),
        (".a=5", "must be KEY=VALUE"),
        ("a b=5", "must be KEY=VALUE"),
        ("a=", "has no value; write a=null for none or a='' for an empty text"),
        ("a=[1", "--set a=[1:1: while parsing a flow sequence"),
        ("a={x: 1, x: 2}", 'found duplicate key "x"'),
        ("a=!!python/name:os.system x", "could not determine a constructor for the tag"),
        ("a.b.c=5", "'c' cannot be set inside 1, which has no keys"),
        ("l.2=5", "'2' is no index of a list of 2 values (the first is 0)"),
        ("l.x=5", "'x' is no index of a list"),
        ("l.-1=5", "'-1' is no index of a list"),
    ],
)
def test_wrong_override(assignment, message):
    with pytest.raises(InputError) as info:
        override({"a": {"b": 1}, "l": [1, 2]}, [assignment])
    assert message in str(info.value)


BAD_CONFIG = [
    ({}, "steps: is required"),
    ({"stesp": 1, "steps": 1}, f"stesp: unknown key; did you mean steps? allowed: {KEYS}"),
    ({"steps": "5"}, "steps: '5' must be a valid integer"),
    ({"steps": 1.0}, "steps: 1.0 must be a valid integer"),
    ({"steps": True}, "steps: true must be a valid integer"),
    ({"steps": 1, "flag": "no"}, "flag: 'no' must be a valid boolean"),
    ({"steps": 1, "device": "tpu"}, "device: 'tpu' must be 'cpu' or 'gpu'"),
    ({"steps": 1, "mode": "slow"}, "mode: 'slow': slow is for the night"),
    ({"steps": 13}, "steps 13 brings bad luck"),
    ({"steps": 1, "either": [1]}, "either: [1] must be a valid integer, or [1] must be a valid string"),
    ({"steps": 1, "objective": 5}, "objective: 5 must be a section of keys, as in objective: {KEY: VALUE}"),
    ({"steps": 1, "objective": {"alpha": 1}}, "objective.kind: is required"),
    ({"steps": 1, "objective": {"kind": "x"}}, "objective.kind: 'x' must be one of 'mlm', 'tlm'"),
    ({"steps": 1, "objective": {"kind": "mlm", "alpha": 7}}, "objective.alpha: 7 must be less than or equal to 1"),
    ({"steps": 1, "objective": {"kind": "mlm", "alpha": math.inf}}, "objective.alpha: inf must be a finite number"),
    (
        {"steps": 1, "objective": {"kind": "mlm", "alhpa": 1}},
        "objective.alhpa: unknown key; did you mean alpha? allowed: kind, alpha",
    ),
    (
        {"steps": 1, "stages": [{"kind": "mlm"}, {"kind": "tlm", "mlm": [1]}]},
        "stages.1.mlm: [1] must be a valid integer",
    ),
    ({"steps": 1, "table": {"t": {"a": 1}}}, "table.t.a: unknown key; allowed: kind, alpha"),
    ({"steps": 1, "table": {"t": {"alpha": "x" * 99}}}, f"table.t.alpha: '{'x' * 59}… must be a valid number"),
    ({"steps": "a", "flag": 2}, "steps: 'a' must be a valid integer; flag: 2 must be a valid boolean"),
    ({"a": 1, "b": 1, "c": 1, "d": 1, "steps": 1}, f"c: unknown key; allowed: {KEYS}; and 1 more"),
]


@pytest.mark.parametrize(("data", "message"), BAD_CONFIG)
def test_wrong_config(data, message):
    with pytest.raises(InputError) as info:
        parse(Run, data, "c.yaml")
    text = str(info.value)
    assert text.endswith(message) if message.endswith("more") else text == f"c.yaml: {message}"


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
    ({"a": "base: b.yaml"}, "a.yaml: base: there is no file {0}/b.yaml"),
    ({"b": "base: no.yaml", "a": "base: b.yaml"}, "b.yaml: base: there is no file {0}/no.yaml"),
    ({"b": "k: 1", "a": "base: [b.yaml, c.yaml]"}, "a.yaml: base: there is no file {0}/c.yaml"),
    ({"a": "base: a.yaml"}, "a.yaml: base: {0}/a.yaml is based on this file"),
    ({"b": "base: a.yaml", "a": "base: b.yaml"}, "b.yaml: base: {0}/a.yaml is based on this file"),
    ({"b": "base: ./s/../a.yaml", "s__x": "{}", "a": "base: b.yaml"}, "a.yaml is based on this file"),
    ({"c": "base: b.yaml", "b": "base: [d.yaml, c.yaml]", "d": "k: 1", "a": "base: b.yaml"}, "c.yaml: base: "),
    ({"a": "base: 5"}, "a.yaml: base must be the name of a YAML file or a list of names, not 5"),
    ({"a": "base: null"}, "a list of names, not None"),
    ({"a": "base: ''"}, "a list of names, not ''"),
    ({"a": "base: []"}, "a list of names, not []"),
    ({"a": "base: {b: c}"}, "a list of names, not {{'b': 'c'}}"),
    ({"b": "k: 1", "a": "base: [b.yaml, 3]"}, "a list of names, not ['b.yaml', 3]"),
    ({"b": "k: 1", "a": "base: [[b.yaml]]"}, "a list of names, not [['b.yaml']]"),
    (
        {"b": "- 1", "a": "base: b.yaml"},
        "b.yaml: the file must consist of keys and values at its top level; it is a list",
    ),
    (
        {"b": "", "a": "base: b.yaml"},
        "b.yaml: the file must consist of keys and values at its top level; the file is empty",
    ),
    ({"b": "k: [1", "a": "base: b.yaml"}, "b.yaml:1: while parsing a flow sequence"),
    ({"s__x": "{}", "a": "base: s"}, "s: cannot read: Is a directory"),
    ({"a": "base: ~nobody-of-this-name/b.yaml"}, "there is no such home folder"),
    ({"a": "base: mlm/trans/tiny"}, "there is no file {0}/mlm/trans/tiny; did you mean runs/mlm/trans/tiny?"),
    ({"a": "base: row/mlm"}, "there is no file {0}/row/mlm; did you mean rows/mlm?"),
    ({"a": "base: rows/alignmlm"}, "a.yaml: rows: there is no file and no entry 'alignmlm'; did you mean align_mlm"),
    ({"a": "base: rows/mlm.yaml"}, "a.yaml: base: there is no file {0}/rows/mlm.yaml"),
]


@pytest.mark.parametrize(("files", "message"), BAD_BASES)
def test_wrong_bases(tmp_path, files, message):
    write_files(tmp_path, **files)
    with pytest.raises(InputError) as info:
        load_yaml(tmp_path / "a.yaml")
    assert message.format(tmp_path) in str(info.value)
    assert "\n" not in str(info.value)


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
    with pytest.raises(InputError, match=r"a\.yaml: inner\.rwos: unknown key; did you mean rows\?"):
        load(Over, tmp_path / "a.yaml")
    with pytest.raises(InputError, match=r"share: 2.0: at most 1"):
        parse(Loose, {})
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
