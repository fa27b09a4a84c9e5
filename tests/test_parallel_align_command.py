"""``synthlang align``: with a program, with given links, with gold; what it writes and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.statistics import alignment_interval
from synthlang.parallel.align_command import AlignOptions, align_command
from synthlang.parallel.aligners import METHODS
from synthlang.parallel.links import read_pharaoh
from tests.aligner_programs import install
from tests.refusals import place_and_code, refusal, refused

TEXT = "a b c ||| A B C\nx y ||| X Y\n ||| Z\n"
GOLD = "1-1 2-2 3p3\n1-1 2-2\n\n"


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with text and gold, and a fast_align of a few lines on the PATH."""
    install(monkeypatch, tmp_path / "bin")
    for name, text in {
        "text": TEXT,
        "gold": GOLD,
        "forward": "0-0 1-1 2-2\n0-0 1-1\n\n",
        "reverse": "0-0 1-1\n0-0\n\n",
    }.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def run(place, out=None, scores=None, texts=("text",), interval=None, **options):
    return align_command(
        [place / t for t in texts], AlignOptions(**options), out and place / out, scores and place / scores, interval
    )


def test_a_program_and_every_way_to_join(place, capsys):
    got = run(place, "links", "scores.json", program="fast_align", gold=place / "gold", gold_first=1)
    assert list(got) == ["forward", "reverse", *METHODS]
    # forward: A = 5, S = 4, A∩S = 4, A∩P = 5; reverse: A = 3, all of them sure
    assert got["forward"].scores["aer"] == 0 and got["reverse"].scores["aer"] == pytest.approx(1 - 6 / 7)
    assert got["intersection"].scores["aer"] == got["reverse"].scores["aer"] and got["union"].scores["aer"] == 0
    assert read_pharaoh(place / "links").of_pair(0) == [(0, 0), (1, 1)]
    written = json.loads((place / "scores.json").read_text())
    assert written["scores"]["reverse"]["recall"] == 0.75 and written["gold_blank_pairs"] == 1
    said = capsys.readouterr().out
    assert "sentence pairs without a gold alignment" in said and "grow-diag" in said and "14.3" in said


@pytest.mark.parametrize(("method", "count"), [("forward", 5), ("reverse", 3), ("union", 5), (None, 3)])
def test_what_is_written(place, method, count):
    assert run(place, "links", program="fast_align", symmetrise=method) == {}
    found = read_pharaoh(place / "links")
    assert len(found) == 3 and len(found.left) == count


def test_more_text_is_given_to_the_program_and_its_links_are_not_kept(place):
    (place / "more").write_text("Eins ||| One\n", encoding="utf-8")
    (place / "l").write_text("Zwei, drei\n", encoding="utf-8")
    (place / "r").write_text("two , three\n", encoding="utf-8")
    also = (str(place / "more"), f"{place / 'l'},{place / 'r'}")
    run(place, "links", program="fast_align", also=also, lower=True, also_words="rules")
    seen = (place / "bin" / "seen").read_text().splitlines()
    assert seen == ["a b c ||| a b c", "x y ||| x y", "eins ||| one", "zwei , drei ||| two , three"]
    assert len(read_pharaoh(place / "links")) == 3


def test_two_files_of_text(place):
    (place / "left").write_text("a b\n", encoding="utf-8")
    (place / "right").write_text("A B\n", encoding="utf-8")
    run(place, "links", texts=("left", "right"), program="fast_align")
    assert read_pharaoh(place / "links").of_pair(0) == [(0, 0)]


def test_given_links_are_scored(place):
    both = (place / "forward", place / "reverse")
    alone = run(place, links=both[:1], gold=place / "gold", gold_first=1)
    assert list(alone) == ["given"] and alone["given"].scores["aer"] == 0
    joined = run(place, "links", links=both, symmetrise="union", gold=place / "gold", gold_first=1)
    assert joined["reverse"].scores["recall"] == 0.75 and len(read_pharaoh(place / "links").left) == 5


def test_given_links_that_count_from_1_and_stand_the_other_way(place):
    (place / "text").write_text("a b ||| A\n", encoding="utf-8")
    (place / "gold").write_text("0-0 1-0\n", encoding="utf-8")
    (place / "given").write_text("1-1 1-2 2-1\n", encoding="utf-8")
    got = run(place, links=(place / "given",), links_first=1, links_swapped=True, gold=place / "gold")
    assert got["given"].sums.tolist() == [[2, 2, 2, 2]]  # and one that the text does not have


def test_links_that_do_not_show_what_they_count_from_are_refused(place):
    """Counting from 1 they would be read as other links, with a bad score for a good aligner."""
    (place / "given").write_text("1-1 2-2 3-3\n1-1 2-2\n\n", encoding="utf-8")
    options = {"links": (place / "given",), "gold": place / "gold", "gold_first": 1}
    error = refusal(run, place, **options)
    assert place_and_code(error) == ("given", "missing") and error.hint == "set --links-first to 0 or 1"
    assert run(place, links_first=1, **options)["given"].scores["aer"] == 0
    assert run(place, links_first=0, **options)["given"].scores["aer"] > 0.2


def test_blank_pairs_and_interval(place):
    options = {"links": (place / "forward",), "gold": place / "gold", "gold_first": 1}
    got = run(place, None, "s.json", interval=alignment_interval, blank="skip", **options)
    assert got["given"].skipped == 1
    assert json.loads((place / "s.json").read_text())["scores"]["given"]["interval"] == [0, 0]


@pytest.mark.parametrize(("options", "where"), [
    ({"program": "giza"}, "--program"),
    ({"links": ("forward",), "program": "eflomal"}, "--links"),
    ({"links": ("forward",), "symmetrise": "union"}, "--symmetrise"),
    ({"links": ("gone",)}, "gone"),
    ({"program": "fast_align", "also": ("gone",)}, "gone"),
    ({"texts": ()}, ""),
    ({"texts": ("empty",)}, "empty"),
    ({"texts": ("bars",)}, "bars:1"),
    ({"scores": "s.json", "links": ("forward",)}, "--scores"),
])  # fmt: skip
def test_refused(place, options, where):
    (place / "short").write_text("0-0\n", encoding="utf-8")
    (place / "empty").write_text("", encoding="utf-8")
    (place / "bars").write_text("no bars\n", encoding="utf-8")
    if "links" in options:
        options = {**options, "links": tuple(place / name for name in options["links"])}
    if "gold" in options:
        options = {**options, "gold": place / Path(options["gold"])}
    if "also" in options:
        options = {**options, "also": tuple(str(place / name) for name in options["also"])}
    assert refused(run, place, **options)[0] == where


def test_a_word_of_white_space_counts_for_gold_and_for_the_program(place, capsys):
    """The Japanese of KFTT has U+3000 as a word; every later link would be one word off without it."""
    (place / "text").write_text("A \u3000 B ||| x – y\nNew\u00a0York a ||| z w\n", encoding="utf-8")
    (place / "gold").write_text("0-0 1-1 2-2\n0-0 1-1\n", encoding="utf-8")
    got = run(place, "links", program="fast_align", gold=place / "gold")
    assert got["forward"].scores["aer"] == 0 and read_pharaoh(place / "links").of_pair(0) == [(0, 0), (1, 1)]
    assert "no such word" not in capsys.readouterr().out
    assert (place / "bin" / "seen").read_text("utf-8").splitlines()[1] == "New\u2581York a ||| z w"
