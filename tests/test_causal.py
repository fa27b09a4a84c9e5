"""Rows of decoders against loops over tokens, runs with the term clm, and their exports in other programs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.build import dev_batches, new_model, train_batches
from pretrain.config import ModelConfig, ObjectiveConfig, PretrainConfig, SharingConfig
from pretrain.config.objective import _check_names
from pretrain.data.batch import IGNORE, Rows
from pretrain.data.causal import CausalMasker
from pretrain.data.masking import random_word_tables
from pretrain.data.sources import ParallelRows, SentenceRows, StreamRows
from pretrain.folder import read_metrics
from pretrain.memory import needed
from pretrain.model.gpt2 import CausalLM
from pretrain.model.losses import BLOCK
from pretrain.model.text import Text
from pretrain.objectives.dict import Translated
from pretrain.objectives.table import NAMES, TERMS
from pretrain.objectives.term import Term
from pretrain.prepare import prepare
from pretrain.run import Trainer, pretrain
from pretrain.unread import RULES, check_read
from probes.models.names import ModelLimits, limits_of_model, limits_of_run
from probes.models.opening import open_pretrained
from probes.transfer.config import FeaturesConfig, TransferConfig, check_decoder
from probes.transfer.features import Features
from probes.transfer.result import seed_record
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks.base import Batch
from synthlang.config import StrictModel, parse
from synthlang.dictionary.ids import Synonyms
from synthlang.errors import InputError
from synthlang.store import Store
from synthlang.vocabularies import OURS
from tests.data_cases import parallel_of, random_sentences, shards_of
from tests.masking_cases import SIZE, WORDS, copies, masker_of, monolingual, source_of
from tests.refusals import refused
from tests.runs import assert_same_run, run_anew
from tests.tiny import PRETRAIN, TRANSFER, changed

LENGTH = 32
LEFT = random_sentences(60, 11, seed=1, shortest=1)
RIGHT = random_sentences(60, 11, seed=2, low=100, shortest=1)
CLM: dict[str, Any] = {
    **PRETRAIN,
    "model": {**PRETRAIN["model"], "kind": "gpt2"},
    "objective": {"kind": "align_clm"},
    "batch": {"rows": 8, "length": 64, "packing": "sentence"},
    "validation": {"every": 3, "rows": 64},
}


def config_of(**values) -> PretrainConfig:
    return parse(PretrainConfig, changed(CLM, **values))


def masker(length=LENGTH, relabels=None, rate=0.15) -> CausalMasker:
    tables = random_word_tables(WORDS, "same-language")
    return CausalMasker(OURS, SIZE, rate, length, tables, 1, NAMES, relabels or {})


def sources():
    left = shards_of(LEFT)
    pairs = parallel_of(LEFT, RIGHT)
    yield "stream", StreamRows(left, 0, LENGTH, OURS, "x", causal=True)
    yield "sentences", SentenceRows(left, 0, LENGTH, OURS, "x", causal=True)
    yield "sentence", SentenceRows(left, 0, LENGTH, OURS, "x", alone=True, causal=True)
    for alone in (False, True):
        for turned in (False, True):
            rows = ParallelRows(pairs, 1.0, LENGTH, OURS, 0, "x", alone=alone, causal=True, turned=turned)
            yield f"pairs {alone} {turned}", rows


@pytest.mark.parametrize(("name", "source"), list(sources()))
def test_labels_are_the_next_tokens_by_a_loop(name, source):
    """A token is followed by the next one of its sentence, or of its row where sentences go on."""
    rows = source.read(np.arange(source.rows))
    batch = masker().mask(rows, source, np.arange(source.rows))
    assert (batch.masked == np.arange(LENGTH)).all() and np.array_equal(batch.input_ids, rows.ids)
    count = 0
    for row in range(source.rows):
        for column in range(LENGTH):
            label = IGNORE
            if column + 1 < LENGTH and (rows.valid is None or rows.valid[row, column + 1]):
                same = rows.sentences is None or rows.sentences[row, column] == rows.sentences[row, column + 1]
                half = "pairs" in name and column + 1 == LENGTH // 2
                if same and not half:
                    label = int(rows.ids[row, column + 1])
            assert batch.labels[row, column] == label, (row, column)
            count += label != IGNORE
    assert not (batch.labels == OURS.bos).any() and (batch.labels == OURS.eos).any()
    assert set(batch.terms.ravel().tolist()) == {NAMES.index("tlm" if "pairs" in name else "clm")}
    if name == "sentence":  # each token of the text and each </s> is predicted once
        assert count == sum(len(s) + 1 for s in LEFT)
        assert sorted(batch.labels[batch.labels != IGNORE].tolist()) == sorted(
            [t for s in LEFT for t in [*s, OURS.eos]]
        )


def test_pairs_come_in_both_orders():
    pairs = parallel_of(LEFT, RIGHT)
    one, other = (
        ParallelRows(pairs, 0.5, LENGTH, OURS, 0, "x", causal=True, turned=turned) for turned in (False, True)
    )
    assert one.languages == (0, 1) and other.languages == (1, 0)
    assert [span[2] for span in other.spans] == [1, 0]

    def halves(source):
        ids = source.read(np.arange(source.rows)).ids
        return [sorted(half[half > OURS.mask].tolist()) for half in (ids[:, : LENGTH // 2], ids[:, LENGTH // 2 :])]

    assert halves(one) == halves(other)[::-1]  # the same pairs are drawn


@pytest.mark.parametrize("language_ids", [False, True])
def test_a_dictionary_switches_the_input_and_not_the_labels(language_ids):
    dictionary = copies(0.5)
    relabel = Translated(Synonyms.of(dictionary, 2, SIZE), 0.6, "switched", language_ids)
    rows = monolingual(200, length=LENGTH)
    source: Any = source_of("clm")
    object.__setattr__(source, "causal", True)
    batch, plain = (masker(relabels=r).mask(rows, source, np.arange(200)) for r in ({"dict": relabel}, {}))
    assert np.array_equal(batch.labels, plain.labels)
    known = dict(dictionary.pairs.tolist())
    changed_here = batch.input_ids != rows.ids
    for row, column in zip(*np.nonzero(changed_here), strict=True):
        assert batch.input_ids[row, column] == known[int(rows.ids[row, column])]
    words = np.isin(rows.ids, list(known))
    assert 0.55 < changed_here.sum() / words.sum() < 0.65
    assert np.array_equal(batch.terms == NAMES.index("dict"), changed_here)
    assert np.array_equal(batch.languages, changed_here.astype(int))


def test_masked_rows_predict_a_word_one_position_earlier():
    rows = monolingual(50, length=LENGTH)
    plain = masker_of(length=LENGTH).mask(rows, source_of(), np.arange(50))
    batch = masker().mask(rows, source_of(), np.arange(50))
    assert np.array_equal(batch.input_ids, plain.input_ids)
    expected = np.full(rows.ids.shape, IGNORE)
    np.put_along_axis(expected, plain.masked - 1, plain.labels, axis=1)
    assert np.array_equal(batch.labels, expected) and batch.targets == plain.targets
    assert set(batch.terms[batch.labels != IGNORE].tolist()) == {NAMES.index("mlm")}


def test_a_row_with_few_words_has_no_label_from_its_other_end():
    ids = np.full((3, LENGTH), OURS.pad)
    ids[:, 0], ids[:, 1], ids[:, 2] = OURS.bos, 7, OURS.eos
    valid = np.zeros(ids.shape, bool)
    valid[:, :3] = True
    batch = masker(rate=0.5).mask(Rows(ids, np.zeros_like(ids), valid=valid), source_of(), np.arange(3))
    assert batch.labels[:, 0].tolist() == [7] * 3 and batch.targets == 3


KINDS = {
    "clm": {"clm": 1.0},
    "align_clm": {"clm": 1.0, "align": 10.0},
    "tlm_clm": {"clm": 1.0, "tlm": 1.0},
    "dict_clm": {"clm": 1.0, "dict": 1.0},
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_terms_of_each_kind(kind):
    objective = ObjectiveConfig(kind=kind)
    assert objective.is_causal and objective.terms == KINDS[kind]
    assert "mask_rate" not in objective.identity()
    assert objective.labelled(40) == 40


def test_a_decoder_switches_words_only():
    assert refused(config_of, objective__kind="dict_clm") == ("objective.dict_target", "conflict")


UNREAD: dict[str, Any] = {
    "model.output": {"model__output": "linear", "model__feed_forward": 64},
    "objective.mask_rate": {"objective__mask_rate": 0.3},
    "objective.random_words": {"objective__random_words": "source-only"},
    "validation.mask_rate": {"validation__mask_rate": 0.15},
}


@pytest.mark.parametrize("key", UNREAD)
def test_a_key_without_effect_on_a_decoder_is_refused_before_any_work(key, tmp_path):
    assert {".".join(key) for key in RULES} == UNREAD.keys()
    config = config_of(**UNREAD[key])
    assert refused(pretrain, config, tmp_path / "run") == (key, "no_effect")
    assert not (tmp_path / "run" / "data").exists()
    encoder = {"model__kind": "roberta", "objective__kind": "mlm"}
    check_read(config_of(**encoder | UNREAD[key]))
    check_read(config_of())


def test_a_decoder_with_masked_rows_reads_the_rate_of_masks_in_training_only():
    both = {"kind": "sum", "weights": {"clm": 1.0, "mlm": 1.0}, "mask_rate": 0.3, "random_words": "source-only"}
    check_read(config_of(objective=both))
    config = config_of(objective=both, validation__mask_rate=0.3)
    assert refused(check_read, config) == ("validation.mask_rate", "no_effect")


def test_the_error_names_the_kind_of_the_objective():
    with pytest.raises(InputError, match="the kind align_clm reads the weight of the term align from"):
        config_of(objective__weights={"align": 2.0})


def test_two_terms_cannot_have_one_kind(monkeypatch):
    class Twice(Term[StrictModel]):
        name, causal_kind = "twice", "align_clm"

    monkeypatch.setattr("pretrain.config.objective.TERMS", (*TERMS, Twice()))
    monkeypatch.setattr("synthlang.plugins.parts", lambda *_: {"plugins": {"twice": "my-package 1.0"}})
    assert refused(_check_names) == ("plugin twice of my-package 1.0", "duplicate")


def test_the_least_memory_of_a_decoder_has_some_of_its_logits():
    """Gradients of logits are computed for a block of positions at a time."""
    config = config_of(batch={"rows": 512, "length": 64, "packing": "stream"})
    ids, micro = 50_000, 512 * 64
    layers = micro * (config.model.layers - 1) * (4 * config.model.hidden + config.model.feed_forward) * 4
    assert needed(config, 1, ids)[1] == layers + BLOCK["cpu"] * 4 < micro * ids * 4
    assert needed(config, 1, 100)[1] == layers + micro * 100 * 4


def test_a_new_key_is_in_no_earlier_fingerprint():
    plain = parse(PretrainConfig, PRETRAIN)
    same = parse(PretrainConfig, changed(PRETRAIN, model__kind="roberta"))
    assert plain.fingerprint({}) == same.fingerprint({}) != config_of().fingerprint({})


@pytest.mark.parametrize("packing", ["stream", "sentences", "sentence"])
def test_rows_of_all_terms_and_both_objectives(packing, tmp_path):
    """Masked rows and rows read from left to right have equal shares, and pairs come in both orders."""
    weights = {"clm": 1.0, "mlm": 1.0, "tlm": 1.0, "dict": 1.0, "align": 5.0}
    objective = {"kind": "sum", "weights": weights, "dict_target": "switched"}
    config = config_of(objective=objective, batch__packing=packing, batch__rows=32)
    artifacts = prepare(config, Store(tmp_path))
    batches = train_batches(config, artifacts)
    kinds = [(source.term, source.causal, source.languages) for source in batches.sources]
    assert kinds == [
        ("mlm", False, (0,)), ("mlm", False, (1,)), ("clm", True, (0,)), ("clm", True, (1,)),
        ("tlm", True, (0, 1)), ("tlm", True, (1, 0)),
    ]  # fmt: skip
    batch = batches.batch(0)
    sizes = {(g.causal, g.spans): g.stop - g.start for g in batch.groups}
    assert len({sizes[causal, ((0, 64, m),)] for causal in (False, True) for m in (0, 1)}) <= 2  # one row more or less
    assert {NAMES[term] for term in np.unique(batch.terms[batch.labels != IGNORE])} == {"clm", "mlm", "tlm", "dict"}
    dev = dev_batches(config, artifacts, 1).batch(0)
    assert {NAMES[term] for term in np.unique(dev.terms)} == {"clm"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("causal")
    pretrain(config_of(), folder / "run", Store(folder / "store"))
    return folder


def test_the_log_has_the_perplexity_of_each_language_by_transformers(finished, tmp_path):
    """Of the dev sentences that fit into a row, with the exported models."""
    config = config_of()
    row = read_metrics(finished / "run" / "metrics.jsonl")[-1]
    assert row["loss"] == pytest.approx(row["clm"] + 10 * row["align"], rel=1e-3)  # steps differ in tokens
    artifacts = prepare(config, Store(finished / "store"))
    for language in artifacts.languages:
        folder = finished / "run" / "export" / language.name
        model = AutoModelForCausalLM.from_pretrained(folder).eval()
        nats, tokens, dev = 0.0, 0, language.dev
        assert dev is not None
        for start, stop in zip(dev.offsets[:-1], dev.offsets[1:], strict=True):
            if 0 < stop - start <= 62:
                ids = torch.tensor([[0, *dev.tokens[start:stop].tolist(), 2]])
                with torch.no_grad():
                    nats += float(model(ids, labels=ids).loss) * (ids.shape[1] - 1)
                tokens += ids.shape[1] - 1
        assert row[f"validation/{language.name}"] == pytest.approx(math.exp(nats / tokens), rel=1e-4)


def test_an_export_loads_and_generates_without_this_project(finished, tmp_path):
    code = """
