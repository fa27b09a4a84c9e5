"""Word retrieval where the answer is known, parts of speech by a parser, and what cannot be measured."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from probes.measures.probe_input import ProbeInput
from probes.measures.retrieval import scores as retrieval_tags
from probes.measures.retrieval.probe import retrieval_probe
from probes.measures.retrieval.scores import frequency_ranks
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import random_run
from tests.test_measures_retrieval import copied

KEEP = {"exact_matches": "keep", "seen": "keep"}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("model"), "roberta")


def subject_of(model, folder, left, right, links, retrieval, model2=None, **settings):
    for name, lines in (("left", left), ("right", right), ("links", links)):
        (folder / name).write_text("\n".join(lines) + "\n")
    names = {name: str(folder / name) for name in ("left", "right")}
    pair = {"kind": "text", **names, "links": {"kind": "file", "path": str(folder / "links")}}
    config = {"pairs": {"pair": pair}, "data": {"dev": 40}, "retrieval": retrieval, **settings}
    pretrained = open_pretrained(str(model), "other", True, model2 and str(model2))
    return ProbeInput(pretrained, parse(ProbeConfig, {**config, "language": "other", "natural": True}))


def sentences(count=60, size=5):
    """Return sentences whose words never occur twice in one place, so that no two states are equal."""
    draw = np.random.default_rng(1)
    return [" ".join(f"{'abcde'[j]}{i}x{draw.integers(9)}" for j in range(size)) for i in range(count)]


def probe(given):
    with given.reading():
        found = retrieval_probe(given)
    json.dumps(found.values, allow_nan=False)
    return found


def headline(given):
    return probe(given).values["headline"]


DIAGONAL = " ".join(f"{i}-{i}" for i in range(5))


@pytest.mark.parametrize("candidates", ["all", "aligned"])
def test_the_same_language_finds_every_word(model, tmp_path, candidates):
    """Under the cosine; CSLS may prefer a word in a thinner place to the very same vector."""
    text = sentences()
    given = subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, {**KEEP, "candidates": candidates})
    found = headline(given)
    assert found["cosine"]["mean"] == 100 == found["cosine"]["high"] and 90 < found["cosine"]["low"] < 100
    assert found["csls"]["mean"] > 90 and found["csls"]["links"] == 200


def test_wrong_pairs_find_nothing_more_than_chance_and_words_alike_leave_nothing_to_count(model, tmp_path, rendered):
    text = sentences()
    given = subject_of(model, tmp_path, text, text[1:] + text[:1], [DIAGONAL] * 60, KEEP)
    found = probe(given)
    assert found.values["headline"]["csls"]["mean"] < 5
    assert found.values["variants"]["context"]["chance"] == pytest.approx(100 / 200)
    for figure in found.figures:
        assert all(path.stat().st_size > 1000 for path in figure.write(tmp_path / "figures"))
    assert all("[" not in str(cell) for table in found.tables for row in table.rows for cell in row)
    assert not any("zero" in note for note in found.notes) and not any("zeros" in key for key in found.values["counts"])
    assert len(found.tables) == 2 and all(len(table.rows) == 5 for table in found.tables)
    alike = probe(subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, {}))
    assert alike.values["headline"]["csls"] is None and alike.values["ranks"] is None
    assert alike.values["counts"]["context: links of words written alike"] == 200
    assert any("only 0 of 200 word pairs count" in note for note in alike.notes)
    assert alike.values["variants"]["context"]["layers"][-1]["pairs"]["linked"]["cosine"]["mean"] == 100


def test_a_language_with_copies_of_the_embeddings_is_found(tmp_path):
    """But for words of sentences that come twice, whose vectors are tied."""
    pretrained = random_run(tmp_path, language="trans")
    settings = {"data": {"dev": 30}, "retrieval": KEEP}
    before = headline(ProbeInput(pretrained, parse(ProbeConfig, settings)))["csls"]["mean"]
    after = headline(ProbeInput(copied(pretrained), parse(ProbeConfig, settings)))["csls"]["mean"]
    assert before < 20 and after > 95


class Tagger:
    """Says NOUN of words with a, VERB of the others, and nothing useful of sentences with e7x."""

    name, version, fingerprint, columns = "toy:tagger", "toy 1", "0" * 8, ("form", "upos", "head", "deprel")

    def parse(self, given):
        return [self.one(list(words)) for words in given]

    def one(self, words):
        form = [*words, "more"] if any(word.startswith("e57x") for word in words) else words
        upos = ["NOUN" if word[0] == "a" else "VERB" if word[0] == "b" else "SYM" for word in form]
        return {"form": form, "upos": upos, "head": [0, *[1] * (len(form) - 1)], "deprel": ["dep"] * len(form)}


def test_parts_of_speech_are_those_of_a_parser_where_the_text_has_none(model, tmp_path, monkeypatch):
    monkeypatch.setenv("SYNTHLANG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(retrieval_tags, "open_engine", lambda spec: Tagger())
    text = sentences()
    settings = {**KEEP, "parser": "spacy:toy"}
    found = probe(subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, settings))
    by_tag = found.values["tags"]
    assert by_tag["by"] == "toy 1" and by_tag["pairs"] == "linked"
    context = by_tag["variants"]["context"]
    tags = context["groups"]["open class"]["tags"]
    assert tags["NOUN"]["links"] == tags["VERB"]["links"] == 39 and tags["ADV"] is None
    average = (tags["NOUN"]["mean"] + tags["VERB"]["mean"]) / 2
    assert context["groups"]["open class"]["average"] == pytest.approx(average) and average > 90
    assert context["groups"]["open class"]["pooled"]["links"] == 78
    assert context["groups"]["closed class"] == {
        "average": None, "pooled": None, "tags": dict.fromkeys(("DET", "ADP", "CONJ", "PRON", "AUX")),
    }  # fmt: skip
    assert context["left_out"] == {"SYM": 39 * 3, "none": 5}
    assert "retrieval-by-tag" in {figure.name for figure in found.figures}


@pytest.mark.parametrize(("shape", "retrieval", "settings", "message"), [
    ({"hidden_size": 32}, KEEP, {}, "model2: has the hidden size 32, but the first model has 16"),
    ({"num_hidden_layers": 4}, KEEP, {}, "different numbers of layers: 3 and 4; list layers that both models have"),
    ({}, KEEP, {"data": {"dev": 1}}, "only one sentence pair"),
    ({}, {"parser": "nonsense"}, {}, "'nonsense' is not a parser"),
    ({"nan": True}, KEEP, {}, "retrieval: word vectors of other contain NaN"),
])  # fmt: skip
def test_what_cannot_be_measured_is_one_line(model, tmp_path, shape, retrieval, settings, message):
    text, nan = sentences(), shape.pop("nan", False)
    other = save_model(tmp_path / "other", "roberta", **shape) if shape else None
    given = subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, retrieval, other, **settings)
    if nan:
        given.pretrained.model.embeddings.words.data[:] = torch.nan
    with pytest.raises(InputError, match=message):
        probe(given)
    if "num_hidden_layers" in shape:
        named = subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, KEEP, other, layers=[0, -1])
        layers = probe(named).values["variants"]["context"]["layers"]
        assert [(layer["layer"], layer["left_layer"]) for layer in layers] == [(0, 0), (3, 4)]


def test_zero_vectors_are_counted_and_missed(model, tmp_path):
    text = sentences()
    given = subject_of(model, tmp_path, text, text, [DIAGONAL] * 60, KEEP)
    given.pretrained.model.norm.weight.data[:] = 0
    given.pretrained.model.norm.bias.data[:] = 0
    found = probe(replace(given, config=given.config.model_copy(update={"layers": (0,)})))
    values = found.values
    assert values["counts"]["context: vectors of zeros, layer 0"] == 400
    assert any("in context, layer 0: 400 word vectors are zero" in note for note in found.notes)
    (layer,) = values["variants"]["context"]["layers"]
    assert layer["zero_vectors"] == {"left": 200, "right": 200} and layer["pairs"]["linked"]["csls"]["mean"] == 0


def test_ranks_are_those_of_scipy():
    corpus = Corpus.of_words([["a", "b", "a"], ["c", "d", "d", "a", "e"], ["z", "z", "z", "z", "z"]])
    types = corpus.form.codes.astype(np.int64)
    found = frequency_ranks(types, corpus.offsets, np.array([0, 1]))
    assert found.tolist() == [*stats.rankdata([-3, -1, -1, -2, -1]).tolist(), 0]
