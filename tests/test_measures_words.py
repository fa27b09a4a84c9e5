"""The probe ``words``: what it adds to the alignment of a run, and models that are none."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.measures import ProbeConfig
from probes.measures.probe_input import ProbeInput
from probes.measures.words.probe import words_probe
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from tests.tiny import PRETRAIN, changed


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("words") / "run"
    pretrain(parse(PretrainConfig, changed(PRETRAIN, checkpoints__keep=3)), folder)
    return folder


def subject_of(run, **settings):
    config = parse(ProbeConfig, settings)
    return ProbeInput(open_pretrained(str(run), None), config, run)


def test_bands_and_checkpoints_of_a_run(run):
    found = words_probe(subject_of(run, words={"bands": [10, 50]}))
    values = found.values
    assert [band["from"] for band in values["bands"]] == [1, 11, 51]
    assert sum(band["types"] for band in values["bands"]) == values["types"]
    assert [held["step"] for held in values["checkpoints"]] == [2, 4, 6]
    last = values["checkpoints"][-1]["languages"]["trans+inv"]
    for key in ("scores", "bands", "candidates", "types"):
        assert last[key] == values[key]
    first = values["checkpoints"][0]["languages"]["trans+inv"]
    assert {*first["scores"]["all"]["csls"]} == {"forward", "backward", "mean"} and first["scores"] != last["scores"]
    assert values["language"] == "trans+inv" and values["candidates"]["shared"] == 0
    assert values["candidates"]["other"] >= values["types"]
    points = [step["languages"]["trans+inv"]["scores"]["all"]["cosine"]["mean"] for step in values["checkpoints"]]
    assert f"from {points[0]:.3g}" in found.figures[0].alt or str(round(points[-1], 1)) in found.figures[0].alt
    assert [figure.name for figure in found.figures] == ["words-emergence"]
    assert len(found.tables) == 2 and not found.notes


def test_a_damaged_checkpoint_is_left_out_aloud(run, tmp_path):
    import shutil

    copied = tmp_path / "run"
    shutil.copytree(run, copied)
    (copied / "checkpoints" / "step-2" / "model.safetensors").write_bytes(b"x")
    found = words_probe(subject_of(copied))
    assert [held["step"] for held in found.values["checkpoints"]] == [4, 6]
    assert "words: checkpoint step-2 is damaged and left out" in found.notes and len(found.figures) == 1
    (copied / "checkpoints" / "step-4" / "model.safetensors").write_bytes(b"x")
    found = words_probe(subject_of(copied))
    assert not found.figures and not any("keeps one checkpoint only" in note for note in found.notes)
    assert any("one checkpoint is left" in note for note in found.notes)
    for step in (2, 4):
        shutil.rmtree(copied / "checkpoints" / f"step-{step}")
    assert any("keeps one checkpoint only" in note for note in words_probe(subject_of(copied)).notes)


def dictionary(given, path):
    """A MUSE file of all words that are linked in the sentence pairs."""
    text = given.aligned.text
    left, right = text.left.form.values(), text.right.form.values()
    links = text.links
    pairs = zip(
        text.left.offsets[links.sentence] + links.left, text.right.offsets[links.sentence] + links.right, strict=True
    )
    found = dict.fromkeys((right[b], left[a]) for a, b in pairs)
    path.write_text("".join(f"{a} {b}\n" for a, b in found if len(a.split()) == len(b.split()) == 1))


def test_a_dictionary_names_the_words_of_other_models(run, tmp_path):
    given = subject_of(run, words={"dictionary": str(tmp_path / "d.txt")}, data={"dev": 10})
    other = replace(given, run=None)
    dictionary(other, tmp_path / "d.txt")
    model = copy.deepcopy(other.pretrained.model)
    with torch.no_grad():
        words = model.embeddings.words
        half = len(words) // 2
        words[half:] = words[:half]
    same = replace(other.pretrained, model=model, target_model=model)
    values = words_probe(replace(other, pretrained=same)).values
    assert values["types"] >= 5 and values["counts"]["pairs of words of several tokens"] >= 1
    assert values["candidates"]["other"] > 2 * values["types"]  # not only words of the dictionary
    assert values["scores"]["all"]["cosine"]["mean"] == pytest.approx(100.0)
    with torch.no_grad():
        words[half:] = words[:half][torch.from_numpy(np.random.default_rng(0).permutation(half))]
    assert words_probe(replace(other, pretrained=same)).values["scores"]["all"]["cosine"]["mean"] < 50
    with pytest.raises(InputError, match=r"else name words\.dictionary"):
        words_probe(replace(subject_of(run), run=None))
    (tmp_path / "d.txt").write_text("no-such-long-word another-long-word\n")
    with pytest.raises(
        InputError, match=r"no pair of the 1 in the dictionary can be compared: 1 pairs of words of sev"
    ):
        words_probe(other)
