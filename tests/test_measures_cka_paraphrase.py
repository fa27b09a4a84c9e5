"""CKA with another model of the source, models of Hugging Face, and CKA against retrieval."""

import copy
import itertools
import shutil
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pretrain.config import PretrainConfig
from pretrain.model.text import Text
from pretrain.run import pretrain
from probes.measures import ProbeConfig
from probes.measures.cka.probe import cka_probe, drawn_rows
from probes.measures.probe_input import ProbeInput
from probes.measures.together import against_retrieval
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import plain_ids, plain_states
from tests.test_measures_cka_similarity import of_kernels
from tests.tiny import PRETRAIN, changed

DERIVED = {"kind": "derived", "source": PRETRAIN["source"], "left": "trans+inv"}
DATA = {"dev": 10, "test": 0}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("cka") / "run"
    pretrain(parse(PretrainConfig, changed(PRETRAIN, model__layers=2, model__init_std=0.3)), folder)
    return folder


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hub")
    text = ["the young doctor saw that a letter was near the old house .", "a cat sees the dog ."]
    return {
        "roberta": save_model(folder / "roberta", "roberta", text),
        "bert": save_model(folder / "bert", "bert", hidden_size=24, num_hidden_layers=1),
    }


def probe(model, language=None, pairs=None, model2=None, natural=False, **cka):
    config = parse(
        ProbeConfig,
        {"language": language, "natural": natural, "data": DATA, "cka": {"random": [], **cka}, "pairs": pairs or {}},
    )
    given = ProbeInput(open_pretrained(str(model), language, natural, model2), config)
    with given.reading():
        return given, cka_probe(given)


def test_the_model_itself_is_the_upper_bound(run):
    """The positive control, for sentences and for words; and it is said that it is no reference."""
    for pooling, items in (("mean", 25), ("words", None)):
        _, found = probe(run, paraphrase=str(run), sentences=25, pooling=pooling)
        held = found.values["comparisons"]["paraphrase"]
        assert held["same_layer"]["biased"] == pytest.approx([1.0] * 3, abs=1e-5)
        assert held["same_layer"]["debiased"] == pytest.approx([1.0] * 3, abs=1e-5)
        assert held["items"] == (items or found.values["comparisons"]["languages"]["items"])
        assert found.values["comparisons"]["languages"]["mean"]["debiased"] < 0.999
        assert any("is the model itself" in note for note in found.notes)


@pytest.mark.parametrize("pooling", ["mean", "words"])
def test_another_model_reads_the_same_sentences(run, hub, pooling):
    """A BERT of another width, depth and tokenizer; sentences that it cannot read are counted."""
    given, found = probe(run, paraphrase=str(hub["bert"]), pooling=pooling, sentences=160)
    held = found.values["comparisons"]["paraphrase"]
    other = open_pretrained(str(hub["bert"]), "parent")
    rows, _ = drawn_rows(given)
    corpus, links = given.aligned.text.right, given.data.links
    short: list[int] = []
    items: tuple[list[Any], list[Any]] = ([], [])
    other.model.eval()
    with torch.no_grad(), given.reading():
        for row in rows:
            words = corpus[int(row)].columns["form"]
            if len(plain_ids(other.source, words)[0]) > 40:
                continue
            short.append(row)
            linked = sorted(set(links.take(np.array([row])).right.tolist()))
            for item, (model, reader) in zip(
                items, ((given.pretrained.model, given.pretrained.source), (other.model, other.source)), strict=True
            ):
                layers = range(model.shape.layers + 1)
                if pooling == "mean":
                    ids, _ = plain_ids(reader, words)
                    read = model.read(Text.of(torch.tensor([ids]), 0), layers=layers)
                    item.append(torch.stack([layer[0, 1:-1].mean(0) for layer in read]))
                else:
                    read = [plain_states(model, reader, words, layer, "last") for layer in layers]
                    item += [torch.stack([layer[i] for layer in read]) for i in linked]
    left, right = (torch.stack(item).double().numpy() for item in items)
    assert 5 < len(short) < len(rows)
    counts = dict(found.values["counts"])
    counts.pop("sentence pairs not drawn", None)
    assert counts == {"source sentences over the 40 tokens of bert": len(rows) - len(short)}
    assert held["items"] == len(left) and np.shape(held["biased"]) == (3, 2)
    for i, j in itertools.product(range(3), range(2)) if pooling == "mean" else [(2, 1)]:  # n × n kernels are slow
        biased, debiased = of_kernels(left[:, i], right[:, j])
        assert held["biased"][i][j] == pytest.approx(biased, abs=2e-5)
        assert held["debiased"][i][j] == pytest.approx(debiased, abs=2e-5)
    assert held["same_layer"]["biased"] is None is held["mean"]["biased"]
    assert any("paraphrase: parent by bert: the models have different numbers" in note for note in found.notes)
    assert [figure.name for figure in found.figures] == ["cka-languages", "cka-paraphrase", "cka-layers"]
    assert len(found.tables[0].columns) == 2


def test_models_of_hugging_face(hub):
    """One that reads a derived language, with random encoders; and two monolingual ones."""
    folder = str(hub["roberta"])
    _, found = probe(folder, "trans+inv", {"x": DERIVED}, sentences=40, random=["target", "both"], paraphrase=folder)
    held = found.values["comparisons"]
    assert set(held) == {"languages", "random_target", "random_both", "paraphrase"}
    assert all(np.isfinite(one["biased"]).all() and np.shape(one["biased"]) == (4, 4) for one in held.values())
    assert held["paraphrase"]["mean"]["biased"] == pytest.approx(1.0, abs=1e-5)
    _, two = probe(folder, "other", {"x": DERIVED}, str(hub["bert"]), natural=True, sentences=30)
    assert np.shape(two.values["comparisons"]["languages"]["biased"]) == (2, 4)
    assert not two.tables and [figure.name for figure in two.figures] == ["cka-languages"]


def test_what_cannot_be_measured(run, tmp_path):
    with pytest.raises(InputError, match="there is no such folder"):
        probe(run, paraphrase=str(tmp_path / "nothing"))
    broken = tmp_path / "run"
    shutil.copytree(run, broken)
    for path in (broken / "checkpoints").glob("*/model.safetensors"):
        path.write_bytes(b"x")
    with pytest.raises(InputError):
        probe(run, paraphrase=str(broken))


def test_the_model_is_left_alone(run):
    config = parse(ProbeConfig, {"data": DATA, "cka": {"sentences": 20, "paraphrase": str(run)}})
    given = ProbeInput(open_pretrained(str(run), None), config)
    before = copy.deepcopy(given.pretrained.model.state_dict())
    given.pretrained.model.train()
    with given.reading():
        cka_probe(given)
    assert given.pretrained.model.training
    assert all(torch.equal(tensor, before[name]) for name, tensor in given.pretrained.model.state_dict().items())


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(3, 9))
def test_pearson_over_layers(seed, n):
    random = np.random.default_rng(seed)
    cka, retrieval = random.random(n), random.random(n) * 100
    found = against_retrieval(cka.tolist(), retrieval.tolist(), seed)
    assert found.r == pytest.approx(np.corrcoef(cka, retrieval)[0, 1], abs=1e-9)
    assert found.n == n and found.kind == "pearson"
    assert against_retrieval(cka.tolist(), (3 * cka + 1).tolist()).r == pytest.approx(1.0)
    gaps = against_retrieval([None, *cka.tolist(), 0.5], [0.3, *retrieval.tolist(), None], seed)
    assert gaps == found


def test_pearson_that_is_not_defined():
    assert against_retrieval([0.1, 0.2, None], [1.0, 2.0, 3.0]).reason == "2 pairs: a correlation needs at least 3"
    assert against_retrieval([], []).r is None
    assert against_retrieval([0.5] * 4, [1.0, 2.0, 3.0, 4.0]).reason == "the first side is constant"
    with pytest.raises(InputError, match=r"CKA is of 2 layers and retrieval of 3"):
        against_retrieval([0.1, 0.2], [1.0, 2.0, 3.0])
    with pytest.raises(InputError, match="NaN or infinity"):
        against_retrieval([0.1, 0.2, 0.3], [1.0, float("nan"), 3.0])
