"""Rows of the embedding matrix in the probe ``maps``: against a plain reading, planted, and what is refused."""

import copy
from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group

from probes.measures.maps.dictionary import read_dictionary
from probes.measures.maps.probe import maps_probe
from probes.measures.maps.without_context import subwords_of_types
from probes.study.measures import probe_measures
from synthlang.errors import InputError
from tests.aligned_runs import SEPARATE, plain_ids, random_run
from tests.measure_maps_cases import plain_map, plain_precision, subject_of, values_of, write_pairs
from tests.test_measure_maps_static import WIDTH, planted, write_vec

SHORT: dict[str, Any] = {"supervision": ["parallel"], "embeddings": True}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One model of both languages, and two; with 500 subwords, some words are one subword and some are several."""
    folder = tmp_path_factory.mktemp("store")
    return {
        "shared": random_run(folder, vocabulary__size=500),
        "separate": random_run(folder, vocabulary__size=500, **SEPARATE),
    }


def test_a_word_in_small_letters_is_its_most_frequent_form_of_one_subword(runs):
    """Against counting the forms; in small letters some words are several subwords, and as they are written one."""
    given = subject_of(runs["shared"], {**SHORT, "lower": True}, layers=[1])
    dictionary, text = read_dictionary(given), given.aligned.text
    rescued = 0
    for side, (reader, corpus) in enumerate(
        ((given.pretrained.target, text.left), (given.pretrained.source, text.right))
    ):
        counts = Counter(word for row in given.data.train.tolist() for word in corpus[row].words)
        found, left_out = subwords_of_types(given, dictionary, side)
        assert left_out["types of several subwords"] > 0 == left_out["types unknown to the tokenizer"]
        for word, number in zip(dictionary.words(side), found.tolist(), strict=True):
            forms = [form for form in counts if form.lower() == word]
            ids = {form: plain_ids(reader, [form])[0][1:-1] for form in forms}
            single = [form for form in forms if len(ids[form]) == 1]
            if not single:
                assert number == -1
                continue
            most = max(counts[form] for form in single)
            assert [number] in [ids[form] for form in single if counts[form] == most]
            rescued += len(plain_ids(reader, [word])[0]) > 3
    assert rescued > 0


def test_few_pairs_are_told(runs, tmp_path):
    """Two pairs tell one direction; one pair, or none, tells nothing."""
    given = subject_of(runs["shared"], layers=[1])
    (names, others), _ = plain_rows(given)
    pairs = [pair for part in pairs_of(given) for pair in part if pair[0] in names and pair[1] in others][:4]
    test = write_pairs(tmp_path / "test.txt", pairs[2:])
    maps = {**SHORT, "lower": False, "test_dictionary": test}
    two = subject_of(runs["shared"], {**maps, "dictionary": write_pairs(tmp_path / "two.txt", pairs[:2])}, layers=[1])
    with two.reading():
        notes = maps_probe(two).notes
    assert any(
        note.startswith("words of one subword: a map was fitted on pairs that say something of") for note in notes
    )
    assert not any(note.startswith("static vectors of these") for note in notes)
    files = planted(runs["shared"], tmp_path, 0.0)[2]
    static = {"kind": "load", "supervision": "parallel", **files}
    dictionary = str(tmp_path / "two.txt")
    two = subject_of(runs["shared"], {**maps, "static": static, "dictionary": dictionary}, layers=[1])
    with two.reading():
        notes = maps_probe(two).notes
    assert any(note.startswith("static vectors of these: a map was fitted on pairs that say") for note in notes)
    one = {**maps, "dictionary": write_pairs(tmp_path / "one.txt", pairs[:1])}
    with pytest.raises(
        InputError, match=r"maps\.embeddings: of the pairs of words of one subword 1 can be fitted on; name"
    ):
        values_of(subject_of(runs["shared"], one, layers=[1]))


def plain_rows(given) -> tuple[list[list[str]], list[np.ndarray]]:
    """Words that are one subword and their rows, of the parent and of the other language."""
    pre, dictionary = given.pretrained, read_dictionary(given)
    words, rows = [], []
    for body, reader, side in ((pre.model, pre.source, 1), (pre.target_model, pre.target, 0)):
        held = {word: plain_ids(reader, [word])[0][1:-1] for word in dictionary.words(side)}
        kept = {word: ids[0] for word, ids in held.items() if len(ids) == 1}
        assert 10 < len(kept) < len(held)
        ids = torch.tensor(list(kept.values()))
        table = body.embeddings.words[body.embeddings.rows(ids, reader.number)]
        words.append(list(kept))
        rows.append(table.detach().numpy().astype(np.float64))
    return words, rows


def pairs_of(given) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    split = read_dictionary(given).split
    return split.fit, split.test


@pytest.mark.parametrize(
    ("kind", "moves", "normalise"), [("shared", "target", "iterative"), ("separate", "source", "none")]
)
def test_every_number_is_that_of_a_plain_reading(runs, kind, moves, normalise):
    settings = {**SHORT, "moves": moves, "normalise": normalise, "held_out": 0.5}
    given = subject_of(runs[kind], settings, layers=[1])
    found = values_of(given)["embeddings"]
    (names, others), (x, y) = plain_rows(given)
    fit, test = pairs_of(given)
    known = [(names.index(a), others.index(b)) for a, b in fit if a in names and b in others]
    assert found["fitted"]["translations"]["known"] == found["fit"]["pairs"] == len(known) > 5
    right, left = x[[a for a, _ in known]], y[[b for _, b in known]]
    rounds = 5 if normalise == "iterative" else None
    if moves == "target":
        of_left, of_right = plain_map(left, right, rounds)
    else:
        of_right, of_left = plain_map(right, left, rounds)
    for held, (a, b) in ((found["before"], (x, y)), (found["words"], (of_right(x), of_left(y)))):
        for score, ways in plain_precision(a, b, (names, others), test).items():
            for way, numbers in ways.items():
                assert held[score][way] == pytest.approx(numbers, abs=1e-3), (score, way)
    assert found["measured"]["types"] == {"parent": len(names), "other": len(others)}
    low, high = found["intervals"]["words"]
    assert low <= found["words"]["csls"]["mean"]["p@1"] <= high
    types = read_dictionary(given).types
    assert found["counts"]["types of several subwords (parent)"] == len(types[1]) - len(names)


def test_a_planted_turn_of_the_matrix_is_undone(runs):
    """Positive control: the other language's rows are the parent's, turned; without the rotation nothing is found."""
    pretrained = copy.deepcopy(runs["shared"])
    body, generator = pretrained.model, np.random.default_rng(3)
    given = subject_of(pretrained, {**SHORT, "held_out": 0.3}, layers=[1])
    (names, others), _ = plain_rows(given)
    fit, test = pairs_of(given)
    width = body.shape.hidden
    turn = torch.tensor(ortho_group.rvs(width, random_state=1), dtype=torch.float32)
    with torch.no_grad():
        table = body.embeddings.words
        table.copy_(torch.tensor(generator.normal(size=table.shape), dtype=torch.float32))
        for word, other in [*fit, *test]:
            if word in names and other in others:
                own = [
                    plain_ids(reader, [w])[0][1]
                    for reader, w in ((pretrained.source, word), (pretrained.target, other))
                ]
                rows = [
                    int(body.embeddings.rows(torch.tensor([number]), reader.number))
                    for number, reader in zip(own, (pretrained.source, pretrained.target), strict=True)
                ]
                table[rows[1]] = table[rows[0]] @ turn
    found = values_of(given)["embeddings"]
    assert found["fit"]["pairs"] > width, "the turn is told by its pairs"
    assert found["words"]["csls"]["mean"]["p@1"] > 95 > 40 > found["before"]["csls"]["mean"]["p@1"]


def test_static_vectors_of_the_same_words_stand_beside(runs, tmp_path):
    _, right, files = planted(runs["shared"], tmp_path, 0.0)
    maps = {**SHORT, "held_out": 0.5, "static": {"kind": "load", **files}}
    given = subject_of(runs["shared"], maps, layers=[1])
    with given.reading():
        found = maps_probe(given)
    held = found.values["embeddings"]
    fitted = held["fitted"]["translations"]["known"]
    assert held["static"]["fit"]["pairs"] == fitted > WIDTH  # of the same words, not of all that have a vector
    assert held["static"]["words"]["cosine"]["mean"]["p@1"] > 95
    assert set(held["static"]["counts"].values()) == {0}
    table = found.tables[-1]
    assert "words of one subword" in str(table.title)
    assert list(table.columns[0].cells) == ["embeddings, no map", "embeddings, rotated", "static vectors, rotated"]
    # a study reads them as measures without a layer
    record = {"model": "m", "probes": {"maps": found.values}}
    measures = {name: (layer, value) for name, layer, _, value in probe_measures(record)}
    for name, number in (
        ("embeddings.before", held["before"]),
        ("embeddings.words", held["words"]),
        ("embeddings.static.words", held["static"]["words"]),
    ):
        assert measures[f"maps.{name}.csls.mean.p@1"] == (None, number["csls"]["mean"]["p@1"])
    # a word without a vector is not found, and is counted
    (names, _), _ = plain_rows(given)
    asked = next(a for a, _ in pairs_of(given)[1] if a in names)
    del right[asked]
    files["right"] = write_vec(tmp_path / "fewer.vec", right)
    without = subject_of(runs["shared"], {**maps, "static": {"kind": "load", **files}}, layers=[1])
    with without.reading():
        told = maps_probe(without)
    fewer = told.values
    assert any(note.startswith("static vectors of words of one subword: who has no vector") for note in told.notes)
    assert fewer["embeddings"]["static"]["counts"]["measured words without a vector (parent)"] == 1
    assert (
        fewer["embeddings"]["static"]["words"]["csls"]["forward"]["p@1"]
        < held["static"]["words"]["csls"]["forward"]["p@1"]
    )


def test_what_cannot_be_measured_is_said(runs, tmp_path):
    given = subject_of(runs["shared"], layers=[1])
    (names, others), _ = plain_rows(given)
    fit, test = pairs_of(given)
    long = [pair for pair in [*fit, *test] if pair[0] not in names]
    several = write_pairs(tmp_path / "long.txt", long)
    maps = {**SHORT, "dictionary": several, "lower": False}
    text = r"none of the \d+ pairs of maps.dictionary that are drawn to fit on between words of one subword has both"
    with pytest.raises(InputError, match=text):
        values_of(subject_of(runs["shared"], maps, layers=[1]))
    nothing = {f"nothing{i}": np.arange(WIDTH) + i for i in range(3)}
    # the vectors are of words of several subwords alone
    left, right, files = planted(runs["shared"], tmp_path, 0.0)
    short = {*names, *others}
    for side, vectors in (("left", left), ("right", right)):
        kept = {word: vector for word, vector in vectors.items() if word not in short}
        files[side] = write_vec(tmp_path / f"{side}-long.vec", {**kept, **nothing})
    with pytest.raises(InputError, match=r"maps\.static: of the pairs of words of one subword 0 can be fitted on"):
        values_of(subject_of(runs["shared"], {**SHORT, "static": {"kind": "load", **files}}, layers=[1]))
