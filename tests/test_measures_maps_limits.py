"""The probe ``maps`` on two models, on other kinds of models, with files, and on what cannot be measured."""

import copy
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import ortho_group

from pretrain.config import ModelConfig, SharingConfig
from pretrain.model.encoder import MaskedLM
from pretrain.model.text import Text
from probes.measures import ProbeConfig
from probes.measures.maps import MapsConfig
from probes.measures.maps.probe import maps_probe
from probes.measures.probe_input import ProbeInput
from probes.rotation.saved import load_maps
from probes.transfer.model import Pretrained, open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import random_run
from tests.maps_cases import SAME, subject_of, values_of, write_pairs
from tests.real_data import DATA


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("store"))


class Turned(MaskedLM):
    """Reads as another model does, then turns the states of each layer and moves them."""

    other: MaskedLM

    def of(self, body: MaskedLM) -> "Turned":
        self.turns = [torch.from_numpy(ortho_group.rvs(16, random_state=layer)).float() for layer in range(3)]
        object.__setattr__(self, "other", body)  # not a part of this model
        return self

    def read(self, text: Text, slots=None, layers=None):
        states = self.other.read(text, slots, layers)
        return [held @ self.turns[layer].T + 2.0 for layer, held in zip(layers, states, strict=True)]


def body_of(width=16, layers=2) -> MaskedLM:
    shape = ModelConfig(layers=layers, heads=2, hidden=width, feed_forward=32)
    return MaskedLM(shape, SharingConfig(), [np.arange(700)], 700, 48, 1, False, 0)


def two_models(run):
    """The parent read by one model and by another one that differs by a turn and a shift."""
    turned = Turned(run.model.shape, SharingConfig(), [np.arange(700)], 700, 48, 1, False, 0).of(run.model)
    return replace(run, target_model=turned, target=replace(run.source, role="target"))


@pytest.mark.parametrize("moves", ["target", "source"])
def test_two_models_that_differ_by_a_turn(run, tmp_path, moves):
    save = str(tmp_path / "maps")
    pretrained = two_models(run)
    given = subject_of(pretrained, {"normalise": "centre", "moves": moves, "save": save}, pairs=SAME)
    assert not given.same_model
    values = values_of(given)
    assert not values["same_model"]
    for name, maps in values["maps"].items():
        held = load_maps(tmp_path / "maps" / name)
        saved, about = held.maps, held.about
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
    with pytest.raises(InputError, match="holds no maps"):
        values_of(given)


