"""External aligners: found or not, what they are given and what comes back; and the real one where it is installed."""

from __future__ import annotations

import sys

import pytest

from synthlang.corpus import Corpus
from synthlang.distribution import install_command
from synthlang.parallel.aligners import FORWARD, REVERSE, align, find_aligner
from synthlang.parallel.links import read_pharaoh
from tests.aligner_programs import FAST_ALIGN, install
from tests.refusals import refusal, refused

LEFT = Corpus.of_words([["un", "chat"], [], ["oui", "|||"], ["non"]])
RIGHT = Corpus.of_words([["a", "cat"], ["no"], ["yes", "indeed"], []])

EFLOMAL = """
left, right = (open(args[args.index(flag) + 1], encoding="utf-8").read().splitlines() for flag in ("-s", "-t"))
assert len(left) == len(right) == 2
for flag, less in (("-f", 0), ("-r", 1)):
    with open(args[args.index(flag) + 1], "w") as handle:
        for a, b in zip(left, right):
            handle.write(" ".join(f"{i}-{i}" for i in range(min(len(a.split()), len(b.split())) - less)) + "\\n")
"""


@pytest.mark.parametrize(("program", "name", "code"), [
    ("fast_align", "fast_align", FAST_ALIGN), ("eflomal", "eflomal-align", EFLOMAL),
])  # fmt: skip
def test_programs_get_the_pairs_with_words(monkeypatch, tmp_path, program, name, code):
    install(monkeypatch, tmp_path / "bin", name, code)
    folder = tmp_path / "links"
    align(program, LEFT, RIGHT, folder)
    assert sorted(p.name for p in folder.iterdir()) == [FORWARD, REVERSE]
    forward, reverse = read_pharaoh(folder / FORWARD), read_pharaoh(folder / REVERSE)
    assert [forward.of_pair(i) for i in range(4)] == [[(0, 0), (1, 1)], [], [(0, 0), (1, 1)], []]
    assert [reverse.of_pair(i) for i in range(4)] == [[(0, 0)], [], [(0, 0)], []]


def test_the_error_for_a_missing_program_has_the_command_that_installs_it(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    for program, how in (("eflomal", f"run {install_command('align')}"), ("fast_align", "build it")):
        error = refusal(find_aligner, program)
        assert error.code == "extra" and error.hint.startswith(how)


@pytest.mark.parametrize(("program", "place", "code"), [
    ("sys.exit('no memory')", "fast_align", "failed"),
    ("print('0-0')", "", "failed"),
    ("print('nonsense\\n')", "", "failed"),
    ("import os; os.kill(os.getpid(), 9)", "fast_align", "failed"),
])  # fmt: skip
def test_a_program_that_fails_leaves_nothing(monkeypatch, tmp_path, program, place, code):
    install(monkeypatch, tmp_path / "bin", code=program)
    assert refused(align, "fast_align", LEFT, RIGHT, tmp_path / "links") == (place, code)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bin"]


def test_text_without_words(monkeypatch, tmp_path):
    install(monkeypatch, tmp_path / "bin")
    sides = LEFT.take(LEFT.ids[1:2]), RIGHT.take(RIGHT.ids[1:2])
    assert refused(align, "fast_align", *sides, tmp_path / "links") == ("", "empty")
