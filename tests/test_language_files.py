"""A language that names files: read from anywhere, and written down with its files for others."""

import gzip
import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from synthlang.derive import derive_command, derive_task_command
from synthlang.errors import InputError
from synthlang.export import verify_manifest
from synthlang.language import parse_language

SOURCE = "builtin:mini-english?types=500&sentences=200&dev=0&test=0"
SPEC = """name: with-files
transforms:
- {kind: reorder, model: mine.json}
- {kind: code_switch, dictionary: words.txt, probability: 1.0, cap: 1.0}
- {kind: transliterate, types: some/words.txt}
"""


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "a place"
    (place / "some").mkdir(parents=True)
    shipped = Path("synthlang/order/models/ga.json.gz")
    (place / "mine.json").write_bytes(gzip.decompress((Path(__file__).parents[1] / shipped).read_bytes()))
    (place / "words.txt").write_text("the le\nand et\n")
    (place / "some" / "words.txt").write_text("of\nto\nin\n")
    (place / "x.yaml").write_text(SPEC)
    return place


def test_files_are_looked_up_beside_the_language_first(folder, tmp_path, monkeypatch):
    beside = parse_language(str(folder / "x.yaml"))
    monkeypatch.chdir(folder)
    here = parse_language("x.yaml")
    assert here.fingerprint == beside.fingerprint
    other = tmp_path / "other"
    other.mkdir()
    shutil.copy("x.yaml", other / "x.yaml")
    assert parse_language(str(other / "x.yaml")).fingerprint == here.fingerprint  # from the working folder
    (other / "words.txt").write_text("the die\n")
    assert parse_language(str(other / "x.yaml")).fingerprint != here.fingerprint
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=r"mine\.json"):
        parse_language(str(other / "x.yaml"))


def test_the_card_makes_the_same_data_set_elsewhere(folder, tmp_path):
    derive_command(SOURCE, str(folder / "x.yaml"), tmp_path / "d")
    manifest = verify_manifest(tmp_path / "d")
    text = (tmp_path / "d" / "README.md").read_text() + json.dumps(manifest)
    assert str(tmp_path) not in text
    shutil.rmtree(folder)
    moved = (tmp_path / "d").rename(tmp_path / "elsewhere")
    command = shlex.split(manifest["command"].replace("DIR", str(tmp_path / "again")))
    done = subprocess.run(
        [sys.executable, "-m", "probes.cli", *command[1:]],
        cwd=moved,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert verify_manifest(tmp_path / "again") == manifest


def test_task_sets_take_the_files_along_too(folder, tmp_path):
    (folder / "x.yaml").write_text(SPEC.replace("- {kind: reorder, model: mine.json}\n", ""))
    manifest = derive_task_command(f"nli:{SOURCE}", str(folder / "x.yaml"), tmp_path / "d")
    assert [step.get("dictionary") for step in manifest["language"]["transforms"]] == ["language/words.txt", None]
    again = parse_language(str(tmp_path / "d" / "language.yaml"))
    assert again.fingerprint == parse_language(str(folder / "x.yaml")).fingerprint
    assert (tmp_path / "d" / "language" / "1-words.txt").read_text() == "of\nto\nin\n"


def test_a_name_may_hold_a_path(folder):
    language = parse_language(f"trans+reorder@{folder / 'mine.json'}:0.5")
    assert language.name == "trans+reorder-mine.json=0.5"
    assert language.transforms[1].strength == 0.5
