"""Probe distances: which word pairs are drawn, settings, and what is refused."""

import importlib.util
from collections import Counter
from dataclasses import replace
from io import StringIO
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from rich.console import Console
from safetensors.torch import load_file, save_file

from probes.measures.distances import DistancesConfig
from probes.measures.distances.pictures import OPEN, choose, chosen_vectors
from probes.measures.distances.text import PairReaders, shared_text
from probes.measures.probe_input import ProbeInput
from probes.transfer.model import open_pretrained
from synthlang.errors import InputError
from tests.adjust_models import save_model
from tests.aligned_runs import plain_states, random_run
from tests.test_measure_distances import probe, settings


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return random_run(tmp_path_factory.mktemp("run"))


@pytest.fixture
def bert(tmp_path):
    return open_pretrained(str(save_model(tmp_path / "bert")), "other", True)


def test_pictures_show_frequent_open_class_words_at_one_of_their_places(run):
    given = ProbeInput(run, settings(dev=40))
    shared = shared_text(given, {"run": PairReaders.of(run)})
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


def test_a_word_without_a_letter_is_in_no_picture(bert, tmp_path):
    given = ProbeInput(bert, settings(tmp_path))
    shared = shared_text(given, {"bert": PairReaders.of(bert)})
    chosen = choose(shared, 40, seed=0)
    assert "." not in chosen.right and len(chosen.right) > 2


@pytest.mark.skipif(importlib.util.find_spec("sklearn") is None, reason="scikit-learn is not installed")
def test_tsne(run):
    _, found = probe(run, settings(picture="tsne", pairs=6, dimensions=[]))
    (held,) = found.values["pictures"].values()
    assert held["method"] == "tsne" and len(held["left"]) == 6


def test_tsne_without_its_library_is_said_first(run, monkeypatch):
    monkeypatch.setattr("probes.measures.distances.probe.find_spec", lambda _: None)
    with pytest.raises(InputError, match="synthlang\\[probe\\]"):
        probe(run, settings(picture="tsne"))


def test_layers_are_those_of_the_config(run):
    config = settings(layer=-2, picture="none").model_copy(update={"layers": (-1, 1)})
    _, found = probe(run, config)
    (held,) = found.values["models"].values()
    assert held["layer"] == 1 and [one["layer"] for one in held["layers"]] == [1, 1, 2, 2]
    assert [one["layer"] for one in held["dimensions"]] == [1, 1, 2, 2]
    assert any("fewer dimensions" in note for note in found.notes)
    with pytest.raises(InputError, match="layer 0 is not among"):
        probe(run, settings(layer=0).model_copy(update={"layers": (1,)}))
    with pytest.raises(InputError, match="no layer 9"):
        probe(run, settings(layer=9))


def test_models_of_other_depths_are_compared_at_the_drawn_layer(bert, tmp_path):
    deep = save_model(tmp_path / "deep", seed=2, num_hidden_layers=5, hidden_size=32)
    _, found = probe(bert, settings(tmp_path, before=[str(deep)], pairs=4))
    assert list(found.values["models"]) == ["deep", "bert"]
    assert [(c["layer"], c["distance"]) for c in found.values["changes"]["deep"]] == [(3, "l2"), (3, "cosine")]
    assert any("layers 5 and 3" in note for note in found.notes)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"before": ["a/run", "b/run"]}, "one name"),
        ({"dimensions": [0]}, "from 1 on"),
        ({"dimensions": [2, 2]}, "each once"),
        ({"pairs": 1}, "greater than"),
        ({"picture": "umap"}, "pca"),
        ({"unknown": 1}, "Extra"),
    ],
)
def test_settings_that_are_refused(values, message):
    with pytest.raises(ValidationError, match=message):
        DistancesConfig.model_validate(values)


def test_a_list_of_models_takes_their_folders_names():
    assert DistancesConfig.model_validate({"before": ["x/one", "two"]}).before == {"one": "x/one", "two": "two"}


def test_models_that_are_refused(bert, run, tmp_path):
    save_model(tmp_path / "old")
    for model, message in (
        (str(tmp_path / "none"), r"distances.before.old: .*no such folder"),
        (str(tmp_path), r"distances.before.old: .*holds no model"),
    ):
        with pytest.raises(InputError, match=message):
            probe(bert, settings(tmp_path, before={"old": model}))
    with pytest.raises(InputError, match=r"set distances\.name"):
        probe(bert, settings(tmp_path, before={"bert": str(tmp_path / "old")}))


def test_a_model_with_nan_is_named(bert, tmp_path):
    path = save_model(tmp_path / "old") / "model.safetensors"
    weights = load_file(path)
    weights["bert.encoder.layer.1.output.dense.bias"][0] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(InputError, match=r"old: word vectors of layer 2 .*NaN"):
        probe(bert, settings(tmp_path, before={"old": str(tmp_path / "old")}))


def test_two_models_of_other_widths_or_depths(tmp_path):
    first = str(save_model(tmp_path / "first"))
    for size, number, message in (("hidden_size", 32, "no distance"), ("num_hidden_layers", 2, "as many of each")):
        shape: dict[str, Any] = {size: number}
        other = save_model(tmp_path / message, seed=1, **shape)
        with pytest.raises(InputError, match=message):
            probe(open_pretrained(first, "other", True, str(other)), settings(tmp_path))


def test_one_sentence(bert, tmp_path):
    with pytest.raises(InputError, match="at least two"):
        probe(bert, settings(tmp_path, dev=1))


def test_words_that_a_model_reads_nothing_of(bert, tmp_path):
    short = save_model(tmp_path / "short", max_position_embeddings=3)
    with pytest.raises(InputError, match="no linked word that all"):
        probe(bert, settings(tmp_path, before={"short": str(short)}, dev=1))


def test_the_table_of_dimensions_fits_a_terminal(run):
    """However many counts are asked for: no cell is cut at 80 columns."""
    _, found = probe(run, settings(dev=20, dimensions=[1, 2, 3, 4, 5, 6, 7, 8]))
    table = next(table for table in found.tables if "largest dimensions" in str(table.title))
    written = StringIO()
    Console(width=80, file=written).print(table)
    shown = written.getvalue()
    assert "…" not in shown and max(map(len, shown.splitlines())) <= 80
    tops = found.values["models"][found.values["model"]]["dimensions"][-1]["tops"]
    assert [len(column._cells) for column in table.columns] == [2 * len(tops)] * 7 and len(tops) == 8
    assert all(f"{top['auc_without']['mean']:.3f}" in shown for top in tops)
