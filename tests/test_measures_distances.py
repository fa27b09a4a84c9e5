"""Probe distances: against word pairs read one sentence at a time; controls; models before; limits."""

import json
import shutil
import weakref
from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from probes.measures.distances.pairs import linked_in_order, open_other, readers_of, shared_text, unrelated
from probes.measures.distances.probe import distances_probe
from probes.measures.distances.show import OPEN, choose, chosen_vectors
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.aligned import Aligned
from probes.models.opening import open_pretrained
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation
from tests.adjust_models import save_model
from tests.aligned_runs import plain_states, random_run
from tests.maps_cases import Plain
from tests.test_states import text_pair

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
    rows = rows[permutation(key_of("distances-order", given.config.seed), len(rows))]
    aligned = Aligned(text, replace(data, train=rows, dev=rows[:0]))
    read = replace(given, pretrained=pretrained, text=aligned)
    left, right = (np.stack(side) for side in zip(*(Plain(read, layer).linked(rows) for layer in layers), strict=True))
    linked = [(row, text.right[row].words[b]) for row in rows.tolist() for _, b in data.links.of_pair(row)]
    return left, right, np.array([row for row, _ in linked]), [word for _, word in linked]


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


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return open_pretrained(str(save_model(tmp_path_factory.mktemp("bert") / "bert")), "other", True)


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
    expected = plain_distances(*plain_pairs(given, pretrained, layers))
    (of_model,) = found.values["models"].values()
    check(of_model, expected)
    assert of_model["layer"] == layers[-1] and found.values["changes"] == {}
    assert found.values["related"] == expected["l2"][0].shape[1] > 10
    for name, histogram in of_model["histograms"].items():
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


def test_words_of_other_sentences_as_pairs_are_at_chance(tmp_path):
    random = np.random.default_rng(5)
    lines = [[" ".join(random.choice(names, 6)) for _ in range(160)] for names in NAMES]
    links = [" ".join(f"{a}-{b}" for a, b in enumerate(random.permutation(6))) for _ in range(160)]
    config = settings(tmp_path, dev=130, picture="none", dimensions=[])
    for name, content in (("left", lines[0]), ("right", lines[1]), ("links", links)):
        (tmp_path / name).write_text("\n".join(content) + "\n")
    pretrained = open_pretrained(str(save_model(tmp_path / "m")), "other", True)
    _, found = probe(pretrained, config)
    (of_model,) = found.values["models"].values()
    assert of_model["dimensions"] is None and found.values["pictures"] is None
    aucs = [one["auc"] for one in of_model["layers"]]
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
        _, _, sentences, words = pairs = plain_pairs(given, model, layers, kept)
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


def test_a_model_before_is_freed_before_the_next_is_read(bert, tmp_path, monkeypatch):
    opened: list[Any] = []
    alive = []

    def opening(*arguments):
        alive.append(sum(model() is not None for model in opened))
        other = open_other(*arguments)
        opened.append(weakref.ref(other.model))
        return other

    monkeypatch.setattr("probes.measures.distances.probe.open_other", opening)
    before = [str(save_model(tmp_path / name, "bert")) for name in ("a", "b")]
    probe(bert, settings(tmp_path, before=before, pairs=4))
    assert alive == [0, 0, 0, 0]


