"""Natural languages from text files: vocabularies, parallel text, a dictionary of translations, sampling, sharing."""

import random
from typing import Any

import numpy as np
import pytest
import torch

from pretrain.build import dev_batches, new_model, train_batches
from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.model.tensors import TensorBatch
from pretrain.prepare import prepare
from pretrain.run import pretrain
from pretrain.validation import Validation
from pretrain.word_pairs import word_pairs
from synthlang.config import parse
from synthlang.store import Store
from tests.refusals import refused

WORDS = [f"{a}{b}{c}" for a in "bdfgk" for b in "aeiou" for c in "lmnrs"]
OTHER = {word: word[::-1].replace("a", "u") + "et" for word in WORDS}
SIZES = {"en": 400, "fr": 100}
PARALLEL = "HERE"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Two languages that translate word by word; more text in one, parallel text, a MUSE dictionary of a half."""
    place, numbers = tmp_path_factory.mktemp("natural"), random.Random(0)
    sentences = [[numbers.choice(WORDS) for _ in range(numbers.randint(3, 9))] + ["."] for _ in range(600)]
    other = [[OTHER.get(word, word) for word in sentence] for sentence in sentences]
    for name, text in (("en", sentences), ("fr", other)):
        (place / name).mkdir()
        train, dev = text[: SIZES[name]], text[400:440]
        for split, part in (("train", train), ("dev", dev)):
            (place / name / f"{split}.txt").write_text("\n".join(" ".join(s) for s in part))
        (place / f"{name}-pairs").mkdir()
        (place / f"{name}-pairs" / "train.txt").write_text("\n".join(" ".join(s) for s in text[440:]))
    (place / "dictionary.txt").write_text("".join(f"{w} {OTHER[w]}\n" for w in WORDS[::2]))
    return place


def config_of(folder, **values):
    languages = [{"name": name, "source": f"lines:{folder / name}"} for name in ("en", "fr")]
    settings = {
        "languages": languages,
        "steps": 4,
        "vocabulary": {"kind": "joint", "size": 900, "min_frequency": 1},
        "model": {"layers": 2, "heads": 2, "hidden": 16, "feed_forward": 32},
        "batch": {"rows": 8, "length": 32},
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 1},
        "validation": {"every": 4, "rows": 8},
        "log_every": 2,
        "checkpoints": {"every": 2},
    }
    if "parallel" in values:
        sources = [f"lines:{folder / name}-pairs" for name in ("en", "fr")]
        values["parallel"] = [{"languages": ["en", "fr"], "sources": sources}]
    if values.get("dictionary", {}).get("path"):
        values["dictionary"] = values["dictionary"] | {"path": str(folder / "dictionary.txt")}
    return parse(PretrainConfig, settings | values)


DICTIONARY = {"path": "HERE", "coverage": 1.0}
CASES: dict[str, dict[str, Any]] = {
    "default anchors": {"vocabulary": {"kind": "joined", "size": 380, "min_frequency": 1}},
    "no anchors": {"vocabulary": {"kind": "prefixed", "size": 380, "min_frequency": 1}},
    "all": {
        "objective": {"kind": "sum", "weights": {"mlm": 1.0, "tlm": 1.0, "dict": 1.0, "align": 5.0}},
        "parallel": PARALLEL,
        "dictionary": DICTIONARY,
        "batch": {"rows": 8, "length": 32, "packing": "sentences"},
    },
    "sep emb, align": {
        "sharing": {"embeddings": "separate"},
        "objective": {"kind": "align_mlm"},
        "dictionary": DICTIONARY,
    },
}


@pytest.mark.parametrize("name", CASES)
def test_it_trains(name, folder, tmp_path):
    config = config_of(folder, **CASES[name])
    pretrain(config, tmp_path / "run", Store(tmp_path / "store"))
    (*_, last) = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert {"loss", "validation/en", "validation/fr", *config.objective.terms} <= last.keys()
    assert ("alignment/fr" in last) == (name in ("all", "sep emb, align"))
    assert {p.name for p in (tmp_path / "run" / "export").iterdir()} == {"en", "fr"}


def test_alignment_is_measured_where_no_term_reads_the_dictionary(folder, tmp_path):
    """Under plain MLM the words of the file are known pairs, none of them trained on; all and held out differ."""
    spec = {"path": "HERE", "coverage": 0.5}
    pretrain(config_of(folder, dictionary=spec), tmp_path / "mlm", Store(tmp_path / "store"))
    align = config_of(folder, dictionary=spec, objective={"kind": "align_mlm"})
    pretrain(align, tmp_path / "align", Store(tmp_path / "store"))
    keys = [set(read_metrics(tmp_path / name / "metrics.jsonl")[-1]) for name in ("mlm", "align")]
    assert "alignment/fr" in keys[0] and "alignment_held_out/fr" not in keys[0]
    assert {"alignment/fr", "alignment_held_out/fr"} <= keys[1]
    artifacts = prepare(align, Store(tmp_path / "store"))
    pairs = word_pairs(artifacts, 1)
    assert pairs is not None and artifacts.dictionary is not None
    assert 0 < pairs.in_dictionary.sum() < len(pairs.pairs)
    trained = artifacts.dictionary.pairs  # further pairs of their words count as trained on, too
    assert pairs.in_dictionary.sum() >= len(trained)
    assert set(map(tuple, trained.tolist())) <= set(map(tuple, pairs.pairs[pairs.in_dictionary].tolist()))


def test_perplexity_is_over_all_rows(folder, tmp_path):
    """The rows of validation are no multiple of those of a batch; the same number by one batch of them all."""
    values = {"validation": {"every": 4, "rows": 11}, "batch": {"rows": 8, "length": 24}}
    config = config_of(folder, **values)
    artifacts = prepare(config, Store(tmp_path))
    model = new_model(config, artifacts).eval()
    batch = dev_batches(config, artifacts, 1).samples(np.arange(11, dtype=np.int64))
    losses = model(TensorBatch.of(batch, torch.device("cpu")))
    expected = float(torch.exp(losses.sum() / batch.targets))
    assert Validation(config, artifacts).measure(model)["validation/fr"] == pytest.approx(expected, rel=1e-5)


def test_languages_are_sampled_by_numbers(folder, tmp_path):
    """Three rows of four of English, whatever the texts have; or three steps of four."""
    languages = {}
    for kind in ("mixed", "one-language"):
        config = config_of(folder, sampling={"shares": {"fr": 0.5, "en": 1.5}, "batches": kind})
        batches = train_batches(config, prepare(config, Store(tmp_path)))
        languages[kind] = np.stack([batches.batch(step).languages[:, 0] for step in range(200)])
    assert (languages["mixed"] == 0).sum(1).tolist() == [6] * 200
    steps = languages["one-language"]
    assert (steps == steps[:, :1]).all() and 130 < (steps[:, 0] == 0).sum() < 170


@pytest.mark.parametrize(
    ("values", "place", "code"),
    [
        ({"vocabulary": {"size": 300}}, "vocabulary.kind", "conflict"),
        (
            {"dictionary": {"coverage": 1.0, "path": "NONE"}, "objective": {"kind": "align_mlm"}},
            "dictionary",
            "empty",
        ),
        ({"batch": {"rows": 8, "length": 4096}}, "language en", "range"),
        (
            {"objective": {"kind": "xlm"}, "parallel": PARALLEL, "batch": {"rows": 8, "length": 8}},
            "languages en+fr",
            "empty",
        ),
        (
            {"languages": ["train.txt"], "checkpoints": {"every": 2, "select": "best"}},
            "checkpoints.select",
            "missing",
        ),
    ],
)
def test_bad_input(values, place, code, folder, tmp_path):
    values = dict(values)
    if "languages" in values:
        values["languages"] = [{"name": "en", "source": f"lines:{folder}/en/train.txt"}]
    config = config_of(folder, **values)
    if values.get("dictionary"):  # of unknown words
        (tmp_path / "d.txt").write_text("xxxxxxxxxx yyyyyyyyyy\n")
        dictionary = config.dictionary.model_copy(update={"path": str(tmp_path / "d.txt")})
        config = config.model_copy(update={"dictionary": dictionary})
    found = refused(pretrain, config, tmp_path / "run", Store(tmp_path / "store"))
    assert found == (place, code or found[1])  # no code: the error is that of another module


def test_parallel_files_of_different_lengths(folder, tmp_path):
    (tmp_path / "short.txt").write_text("bal .\n")
    config = config_of(folder, objective={"kind": "xlm"}, parallel=PARALLEL)
    pair = config.parallel[0].model_copy(
        update={"sources": (config.parallel[0].sources[0], f"lines:{tmp_path / 'short.txt'}")}
    )
    assert refused(prepare, config.model_copy(update={"parallel": (pair,)}), Store(tmp_path / "store")) == (
        "parallel.0.sources",
        "conflict",
    )
