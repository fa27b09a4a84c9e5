"""Probe distances: against word pairs read one sentence at a time; controls; models before on the same pairs."""

import json
import shutil
from typing import Any

import numpy as np
import pytest
import torch

from probes.measures import ProbeConfig
from probes.measures.distances.dimensions import separations_and_dominance
from probes.measures.distances.pairs import unrelated
from probes.measures.distances.probe import distances_probe
from probes.measures.distances.text import PairReaders, linked_in_order, shared_text
from probes.measures.probe_input import ProbeInput
from probes.transfer.model import open_pretrained
from synthlang.config import parse
from synthlang.rng import key_of, permutation
from tests.adjust_models import save_model
from tests.aligned_runs import plain_states, random_run
from tests.separations import separations
from tests.test_measure_states import text_pair

NAMES = (
    ("le", "petit", "chien", "voit", "un", "chat", "noir"),
    ("the", "small", "dog", "sees", "a", "black", "cat", "things"),
)


def settings(folder=None, dev=9, **distances):
    text = {} if folder is None else text_pair(folder)
    return parse(ProbeConfig, {**text, "data": {"dev": dev, "sentences": 30}, "distances": distances})


def probe(pretrained, config):
    given = ProbeInput(pretrained, config)
    with given.reading():
        found = distances_probe(given)
    json.dumps(found.values, allow_nan=False)
    return given, found


def plain_pairs(given, pretrained, layers, kept=None):
    """[layers, links, d] of each side, the sentence and the right word of each link, in the order of the probe."""
    data, text = given.data, given.aligned.text
    rows = data.dev if kept is None else kept
    for body in (pretrained.target_model, pretrained.model):
        body.eval()
    order = np.arange(len(rows))[permutation(key_of("distances-order", given.config.seed), len(rows))]
    sides: tuple[list[Any], list[Any]] = ([], [])
    sentences: list[int] = []
    words: list[int] = []
    for row in rows[order].tolist():
        side = text.left[row].words, text.right[row].words
        readers, bodies = (pretrained.target, pretrained.source), (pretrained.target_model, pretrained.model)
        states = [
            [plain_states(bodies[i], readers[i], side[i], layer, "last") for layer in layers[i]] for i in (0, 1)
        ]  # fmt: skip
        for a, b in data.links.of_pair(row):
            sides[0].append(torch.stack([layer[a] for layer in states[0]]))
            sides[1].append(torch.stack([layer[b] for layer in states[1]]))
            sentences.append(row)
            words.append(side[1][b])
    left, right = (torch.stack(held, 1).double().detach().numpy() for held in sides)
    return left, right, np.asarray(sentences), words


def plain_distances(left, right, sentences, words, seed=0):
    """distance → (related [layers, n], unrelated [layers, m]), pair by pair."""
    query, other = unrelated(sentences, key_of("unrelated-words", seed))
    drawn = [(q, o) for q, o in zip(query.tolist(), other.tolist(), strict=True) if words[q] != words[o]]
    same = [(i, i) for i in range(len(words))]

    def l2(x, y):
        return np.sqrt(sum((x - y) ** 2))

    def cosine(x, y):
        return 1 - sum(x * y) / np.sqrt(sum(x * x)) / np.sqrt(sum(y * y))

    return {
        name: [
            np.array([[function(left[layer, q], right[layer, o]) for q, o in pairs] for layer in range(len(left))])
            for pairs in (same, drawn)
        ]
        for name, function in (("l2", l2), ("cosine", cosine))
    }


def plain_auc(related, unrelated_):
    return float(np.mean([(a < b) + 0.5 * (a == b) for a in related for b in unrelated_]))


def check(values, expected):
    found = {name: [one for one in values["layers"] if one["distance"] == name] for name in expected}
    for name, kinds in expected.items():
        assert len(found[name]) == len(kinds[0])
        for layer, one in enumerate(found[name]):
            for kind, distances in zip(("related", "unrelated"), kinds, strict=True):
                assert one[kind]["n"] == len(distances[layer])
                assert one[kind]["mean"] == pytest.approx(distances[layer].mean(), rel=1e-4)
                for quantile, value in one[kind]["quantiles"].items():
                    assert value == pytest.approx(np.quantile(distances[layer], float(quantile)), rel=1e-4, abs=1e-6)
            # a few pairs may be so close that float32 and the order of sums decide
            assert one["auc"]["mean"] == pytest.approx(plain_auc(kinds[0][layer], kinds[1][layer]), abs=2e-4)


