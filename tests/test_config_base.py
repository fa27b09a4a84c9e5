"""``base:`` in YAML: files over files."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from synthlang.catalogue import load_yaml, merged
from synthlang.config import StrictModel, load
from synthlang.errors import InputError


class Inner(StrictModel):
    rows: int = 1
    names: tuple[str, ...] = ()


class Run(StrictModel):
    steps: int = 10
    inner: Inner = Inner()


def write(folder: Path, **files: str) -> None:
    """A file NAME.yaml for each argument; ``__`` in a name is a slash."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


GOOD: list[tuple[dict[str, str], Any]] = [
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


@pytest.mark.parametrize(("files", "expected"), GOOD)
def test_files_over_files(tmp_path, files, expected):
    write(tmp_path, **files)
    assert load_yaml(tmp_path / "a.yaml") == (expected or {"k": 1, "b": 1, "c": 1})


def test_it_does_not_depend_on_the_working_folder(tmp_path, monkeypatch):
    write(tmp_path, x__b="k: 1", x__a="base: b.yaml", b="k: 2")
    monkeypatch.chdir(tmp_path)
    assert load_yaml("x/a.yaml") == {"k": 1}
    write(tmp_path, c=f"base: {tmp_path / 'x' / 'b.yaml'}")
    assert load_yaml("c.yaml") == {"k": 1}


def test_a_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    write(tmp_path, b="k: 1", x__a="base: ~/b.yaml")
    assert load_yaml(tmp_path / "x" / "a.yaml") == {"k": 1}


BAD = [
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
    ({"b": "- 1", "a": "base: b.yaml"}, "b.yaml: the top level must be a mapping of keys to values; it is a list"),
    ({"b": "", "a": "base: b.yaml"}, "b.yaml: the top level must be a mapping of keys to values; the file is empty"),
    ({"b": "k: [1", "a": "base: b.yaml"}, "b.yaml:1: while parsing a flow sequence"),
    ({"s__x": "{}", "a": "base: s"}, "s: cannot read: Is a directory"),
    ({"a": "base: ~nobody-of-this-name/b.yaml"}, "there is no such home folder"),
]


@pytest.mark.parametrize(("files", "message"), BAD)
def test_wrong_bases(tmp_path, files, message):
    write(tmp_path, **files)
    with pytest.raises(InputError) as info:
        load_yaml(tmp_path / "a.yaml")
    assert message.format(tmp_path) in str(info.value)
    assert "\n" not in str(info.value)


def test_overrides_come_after_the_bases(tmp_path):
    write(tmp_path, b="steps: 1\ninner: {rows: 2, names: [x, y]}", a="base: b.yaml\ninner: {rows: 3}")
    assert load(Run, tmp_path / "a.yaml") == Run(steps=1, inner=Inner(rows=3, names=("x", "y")))
    changed = load(Run, tmp_path / "a.yaml", ["inner.names.1=z", "steps=7"])
    assert changed == Run(steps=7, inner=Inner(rows=3, names=("x", "z")))


def test_an_error_names_the_file_that_was_asked_for(tmp_path):
    write(tmp_path, b="inner: {rwos: 2}", a="base: b.yaml")
    with pytest.raises(InputError, match=r"a\.yaml: inner\.rwos: unknown key; did you mean rows\?"):
        load(Run, tmp_path / "a.yaml")


def test_merging_changes_neither_side():
    base, changes = {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}, {"a": {"b": 5}, "d": {"f": {"g": 1}}}
    assert merged(base, changes) == {"a": {"b": 5, "c": [1]}, "d": {"e": 1, "f": {"g": 1}}}
    assert base == {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}
    assert changes == {"a": {"b": 5}, "d": {"f": {"g": 1}}}


def test_a_long_chain(tmp_path):
    """No limit of its own: ten files one over the other."""
    write(tmp_path, a9="k9: 9", **{f"a{i}": f"base: a{i + 1}.yaml\nk{i}: {i}" for i in range(9)})
    assert load_yaml(tmp_path / "a0.yaml") == {f"k{i}": i for i in range(10)}


def test_the_command_says_it_in_one_line(tmp_path):
    write(tmp_path, a="base: gone.yaml")
    command = [sys.executable, "-m", "pretrain.train", str(tmp_path / "a.yaml"), "--out", str(tmp_path / "run")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"error: {tmp_path}/a.yaml: base: there is no file {tmp_path}/gone.yaml\n"
    assert not (tmp_path / "run").exists()
