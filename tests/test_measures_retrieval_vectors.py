"""Word retrieval by other vectors: after a rotation, and static ones; against plain readings, planted, and refused."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

from pretrain.adjust.vectors import layer_states
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.results.measures import probe_values
from probes.static.training import train_vectors
from synthlang.config import parse
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.maps_cases import Plain, plain_map, unit
from tests.test_measures_maps_without_context import WIDTH, names_of, planted, write_vec
from tests.test_measures_retrieval import Slow, check
from tests.test_measures_retrieval_controls import DIAGONAL, KEEP, probe, sentences, subject_of


def turned_subject(folder, monkeypatch, retrieval, **settings):
    """The parent in the place of both languages, but the states of the left one are turned."""
    text, model = sentences(200), save_model(folder / "model", "roberta")
    given = subject_of(model, folder, text, text, [DIAGONAL] * 200, {**KEEP, **retrieval}, **settings)
    other = copy.deepcopy(given.pretrained.model)
    turn = torch.from_numpy(ortho_group.rvs(other.shape.hidden, random_state=0)).float()

    def states(body, words, layers):
        found = layer_states(body, words, layers)
        return found @ turn.to(found) if body is other else found

    for place in ("pretrain.adjust.vectors", "probes.states"):
        monkeypatch.setattr(f"{place}.layer_states", states)
    return replace(given, pretrained=replace(given.pretrained, target_model=other))


@pytest.mark.parametrize("supervision", ["parallel", "sentences"])
def test_a_turned_copy_is_found_after_the_rotation_and_at_chance_before(tmp_path, monkeypatch, supervision):
    given = turned_subject(tmp_path, monkeypatch, {})
    before = probe(given).values
    assert before["rotation"] is None and before["headline"]["cosine"]["mean"] < 6
    config = {"rotation": {"supervision": supervision}}
    after = probe(turned_subject(tmp_path, monkeypatch, config))
    assert after.values["headline"]["cosine"]["mean"] == 100
    assert max(fit["residual"] for fit in after.values["rotation"]["fit"]) < 1e-6
    assert len(after.values["rotation"]["fit"]) == len(after.values["variants"]["types"]["layers"]) == 4
    assert after.values["variants"]["types"]["layers"][-1]["pairs"]["linked"]["cosine"]["mean"] == 100
    # the words, links and what counts are those without a rotation
    for key in ("candidates", "links", "lost", "chance"):
        assert after.values["variants"]["context"][key] == before["variants"]["context"][key]


class Mapped(Slow):
    """After functions of the vectors of each side."""

    def __init__(self, given, variant, layer, functions):
        self.functions = functions
        super().__init__(given, variant, layer)

    def vectors(self, i, layer):
        return self.functions[i](super().vectors(i, layer))


CASES: dict[str, tuple[dict[str, Any], int | None]] = {
    "paper": ({"words": None}, None),
    "other way": ({"moves": "source", "words": 100_000}, None),
    "sentences": ({"supervision": "sentences"}, None),
    "iterative": ({"normalise": "iterative", "rounds": 2, "moves": "source"}, 2),
}


@pytest.mark.parametrize("case", sorted(CASES))
def test_it_is_a_plain_map_applied_by_hand(run, case):
    rotation, rounds = CASES[case]
    data = {"dev": 15, "sentences": 60}
    config = {"data": data, "layers": [1, 2], "retrieval": {"rotation": rotation, "seen": "keep"}}
    given = ProbeInput(run, parse(ProbeConfig, {"probes": ["retrieval"], **config}))
    found = probe(given)
    check_by_hand(given, found, rotation, rounds, case == "sentences")
    assert {key: found.values["rotation"][key] for key in ("supervision", "moves", "normalise")} == {
        "supervision": "parallel", "moves": "target", "normalise": "none",
    } | {key: value for key, value in rotation.items() if key in ("supervision", "moves", "normalise")}  # fmt: skip
    assert {row[0] for row in found.tables[0].rows} == {"links", "layer 1, rotated", "layer 2, rotated"}


@torch.no_grad()
def check_by_hand(given, found, rotation, rounds, of_sentences):
    for place, layer in enumerate((1, 2)):
        plain = Plain(given, layer)
        of = plain.sentences if of_sentences else plain.linked
        left, right = of(given.data.train)
        if rotation.get("moves") == "source":
            functions = plain_map(right, left, rounds)[::-1]
        else:
            functions = plain_map(left, right, rounds)
        for variant in ("context", "types"):
            of_layer = found.values["variants"][variant]["layers"][place]
            slow = Mapped(given, variant, layer, functions)
            for name in ("linked", "unlike"):
                check(of_layer["pairs"][name]["csls"], slow.accuracy(slow.kept(name), slow.csls))
                check(of_layer["pairs"][name]["cosine"], slow.accuracy(slow.kept(name), slow.cosines))
        assert found.values["rotation"]["fit"][place]["pairs"] == len(left)


def test_a_rotation_and_static_vectors_together_are_one_line():
    both = {"retrieval": {"rotation": {}, "static": {"kind": "train"}}}
    with pytest.raises(InputError, match=r"retrieval\.rotation: cannot be combined with static") as caught:
        parse(ProbeConfig, both)
    assert "\n" not in str(caught.value)
    for bad in ({"supervision": "dictionary"}, {"words": 1}, {"normalise": "length"}):
        with pytest.raises(InputError, match=rf"retrieval\.rotation\.{next(iter(bad))}"):
            parse(ProbeConfig, {"retrieval": {"rotation": bad}})


def given_static(run, static, **retrieval):
    settings = {"data": {"dev": 15, "sentences": 60}, "retrieval": {"static": static, **retrieval}}
    return ProbeInput(run, parse(ProbeConfig, {"probes": ["retrieval"], **settings}))


class SlowStatic(Slow):
    """By the section: normalised, centred, normalised; rotated by the links; beside what its sentence has."""

    def __init__(self, given, variant, words, pools):
        self.words_of, self.pools = [], pools
        for vectors in words:
            rows = unit(np.array(list(vectors.values())))
            self.words_of.append(dict(zip(vectors, unit(rows - rows.mean(0)), strict=True)))
        self.given = given
        links = [((row, a), (row, b)) for row in given.fitted.tolist() for a, b in given.data.links.of_pair(row)]
        forms = [(self.form(0, a), self.form(1, b)) for a, b in links]
        fitted = [(a, b) for a, b in forms if a in self.words_of[0] and b in self.words_of[1]]
        left, right = (np.array([self.words_of[i][pair[i]] for pair in fitted]) for i in (0, 1))
        turn, _ = orthogonal_procrustes(left, right)
        self.words_of[0] = {word: row @ turn for word, row in self.words_of[0].items()}
        super().__init__(given, variant, 0)

    def known(self, i, word):
        return self.form(i, word) in self.words_of[i]

    def vectors(self, i, layer):
        found = []
        for row, place in self.sides[i]:
            words = self.sentence(i, row).words
            there = np.array([self.words_of[i][word] for word in words if word in self.words_of[i]])
            pools = {"mean": there.mean(0), "max": there.max(0), "min": there.min(0)}
            found.append(np.concatenate([self.words_of[i][words[place]], *(pools[name] for name in self.pools)]))
        return np.array(found)


@pytest.mark.parametrize("pools", [["mean", "max", "min"], [], ["min"]], ids=["paper", "alone", "min"])
def test_every_number_is_that_of_a_plain_reading(run, tmp_path, pools):
    """Words without a vector are no candidates, and not found."""
    left, right, _ = planted(run, tmp_path, 0.5)
    for vectors in (left, right):
        for word in list(vectors)[3::9]:
            del vectors[word]
    files = {"left": write_vec(tmp_path / "l.vec", left), "right": write_vec(tmp_path / "r.vec", right)}
    one = given_static(run, {"kind": "load", "pools": pools, **files}, seen="keep")
    found = probe(one)
    for variant in ("context", "types"):
        slow = SlowStatic(one, variant, (left, right), pools)
        of_variant = found.values["variants"][variant]
        [layer] = of_variant["layers"]
        assert of_variant["candidates"] == {"left": len(slow.sides[0]), "right": len(slow.sides[1])}
        for name in ("linked", "unlike", "counted"):
            links = slow.kept(name)
            lost = [link for link in links if not (slow.known(0, link[0]) and slow.known(1, link[1]))]
            assert (of_variant["links"][name], of_variant["lost"][name]) == (len(links), len(lost)) and lost
            check(layer["pairs"][name]["csls"], slow.accuracy(links, slow.csls))
            check(layer["pairs"][name]["cosine"], slow.accuracy(links, slow.cosines))
        assert layer["layer"] == 0 and 0 < layer["pairs"]["linked"]["csls"]["mean"] < 90
        assert found.values["counts"][f"{variant}: links of words without a vector"] == of_variant["lost"]["linked"]
    assert sum("a word without a static vector" in note for note in found.notes) == 2
    assert found.values["static"]["pools"] == pools and found.values["rotation"] is None
    assert [row[0] for row in found.tables[0].rows] == ["links", "static vectors"]
    measures = {name for name, *_ in probe_values({"probes": {"retrieval": found.values}})}
    assert "retrieval.variants.context.layers.pairs.counted.csls.mean" in measures
    assert not any(part in name for name in measures for part in ("retrieval.static", "lost"))
    assert "retrieval-by-layer" not in {figure.name for figure in found.figures}


def test_a_planted_turn_is_undone_and_what_the_model_reads_does_not_matter(run, tmp_path):
    *_, files = planted(run, tmp_path, 0.0)
    static = {"kind": "load", **files}
    found = probe(given_static(run, static, seen="keep", exact_matches="keep")).values
    assert found["static"]["fit"]["residual"] < 1e-6 and found["headline"]["cosine"]["mean"] > 85
    assert found["variants"]["types"]["layers"][0]["pairs"]["linked"]["cosine"]["mean"] > 85
    without = probe(given_static(run, None, seen="keep", exact_matches="keep")).values
    assert without["headline"]["cosine"]["mean"] < 30
    for key in ("links", "lost"):  # what is asked is the same
        assert found["variants"]["context"][key] == without["variants"]["context"][key]
    dictionary = probe(given_static(run, {**static, "supervision": "dictionary"}, seen="keep")).values
    assert 0 < dictionary["static"]["fit"]["pairs"] < found["static"]["fit"]["pairs"]


def test_words_in_capitals_can_take_the_vector_of_small_letters(tmp_path):
    text = sentences()
    great = [line.title() for line in text]
    model = save_model(tmp_path / "model", "roberta")
    draw = np.random.default_rng(0)
    vectors = {word: draw.normal(size=WIDTH) for line in text for word in line.split()}
    path = write_vec(tmp_path / "x.vec", vectors)
    load = {"kind": "load", "left": path, "right": path}
    with pytest.raises(InputError, match="the rotation cannot be fitted"):
        probe(subject_of(model, tmp_path, great, text, [DIAGONAL] * 60, {**KEEP, "static": load}))
    short = write_vec(tmp_path / "short.vec", {word: vector[:-1] for word, vector in vectors.items()})
    other = {**KEEP, "static": {**load, "right": short, "lower": True}}
    with pytest.raises(InputError, match="dimensions cannot be mapped to each other"):
        probe(subject_of(model, tmp_path, great, text, [DIAGONAL] * 60, other))
    found = probe(
        subject_of(model, tmp_path, great, text, [DIAGONAL] * 60, {**KEEP, "static": {**load, "lower": True}})
    )
    assert found.values["variants"]["context"]["lost"]["linked"] == 0
    assert found.values["static"]["vectors"]["left"]["small_letters"] == len({w for x in great for w in x.split()})
    assert found.values["headline"]["cosine"]["mean"] == 100


@pytest.mark.parametrize("kind", ["ppmi", "fasttext"])
def test_vectors_are_trained_on_what_is_not_measured(run, kind, monkeypatch):
    if kind != "ppmi":
        pytest.importorskip("gensim", reason="gensim (extra probe) is not installed")
    read: list[tuple[tuple[int, ...], int]] = []

    def training(config, corpus, also, report):
        read.append((tuple(corpus.ids.tolist()), len(also)))
        return train_vectors(config, corpus, also, report)

    monkeypatch.setattr("probes.measures.rotated.train_vectors", training)
    vectors = {"kind": kind, "size": 8, "min_count": 1, "epochs": 1, "buckets": 100}
    found = {}
    for text in ("fitted", "apart"):
        one = given_static(run, {"kind": "train", "text": text, "vectors": vectors})
        found[text] = probe(one).values
        assert found[text] == probe(given_static(run, {"kind": "train", "text": text, "vectors": vectors})).values
        assert all(also > 0 for _, also in read) == (kind == "fasttext")
        left, right = ({int(row) for row in rows} for rows, _ in read[:2])
        if text == "fitted":
            assert left == right == set(one.aligned.text.left.ids[one.fitted].tolist())
        else:
            assert left | right == set(one.aligned.text.left.ids[: one.measured.min()].tolist()) and not left & right
        read.clear()
    lost = [found[text]["variants"]["context"]["lost"]["linked"] for text in ("fitted", "apart")]
    assert lost[0] > lost[1] if kind == "ppmi" else lost == [0, 0]


@pytest.mark.parametrize(("changed", "message"), [
    ({"left": "none"}, "no measured word of .* has a vector"),
    ({"left": "other"}, "retrieval.static: the rotation cannot be fitted"),
    ({"right": "gone"}, "gone.vec"),
])  # fmt: skip
def test_what_cannot_be_measured_is_one_line(run, tmp_path, changed, message):
    *_, files = planted(run, tmp_path, 0.0)
    one = given_static(run, None)
    measured = {word for row in one.measured.tolist() for word in one.aligned.text.left[row].words}
    others = {word: np.arange(WIDTH) * i + 1 for i, word in enumerate(names_of(one, 0)) if word not in measured}
    write_vec(tmp_path / "none.vec", others)
    write_vec(tmp_path / "other.vec", {"qqq": np.arange(WIDTH)})
    files |= {side: str(tmp_path / f"{name}.vec") for side, name in changed.items()}
    with pytest.raises(InputError, match=message) as caught:
        probe(given_static(run, {"kind": "load", **files}))
    assert "\n" not in str(caught.value)


def test_a_word_of_zeros_is_one_without_a_vector(run, tmp_path):
    left, *_ = planted(run, tmp_path, 0.0)
    one, found = given_static(run, None), []
    row = int(one.measured[0])
    word = one.aligned.text.left[row].words[one.data.links.of_pair(row)[0][0]]
    gone = {other: vector for other, vector in left.items() if other != word}
    for vectors in ({**left, word: np.zeros(WIDTH)}, gone):
        files = {"left": write_vec(tmp_path / "x.vec", vectors), "right": str(tmp_path / "r.vec")}
        context = probe(given_static(run, {"kind": "load", **files}, seen="keep")).values["variants"]["context"]
        found.append({key: context[key] for key in ("links", "lost", "candidates", "layers")})
    assert found[0] == found[1] and found[0]["lost"]["linked"] > 0
