"""Docstrings: their examples give what they show, and no description is a bare relative clause."""

from __future__ import annotations

import ast
import doctest
import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
CLAUSE = re.compile(r"(?:^|^ +\w+: )(What|Whether|How|Where|When|Why|Which|Whose|Its)\b.*", re.MULTILINE)
"""A description without a noun or a verb of its own: of an object, or of an argument or attribute."""


def test_the_examples_of_docstrings(capsys):
    attempted = 0
    for path in sorted(path for name in ("synthlang", "pretrain", "probes") for path in (ROOT / name).rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found = doctest.testmod(importlib.import_module(name))
            assert not found.failed, capsys.readouterr().out
            attempted += found.attempted
    assert attempted > 100


def test_no_description_is_a_relative_clause():
    found = []
    for path in sorted(path for name in ("synthlang", "pretrain", "probes") for path in (ROOT / name).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                text = node.value.value
                lines = [text.partition("\n")[0], *re.findall(r"^ +\w+: .*", text, re.MULTILINE)]
                found += [f"{path.name}:{node.lineno}: {line.strip()}" for line in lines if CLAUSE.match(line)]
    assert not found
