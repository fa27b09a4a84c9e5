"""The probe ``minimal_pairs``: accuracy against a closed form and brute force, derived pairs, surprisal by position."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest

from probes.measures.minimal_pairs.items import spec_of_text
from probes.measures.minimal_pairs.pairs import ScoredPairs, around, has_marks, is_one_place, place_of
from probes.measures.probe_command import probe_command, read_probe_config
from probes.models.opening import open_pretrained
from probes.results.measures import probe_values, range_of
from probes.scoring import Scored
from synthlang.corpus import Column, Corpus
from synthlang.language import parse_language
from synthlang.tasks import open_task
from synthlang.tasks.minimal import MARK
from synthlang.vocabulary import Encoded
from tests.refusals import refused
from tests.scored_runs import probed, small_run, unigram

MINI = "minimal:builtin:mini-english"
ITEMS = f"{MINI}?types=500&test=48"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("pairs") / "run")


def pairs_file(tmp_path, *pairs):
    path = tmp_path / "mine.tsv"
    path.write_text("".join(f"{good}\t{bad}\n" for good, bad in pairs), encoding="utf-8")
    return f"minimal:{path}"


def preferring(run, words):
    """A model without context that gives the tokens of some words a high probability, in both languages."""
    opened = open_pretrained(str(run), None)
    weights = np.ones(opened.model.embeddings.size)
    corpus = Corpus.of_words([words])
    for reader in (opened.source, opened.target):
        weights[reader.encode(reader.language.derive(corpus)).ids] = 1000.0
    return unigram(run, weights)


def test_pairs_of_the_grammar_are_derived_in_a_language_that_reads_lemmas(run):
    opened = open_pretrained(str(run), None)
    hop = replace(opened, target=replace(opened.target, language=parse_language("impossible/word-hop")))
    found = probed(hop, "minimal_pairs", minimal_pairs={"items": ITEMS}).values
    assert found["languages"]["target"]["pairs"] > 0


def test_a_model_that_knows_the_right_words_is_always_right_and_one_that_knows_the_others_never(run, tmp_path):
    items = pairs_file(tmp_path, ("she saw him", "she saw qqq"), ("dogs run", "xxx run"), ("he is old", "he is zzz"))
    right, wrong = preferring(run, ["him", "dogs", "old"]), preferring(run, ["qqq", "xxx", "zzz"])
    for opened, expected in ((right, 100.0), (wrong, 0.0)):
        found = probed(opened, "minimal_pairs", minimal_pairs={"items": items}).values
        for role in ("source", "target"):
            accuracy = found["languages"][role]["accuracy"]
            assert accuracy["mean"] == expected and found["languages"][role]["pairs"] == 3
            assert accuracy["high"] - accuracy["low"] > 40
        assert found["difference"] == {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 3}


def test_accuracies_are_those_of_the_scores_of_every_pair(run):
    result = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs={"items": ITEMS})
    found, rows = result.values, result.files["minimal_pairs.parquet"].to_pylist()
    credit = {}
    for role, name in (("source", "parent"), ("target", "trans+inv")):
        own = [row for row in rows if row["language"] == name]
        won = {row["id"]: row["good_log_probability"] > row["bad_log_probability"] for row in own}
        assert len(own) == found["languages"][role]["pairs"] == len(won)
        assert found["languages"][role]["accuracy"]["mean"] == pytest.approx(100 * np.mean([*won.values()]))
        credit[role] = won
        for column, key in (("phenomenon", "phenomena"), ("paradigm", "paradigms")):
            of = found["languages"][role][key]
            assert of.keys() == {row[column] for row in own}
            for label, accuracy in of.items():
                mine = [won[row["id"]] for row in own if row[column] == label]
                assert accuracy["mean"] == pytest.approx(100 * np.mean(mine)) and accuracy["n"] == len(mine)
        mean = np.mean([one["mean"] for one in found["languages"][role]["paradigms"].values()])
        assert found["languages"][role]["mean_of_paradigms"] == pytest.approx(mean)
    both = credit["source"].keys() & credit["target"].keys()
    gap = np.mean([credit["source"][name] - credit["target"][name] * 1.0 for name in both])
    assert found["difference"]["mean"] == pytest.approx(100 * gap) and found["difference"]["n"] == len(both)


def test_the_sides_of_the_derived_language_are_the_derived_sentences(run):
    opened = open_pretrained(str(run), None)
    rows = probed(opened, "minimal_pairs", minimal_pairs={"items": ITEMS}).files["minimal_pairs.parquet"].to_pylist()
    derived = {row["id"]: row for row in rows if row["language"] == "trans+inv"}
    language = opened.target.language
    for row in rows:
        if row["language"] == "parent" and row["id"] in derived:
            sides = Corpus.of_words([row["good"].split(), row["bad"].split()])
            assert [derived[row["id"]][side] for side in ("good", "bad")] == language.derive(sides).texts()


def scored_pairs(*pairs):
    """Pairs of words with a surprisal in bits each, one token a word."""
    texts = [text for pair in pairs for text in pair]
    corpus = Corpus.of_words([[word for word, _ in text] for text in texts])
    bits = np.asarray([bits for text in texts for _, bits in text], np.float64)
    encoded = Encoded(np.zeros(len(bits), np.int64), np.arange(len(bits) + 1))
    task = open_task("minimal:builtin:mini-english?types=500&test=2")
    batch = replace(next(task.batches("test")), corpus=corpus)
    return ScoredPairs("x", batch, Scored(corpus, encoded, -bits * math.log(2), np.zeros(len(texts), bool)))


def test_surprisal_around_the_difference_by_hand():
    first = [("a", 1), ("b", 2), ("c", 3)], [("a", 1), ("x", 7), ("c", 5)]
    second = [("u", 4), ("v", 6)], [("w", 5), ("v", 6)]
    pairs = scored_pairs(first, second)
    assert pairs.credits.tolist() == [1.0, 1.0]
    found = [
        (row["position"], row["pairs"], row["good"], row["bad"], row["difference"].mean) for row in around(pairs, 2, 9)
    ]
    assert found == [
        (-1, 1, *map(pytest.approx, (1.0, 1.0, 0.0))),
        (0, 2, *map(pytest.approx, (3.0, 6.0, 3.0))),
        (1, 2, *map(pytest.approx, (4.5, 5.5, 1.0))),
    ]
    assert [row["position"] for row in around(pairs, 0, 0)] == [0]


def test_surprisal_around_a_marked_word_by_hand():
    """The mark has another index on each side, the second pair has lost it on one side, and the first copy counts."""
    first = [("a", 1), ("b", 2), ("c", 3)], [("x", 9), ("a", 1), ("b", 7), ("c", 5)]
    second = [("u", 4), ("v", 6)], [("w", 5), ("v", 6)]
    pairs = scored_pairs(first, second)
    marks = [0, 1, 0, 0, 0, 1, 1, 0, 1, 0, -1]
    columns = {**pairs.batch.corpus.columns, MARK: Column(np.asarray(marks, np.int32))}
    pairs = replace(pairs, batch=replace(pairs.batch, corpus=replace(pairs.batch.corpus, columns=columns)), marked=True)
    assert pairs.places == [(1, 2), None] and has_marks(pairs.batch)
    found = [(row["position"], row["pairs"], row["good"], row["bad"]) for row in around(pairs, 5, 5)]
    assert found == [
        (position, 1, pytest.approx(good), pytest.approx(bad))
        for position, good, bad in ((-1, 1.0, 1.0), (0, 2.0, 7.0), (1, 3.0, 5.0))
    ]


def test_a_mark_moves_with_its_word(run, tmp_path):
    path = tmp_path / "marked.tsv"
    path.write_text("good\tbad\tplace\nshe saw him\tshe saw he\t0\nshe ran far\tshe run far\t\n", encoding="utf-8")
    result = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs={"items": f"minimal:{path}"})
    rows = result.files["minimal_pairs.parquet"].to_pylist()
    assert [(row["language"], row["place"]) for row in rows] == [
        ("parent", 0),
        ("parent", None),
        ("trans+inv", 2),
        ("trans+inv", None),
    ]
    for role, positions in (("source", [0, 1, 2]), ("target", [-2, -1, 0])):
        of = result.values["languages"][role]["positions"]
        assert [(one["position"], one["pairs"]) for one in of] == [(position, 1) for position in positions]
    assert sum("around the marked word" in table.caption for table in result.tables) == 2
    assert math.isnan(rows[1]["good_surprisal"]) and rows[0]["good_surprisal"] > 0


def test_equal_scores_count_half():
    same = [("a", 1), ("b", 2)], [("a", 1), ("c", 2)]
    worse = [("a", 3)], [("b", 2)]
    assert scored_pairs(same, worse).credits.tolist() == [0.5, 0.0]


@pytest.mark.parametrize(
    ("good", "bad", "place", "one"),
    [
        ("a b c", "a x c", 1, True),
        ("a b c", "a c b", 1, True),
        ("a b c", "c b a", 0, False),
        ("a b c", "a c", 1, True),
        ("a c", "a b c", 1, True),
        ("a b", "a b c", 2, True),
        ("a b c d", "a", 1, False),
        ("a b c d", "x b y d", 0, False),
        ("a b c", "b d", 0, False),
    ],
)
def test_places(good, bad, place, one):
    sides = good.split(), bad.split()
    assert (place_of(*sides), is_one_place(*sides)) == (place, one)


def test_pairs_that_cannot_be_scored_or_compared_are_counted(run, tmp_path):
    items = pairs_file(
        tmp_path, ("she saw him", "she saw he"), ("a " * 60, "a " * 61), ("dogs run far", "far run dogs")
    )
    result = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs={"items": items})
    assert [of["pairs"] for of in result.values["languages"].values()] == [2, 2]
    assert [n for reason, n in result.values["counts"].items() if "more tokens" in reason] == [1, 1]
    assert result.values["several_places"] == {"source": 1, "target": 1} and len(result.notes) == 2
    few = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs={"items": items, "most": 1}).values
    assert few["languages"]["source"]["pairs"] == 1
    items = pairs_file(tmp_path, ("a " * 60, "a " * 61))
    opened = open_pretrained(str(run), None)
    assert refused(probed, opened, "minimal_pairs", minimal_pairs={"items": items}) == ("minimal_pairs", "empty")


def test_pairs_in_the_other_language_of_their_own(run, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    settings = {
        "items": pairs_file(tmp_path, ("she saw him", "she saw he")),
        "other": pairs_file(other, ("цат", "цатс")),
    }
    found = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs=settings)
    rows = found.files["minimal_pairs.parquet"].to_pylist()
    assert [row["good"] for row in rows] == ["she saw him", "цат"] and found.values["difference"] is None


def test_the_pairs_are_those_of_the_grammar_of_the_text(run):
    spec = spec_of_text("builtin:mini-english?types=500&limit=20&test=24")
    assert spec == "minimal:builtin:mini-english?types=500&test=24"
    found = probed(open_pretrained(str(run), None), "minimal_pairs", minimal_pairs={"most": 12}).values
    source, left_out = (
        found["languages"]["source"],
        [n for reason, n in found["counts"].items() if "parent: " in reason],
    )
    assert source["pairs"] == len(source["paradigms"]) == 12 - sum(left_out) > 8
    assert refused(spec_of_text, None) == refused(spec_of_text, "text:x") == ("items", "missing")


@pytest.mark.parametrize(
    ("settings", "place", "code"),
    [
        ({"items": "minimal:none.tsv"}, "none.tsv minimal_pairs.items", "missing"),
        ({"items": "nli:builtin:mini-english"}, "nli:builtin:mini-english minimal_pairs.items", "type"),
        ({"items": "blimp"}, "minimal_pairs.items", "unknown"),
        ({"other": "minimal:none.tsv"}, "none.tsv minimal_pairs.other", "missing"),
        (
            {"items": "minimal:builtin:mini-english?dev=0#dev"},
            "minimal:builtin:mini-english minimal_pairs.items",
            "missing",
        ),
    ],
)
def test_pairs_that_are_refused(run, settings, place, code):
    opened = open_pretrained(str(run), None)
    assert refused(probed, opened, "minimal_pairs", minimal_pairs=settings) == (place, code)


def test_a_natural_language_needs_pairs_of_its_own(run):
    opened = replace(open_pretrained(str(run), None), natural=True)
    settings = {"language": "xx", "natural": True}
    assert refused(probed, opened, "minimal_pairs", **settings) == ("minimal_pairs.other", "missing")


def test_a_decoder_has_equal_surprisal_before_the_difference(tmp_path):
    folder = small_run(tmp_path / "run", model__kind="gpt2", objective={"kind": "clm"}, dictionary={})
    opened = open_pretrained(str(folder), None)
    found = probed(opened, "minimal_pairs", minimal_pairs={"items": ITEMS}).values
    assert found["model"] == {"source": "causal", "target": "causal"}
    for of in found["languages"].values():
        differences = {row["position"]: row["difference"]["mean"] for row in of["positions"]}
        assert differences[-2] == pytest.approx(0, abs=1e-5) == differences[-1] and abs(differences[0]) > 1e-3
    text = probed(opened, "sentences", sentences={"most": 5}).values
    assert text["model"]["source"] == "causal" and text["languages"]["source"]["perplexity"]["token"]["mean"] > 50


def test_phenomena_without_paradigms_each_have_a_row_and_a_bar(run, tmp_path, painted):
    path = tmp_path / "multi.tsv"
    path.write_text("sen\twrong_sen\tphenomenon\na b\tb a\tSV-#\na c\tc a\tSV-P\n", encoding="utf-8")
    settings = {"minimal_pairs": {"items": f"minimal:{path}"}}
    found = probed(open_pretrained(str(run), "parent"), "minimal_pairs", **settings)
    assert [row[0] for row in found.tables[0].rows] == ["all pairs", "SV-#", "SV-P"]
    assert list(found.values["languages"]) == ["source"] and found.values["difference"] is None
    assert found.values["languages"]["source"]["mean_of_paradigms"] is None and "SV-P" in found.figures[0].alt


def test_the_command_writes_the_page_the_table_and_the_measures(run, tmp_path, painted):
    config = read_probe_config(None, {"probes": ["minimal_pairs"]}, [f"minimal_pairs.items={ITEMS}"])
    folder = probe_command(str(run), config, tmp_path / "out")
    page = (folder / "probes.html").read_text()
    assert "<h2>Minimal pairs</h2>" in page and page.count("<svg") == 2 and "first different word" in page
    assert pq.read_table(folder / "minimal_pairs.parquet").num_rows > 80
    values = {value.name: value for value in probe_values(json.loads((folder / "probes.json").read_text()))}
    for name in ("accuracy.mean", "phenomena.agreement.mean", "paradigms.object_case.mean", "positions.+0.bad"):
        assert f"minimal_pairs.languages.target.{name}" in values
    assert range_of("minimal_pairs.languages.source.phenomena.argument order.mean") == (0.0, 100.0)
    assert "minimal_pairs.difference.mean" in values
