"""The examples in docstrings give what they show."""

from __future__ import annotations

import doctest
import importlib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_the_examples_of_docstrings(capsys):
    attempted = 0
    for path in sorted(path for name in ("synthlang", "pretrain", "probes") for path in (ROOT / name).rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
            found = doctest.testmod(importlib.import_module(name))
            assert not found.failed, capsys.readouterr().out
            attempted += found.attempted
    assert attempted > 100
