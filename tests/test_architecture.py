"""ARCHITECTURE.md: every file and folder that it names exists, and holds what the document finds there."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import get_args

from pretrain.config import ModelConfig
from pretrain.cost import PLAIN_OUTPUT
from pretrain.model.kinds import KINDS
from synthlang.model_files import DECODERS

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


def test_a_kind_of_model_is_known_to_the_files_that_the_contract_names():
    """A decoder is named in these files of the program and nowhere else, so a further kind touches no other one."""
    contract = re.search(r"^16\. \*\*Model.*?(?=^17\. )", TEXT, re.MULTILINE | re.DOTALL)
    assert contract is not None
    allowed = set(NAMED) & set(re.findall(r"`([\w/]+\.py)`", contract[0]))
    own = {f"pretrain.model.{kind}{part}" for kind in DECODERS for part in ("", "_hf")}
    found = set()
    for top in ("synthlang", "pretrain", "probes"):
        for path in (ROOT / top).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                names = isinstance(node, ast.Constant) and node.value in DECODERS
                imports = isinstance(node, ast.ImportFrom) and node.module in own
                if names or imports:
                    found.add(str(path.relative_to(ROOT)))
    assert found <= allowed and {"pretrain/model/kinds.py", "pretrain/config/model.py"} <= found


def test_all_files_have_the_same_kinds_of_models():
    annotation = ModelConfig.model_fields["kind"].annotation
    assert set(get_args(annotation)) == KINDS.keys()
    assert {kind for kind, entry in KINDS.items() if entry.model.causal} == DECODERS
    assert {kind for kind, entry in KINDS.items() if not entry.model.biased} == PLAIN_OUTPUT
