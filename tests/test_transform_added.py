"""Adding a transform is a file and a line of the table: the diff in CONTRIBUTING.md, carried out."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIFF = re.compile(r"  --- synthlang/transforms/__init__.py\n(.*?)  ```", re.DOTALL)
USE = """
from synthlang.corpus import Corpus
from synthlang.language import parse_language
language = parse_language("trans+repeat@3")
assert language.transforms == parse_language({"name": "x", "transforms": [
    {"kind": "transliterate"}, {"kind": "repeat", "times": 3}]}).transforms
assert language.fingerprint != parse_language("trans+repeat").fingerprint
corpus = Corpus.of_words([["the", "cat"], ["aa"]])
derived = language.derive(corpus)
print(*derived.texts(), *language.invert(derived).texts(), *parse_language("repeat:0").derive(corpus).texts(), sep="|")
"""


def applied(diff: str, text: str) -> str:
    lines, at = text.splitlines(), 0
    for row in diff.splitlines():
        if row.startswith("  +"):
            lines.insert(at, row[3:])
            at += 1
        else:
            at = lines.index(row[3:], at) + 1
    return "\n".join(lines)


def test_a_new_transform_is_a_file_and_a_line_of_the_table(tmp_path):
    shutil.copytree(ROOT / "synthlang", tmp_path / "synthlang", ignore=shutil.ignore_patterns("__pycache__"))
    folder = tmp_path / "synthlang" / "transforms"
    shutil.copy(ROOT / "tests" / "repeat_transform.py", folder / "repeat.py")
    found = DIFF.search((ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"))
    assert found is not None and found[1].count("\n  +") == 2
    table = folder / "__init__.py"
    table.write_text(applied(found[1], table.read_text(encoding="utf-8")), encoding="utf-8")
    run = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{USE}"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert not done.returncode, done.stderr
    assert done.stdout == "тхетхетхе цатцатцат|аааааа|the cat|aa|the cat|aa\n"
