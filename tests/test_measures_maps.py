"""The probe ``maps`` against a plain reading word by word, with its positive and negative controls."""

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import Text
from probes.measures.maps.probe import maps_probe
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.aligned import Aligned
from probes.models.opening import open_pretrained
from probes.rotation.saved import load_maps
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.parallel.prepare import prepare_pair
from synthlang.rng import key_of, permutation
from tests.adjust_models import save_model
from tests.maps_cases import (
    SAME,
    Plain,
    plain_accuracy,
    plain_map,
    plain_precision,
    subject_of,
    values_of,
    write_pairs,
)


def dictionaries(given, folder):
    """Words of the parent and their counterparts, to fit on and to measure on, with words that are not there."""
    text, data = given.aligned.text, given.data
    found = set()
    for row in data.train.tolist():
        for a, b in data.links.of_pair(row):
            found.add((text.right[row].words[b], text.left[row].words[a]))
    pairs = sorted(found)
    test = [*pairs[::3], (pairs[0][0], pairs[3][1]), ("nowhere", pairs[0][1]), (pairs[1][0], "nowhere")]
    return pairs, test, write_pairs(folder / "fit.txt", pairs), write_pairs(folder / "test.txt", test)


@pytest.mark.parametrize(
    ("kind", "subword", "moves", "normalise"),
    [("shared", "mean", "target", "iterative"), ("separate", "end", "source", "none")],
)
def test_every_number_is_that_of_a_plain_reading(runs, tmp_path, kind, subword, moves, normalise):
    pretrained = copy.deepcopy(runs[kind])
    settings = {"subword": subword, "layers": [2]}
    pairs, test, fit_file, test_file = dictionaries(subject_of(pretrained), tmp_path)
    maps = {"dictionary": fit_file, "test_dictionary": test_file, "lower": False, "moves": moves}
    given = subject_of(pretrained, {**maps, "normalise": normalise}, **settings)
    values = values_of(given)
    plain = Plain(given, 2)
    types = [plain.types(1), plain.types(0)]  # parent, other language
    names, vectors = [pair[0] for pair in types], [pair[1] for pair in types]
    measured = {a for a, _ in test}, {b for _, b in test}
    fitted = [(a, b) for a, b in pairs if a not in measured[0] and b not in measured[1]]
    left, right, links = *plain.context()[::-1][1:], plain.context()[2]
    fits = {
        "dictionary": tuple(
            np.array([vectors[side][names[side].index(pair[side])] for pair in fitted]) for side in (1, 0)
        ),
        "parallel": plain.linked(plain.data.train),
        "sentences": plain.sentences(plain.data.train),
    }
    own = [(i, i) for i in range(len(plain.data.dev))]
    of_sentences = plain.sentences(plain.data.dev)
    rounds = 5 if normalise == "iterative" else None
    for supervision in (None, *fits):
        of_left = of_right = lambda rows: rows
        layer = values["before"][0]
        if supervision is not None:
            layer = values["maps"][supervision]["layers"][0]
            x, y = fits[supervision]
            assert layer["fit"]["pairs"] == len(x) > 5
            if moves == "target":
                of_left, of_right = plain_map(x, y, rounds)
            else:
                of_right, of_left = plain_map(y, x, rounds)
        expected = {
            "context": plain_accuracy(of_right(right), of_left(left), links),
            "sentences": plain_accuracy(of_right(of_sentences[1]), of_left(of_sentences[0]), own),
        }
        for measure, scores in expected.items():
            for score, ways in scores.items():
                assert layer[measure][score] == pytest.approx(ways, abs=0.35), (supervision, measure, score)
        words = plain_precision(of_right(vectors[0]), of_left(vectors[1]), names, test)
        for score, precisions in words.items():
            for way, numbers in precisions.items():
                assert layer["words"][score][way] == pytest.approx(numbers, abs=1e-3), (supervision, score, way)
        assert layer["files"] is None and layer["layer"] == layer["layer_target"] == 2
    assert values["measured"]["linked_words"] == len(links)
    translations = values["measured"]["translations"]
    assert (translations["unknown_source"], translations["unknown_target"]) == (1, 1)
    assert values["fitted"]["translations"]["known"] == len(fitted)
    dropped = values["counts"]["pairs of the dictionary with a word that is measured"]
    assert dropped == len(pairs) - len(fitted) > len(pairs) / 3 - 1


