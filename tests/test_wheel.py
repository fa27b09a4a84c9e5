"""The wheel has everything that the packages read, and works where there is no checkout."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.runs import run_anew

setuptools = pytest.importorskip("setuptools")
ROOT = Path(__file__).parents[1]
PACKAGES = ("synthlang", "pretrain", "probes", "synthlang_bench")


@pytest.fixture(scope="module")
def tracked() -> list[str]:
    """Return the files that must be in the wheel: all files of the packages and of configs/."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *PACKAGES, "configs"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip("no git checkout")
    return [name for name in done.stdout.split() if (ROOT / name).is_file()]


@pytest.fixture(scope="module")
def unzipped(tmp_path_factory, tracked) -> Path:
    """A wheel, built without a network from a copy of the project, and unzipped."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*tracked, "pyproject.toml", "setup.py", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_bytes((ROOT / name).read_bytes())
    build = [sys.executable, "-m", "pip", "wheel", ".", "--no-deps", "--no-build-isolation", "-q", "-w", str(out)]
    done = subprocess.run(build, cwd=source, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [wheel] = out.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(out / "site")
    return Path(out) / "site"


def test_every_file_is_in_the_wheel(unzipped, tracked):
    wanted = {f"synthlang/{name}" if name.startswith("configs/") else name for name in tracked}
    there = {path.relative_to(unzipped).as_posix() for path in unzipped.rglob("*") if path.is_file()}
    assert sorted(wanted - there) == []
    assert len([name for name in there if name.startswith("synthlang/configs/")]) > 20


COMMANDS = {
    "configs sizes tiny": "steps: 4000",
    "study align_mlm-table3 --size tiny --dry-run": "60 cells",
    "pretrain mlm/trans/tiny --smoke": "run folder: runs/mlm-trans-tiny-smoke",
    "derive builtin:mini-english?types=500&sentences=60 --language french-order --out data": "data",
}
RUN = """
import os, sys
os.dup2(1, 2)
import probes.cli
print(probes.cli.__file__)
for words in sys.argv[1:]:
    sys.argv = ["synthlang", *words.split()]
    try:
        probes.cli.main()
    except SystemExit as end:
        assert not end.code, words
    print("end of a command", flush=True)
"""


def test_commands_work_where_there_is_no_checkout(unzipped, tmp_path):
    told = run_anew(RUN, *COMMANDS, path=(unzipped,), folder=tmp_path)
    assert str(unzipped) in told.splitlines()[0]
    for part, said in zip(told.split("end of a command"), COMMANDS.values(), strict=False):
        assert said in part