@pytest.mark.parametrize("kind", ["run", "separate", "bert", "two"])
def test_distances_are_those_of_words_read_alone(kind, tmp_path):
    if kind in ("run", "separate"):
        sharing = {"sharing": {"embeddings": "separate", "layers": [1]}} if kind == "separate" else {}
        pretrained, config = random_run(tmp_path, **sharing), settings(dimensions=[2], pairs=4)
    else:
        first = save_model(tmp_path / "first", "bert")
        other = str(save_model(tmp_path / "other", "roberta", seed=1)) if kind == "two" else None
        pretrained, config = open_pretrained(str(first), "other", True, other), settings(tmp_path, dev=5, pairs=4)
    given, found = probe(pretrained, config)
    layers = tuple(range(pretrained.model.shape.layers + 1))
    expected = plain_distances(*plain_pairs(given, pretrained, (layers, layers)))
    (held,) = found.values["models"].values()
    check(held, expected)
    assert held["layer"] == layers[-1] and found.values["changes"] == {}
    assert found.values["related"] == expected["l2"][0].shape[1] > 10
    for name, histogram in held["histograms"].items():
        edges = np.asarray(histogram["edges"])
        for key, distances in zip(("related", "unrelated"), expected[name], strict=True):
            near = np.abs(distances[-1][:, None] - edges).min(1) < 1e-4  # may fall on either side of an edge
            difference = np.abs(np.asarray(histogram[key]) - np.histogram(distances[-1], edges)[0]).sum()
            assert difference <= 2 * near.sum()
    assert any("mean nothing" in note for note in found.notes) == (kind == "two")
    assert {"distances-l2", "distances-cosine", "distances-auc", "distances-words-1"} <= {f.name for f in found.figures}


def test_the_stream_is_the_same_however_it_is_cut(tmp_path):
    pretrained = random_run(tmp_path)
    given = ProbeInput(pretrained, settings(dev=40))
    left, right = given.side("target"), given.side("source")
    with given.reading():
        streams = [list(linked_in_order(given, left, right, block=block)) for block in (7, 100_000)]
    assert len(streams[0]) > 10 and len(streams[1]) == 1
    for name, at in (("left", 1), ("right", 1), ("sentence", 0), ("word", 0)):
        cut = torch.cat([getattr(part, name) for part in streams[0]], at)
        torch.testing.assert_close(cut, getattr(streams[1][0], name), rtol=1e-4, atol=1e-5)
    lengths = np.diff(given.data.left.bounds)[streams[1][0].sentence.unique_consecutive()]
    assert (np.diff(lengths) > 0).any() and (np.diff(lengths) < 0).any()  # not in order of length


def test_both_parts_are_what_they_are_alone(tmp_path):
    pretrained = random_run(tmp_path)
    given = ProbeInput(pretrained, settings())
    sides = given.side("target"), given.side("source")
    with given.reading():
        both = separations_and_dominance(lambda: linked_in_order(given, *sides), 3, (0, 1, 2), tops=(1, 4))
        alone = separations(linked_in_order(given, *sides), 3)
        once = []

        def read():
            once.append(1)
            return linked_in_order(given, *sides)

        none = separations_and_dominance(read, 3, (0, 1, 2), tops=())
    for found in (both[0], none[0]):
        assert [one.to_json() for one in found] == [one.to_json() for one in alone]
    assert len(once) == 1 and [len(one.tops) for one in both[1]] == [2] * 6


def test_copies_of_embeddings_are_apart_from_all_else(tmp_path):
    pretrained = random_run(tmp_path, language="trans")
    given = ProbeInput(pretrained, settings(dev=30))
    ids = given.data.left.ids.astype(int), given.data.right.ids.astype(int)
    assert len(ids[0]) == len(ids[1]) and (ids[0] != ids[1]).any()
    with torch.no_grad():
        pretrained.model.embeddings.words[ids[0]] = pretrained.model.embeddings.words[ids[1]]
    _, found = probe(pretrained, settings(dev=30))
    (held,) = found.values["models"].values()
    for one in held["layers"]:
        assert one["related"]["quantiles"]["0.95"] < 1e-3 < one["unrelated"]["quantiles"]["0.05"]
        assert one["auc"]["mean"] == pytest.approx(1, abs=1e-4)