@pytest.mark.parametrize("normalise", ["centre", "iterative"])
def test_a_language_finds_itself(runs, normalise):
    """Positive control: the parent beside the parent."""
    pretrained = replace(runs["shared"], target=replace(runs["shared"].source, role="target"))
    values = values_of(subject_of(pretrained, {"normalise": normalise}, pairs=SAME))
    for layers in (values["before"], *(maps["layers"] for maps in values["maps"].values())):
        assert [layer["layer"] for layer in layers] == [0, 1, 2]
        for layer in layers:
            # at layer 0 words that end alike are equal in the same place of two sentences: one of them is taken; and
            # under CSLS even a word itself may be passed by one in a less crowded place
            assert layer["context"]["cosine"]["mean"] > (99.9 if layer["layer"] else 50.0)
            assert layer["sentences"]["cosine"]["mean"] > 99.9
            assert layer["words"]["cosine"]["mean"]["p@1"] > (99.9 if layer["layer"] else 90.0)
            assert layer["words"]["csls"]["mean"]["p@1"] > 80 and layer["words"]["csls"]["mean"]["p@10"] > 95


def test_shuffled_sentences_are_at_chance(runs):
    """Negative control: the parent's sentences beside others of its own, fitted on and measured on."""
    pretrained = replace(runs["shared"], target=replace(runs["shared"].source, role="target"))
    given = subject_of(pretrained, {"supervision": ["parallel", "sentences"]}, pairs=SAME, layers=[2])
    text, readers = given.aligned.text, (pretrained.target, pretrained.source)
    right = text.right.take(permutation(key_of("shuffled", 0), len(text.right)))
    links, _ = text.links.within(text.left.lengths, right.lengths)
    shuffled = replace(text, right=right, links=links)
    cutters = readers[0].tokenizer.tokenizer, readers[1].tokenizer.tokenizer
    data = prepare_pair("x", shuffled, cutters, given.config.data, pretrained.length, 0)
    given.__dict__["aligned"] = Aligned(shuffled, data)  # where the cached property keeps what was read
    values = values_of(given)
    for layers in (values["before"], *(maps["layers"] for maps in values["maps"].values())):
        assert layers[0]["context"]["cosine"]["mean"] < 10 and layers[0]["sentences"]["cosine"]["mean"] < 30


def test_groups_of_layers_do_not_change_the_numbers(runs, monkeypatch):
    whole = values_of(subject_of(runs["shared"]))
    monkeypatch.setattr("probes.measures.maps.vectors.AT_ONCE", 1)
    grouped = values_of(subject_of(runs["shared"]))

    def scores(values):
        every = [*values["before"], *(layer for maps in values["maps"].values() for layer in maps["layers"])]
        return [one[name][score]["mean"] for one in every for name in ("context", "sentences") for score in one[name]]

    np.testing.assert_allclose(scores(grouped), scores(whole), rtol=1e-5)  # means over batches of other layers


class Turned(MaskedLM):
    """Reads as another model does, then turns the states of each layer and moves them."""

    other: MaskedLM

    def of(self, body: MaskedLM) -> "Turned":
        self.turns = [torch.from_numpy(ortho_group.rvs(16, random_state=layer)).float() for layer in range(3)]
        object.__setattr__(self, "other", body)  # not a part of this model
        return self

    def read(self, text: Text, slots=None, layers=None):
        states = self.other.read(text, slots, layers)
        return [vectors @ self.turns[layer].T + 2.0 for layer, vectors in zip(layers, states, strict=True)]


def body_of(width=16, layers=2) -> MaskedLM:
    shape = ModelConfig(layers=layers, heads=2, hidden=width, feed_forward=32)
    return MaskedLM(shape, SharingConfig(), [np.arange(700)], 700, 48, 1, False, 0)


def two_models(run):
    """The parent read by one model and by another one that differs by a turn and a shift."""
    turned = Turned(run.model.shape, SharingConfig(), [np.arange(700)], 700, 48, 1, False, 0).of(run.model)
    return replace(run, target_model=turned, target=replace(run.source, role="target"))


