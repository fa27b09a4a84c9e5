"""ARCHITECTURE.md: every file and folder that it names exists, and holds what the document finds there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMED = re.findall(r"`((?:synthlang|pretrain|probes|synthlang_bench|configs|tpu_scripts|tests)/[\w/.]*)`", TEXT)


def test_every_named_place_exists():
    assert len(set(NAMED)) > 60
    assert not [name for name in NAMED if not (ROOT / name).exists()]
    links = re.findall(r"\]\(([^)#:]+)\)", TEXT)
    assert not [link for link in links if not (ROOT / link).exists()]


def test_every_package_is_on_the_map():
    folders = {
        f"{path.relative_to(ROOT)}/"
        for top in ("synthlang", "pretrain", "probes")
        for path in (ROOT / top).iterdir()
        if (path / "__init__.py").is_file()
    }
    assert not folders - set(NAMED)


def test_the_way_of_a_sentence_names_what_is_there():
    rows = re.findall(r"^\| .* \| `([\w/]+\.py)` \| `(\w+)` \|$", TEXT, re.MULTILINE)
    assert len(rows) >= 14
    for file, name in rows:
        assert re.search(rf"^ *(?:def|class) {name}\b", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (
            file,
            name,
        )


def test_the_reading_path_has_ten_files():
    part = TEXT.split("## Ten files to read")[1].split("\n## ")[0]
    assert len(re.findall(r"^\d+\. `[\w/]+\.py`: \w.*\.$", part, re.MULTILINE)) == 10