def test_words_of_other_sentences_as_pairs_are_at_chance(tmp_path):
    random = np.random.default_rng(5)
    lines = [[" ".join(random.choice(names, 6)) for _ in range(160)] for names in NAMES]
    links = [" ".join(f"{a}-{b}" for a, b in enumerate(random.permutation(6))) for _ in range(160)]
    config = settings(tmp_path, dev=130, picture="none", dimensions=[])
    for name, content in (("left", lines[0]), ("right", lines[1]), ("links", links)):
        (tmp_path / name).write_text("\n".join(content) + "\n")
    pretrained = open_pretrained(str(save_model(tmp_path / "m")), "other", True)
    _, found = probe(pretrained, config)
    (held,) = found.values["models"].values()
    assert held["dimensions"] is None and found.values["pictures"] is None
    aucs = [one["auc"] for one in held["layers"]]
    assert all(abs(auc["mean"] - 0.5) < 0.06 for auc in aucs), aucs


@pytest.mark.parametrize("before", ["same", "other"])
def test_models_before_read_the_same_pairs(before, tmp_path):
    main = save_model(tmp_path / "main", "bert")
    other = tmp_path / "old"
    if before == "same":
        shutil.copytree(main, other)
    else:
        save_model(other, "roberta", seed=3, max_position_embeddings=14)
    config = settings(tmp_path, dev=9, before={"old": str(other)}, name="new", pairs=4)
    pretrained = open_pretrained(str(main), "other", True)
    given, found = probe(pretrained, config)
    values = found.values
    assert list(values["models"]) == ["old", "new"]
    again = open_pretrained(str(other), "other", True)
    limit = again.length
    sides = (given.aligned.text.left, again.target), (given.aligned.text.right, again.source)

    def tokens(row):
        return [
            sum(len(r.tokenizer.tokenizer.encode(w, add_special_tokens=False).ids) for w in c[row].words) + 2
            for c, r in sides
        ]

    kept = np.array([row for row in given.data.dev.tolist() if max(tokens(row)) <= limit])
    assert (len(kept) < 9) == (before == "other") and values["sentence_pairs"] == len(kept)
    for name, model in (("old", again), ("new", pretrained)):
        layers = tuple(range(4))
        _, _, sentences, words = pairs = plain_pairs(given, model, (layers, layers), kept)
        check(values["models"][name], plain_distances(pairs[0], pairs[1], sentences, words))
    old, new = ([one["auc"]["mean"] for one in values["models"][name]["layers"]] for name in ("old", "new"))
    changes = values["changes"]["old"]
    assert [change["auc"]["mean"] for change in changes] == pytest.approx(np.subtract(new, old), abs=1e-9)
    if before == "same":
        assert all(change[key]["low"] == change[key]["high"] == 0 for change in changes for key in ("auc", "related"))
        assert values["pictures"]["old"]["left"] == values["pictures"]["new"]["left"]
    else:
        assert any(abs(change["related"]["mean"]) > 0.01 for change in changes)
        assert values["counts"]["sentence pairs that some model cannot read or that have no link left"] == 9 - len(kept)
    assert values["pictures"]["old"]["right_words"] == values["pictures"]["new"]["right_words"]
    edges = [values["models"][name]["histograms"]["l2"]["edges"] for name in ("old", "new")]
    assert edges[0] == edges[1]


def test_shared_links_are_those_that_every_tokenizer_leaves_something_of(tmp_path):
    pretrained = random_run(tmp_path)
    given = ProbeInput(pretrained, settings())
    readers = PairReaders.of(pretrained)
    shared = shared_text(given, {"a": readers, "b": readers})
    assert shared.counts == {} and len(shared.rows) == len(given.data.dev)
    for number, row in enumerate(given.data.dev.tolist()):
        assert shared.data["b"].links.of_pair(number) == given.data.links.of_pair(row)
        assert shared.text.left[number].words == given.aligned.text.left[row].words