@pytest.mark.parametrize("moves", ["target", "source"])
def test_two_models_that_differ_by_a_turn(runs, tmp_path, moves):
    save = str(tmp_path / "maps")
    pretrained = two_models(runs["shared"])
    given = subject_of(pretrained, {"normalise": "centre", "moves": moves, "save": save}, pairs=SAME)
    assert not given.same_model
    values = values_of(given)
    assert not values["same_model"]
    for name, maps in values["maps"].items():
        loaded = load_maps(tmp_path / "maps" / name)
        saved, about = loaded.maps, loaded.about
        assert (about.moves, about.source, about.target) == (moves, (0, 1, 2), (0, 1, 2))
        assert about.model == pretrained.fingerprint and about.supervision == name
        for layer, (before, after) in enumerate(zip(values["before"], maps["layers"], strict=True)):
            least = 99 if layer else 50  # embeddings of words that end alike may be equal
            assert before["words"]["cosine"]["mean"]["p@1"] < 20 < least < after["words"]["cosine"]["mean"]["p@1"]
            assert before["sentences"]["cosine"]["mean"] < 60 < 99 < after["sentences"]["cosine"]["mean"]
            assert after["context"]["cosine"]["mean"] > least > before["context"]["cosine"]["mean"]
            assert after["fit"]["residual"] < 1e-6
            states = torch.randn(5, 16)
            turned = states @ pretrained.target_model.turns[layer].T + 2.0
            one, other = (turned, states) if moves == "target" else (states, turned)
            if after["fit"]["rank"] == 16:  # LayerNorm leaves the embeddings a direction less
                torch.testing.assert_close(saved[layer].linear().apply(one), other, atol=1e-3, rtol=0)
    values_of(given)  # maps of an earlier probe are replaced
    (tmp_path / "maps" / "parallel" / "maps.json").unlink()
    with pytest.raises(InputError, match="not a folder of maps"):
        values_of(given)


def test_candidates_and_rare_words(runs):
    everything = values_of(subject_of(runs["shared"], layers=[2]))
    linked = values_of(subject_of(runs["shared"], {"candidates": "linked", "min_count": 3}, layers=[2]))
    assert linked["counts"]["types too rare (parent)"] > 5 > everything["counts"]["types too rare (parent)"] == 0
    assert (
        linked["measured"]["types"]["parent"] + linked["counts"]["types too rare (parent)"]
        == (everything["measured"]["types"]["parent"])
    )
    assert linked["before"][0]["sentences"] == everything["before"][0]["sentences"]


@pytest.mark.usefixtures("painted")
def test_a_model_of_hugging_face_with_natural_text(tmp_path):
    left = ["le petit chien voit un chat noir .", "un chat noir voit le chien .", "le chien !", "un petit chat ."] * 4
    right = ["the small dog sees a black cat .", "a black cat sees the dog .", "the dog !", "a small cat ."] * 4
    links = ["0-0 1-1 2-2 3-3 4-4 5-6 6-5 7-7", "0-0 1-2 2-1 3-3 4-4 5-5 6-6", "0-0 1-1 2-2", "0-0 1-1 2-2 3-3"] * 4
    for name, lines in (("l", left), ("r", right), ("a", links)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "tl").write_text("un chien .\n\nle chat noir .\n" + "chien " * 200 + "\n")
    (tmp_path / "tr").write_text("a dog .\n\nthe black cat .\nlong .\n")
    folder = str(save_model(tmp_path / "model", "bert", left + right))
    pair = {"kind": "text", "left": str(tmp_path / "l"), "right": str(tmp_path / "r")}
    maps = {
        "dictionary": write_pairs(tmp_path / "d", [("dog", "chien"), ("cat", "chat"), ("A", "un"), ("no", "non")]),
        "test_dictionary": write_pairs(
            tmp_path / "t", [("small", "petit"), ("black", "noir"), ("the", "le"), ("never", "jamais")]
        ),
        "sentences": {"left": str(tmp_path / "tl"), "right": str(tmp_path / "tr")},
    }
    config = {
        "natural": True, "language": "fr", "data": {"dev": 4}, "maps": maps,
        "pairs": {"x": {**pair, "links": {"kind": "file", "path": str(tmp_path / "a")}}},
    }  # fmt: skip
    given = ProbeInput(open_pretrained(folder, "fr", True), parse(ProbeConfig, config))
    with given.reading():
        found = maps_probe(given)
    values = found.values
    assert values["fitted"]["translations"]["known"] == 3 and values["counts"]["lines that are empty"] == 1
    assert sum(count for reason, count in values["counts"].items() if reason.startswith("lines over")) == 1
    assert [layer["layer"] for layer in values["before"]] == [0, 1, 2, 3]
    assert all(layer["files"]["csls"]["mean"] in (0, 25, 50, 75, 100) for layer in values["before"])
    assert len(found.tables) == len(found.figures) == 4
    assert values["counts"]["pairs to fit on with a word that is not in the sentences"] == 1
    assert values["counts"]["words to measure on that are not in the sentences (parent)"] == 1
    said = "3 of the 4 test words of the source language (75 %) are measured: 1 do not occur in the sentences"
    assert any(note.startswith(said) for note in found.notes)
    low, high = values["before"][-1]["intervals"]["words"]
    assert low <= values["before"][-1]["words"]["csls"]["mean"]["p@1"] <= high and high - low > 40
    assert any("span only" in note for note in found.notes)  # three pairs of words for 16 dimensions
    for drawing in found.figures:
        assert drawing.figure().svg