import sys, torch
from transformers import AutoModelForCausalLM, AutoTokenizer
for folder in sys.argv[1:]:
    model, info = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    tokenizer = AutoTokenizer.from_pretrained(folder)
    prompt = tokenizer("тхе" if "trans" in folder else "the", return_tensors="pt")
    assert prompt["input_ids"][0, 0] == tokenizer.bos_token_id and prompt["input_ids"][0, -1] != tokenizer.eos_token_id
    made = model.generate(**prompt, do_sample=False, max_new_tokens=5)
    step = prompt["input_ids"]
    for _ in range(made.shape[1] - step.shape[1]):  # greedy by hand, without a cache
        step = torch.cat([step, model(step).logits[:, -1:].argmax(-1)], 1)
    assert torch.equal(step, made), (step, made)
    print(type(model).__name__, tokenizer.decode(made[0])[:3])
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
"""
    folders = [finished / "run" / "export" / name for name in ("parent", "trans+inv")]
    assert run_anew(code, *folders, folder=tmp_path).split() == ["GPT2LMHeadModel", "<s>"] * 2
    card = (folders[0] / "README.md").read_text()
    assert "pipeline_tag: text-generation" in card and "A causal language model" in card


@pytest.mark.parametrize("at", [1, 4])
def test_a_stopped_run_ends_as_an_uninterrupted_one(finished, tmp_path, monkeypatch, at):
    train = Trainer.is_due

    class Killed(BaseException):
        pass

    def dies(self, every):
        if self.step == at and every == self.policy.every:
            raise Killed
        return train(self, every)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "is_due", dies)
        with pytest.raises(Killed):
            pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert_same_run(finished / "run", tmp_path / "run")


def gpt2_folder(place: Path) -> Path:
    """Write a small model with the tokenizer of GPT-2: bytes, and one special token for all roles."""
    text = [
        f"the {a} {b} a {c} ." for a in ("old", "new", "big") for b in ("cat", "dog", "house") for c in ("tree", "man")
    ]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder, tokenizer.post_processor = decoders.ByteLevel(), processors.ByteLevel(trim_offsets=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=300, special_tokens=["<|endoftext|>"], initial_alphabet=alphabet)
    tokenizer.train_from_iterator(text * 5, trainer)
    end = dict.fromkeys(("bos_token", "eos_token", "unk_token"), "<|endoftext|>")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **end).save_pretrained(place / "gpt2")
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 24}
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), bos_token_id=0, eos_token_id=0, **sizes)
    GPT2LMHeadModel(config).save_pretrained(place / "gpt2")
    (place / "en").mkdir()
    for split, times in (("train", 20), ("dev", 3)):
        (place / "en" / f"{split}.txt").write_text("\n".join(text * times), encoding="utf-8")
    return place


def test_a_run_starts_from_a_gpt2_and_exports_its_tokenizer(tmp_path):
    place = gpt2_folder(tmp_path)
    settings: dict[str, Any] = {
        "languages": [{"name": "en", "source": f"lines:{place / 'en'}"}],
        "start": {"model": str(place / "gpt2")},
        "objective": {"kind": "clm"},
        "steps": 4,
        "batch": {"rows": 8, "length": 24, "packing": "sentence"},
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 1},
        "validation": {"every": 2, "rows": 8},
        "checkpoints": {"every": 2},
    }
    config = parse(PretrainConfig, settings)
    artifacts = prepare(config, Store(tmp_path / "store"))
    ids = torch.tensor([[0, 9, 70, 80, 0]])
    theirs = AutoModelForCausalLM.from_pretrained(place / "gpt2").eval()
    ours = new_model(config, artifacts).eval()
    torch.testing.assert_close(
        ours.read(Text.of(ids, 0))[0], theirs.transformer(ids).last_hidden_state, rtol=1e-5, atol=1e-5
    )
    pretrain(config, tmp_path / "run", Store(tmp_path / "store"))
    export = tmp_path / "run" / "export" / "en"
    before, after = (AutoTokenizer.from_pretrained(folder) for folder in (place / "gpt2", export))
    assert before(" the old cat") == after("the old cat")  # a word is read as after a space
    exported = AutoModelForCausalLM.from_pretrained(export)
    assert not torch.equal(exported.transformer.wte.weight, theirs.transformer.wte.weight)
    assert json.loads((export / "config.json").read_text())["eos_token_id"] == 0
    wrong = parse(PretrainConfig, {**settings, "objective": {"kind": "mlm"}})
    assert refused(prepare, wrong, Store(tmp_path / "store")) == ("objective", "conflict")
    both = {"kind": "sum", "weights": {"clm": 1.0, "mlm": 1.0}}  # masks would look like ends of texts
    masked = parse(PretrainConfig, {**settings, "objective": both})
    assert refused(prepare, masked, Store(tmp_path / "store")) == ("objective.weights", "conflict")


@pytest.mark.parametrize("settings", [{"subword": "last"}, {"subword": "mean"}, {"layers": [0, 2]}, {"top_layers": 1}])
def test_a_head_reads_words_at_their_last_subword_and_rows_at_their_last_token(settings):
    shape = ModelConfig(kind="gpt2", layers=2, heads=2, hidden=12, feed_forward=20, dropout=0.0, init_std=0.3)
    body = CausalLM(shape, SharingConfig(), (np.arange(30),), 30, 8, 1, False, 0).eval()
    ids = torch.tensor([[0, 7, 8, 9, 10, 11, 12, 2], [0, 20, 21, 22, 2, 1, 1, 1]])
    words = torch.tensor([[[1, 1], [2, 4], [5, 6]], [[1, 2], [3, 3], [0, 0]]])
    config = FeaturesConfig(**{"subword": "last", **settings})
    features = Features({"source": body, "target": body}, config).eval()
    valid = ids != 1
    text = Text.of(ids, 0, valid)
    each = body.read(text, layers=range(3))
    states = torch.stack([each[layer] for layer in config.layers]).mean(0)
    for layer in features.top:
        states = layer(states, valid[:, None], None)
    last = [7, 4]
    found = features(Batch(text, None, valid, {}, "source", np.arange(2)))
    mask = torch.ones(2, 3, dtype=torch.bool)
    of_words = features(Batch(text, words, mask, {}, "source", np.arange(2)))
    for row, column in enumerate(last):
        torch.testing.assert_close(found[row, 0], states[row, column])
        torch.testing.assert_close(found[row, 1 : column + 1], states[row, 1 : column + 1])
        torch.testing.assert_close(of_words[row, 0], states[row, column])
        for place, (start, stop) in enumerate(words[row].tolist()[: 3 - row], 1):
            mean = states[row, start : stop + 1].mean(0)
            torch.testing.assert_close(of_words[row, place], mean if config.subword == "mean" else states[row, stop])


def test_a_decoder_is_opened_probed_and_fine_tuned(finished):
    """As a run and by one of its exports. Words are read at their last subword, and the first is refused."""
    opened = open_pretrained(str(finished / "run"), None)
    export = open_pretrained(str(finished / "run" / "export" / "trans+inv"), "trans+inv")
    ids = torch.tensor([[0, 310, 320, 330]])
    theirs = AutoModelForCausalLM.from_pretrained(finished / "run" / "export" / "trans+inv").eval()
    for model, language in ((opened.model.eval(), 1), (export.model.eval(), 0)):
        torch.testing.assert_close(model.logits(Text.of(ids, language)), theirs(ids).logits, rtol=1e-5, atol=1e-5)
    settings = parse(TransferConfig, {**TRANSFER, "task": "pos", "features": {"subword": "last"}})
    data = load_data(settings, opened)
    record = seed_record(Transfer(opened, data, settings).run(0), "accuracy")
    assert 0 < record["sup"] <= 100 and record["zs"] is not None
    first = parse(TransferConfig, {**TRANSFER, "task": "pos"})
    assert refused(Transfer, opened, data, first) == ("features.subword", "conflict")


def test_what_a_decoder_cannot_do_is_refused_before_any_work(finished, tmp_path):
    """By the settings of its run in a study, and by its files."""
    export = finished / "run" / "export" / "parent"
    assert limits_of_run(config_of()) == limits_of_model(str(export)) == ModelLimits(1, 64, causal=True)
    words, texts = (parse(TransferConfig, {**TRANSFER, "task": task}) for task in ("ner", "nli"))
    assert refused(check_decoder, words, True) == ("features.subword", "conflict")
    check_decoder(texts, True)
    check_decoder(words, False)
    pair = {"kind": "text", "left": "a", "right": "b", "links": {"kind": "file", "path": "c"}}
    config = parse(AdjustConfig, {"model": str(export), "pairs": {"x": pair}})
    assert refused(adjust, config, tmp_path / "out") == ("model", "unsupported")