def test_pictures_show_frequent_open_class_words_at_one_of_their_places(run):
    given = ProbeInput(run, settings(dev=40))
    shared = shared_text(given, {"run": readers_of(run)})
    chosen = choose(shared, 12, seed=1)
    text = shared.text
    counts: Counter[tuple[str, str]] = Counter()
    tags: dict[str, Counter[str]] = {}
    for row in range(len(shared.rows)):
        left, right = text.left[row].words, text.right[row].columns
        for word, tag in zip(right["form"], right["upos"], strict=True):
            tags.setdefault(word, Counter())[tag] += 1
        counts.update((left[a], right["form"][b]) for a, b in text.links.of_pair(row))
    usable = {
        pair: n
        for pair, n in counts.items()
        if 2 * sum(k for tag, k in tags[pair[1]].items() if tag in OPEN) > sum(tags[pair[1]].values())
    }
    pool = sorted(usable.values(), reverse=True)[:120]
    pairs = list(zip(chosen.left, chosen.right, strict=True))
    assert len(set(chosen.right)) == len(set(chosen.left)) == 12 < len(usable) < len(counts)
    assert all(usable[pair] >= pool[-1] for pair in pairs)
    assert [counts[pair] for pair in pairs] == sorted((counts[pair] for pair in pairs), reverse=True)
    again, other = choose(shared, 12, seed=1), choose(shared, 12, seed=2)
    assert again.right == chosen.right and np.array_equal(again.links, chosen.links) and other.right != chosen.right
    read = replace(given, pretrained=run, text=shared.aligned("run"))
    with read.reading():
        vectors = chosen_vectors(read, chosen, (2, 2))
    run.model.eval()
    sentence = text.links.sentence[chosen.links]
    for i, row in enumerate(sentence.tolist()):
        for side, corpus, reader, word in (
            (0, text.left, run.target, int(text.links.left[chosen.links[i]])),
            (1, text.right, run.source, int(text.links.right[chosen.links[i]])),
        ):
            assert corpus[row].words[word] == pairs[i][side]
            plain = plain_states(run.model, reader, corpus[row].words, 2, "last")[word]
            torch.testing.assert_close(vectors[side][i], plain.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("values", "message"), [
    ({"before": ["a/run", "b/run"]}, "have the name 'run'"),
    ({"dimensions": [0]}, "different numbers of at least 1"),
    ({"layer": 9}, "no layer 9"),
    ({"before": {"bert": "OLD"}}, r"set distances\.name"),
    ({"before": {"old": "NONE"}}, r"distances.before.old: .*no such folder"),
    ({"before": {"old": "HERE"}}, r"distances.before.old: .*holds no model"),
    ({"before": {"old": "NAN"}}, r"old: word vectors of layer 2 contain NaN"),
    ({"before": {"old": "SHORT"}, "dev": 1}, "no aligned word can be read by all"),
    ({"dev": 1}, r"increase data\.dev"),
])  # fmt: skip
def test_what_is_refused(bert, tmp_path, values, message):
    def place(name):
        path = tmp_path / name.lower()
        if name in ("OLD", "SHORT", "NAN"):
            save_model(path, max_position_embeddings=3 if name == "SHORT" else 40)
        if name == "NAN":
            weights = load_file(path / "model.safetensors")
            weights["bert.encoder.layer.1.output.dense.bias"][0] = float("nan")
            save_file(weights, path / "model.safetensors", metadata={"format": "pt"})
        return str(tmp_path if name == "HERE" else path)

    before = values.get("before", {})
    if isinstance(before, dict):
        values = {**values, "before": {name: place(model) for name, model in before.items()}}
    with pytest.raises(InputError, match=message):
        probe(bert, settings(tmp_path, **values))


def test_two_models_of_other_widths_or_depths(bert, tmp_path):
    assert settings(before=["x/one", "two"]).distances.before == {"one": "x/one", "two": "two"}
    for size, message in ((8, "model2: has the hidden size 32"), (16, "list layers that both models have")):
        shape: dict[str, Any] = {"hidden_size": 32} if size == 8 else {"num_hidden_layers": 5}
        other = open_pretrained(str(save_model(tmp_path / message, seed=1, **shape)), "other", True)
        with pytest.raises(InputError, match=message):
            probe(replace(bert, target_model=other.model, target=replace(other.target)), settings(tmp_path))
    # of a model before they are compared at the layer that is drawn
    _, found = probe(
        bert, settings(tmp_path, before=[str(tmp_path / "list layers that both models have")], pairs=4, name="bert")
    )
    assert list(found.values["models"]) == ["list layers that both models have", "bert"]
    assert [(c["layer"], c["distance"]) for c in found.values["changes"]["list layers that both models have"]] == [
        (3, "l2"), (3, "cosine"),
    ]  # fmt: skip
    assert any("layers 5 and 3" in note for note in found.notes)
    assert "." not in found.values["pictures"]["bert"]["right_words"]