def test_one_sentence_is_not_retrieved(runs):
    subjects = (
        subject_of(runs["shared"], {"normalise": "none"}, layers=[1, 2], data={"dev": dev}) for dev in range(2, 30)
    )
    given = next(one for one in subjects if len(one.data.dev) == 1)  # those that are too long are left out
    with given.reading():
        found = maps_probe(given)
    assert all(layer["sentences"] is None and layer["context"] for layer in found.values["before"])
    assert any("sentence retrieval is left out" in note for note in found.notes)
    assert [drawing.name for drawing in found.figures] == ["maps-words", "maps-context"]
    with pytest.raises(InputError, match="vectors cannot be centred"):
        values_of(
            subject_of(
                runs["shared"], layers=[2], data={"dev": 20, "sentences": 1}, maps={"supervision": ["sentences"]}
            )
        )


REFUSED = [
    ("wide", {}, {}, r"model2: has the hidden size 8, but the first model has 16"),
    (
        "deep",
        {},
        {},
        r"the two models have different numbers of layers: 2 and 3; list layers that both models have, such as \[-1\]",
    ),
    ("run", {"dictionary": "two"}, {}, "two: maps.dictionary: of 1 translation to fit on, none has both words"),
    (
        "run",
        {"test_dictionary": "two"},
        {},
        "two: maps.test_dictionary: of 2 translations to measure on, none has",
    ),
    (
        "run",
        {"dictionary": "one"},
        {},
        "one: maps.dictionary: of 1 translation, none is left to measure on; give a larger dictionary",
    ),
    (
        "run",
        {"dictionary": "one", "test_dictionary": "one"},
        {},
        "fit on; give a larger dictionary, or a smaller",
    ),
    (
        "run",
        {"sentences": {"left": "two", "right": "long"}},
        {},
        "none can be used: 0 with an empty line, 2 with",
    ),
    ("run", {"save": "taken"}, {}, r"not a folder of maps; choose another folder for the maps \(maps\.save\)"),
    ("broken", {}, {}, "NaN or infinity"),
    ("run", {}, {"data": {"dev": 0}}, "no sentence pair is left to measure on"),
]


@pytest.mark.parametrize(("model", "maps", "settings", "message"), REFUSED)
def test_what_cannot_be_measured_is_said(runs, tmp_path, model, maps, settings, message):
    write_pairs(tmp_path / "one", [("nowhere", "nirgends")])
    write_pairs(tmp_path / "two", [("nowhere", "nirgends"), ("never", "nie")])
    (tmp_path / "long").write_text("word " * 90 + "\n" + "word " * 90 + "\n")
    (tmp_path / "taken" / "parallel").mkdir(parents=True)
    run = runs["shared"]
    body = copy.deepcopy(run.model)
    with torch.no_grad():
        body.embeddings.words[:, 0] = torch.nan
    models = {
        "run": run,
        "wide": replace(run, target_model=body_of(8)),
        "deep": replace(run, target_model=body_of(16, 3)),
        "broken": replace(run, model=body, target_model=body),
    }

    def placed(value):
        if isinstance(value, dict):
            return {key: placed(one) for key, one in value.items()}
        return str(tmp_path / value) if isinstance(value, str) else value

    with pytest.raises(InputError, match=message):
        values_of(subject_of(models[model], placed(maps), **settings))
    if model == "deep":
        named = values_of(subject_of(models[model], layers=[-1]))
        assert np.isfinite(named["before"][0]["context"]["csls"]["mean"])
