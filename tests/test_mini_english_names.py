"""Items whose dev and test sets have words that training does not have; frequencies of a large lexicon."""

from __future__ import annotations

import numpy as np
import pytest

from synthlang.sources import open_source
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.slots import slot_sentences
from synthlang.sources.mini_english.source import MAX_WORDS_NAMED, named_sentences
from synthlang.tasks import open_task
from tests.refusals import refused


@pytest.mark.parametrize("seed", [0, 1])
def test_words_held_out_are_in_no_training_item_and_in_every_test_item(seed):
    source = MiniEnglish(types=500, seed=seed)
    held_out = source.world.held_out
    assert 20 < len(held_out) < 60
    for split in ("train", "dev", "test"):
        sentences = list(named_sentences(source, split, 60))
        sentences += [utterance.sentence for utterance in slot_sentences(source, split, 60)]
        named = [held_out.isdisjoint(s.words) for s in sentences[60:]]
        named += [
            held_out.isdisjoint(w for w, t in zip(s.words, s.columns["ner"], strict=True) if t != "O")
            for s in sentences[:60]
        ]
        assert set(named) == {split == "train"}


def test_sentences_with_names_are_short_and_each_has_one():
    for s in named_sentences(MiniEnglish(), "dev", 100):
        assert len(s.words) <= MAX_WORDS_NAMED and any(tag.startswith("B-") for tag in s.columns["ner"])


def test_the_task_has_the_columns_of_the_corpus():
    task = open_task("ner:builtin:mini-english?types=500&sentences=30&dev=0")
    assert task.splits == ("train", "test") and task.columns == MiniEnglish().columns and task.labels == ()
    [batch] = task.batches("train")
    assert len(batch) == 30 and batch.label is None and batch.ids == tuple(map(str, range(30)))


def test_zipf_makes_rare_words_more_frequent_and_its_usual_value_changes_nothing():
    def rare(zipf: str) -> float:
        source = open_source(f"builtin:mini-english?types=1000&sentences=800&zipf={zipf}")
        assert isinstance(source, MiniEnglish)
        counts = dict.fromkeys(source.lexicon.tags, 0)
        for batch in source.batches("train"):
            names = batch.form.names or ()
            for name, n in zip(names, np.bincount(batch.form.codes, minlength=len(names)).tolist(), strict=True):
                counts[name] += n
        return float(np.mean([n < 2 for n in counts.values()]))

    assert rare("0") < rare("0.5") < rare("1") - 0.03
    usual, plain = open_source("builtin:mini-english?zipf=1.0"), open_source("builtin:mini-english")
    assert usual.fingerprint == plain.fingerprint != open_source("builtin:mini-english?zipf=0.9").fingerprint


@pytest.mark.parametrize("value", ["-1", "3", "1e-1", "x", ""])
def test_a_wrong_zipf_is_an_error(value):
    assert "zipf" in refused(open_source, f"builtin:mini-english?zipf={value}")[0]
