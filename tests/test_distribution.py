"""Hints install what belongs to this copy: its checkout, or the distribution of this project and of no other."""

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from synthlang import distribution
from synthlang.distribution import NAME, install_command

ROOT = Path(__file__).parents[1]


def test_the_name_is_that_of_the_distribution():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == NAME != "synthlang"


def test_a_checkout_and_a_wheel_have_commands_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setattr(distribution, "CHECKOUT", tmp_path)
    assert install_command("parse") == f"pip install '{NAME}[parse]'"
    assert install_command() == f"pip install '{NAME}'"
    (tmp_path / "pyproject.toml").touch()
    assert install_command("parse") == f"pip install -e '{tmp_path}[parse]'"
    assert install_command() == f"pip install -e '{tmp_path}'"


def test_nothing_names_the_project_of_somebody_else():
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("no git checkout")
    paths = (ROOT / name for name in done.stdout.split())
    texts = ((path, path.read_text(encoding="utf-8", errors="replace")) for path in paths if path.is_file())
    wrong = re.compile(
        r"synthlang\[\w|(?:version|requires|distribution)\([\"']synthlang[\"']\)|install '?\"?synthlang\b(?!-)"
    )
    assert [path for path, text in texts if path != Path(__file__) and wrong.search(text)] == []