def test_candidates_and_rare_words(run):
    everything = values_of(subject_of(run, layers=[2]))
    linked = values_of(subject_of(run, {"candidates": "linked", "min_count": 3}, layers=[2]))
    assert linked["counts"]["types too rare (parent)"] > 5 > everything["counts"]["types too rare (parent)"] == 0
    assert (
        linked["measured"]["types"]["parent"] + linked["counts"]["types too rare (parent)"]
        == (everything["measured"]["types"]["parent"])
    )
    assert linked["before"][0]["sentences"] == everything["before"][0]["sentences"]


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_models_of_hugging_face_with_natural_text(tmp_path, kind):
    left = ["le petit chien voit un chat noir .", "un chat noir voit le chien .", "le chien !", "un petit chat ."] * 4
    right = ["the small dog sees a black cat .", "a black cat sees the dog .", "the dog !", "a small cat ."] * 4
    links = ["0-0 1-1 2-2 3-3 4-4 5-6 6-5 7-7", "0-0 1-2 2-1 3-3 4-4 5-5 6-6", "0-0 1-1 2-2", "0-0 1-1 2-2 3-3"] * 4
    for name, lines in (("l", left), ("r", right), ("a", links)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    (tmp_path / "tl").write_text("un chien .\n\nle chat noir .\n" + "chien " * 200 + "\n")
    (tmp_path / "tr").write_text("a dog .\n\nthe black cat .\nlong .\n")
    folder = str(save_model(tmp_path / "model", kind, left + right))
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
    assert [held["layer"] for held in values["before"]] == [0, 1, 2, 3]
    assert all(held["files"]["csls"]["mean"] in (0, 25, 50, 75, 100) for held in values["before"])
    titles = [str(table.title) for table in found.tables]
    assert len(titles) == len(found.figures) == 4
    assert titles[0].startswith("Translation of words, P@1 (%): 3 → and 3 ← words ask, among ")
    assert titles[1].startswith(
        f"Retrieval of words in context (%): {values['measured']['linked_words']} links, among "
    )
    assert titles[3].startswith("Retrieval of the sentences of maps.sentences (%): 2 sentence pairs")
    assert values["counts"]["pairs to fit on with a word that is not in the sentences"] == 1
    assert values["counts"]["words to measure on that are not in the sentences (parent)"] == 1
    said = (
        "of the 4 words of the parent in the dictionary to measure on 3 (75 %) are measured: 1 are not in the sentences"
    )
    assert any(note.startswith(said) for note in found.notes)
    low, high = values["before"][-1]["intervals"]["words"]
    assert low <= values["before"][-1]["words"]["csls"]["mean"]["p@1"] <= high and high - low > 40
    assert any("directions only" in note for note in found.notes)  # three pairs of words for 16 dimensions
    assert all("maps-" in drawing.name and "Layer 0" in drawing.note for drawing in found.figures)
    for drawing in found.figures:
        assert len(drawing.figure().svg) > 1000


def test_one_sentence_is_not_retrieved(run):
    subjects = (subject_of(run, {"normalise": "none"}, layers=[1, 2], data={"dev": dev}) for dev in range(2, 30))
    given = next(held for held in subjects if len(held.data.dev) == 1)  # those that are too long are left out
    with given.reading():
        found = maps_probe(given)
    assert all(held["sentences"] is None and held["context"] for held in found.values["before"])
    assert any("one sentence says nothing" in note for note in found.notes)
    assert [drawing.name for drawing in found.figures] == ["maps-words", "maps-context"]
    with pytest.raises(InputError, match="nothing is left of them without their mean"):
        values_of(subject_of(run, layers=[2], data={"dev": 20, "sentences": 1}, maps={"supervision": ["sentences"]}))


def test_what_cannot_be_measured_is_said(run, tmp_path):
    text = "name a larger dictionary, or more sentence pairs"
    nowhere = write_pairs(tmp_path / "d", [("nowhere", "nirgends"), ("never", "nie")])
    files = {"left": str(tmp_path / "d"), "right": str(tmp_path / "long")}
    (tmp_path / "long").write_text("word " * 90 + "\n" + "word " * 90 + "\n")
    (tmp_path / "taken" / "parallel").mkdir(parents=True)
    wide, deep = replace(run, target_model=body_of(8)), replace(run, target_model=body_of(16, 3))
    broken = replace(run, model=copy.deepcopy(run.model))
    broken = replace(broken, target_model=broken.model)
    with torch.no_grad():
        broken.model.embeddings.words[:, 0] = torch.nan
    one = write_pairs(tmp_path / "one", [("nowhere", "nirgends")])
    cases: list[tuple[Pretrained, dict[str, Any], dict[str, Any], str]] = [
        (wide, {}, {}, r"the states of both models must have the same size; they have \[8, 16\]"),
        (deep, {}, {}, "the models have 2 and 3 layers; name those to compare"),
        (
            run,
            {"dictionary": nowhere},
            {},
            "d: none of the 1 pairs of maps.dictionary that are drawn to fit on has both",
        ),
        (run, {"test_dictionary": nowhere}, {}, "d: none of the 2 pairs of maps.test_dictionary has both words in the"),
        (run, {"dictionary": one}, {}, f"one: maps.dictionary: of 1 translations 1 are left .*{text}"),
        (run, {"dictionary": one, "test_dictionary": one}, {}, text),
        (run, {"dictionary": str(tmp_path / "gone")}, {}, "gone"),
        (run, {"sentences": files}, {}, "none of the 2 pairs of lines can be read"),
        (run, {"save": str(tmp_path / "taken")}, {}, "holds no maps; name another folder"),
        (broken, {}, {}, "NaN or infinity"),
        (run, {}, {"data": {"dev": 0}}, "no sentence pair is left to measure on"),
    ]
    for pretrained, maps, settings, message in cases:
        with pytest.raises(InputError, match=message):
            values_of(subject_of(pretrained, maps, **settings))
    for wrong, message in (({"supervision": ["parallel", "parallel"]}, "twice"), ({"held_out": 0}, "held_out")):
        with pytest.raises(InputError, match=message):
            parse(MapsConfig, wrong)
    assert np.isfinite(values_of(subject_of(deep, layers=[-1]))["before"][0]["context"]["csls"]["mean"])


def test_real_dictionaries_and_sentences(tmp_path):
    """MUSE and Tatoeba with a random model: they are read, and it finds what chance finds."""
    if not (DATA / "muse_dict").is_dir():
        pytest.skip(f"no real data in {DATA}")
    lines = {side: (DATA / "multi30k" / f"val.{side}").read_text().lower().splitlines()[:150] for side in ("fr", "en")}
    for side, held in lines.items():
        (tmp_path / side).write_text("\n".join(held) + "\n")
    shorter = [min(len(a.split()), len(b.split())) for a, b in zip(lines["fr"], lines["en"], strict=True)]
    (tmp_path / "links").write_text("".join(" ".join(f"{i}-{i}" for i in range(n)) + "\n" for n in shorter))
    folder = str(save_model(tmp_path / "model", "roberta", lines["fr"] + lines["en"]))
    tatoeba = DATA / "tatoeba" / "tatoeba.fra-eng"
    maps = {
        "dictionary": str(DATA / "muse_dict" / "en-fr.0-5000.txt"),
        "sentences": {"left": f"{tatoeba}.fra", "right": f"{tatoeba}.eng"},
    }
    config = {
        "natural": True, "language": "fr", "data": {"dev": 30}, "maps": maps, "layers": [1],
        "pairs": {"x": {
            "kind": "text", "left": str(tmp_path / "fr"), "right": str(tmp_path / "en"),
            "links": {"kind": "file", "path": str(tmp_path / "links")},
        }},
    }  # fmt: skip
    values = values_of(ProbeInput(open_pretrained(folder, "fr", True), parse(ProbeConfig, config)))
    assert values["measured"]["translations"]["queries"] > 5
    for held in (values["before"], *(maps["layers"] for maps in values["maps"].values())):
        assert held[0]["files"]["csls"]["mean"] < 5
