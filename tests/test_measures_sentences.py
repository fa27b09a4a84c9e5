"""The probe ``sentences``: perplexities with a closed form, units of the source spelling, texts and refusals."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch

from pretrain.run import pretrain
from probes.measures.probe_command import probe_command, read_probe_config
from probes.models.opening import open_pretrained
from probes.results.measures import probe_values, range_of
from synthlang.corpus import Corpus
from synthlang.sources import open_source
from tests.refusals import refused
from tests.scored_runs import probed, small_run, unigram
from tests.test_natural import config_of, folder  # noqa: F401  a fixture
from tests.tiny import PRETRAIN

LINES = ["the old dog saw her .", "dogs run !", "Ünder the table , she slept ."]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return small_run(tmp_path_factory.mktemp("sentences") / "run")


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "mine.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return f"lines:{path}"


@pytest.fixture(scope="module")
def opened(run):
    return open_pretrained(str(run), None)


@pytest.mark.parametrize("masking", ["within-word", "token"])
def test_perplexities_of_a_model_without_context_have_a_closed_form(run, opened, text, masking):
    weights = 1.0 + np.random.default_rng(0).random(opened.model.embeddings.size)
    opened = unigram(run, weights)
    found = probed(opened, "sentences", sentences={"text": text, "masking": masking}).values
    source = Corpus.of_words([line.split() for line in LINES])
    words, octets = sum(len(line.split()) for line in LINES), sum(len(line.encode()) for line in LINES)
    for role, reader in (("source", opened.source), ("target", opened.target)):
        derived = source if role == "source" else reader.language.derive(source)
        ids = reader.encode(derived).ids
        nats = -float(np.log(weights[ids] / weights.sum()).sum())
        of = found["languages"][role]
        expected = {"token": nats / len(ids), "word": nats / words, "byte": nats / octets}
        assert {unit: math.log(of["perplexity"][unit]["mean"]) for unit in expected} == pytest.approx(
            expected, rel=1e-5
        )
        assert of["bits_per_byte"]["mean"] == pytest.approx(nats / octets / math.log(2), rel=1e-5)
        assert of["log_probability"]["mean"] == pytest.approx(-nats / 3, rel=1e-5)
        assert (of["sentences"], of["tokens"], of["words"], of["bytes"]) == (3, len(ids), words, octets)
        for measure in (*of["perplexity"].values(), of["bits_per_byte"], of["log_probability"]):
            assert measure["low"] <= measure["mean"] <= measure["high"]
    # letters of the derived script have two bytes each, but bytes are those of the source spelling
    assert octets < len(" ".join(opened.target.language.derive(source).texts()).encode())


def test_a_better_model_has_a_lower_perplexity(run, opened, text):
    ids = opened.source.encode(Corpus.of_words([line.split() for line in LINES])).ids
    flat = np.ones(opened.model.embeddings.size)
    known = flat + 50.0 * np.bincount(ids, minlength=len(flat))
    settings = {"sentences": {"text": text}}
    bits = [
        probed(unigram(run, weights), "sentences", **settings).values["languages"]["source"]["bits_per_byte"]["mean"]
        for weights in (flat, known)
    ]
    assert bits[1] < 0.75 * bits[0]


def test_words_and_sentences_are_sums_of_tokens(opened, text):
    found = probed(opened, "sentences", sentences={"text": text})
    rows = found.files["sentences.parquet"].to_pylist()
    assert [row["language"] for row in rows] == ["parent"] * 3 + ["trans+inv"] * 3
    assert [row["source"] for row in rows] == LINES * 2 and [row["sentence"] for row in rows] == [0, 1, 2] * 2
    for row in rows:
        tokens, at = row["token_log_probabilities"], 0
        for total, count in zip(row["word_log_probabilities"], row["tokens_of_words"], strict=True):
            assert total == pytest.approx(sum(tokens[at : at + count]))
            at += count
        assert at == len(tokens) == len(row["token_ids"]) and len(row["words"]) == len(row["tokens_of_words"])
        assert row["log_probability"] == pytest.approx(sum(tokens))


def test_the_text_is_the_dev_split_of_the_pretraining_text(opened):
    result = probed(opened, "sentences", sentences={"most": 7})
    found = result.values
    assert found["split"] == {"source": "dev", "target": "dev"}
    left_out = sum(count for reason, count in found["counts"].items() if reason.startswith("parent: "))
    assert found["languages"]["source"]["sentences"] == 7 - left_out > 0
    dev = next(open_source(PRETRAIN["source"]).batches("dev")).between(0, 7).texts()
    rows = result.files["sentences.parquet"].to_pylist()
    assert {row["source"] for row in rows} <= {*dev}
    train = probed(opened, "sentences", sentences={"most": 7, "split": "train"})
    assert train.values["split"]["source"] == "train" and "was trained on" in train.notes[0]


def test_only_a_text_of_the_pretraining_is_one_that_the_model_was_trained_on(run, opened, text):
    settings = {"most": 7, "split": "train"}
    both = probed(opened, "sentences", sentences=settings).notes
    own = probed(opened, "sentences", sentences={**settings, "other": text}).notes
    unseen = probed(open_pretrained(str(run), "inv"), "sentences", sentences=settings).notes
    assert len(both) == 2 and list(own) == list(unseen) == both[:1]


@pytest.mark.parametrize("name", ["no-hop", "word-hop", "full-reverse"])
def test_the_affected_sentences_of_a_first_language_with_transforms(name, tmp_path):
    """The text is in the language, its sentences are those that a loop over features finds, and the mean is a loop."""
    alone = {"language": None, "languages": [{"language": f"impossible/{name}"}], "objective__kind": "mlm"}
    opened = open_pretrained(str(small_run(tmp_path / "run", dictionary={}, **alone)), name)
    result = probed(opened, "sentences", sentences={"affected": True})
    rows = result.files["sentences.parquet"].to_pylist()
    dev = next(open_source(f"{PRETRAIN['source']}&feats&lemma").batches("dev"))
    derived = opened.source.language.derive(dev)
    whole = dict(zip(derived.ids.tolist(), (text.split() for text in derived.texts()), strict=True))
    verbs = ("Person=3", "Tense=Pres", "VerbForm=Fin")
    feats, sentence = dev.columns["feats"].values(), dev.sentence_of_word.tolist()
    found = {row for row, of in zip(sentence, feats, strict=True) if all(verb in of for verb in verbs)}
    affected = sorted(found) if "hop" in name else range(len(dev))
    scored = probed(opened, "sentences", sentences={}).files["sentences.parquet"].to_pylist()
    short = {row["sentence"] for row in scored}  # the others are left out or too long
    assert short <= set(whole)
    kept = [row for row in affected if row in short]
    assert [row["sentence"] for row in rows] == kept and len(kept) > 0
    assert (len(kept) < len(short)) == ("hop" in name)
    assert all(row["words"] == whole[row["sentence"]] for row in rows)
    losses = [-row["log_probability"] / len(row["token_ids"]) for row in rows]
    of = result.values["languages"]["source"]
    assert set(result.values["languages"]) == {"source"} and of["sentences"] == len(rows)
    measure = of["perplexity"]["sentence"]
    assert math.log(measure["mean"]) == pytest.approx(np.mean(losses)) and measure["low"] < measure["mean"]


def test_a_language_without_flags_has_no_affected_sentences(run, opened, text):
    settings = {"sentences": {"text": text, "affected": True}}
    assert refused(probed, opened, "sentences", **settings) == ("sentences.affected", "unsupported")
    own = probed(open_pretrained(str(run), "parent"), "sentences", **settings).values["languages"]
    assert own["source"]["sentences"] == len(LINES)


def test_long_sentences_are_left_out_and_counted(opened, tmp_path):
    (tmp_path / "x.txt").write_text("she ran .\n" + "a " * 60 + "\n", encoding="utf-8")
    settings = {"sentences": {"text": f"lines:{tmp_path / 'x.txt'}"}}
    found = probed(opened, "sentences", **settings).values
    assert found["languages"]["source"]["sentences"] == found["languages"]["target"]["sentences"] == 1
    assert [n for reason, n in found["counts"].items() if "more tokens" in reason] == [1, 1]
    (tmp_path / "x.txt").write_text("a " * 60 + "\n", encoding="utf-8")
    assert refused(probed, opened, "sentences", **settings) == ("sentences", "empty")


def test_a_model_that_diverged_is_refused(run, text):
    opened = open_pretrained(str(run), "parent")
    with torch.no_grad():
        opened.model.embeddings.words[:] = torch.nan
    assert refused(probed, opened, "sentences", sentences={"text": text}) == ("sentences", "damaged")


def test_the_source_language_alone(run, text):
    found = probed(open_pretrained(str(run), "parent"), "sentences", sentences={"text": text}).values
    assert list(found["languages"]) == ["source"] and list(found["model"].values()) == ["masked"]


def test_a_natural_language_reads_its_own_text(folder, tmp_path):  # noqa: F811
    pretrain(config_of(folder), tmp_path / "run")
    config = read_probe_config(None, {"probes": ["sentences"]}, ["sentences.most=9"])
    place = probe_command(str(tmp_path / "run"), config, tmp_path / "out")
    rows = pq.read_table(place / "sentences.parquet").to_pylist()
    for name in ("en", "fr"):
        dev = (folder / name / "dev.txt").read_text().splitlines()
        assert [row["source"] for row in rows if row["language"] == name] == dev[:9]


@pytest.mark.parametrize(
    ("settings", "known", "place", "code"),
    [
        ({}, False, "sentences.text", "missing"),
        ({"text": "lines:none.txt"}, True, "none.txt sentences.text", "missing"),
        ({"text": "nothing:x"}, True, "sentences.text", "unknown"),
        ({"other": "lines:none.txt"}, True, "none.txt sentences.other", "missing"),
        ({"text": "{text}", "split": "dev"}, True, "mine.txt sentences.split", "missing"),
    ],
)
def test_texts_that_are_refused(opened, text, settings, known, place, code):
    opened = opened if known else replace(opened, text=None)
    settings = {key: value.format(text=text) for key, value in settings.items()}
    found = refused(probed, opened, "sentences", sentences=settings)
    assert found == (place, code)


def test_a_language_that_needs_trees_is_refused_before_anything_is_scored(run, text):
    opened = open_pretrained(str(run), "typology@SOV")
    assert refused(probed, opened, "sentences", sentences={"text": text})[1] == "missing"


def test_the_command_writes_the_page_the_tables_and_the_measures(run, text, tmp_path, painted):
    settings = [f"sentences.text={text}", "sentences.most=2"]
    config = read_probe_config(None, {"probes": ["sentences"]}, settings)
    place = probe_command(str(run), config, tmp_path / "out")
    page = (place / "probes.html").read_text()
    assert "<h2>Scores of sentences</h2>" in page and "bits per byte of the source spelling" in page
    assert pq.read_table(place / "sentences.parquet").num_rows == 4
    values = {value.name: value for value in probe_values(json.loads((place / "probes.json").read_text()))}
    assert {"sentences.languages.source.perplexity.word.mean", "sentences.languages.target.bits_per_byte.mean"} <= {
        *values
    }
    assert range_of("sentences.languages.target.perplexity.byte.mean") == (1.0, math.inf)
    assert all(
        low <= value.value <= high for value in values.values() for low, high in [value.measure.within or (-1e9, 0)]
    )
