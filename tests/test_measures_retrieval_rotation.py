"""Word retrieval after a rotation: where the answer is known, and against a map that is fitted and applied plainly."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from scipy.stats import ortho_group

from pretrain.adjust.vectors import layer_states
from probes.measures import ProbeConfig
from probes.measures.probe_input import ProbeInput
from synthlang.config import parse
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import random_run
from tests.maps_cases import Plain, plain_map
from tests.test_measures_retrieval import Slow, check
from tests.test_measures_retrieval_controls import DIAGONAL, KEEP, probe, sentences, subject_of


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("run"))


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
    assert {str(cell) for cell in found.tables[0].columns[0].cells} == {"links", "layer 1, rotated", "layer 2, rotated"}


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
            held = found.values["variants"][variant]["layers"][place]
            slow = Mapped(given, variant, layer, functions)
            for name in ("linked", "unlike"):
                check(held["pairs"][name]["csls"], slow.accuracy(slow.kept(name), slow.csls))
                check(held["pairs"][name]["cosine"], slow.accuracy(slow.kept(name), slow.cosines))
        assert found.values["rotation"]["fit"][place]["pairs"] == len(left)


def test_few_pairs_are_told_and_none_are_refused(run):
    def given(dev, rotation=True, **data):
        config = {"data": {"dev": dev, **data}, "retrieval": {"rotation": {}} if rotation else {}}
        return ProbeInput(run, parse(ProbeConfig, {"probes": ["retrieval"], **config}))

    found = probe(given(15, sentences=1))
    assert any("pairs that say something of" in note for note in found.notes)
    count = len(given(15).aligned.text.left)
    with pytest.raises(InputError, match="no sentence pair is left to train or fit on"):
        probe(given(count))
    assert probe(given(count, rotation=False)).values["rotation"] is None


def test_a_rotation_and_static_vectors_together_are_one_line():
    both = {"retrieval": {"rotation": {}, "static": {"kind": "train"}}}
    with pytest.raises(InputError, match=r"retrieval: rotation moves a model's states, .* give one of them") as caught:
        parse(ProbeConfig, both)
    assert "\n" not in str(caught.value)
    for bad in ({"supervision": "dictionary"}, {"words": 1}, {"normalise": "length"}):
        with pytest.raises(InputError, match=rf"retrieval\.rotation\.{next(iter(bad))}"):
            parse(ProbeConfig, {"retrieval": {"rotation": bad}})


def test_two_models_are_not_said_to_be_without_a_map(tmp_path, monkeypatch):
    kinds: list[dict[str, Any]] = [{}, {"rotation": {}}]
    found = [probe(turned_subject(tmp_path, monkeypatch, kind)) for kind in kinds]
    assert [sum("without a map" in note for note in one.notes) for one in found] == [1, 0]
