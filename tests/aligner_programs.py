"""Aligners of a few lines, put on the PATH."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest

# links equal positions, in the reverse direction all but the last; what it read is kept in the file ``seen`` beside it
FAST_ALIGN = """
from pathlib import Path
reverse = "-r" in args
text = open(args[args.index("-i") + 1], encoding="utf-8").read()
Path(__file__).with_name("seen").write_text(text, encoding="utf-8")
for line in text.splitlines():
    left, right = (part.split() for part in line.split("|||"))
    print(" ".join(f"{i}-{i}" for i in range(min(len(left), len(right)) - reverse)))
"""


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str = "fast_align", code: str = FAST_ALIGN) -> Path:
    """Put a program with this code on the PATH, and return its folder."""
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text(f"#!{sys.executable}\nimport sys\nargs = sys.argv[1:]\n{code}", encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder
