"""The probe ``cka`` against sentences read one at a time and kernels of n × n; controls, limits, paraphrases."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.config import PretrainConfig
from pretrain.model.text import Text
from pretrain.run import pretrain
from probes import states
from probes.measures.cka.pairs import Pairing, compare, random_pairing
from probes.measures.cka.probe import cka_probe, drawn_rows, left_out_of
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.aligned import Aligned
from probes.models.opening import open_pretrained
from probes.models.pretrained import bounded_batches
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.parallel.prepare import encode, prepare_pair
from tests.adjust_models import save_model
from tests.aligned_runs import plain_ids, plain_states, random_run
from tests.maps_cases import Plain
from tests.refusals import refused
from tests.test_measures_cka_similarity import of_kernels
from tests.tiny import PRETRAIN, changed

DATA = {"dev": 20, "test": 10}


@pytest.fixture(scope="module")
def parallel(tmp_path_factory):
    """Word n of one language is word n of the other."""
    return random_run(tmp_path_factory.mktemp("parallel"), language="trans")


def subject_of(pretrained, layers=None, seed=0, **settings):
    data = {"cka": settings, "data": DATA, "seed": seed, "subword": "mean"}
    return ProbeInput(pretrained, parse(ProbeConfig, data | ({} if layers is None else {"layers": layers})))


def probe(given):
    with given.reading():
        return cka_probe(given)


def plain_sides(given, rows, pooling, bodies):
    """[layers][n, d] of both sides, sentence by sentence."""
    pretrained = replace(given.pretrained, target_model=bodies[0], model=bodies[1])
    text = Aligned(given.aligned.text, replace(given.data, train=rows, dev=rows[:0]))
    plain = [Plain(replace(given, pretrained=pretrained, text=text), layer) for layer in range(3)]
    return list(zip(*(one.linked(rows) if pooling == "words" else one.sentences(rows) for one in plain), strict=True))


@pytest.mark.parametrize("pooling", ["mean", "words"])
@pytest.mark.parametrize("kind", ["shared", "separate"])
def test_it_is_cka_of_sentences_read_alone(runs, kind, pooling, monkeypatch):
    """Every comparison, every layer with every layer, however the sentences are cut into batches."""
    monkeypatch.setattr(states, "bounded_batches", lambda lengths: bounded_batches(lengths, rows=3))
    monkeypatch.setattr(states, "PAIRS_AT_ONCE", 7)
    given = subject_of(runs[kind], sentences=10, pooling=pooling)
    found = probe(given).values
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    rows, left_out = drawn_rows(given)
    assert len(rows) == 10 == found["sentences"]
    assert found["counts"] == {**left_out_of(given), "sentence pairs not drawn": left_out}
    pairing = Pairing(given.side("target"), given.side("source"), rows, given.data.links)
    with given.reading():
        random = random_pairing(given, pairing, True).left.reader.body
        model = given.pretrained.model
        cases = {"languages": (model, model), "random_target": (random, model), "random_both": (random, random)}
        for key, bodies in cases.items():
            left, right = plain_sides(given, rows, pooling, bodies)
            held = found["comparisons"][key]
            assert held["items"] == len(left[0]) == len(right[0]) and (pooling == "words") == (len(left[0]) > 10)
            for i in range(3):
                for j in range(3):
                    biased, debiased = of_kernels(left[i], right[j])
                    assert held["biased"][i][j] == pytest.approx(biased, abs=2e-5)
                    assert held["debiased"][i][j] == pytest.approx(debiased, abs=2e-5)
            same = [held["biased"][i][i] for i in range(3)]
            assert held["same_layer"]["biased"] == same
            assert held["mean"]["biased"] == pytest.approx(np.mean(same), rel=1e-5)


@pytest.mark.usefixtures("painted")
def test_what_is_not_defined_is_said_and_not_drawn(runs, tmp_path):
    found = probe(subject_of(runs["shared"], sentences=20, pooling="first", random=[]))
    held = found.values["comparisons"]["languages"]
    assert held["undefined"][0] == "trans+inv, layer 0: all 20 sentences have the same vector"
    assert any("undefined for trans+inv, layer 0" in note for note in found.notes)
    assert held["mean"]["biased"] is not None and held["same_layer"]["biased"][0] is None
    (layers,) = [figure for figure in found.figures if figure.name == "cka-languages"]
    assert "layer 0" not in layers.alt
    svg = layers.figure().svg
    assert svg and [path.suffix for path in layers.write(tmp_path)] == [".svg", ".png"]


def test_copies_are_alike_and_other_sentences_are_not(parallel):
    """With the embeddings of the counterparts every layer is 1; against other sentences the debiased one is near 0."""
    given = subject_of(parallel, sentences=120, random=[])
    with torch.no_grad():
        words, before = parallel.model.embeddings.words, parallel.model.embeddings.words.clone()
        words[given.data.left.ids] = words[given.data.right.ids]
    values = probe(given).values["comparisons"]["languages"]
    for estimator in ("biased", "debiased"):
        assert values["same_layer"][estimator] == pytest.approx([1.0] * 3, abs=1e-5)
        assert values["mean"][estimator] == pytest.approx(1.0, abs=1e-5)
    rows, _ = drawn_rows(given)
    left, right = given.side("target"), given.side("source")
    corpus = left.corpus.take(np.arange(len(left.corpus))[::-1])
    reader = parallel.target
    other = replace(left, corpus=corpus, sentences=encode(reader.tokenizer.tokenizer, corpus, language=reader.number))
    with given.reading():
        pairing = Pairing(other, right, rows, given.data.links)
        wrong = compare("x", "other sentences", pairing, "mean")
    assert all(value is not None and abs(value) < 0.15 for value in wrong.same_layer("debiased") or [None])
    with torch.no_grad():
        words.copy_(before)


def test_sentences_need_no_links_and_what_is_left_out_is_counted(parallel):
    given = subject_of(parallel)
    text, cutters = given.aligned.text, [given.reader(role).tokenizer.tokenizer for role in ("target", "source")]
    lengths = np.maximum(np.diff(given.data.left.bounds), np.diff(given.data.right.bounds)) + 2
    length = int(np.median(lengths))
    fits, linked = lengths <= length, np.arange(len(lengths)) % 3 == 0
    for pooling, kept in (("mean", fits), ("first", fits), ("words", fits & linked)):
        some = replace(text, links=text.links.select(linked[text.links.sentence]))
        data = prepare_pair("x", some, (cutters[0], cutters[1]), given.config.data, length, 0, fits=False)
        own = replace(subject_of(parallel, sentences=10_000, pooling=pooling, random=[]), text=Aligned(some, data))
        found = probe(own).values
        assert found["sentences"] == kept[:-10].sum()  # the last ten are those of data.test
        expected = {f"sentence pairs over {length} tokens": (~fits).sum()}
        if pooling == "words":
            expected["sentence pairs without a usable link"] = (fits & ~linked).sum()
        assert found["counts"] == expected
    none = replace(text, links=text.links.select(text.links.sentence < 0))
    data = prepare_pair("x", none, (cutters[0], cutters[1]), given.config.data, length, 0, fits=False)
    for pooling in ("mean", "words"):
        config = parse(ProbeConfig, {"probes": ["cka"], "cka": {"pooling": pooling}, "data": DATA})
        own = ProbeInput(parallel, config, text=Aligned(none, data))
        if pooling == "words":
            assert refused(own.check) == ("data.dev", "empty")
        else:
            own.check()


def test_random_encoders(runs):
    """Random weights depend on the seed, have the same shape and are not initial weights. The model does not change."""
    for kind, pretrained in runs.items():
        given, other = subject_of(pretrained), subject_of(pretrained, seed=1)
        rows, _ = drawn_rows(given)
        pairing = Pairing(given.side("target"), given.side("source"), rows, given.data.links)
        first, again, third = (
            random_pairing(held, pairing, False).left.reader.body.state_dict() for held in (given, given, other)
        )
        own = pretrained.model.state_dict()
        assert {name: t.shape for name, t in first.items()} == {name: t.shape for name, t in own.items()}
        assert all(torch.equal(first[name], again[name]) for name in first)
        matrices = [name for name, parameter in pretrained.model.named_parameters() if parameter.ndim > 1]
        assert not any(torch.equal(first[name], side[name]) for name in matrices for side in (third, own))
        spread = torch.cat([first[name].flatten() for name in matrices]).std()
        assert float(spread) == pytest.approx(pretrained.model.shape.init_std, rel=0.02), kind
        both = random_pairing(given, pairing, True)
        assert both.left.reader.body is both.right.reader.body
        assert random_pairing(given, pairing, False).right.reader.body is pretrained.model


@pytest.mark.usefixtures("painted")
def test_chosen_layers(runs):
    found = probe(subject_of(runs["shared"], layers=[0, -1], sentences=30, random=["both"], estimator="debiased"))
    every = probe(subject_of(runs["shared"], sentences=30, random=["both", "both"])).values["comparisons"]
    for key, held in found.values["comparisons"].items():
        assert held["left_layers"] == held["right_layers"] == [0, 2]
        table = np.array(every[key]["biased"])
        np.testing.assert_allclose(held["biased"], table[np.ix_([0, 2], [0, 2])], rtol=1e-5)
    assert [figure.name for figure in found.figures] == ["cka-languages", "cka-random-both", "cka-layers"]
    assert all("debiased" in figure.title and figure.figure().svg for figure in found.figures)
    assert len(found.tables[0].rows) == 3 and "layer 1" not in found.figures[0].alt


def test_a_model_that_diverged_is_refused(parallel):
    norm = parallel.model.layers[0].norm.weight
    before = norm.detach().clone()
    with torch.no_grad():
        norm[0] = torch.nan
    with pytest.raises(InputError, match=r"states contain NaN or infinity \(trans, layer 1\)"):
        probe(subject_of(parallel))
    with torch.no_grad():
        norm.copy_(before)


def test_the_draw_is_of_the_seed_and_few_sentences_are_told(runs):
    given, other = (subject_of(runs["shared"], sentences=15, seed=seed) for seed in (3, 0))
    assert not np.array_equal(drawn_rows(given)[0], drawn_rows(other)[0])
    everything, left_out = drawn_rows(subject_of(runs["shared"]))
    assert left_out == 0 and len(everything) == len(given.measured) + len(given.fitted)
    found = probe(given)
    assert found.values == probe(subject_of(runs["shared"], sentences=15, seed=3)).values
    assert sum("with only 15 items for 16 dimensions" in note for note in found.notes) == 1
    (table,) = found.tables
    assert len(table.rows) == 4 and len(table.header) == 4
    three = probe(subject_of(runs["shared"], sentences=3, estimator="debiased"))
    held = three.values["comparisons"]["languages"]
    assert held["debiased"] is None and held["same_layer"]["debiased"] is None and held["mean"]["debiased"] is None
    assert any("the debiased estimator needs at least 4 items, and there are 3" in note for note in three.notes)
    assert three.figures == [] and len(three.tables) == 1
    with pytest.raises(InputError, match="sentences"):
        subject_of(runs["shared"], sentences=1)


def test_two_models_get_random_encoders_of_their_own(runs, tmp_path):
    shared = runs["shared"]
    wider = random_run(tmp_path, model__hidden=24)
    given = subject_of(replace(shared, target_model=wider.model), sentences=40)
    found = probe(given).values["comparisons"]
    assert found["random_both"]["biased"] != found["random_target"]["biased"]
    rows, _ = drawn_rows(given)
    drawn = random_pairing(given, Pairing(given.side("target"), given.side("source"), rows, given.data.links), True)
    assert [side.reader.body.shape.hidden for side in (drawn.left, drawn.right)] == [24, 16]
    with given.reading():
        left, right = plain_sides(given, rows, "mean", (wider.model, shared.model))
    biased, _ = of_kernels(left[1], right[2])
    assert found["languages"]["biased"][1][2] == pytest.approx(biased, abs=2e-5)


UPPER = {"dev": 10, "test": 0}


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


def probe_of(model, language=None, pairs=None, model2=None, natural=False, **cka):
    config = parse(
        ProbeConfig,
        {"language": language, "natural": natural, "data": UPPER, "cka": {"random": [], **cka}, "pairs": pairs or {}},
    )
    given = ProbeInput(open_pretrained(str(model), language, natural, model2), config)
    with given.reading():
        return given, cka_probe(given)


def test_the_model_itself_is_the_upper_bound(run):
    """The positive control, for sentences and for words; and it is said that it is no reference."""
    for pooling, items in (("mean", 25), ("words", None)):
        _, found = probe_of(run, paraphrase=str(run), sentences=25, pooling=pooling)
        held = found.values["comparisons"]["paraphrase"]
        assert held["same_layer"]["biased"] == pytest.approx([1.0] * 3, abs=1e-5)
        assert held["same_layer"]["debiased"] == pytest.approx([1.0] * 3, abs=1e-5)
        assert held["items"] == (items or found.values["comparisons"]["languages"]["items"])
        assert found.values["comparisons"]["languages"]["mean"]["debiased"] < 0.999
        assert any("is the probed model itself" in note for note in found.notes)


@pytest.mark.parametrize("pooling", ["mean", "words"])
def test_another_model_reads_the_same_sentences(run, hub, pooling):
    """A BERT of another width, depth and tokenizer; sentences that it cannot read are counted."""
    given, found = probe_of(run, paraphrase=str(hub["bert"]), pooling=pooling, sentences=160)
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
    assert counts == {**left_out_of(given), "source sentences over the 40 tokens of bert": len(rows) - len(short)}
    assert held["items"] == len(left) and np.shape(held["biased"]) == (3, 2)
    for i, j in itertools.product(range(3), range(2)) if pooling == "mean" else [(2, 1)]:  # n × n kernels are slow
        biased, debiased = of_kernels(left[:, i], right[:, j])
        assert held["biased"][i][j] == pytest.approx(biased, abs=2e-5)
        assert held["debiased"][i][j] == pytest.approx(debiased, abs=2e-5)
    assert held["same_layer"]["biased"] is None is held["mean"]["biased"]
    assert any("paraphrase: parent by bert: there is no mean over layers" in note for note in found.notes)
    assert [figure.name for figure in found.figures] == ["cka-languages", "cka-paraphrase", "cka-layers"]
    assert len(found.tables[0].header) == 2
