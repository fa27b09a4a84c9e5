"""Words without context in the probe ``maps``: rows of the embedding matrix, and static word vectors.

Against a plain reading, planted, trained, and what is refused.
"""

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
from probes.results.measures import probe_values
from synthlang.errors import InputError
from tests.aligned_runs import SEPARATE, plain_ids, random_run
from tests.maps_cases import plain_map, plain_precision, subject_of, values_of, write_pairs

WIDTH = 12
SHORT: dict[str, Any] = {"supervision": ["parallel"], "embeddings": True}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One model of both languages, and two; with 500 subwords, some words are one subword and some are several."""
    folder = tmp_path_factory.mktemp("store")
    return {
        "shared": random_run(folder, vocabulary__size=500),
        "separate": random_run(folder, vocabulary__size=500, **SEPARATE),
    }


def plain_rows(given) -> tuple[list[list[str]], list[np.ndarray]]:
    """Words that are one subword and their rows, of the parent and of the other language."""
    pre, dictionary = given.pretrained, read_dictionary(given)
    words, rows = [], []
    for body, reader, side in ((pre.model, pre.source, 1), (pre.target_model, pre.target, 0)):
        pieces = {word: plain_ids(reader, [word])[0][1:-1] for word in dictionary.words(side)}
        kept = {word: ids[0] for word, ids in pieces.items() if len(ids) == 1}
        assert 10 < len(kept) < len(pieces)
        ids = torch.tensor(list(kept.values()))
        table = body.embeddings.words[body.embeddings.rows(ids, reader.number)]
        words.append(list(kept))
        rows.append(table.detach().numpy().astype(np.float64))
    return words, rows


def pairs_of(given) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    split = read_dictionary(given).split
    return split.fit, split.test


def names_of(given, side: int) -> list[str]:
    """All words of the sentences that are used, in the order of their first occurrence."""
    corpus = (given.aligned.text.left, given.aligned.text.right)[side]
    rows = [*given.data.train.tolist(), *given.data.dev.tolist()]
    return list(dict.fromkeys(word for row in rows for word in corpus[row].words))


def write_vec(path, vectors) -> str:
    rows = [f"{word} {' '.join(f'{number:.6f}' for number in row)}" for word, row in vectors.items()]
    path.write_text(f"{len(rows)} {len(rows[0].split()) - 1}\n" + "\n".join(rows) + "\n")
    return str(path)


def planted(run, folder, noise: float):
    """Vectors of both languages: those of a word and its counterpart differ by a turn, a shift and noise."""
    given = subject_of(run)
    generator, turn = np.random.default_rng(0), ortho_group.rvs(WIDTH, random_state=0)
    right = {word: generator.normal(size=WIDTH).round(6) for word in names_of(given, 1)}
    partner = {}
    for row in range(len(given.data.links)):
        for a, b in given.data.links.of_pair(row):
            partner[given.aligned.text.left[row].words[a]] = given.aligned.text.right[row].words[b]
    left = {}
    for word in names_of(given, 0):
        vector = (
            right[partner[word]] @ turn + noise * generator.normal(size=WIDTH) if word in partner else np.ones(WIDTH)
        )
        left[word] = vector.round(6)
    return left, right, {"left": write_vec(folder / "l.vec", left), "right": write_vec(folder / "r.vec", right)}


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
    for scores, (a, b) in ((found["before"], (x, y)), (found["words"], (of_right(x), of_left(y)))):
        for score, ways in plain_precision(a, b, (names, others), test).items():
            for way, numbers in ways.items():
                assert scores[score][way] == pytest.approx(numbers, abs=1e-3), (score, way)
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


@pytest.mark.parametrize(("supervision", "moves"), [("parallel", "target"), ("dictionary", "source")])
def test_a_planted_turn_of_static_vectors_is_undone(runs, tmp_path, supervision, moves):
    *_, files = planted(runs["shared"], tmp_path, 0.0)
    static = {"kind": "load", "supervision": supervision, **files}
    found = values_of(
        subject_of(runs["shared"], {"static": static, "moves": moves, "supervision": ["parallel"]}, layers=[2])
    )
    scores = found["static"]
    assert scores["words"]["cosine"]["mean"]["p@1"] > 99 and scores["fit"]["residual"] < 1e-6
    # a word that comes twice is found as one of the two without its sentence, and nearly always with it
    assert scores["alone"]["cosine"]["mean"] < scores["context"]["cosine"]["mean"] > 85
    assert found["before"][0]["context"]["cosine"]["mean"] < 50
    assert scores["counts"]["linked words without a vector (parent)"] == 0


@pytest.mark.parametrize("kind", ["fasttext", "word2vec"])
def test_vectors_are_trained_on_both_sides(runs, kind):
    pytest.importorskip("gensim", reason="gensim (extra probe) is not installed")
    vectors = {"kind": kind, "size": 8, "min_count": 2, "epochs": 1, "buckets": 100}
    maps = {"static": {"kind": "train", "vectors": vectors}, "supervision": ["parallel"]}
    first = values_of(subject_of(runs["shared"], maps, layers=[2]))["static"]
    assert first["vectors"]["left"]["sentences"] == first["vectors"]["right"]["sentences"] == 40
    assert (first["counts"]["linked words without a vector (parent)"] == 0) == (kind == "fasttext")
    # rare types that are measured alone get the mean of their n-grams
    assert (first["counts"]["measured words without a vector (parent)"] == 0) == (kind == "fasttext")
    assert 0 <= first["context"]["csls"]["mean"] <= 100
    assert values_of(subject_of(runs["shared"], maps, layers=[2]))["static"] == first


def queries(given, side):
    """Word → its translations, of the pairs that are measured."""
    dictionary = read_dictionary(given)
    translations = dictionary.forward if side == 1 else dictionary.backward
    words, others = dictionary.corpora[side].form.names, dictionary.corpora[1 - side].form.names
    assert words is not None and others is not None
    types = dictionary.types[side], dictionary.types[1 - side]
    found: dict[str, set[str]] = {}
    for query, answer in translations.pairs().tolist():
        found.setdefault(words[types[0][query]], set()).add(others[types[1][answer]])
    return found


def test_words_without_a_static_vector_are_counted_and_told(runs, tmp_path):
    left, right, _ = planted(runs["shared"], tmp_path, 0.4)
    for vectors in (left, right):
        for word in list(vectors)[3::9]:
            del vectors[word]
    files = {"left": write_vec(tmp_path / "l.vec", left), "right": write_vec(tmp_path / "r.vec", right)}
    given = subject_of(runs["shared"], {"static": {"kind": "load", **files}, "supervision": ["parallel"]}, layers=[2])
    with given.reading():
        found = maps_probe(given)
    values, text, data = found.values["static"], given.aligned.text, given.data
    counts, sides = values["counts"], (left, right)
    linked = {
        name: [(text.left[row].words[a], text.right[row].words[b]) for row in rows for a, b in data.links.of_pair(row)]
        for name, rows in (("fitted", data.train.tolist()), ("measured", data.dev.tolist()))
    }
    unknown = sum(a not in left or b not in right for a, b in linked["fitted"])
    assert counts["pairs of words without a vector"] == unknown > 0
    assert counts["linked words without a vector (parent)"] == sum(b not in right for _, b in linked["measured"]) > 0
    for side, name in ((1, "parent"), (0, "other language")):
        asked = queries(given, side)
        lost = sum(word in sides[side] and not any(b in sides[1 - side] for b in asked[word]) for word in asked)
        missed = sum(word not in sides[side] for word in asked)
        assert counts[f"measured words without a vector ({name})"] == missed
        assert counts[f"measured words whose translations have no vector ({name})"] == lost
    rows = {table.caption[:12]: [row[0] for row in table.rows] for table in found.tables}
    assert rows["Translation "][-1] == "static vectors"
    context = next(table for table in found.tables if "words in context" in table.caption)
    assert [row[0] for row in context.rows][-2:] == ["static, with sentence", "static, alone"]
    assert all(len(values["intervals"][key]) == 2 for key in ("words", "context", "alone"))
    assert any(note.startswith("static vectors: words without a vector count as not found") for note in found.notes)
    reason = "linked words without a vector (parent)"
    assert found.values["counts"][f"static vectors: {reason}"] == counts[reason]


def test_static_vectors_of_the_words_of_one_subword_stand_beside(runs, tmp_path):
    _, right, files = planted(runs["shared"], tmp_path, 0.0)
    maps = {**SHORT, "held_out": 0.5, "static": {"kind": "load", **files}}
    given = subject_of(runs["shared"], maps, layers=[1])
    with given.reading():
        found = maps_probe(given)
    probed = found.values["embeddings"]
    # of the same words, not of all that have a vector
    assert probed["static"]["fit"]["pairs"] == probed["fitted"]["translations"]["known"] > WIDTH
    assert probed["static"]["words"]["cosine"]["mean"]["p@1"] > 95 and set(probed["static"]["counts"].values()) == {0}
    assert "words of one subword" in found.tables[-1].caption
    rows = ["embeddings, no map", "embeddings, rotated", "static vectors, rotated"]
    assert [row[0] for row in found.tables[-1].rows] == rows
    # a study reads them as measures without a layer
    measures = {name: (layer, value) for name, layer, _, value, _ in probe_values({"probes": {"maps": found.values}})}
    for name, number in (("before", probed["before"]), ("static.words", probed["static"]["words"])):
        assert measures[f"maps.embeddings.{name}.csls.mean.p@1"] == (None, number["csls"]["mean"]["p@1"])
    # a word without a vector is not found, and is counted
    (names, _), _ = plain_rows(given)
    del right[next(a for a, _ in pairs_of(given)[1] if a in names)]
    files["right"] = write_vec(tmp_path / "fewer.vec", right)
    fewer = values_of(subject_of(runs["shared"], {**maps, "static": {"kind": "load", **files}}, layers=[1]))
    static = fewer["embeddings"]["static"]
    assert static["counts"]["measured words without a vector (parent)"] == 1
    assert static["words"]["csls"]["forward"]["p@1"] < probed["static"]["words"]["csls"]["forward"]["p@1"]


def test_few_pairs_are_told_and_none_are_refused(runs, tmp_path):
    """Two pairs tell one direction; one pair, or none, tells nothing."""
    run = runs["shared"]
    given = subject_of(run, layers=[1])
    (names, others), _ = plain_rows(given)
    every = [pair for part in pairs_of(given) for pair in part]
    pairs = [pair for pair in every if pair[0] in names and pair[1] in others][:4]
    *_, files = planted(run, tmp_path, 0.0)
    load = {"kind": "load", **files}
    maps = {**SHORT, "lower": False, "test_dictionary": write_pairs(tmp_path / "test.txt", pairs[2:])}
    two = {**maps, "static": load, "dictionary": write_pairs(tmp_path / "two.txt", pairs[:2])}
    few = subject_of(run, two, layers=[1])
    with few.reading():
        notes = maps_probe(few).notes
    for what in ("words of one subword", "static vectors of these"):
        assert any(note.startswith(f"{what}: a map was fitted on pairs that span") for note in notes)
    one = write_pairs(tmp_path / "one.txt", pairs[:1])
    nothing = {f"nothing{i}": np.arange(WIDTH) + i for i in range(3)}
    for settings, message in (
        (
            {**maps, "dictionary": one},
            r"maps\.embeddings: a rotation needs two pairs of words of one subword with vectors, but there is only one",
        ),
        ({"static": {**load, "left": write_vec(tmp_path / "few.vec", nothing)}}, "the rotation cannot be fitted"),
    ):
        with pytest.raises(InputError, match=message):
            values_of(subject_of(run, settings, layers=[1]))
