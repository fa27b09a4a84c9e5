"""Scores of tokens against brute force, transformers and minicons; bounded memory; sentences without scores."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoModelForCausalLM, GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

from pretrain.config import ModelConfig, PretrainConfig, SharingConfig
from pretrain.model.roberta import MaskedLM
from pretrain.model.text import Text
from pretrain.run import pretrain
from probes import scoring
from probes.models.opening import open_pretrained
from probes.models.pretrained import Reader
from probes.scoring import score, sums
from probes.states import reading
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.language import PARENT
from synthlang.sources import open_source
from synthlang.vocabularies import OURS, LanguageTokenizer
from synthlang.vocabulary import train_vocabulary
from tests.refusals import refused
from tests.tiny import PRETRAIN, changed

SHAPE = ModelConfig(layers=2, heads=2, hidden=16, feed_forward=32, dropout=0.1, init_std=0.3)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scored") / "run"
    pretrain(parse(PretrainConfig, changed(PRETRAIN, steps=3)), folder)
    return folder


@pytest.fixture(scope="module")
def corpus():
    whole = next(open_source("builtin:mini-english?types=500&test=30").batches("test"))
    return whole.take(np.flatnonzero(whole.lengths <= 9)[:6].astype(np.int64))


def reader_of(corpus, number=0):
    vocabulary = train_vocabulary([corpus], 290)
    tokenizer = LanguageTokenizer("x", vocabulary.parent, np.arange(vocabulary.size))
    return Reader(PARENT, tokenizer, number, OURS, "source")


def model_of(reader, **sharing):
    ids = [reader.tokenizer.ids, np.unique(np.append(np.arange(5), reader.tokenizer.ids[::2]))]
    return MaskedLM(SHAPE, parse(SharingConfig, sharing), ids, int(ids[0][-1]) + 1, 40, OURS.pad, False, seed=0)


def masked_row(ids, at, stop):
    """<s>, the sentence with the tokens from ``at`` to ``stop`` masked, </s>."""
    inside = [OURS.mask if at <= n < stop else int(token) for n, token in enumerate(ids)]
    return torch.tensor([[OURS.bos, *inside, OURS.eos]])


def brute_force(logits, scored, masking):
    """Token by token, one row at a time. ``logits`` maps a row of ids to logits [1, w, V]."""
    found, bounds, words = [], scored.bounds, scored.encoded.word_offsets
    for start, stop in pairwise(bounds):
        ids = scored.encoded.ids[start:stop]
        for at, token in enumerate(ids):
            end = at + 1
            if masking == "within-word":
                end = next(int(word) for word in words if word > start + at) - int(start)
            row = logits(masked_row(ids, at, end))[0, at + 1].log_softmax(-1)
            found.append(float(row[token]))
    return found


@pytest.mark.parametrize("masking", ["within-word", "token"])
@pytest.mark.parametrize("language", ["parent", "trans+inv"])
def test_pseudo_log_likelihood_is_that_of_the_exported_model(run, corpus, masking, language):
    from transformers import AutoModelForMaskedLM

    opened = open_pretrained(str(run), None)
    reader = opened.source if language == "parent" else opened.target
    text = reader.language.derive(corpus)
    with reading([opened.model]):
        scored = score(opened.model, reader, text, masking)
    exported = AutoModelForMaskedLM.from_pretrained(run / "export" / language).eval()
    with torch.no_grad():
        expected = brute_force(lambda row: exported(input_ids=row).logits, scored, masking)
    np.testing.assert_allclose(scored.tokens, expected, atol=1e-4)
    assert (np.diff(scored.encoded.word_offsets) > 1).any()  # or both kinds of masking would be one


def test_the_two_kinds_of_masking_differ_in_words_of_several_tokens_alone(corpus):
    reader = reader_of(corpus)
    model = model_of(reader)
    with reading([model]):
        within, token = (score(model, reader, corpus, masking) for masking in ("within-word", "token"))
    last = within.encoded.word_offsets[1:] - 1  # nothing follows the last token of a word
    np.testing.assert_allclose(within.tokens[last], token.tokens[last], atol=1e-5)
    others = np.setdiff1d(np.arange(len(within.tokens)), last)
    assert len(others) and not np.isclose(within.tokens[others], token.tokens[others], rtol=0, atol=1e-5).any()


@pytest.mark.parametrize("sharing", [{}, {"softmax": "language"}, {"embeddings": "separate"}])
def test_the_softmax_is_that_of_the_language(corpus, sharing):
    reader = reader_of(corpus)
    model = model_of(reader, **sharing)
    own = torch.arange(model.embeddings.size)  # the first language has all ids
    words, bias = model.embeddings.words[: len(own)], model.embeddings.bias[: len(own)]
    with reading([model]):
        scored = score(model, reader, corpus, "token")
        expected = brute_force(
            lambda row: model.head(model.read(Text.of(row, 0))[0]) @ words.t() + bias, scored, "token"
        )
    np.testing.assert_allclose(scored.tokens, expected, atol=1e-5)


def test_a_language_with_its_own_softmax_shares_the_probability_among_its_ids(corpus):
    reader = reader_of(corpus)
    model = model_of(reader, softmax="language")
    ids = model.embeddings.ids(1)
    states = torch.randn(3, SHAPE.hidden)
    labels = torch.stack([ids] * 3, dim=1)
    with torch.no_grad():
        losses = torch.stack([model.eval().token_losses(states, own, 1) for own in labels])
    torch.testing.assert_close((-losses).exp().sum(0), torch.ones(3))


def test_chunks_of_logits_change_nothing(corpus, monkeypatch):
    reader = reader_of(corpus)
    model = model_of(reader)
    with reading([model]):
        whole = score(model, reader, corpus).tokens
        monkeypatch.setattr(scoring, "LOGITS", 7 * model.embeddings.size)
        sizes: list[int] = []
        losses = model.token_losses

        def counted(states, labels, language):
            sizes.append(len(states))
            return losses(states, labels, language)

        monkeypatch.setattr(model, "token_losses", counted)
        parts = score(model, reader, corpus).tokens
    np.testing.assert_allclose(parts, whole, atol=1e-5)
    assert max(sizes) == 7 and sum(sizes) == len(whole)


def test_long_sentences_have_no_score_and_the_order_of_sentences_does_not_matter(corpus):
    reader = reader_of(corpus)
    model = model_of(reader)
    fits = (model.embeddings.length - 2) // len(reader.encode(Corpus.of_words([["a"]])).ids)
    long = Corpus.of_words([["a"] * fits, ["a"] * (fits + 1), [*corpus[0].words]])
    with reading([model]):
        found, alone = score(model, reader, long), score(model, reader, corpus)
        backwards = score(model, reader, corpus.take(np.arange(len(corpus))[::-1].copy()))
    assert found.too_long.tolist() == np.isnan(found.sentences).tolist() == [False, True, False]
    np.testing.assert_allclose(found.sentences[2], alone.sentences[0], atol=1e-5)
    np.testing.assert_allclose(backwards.sentences[::-1], alone.sentences, atol=1e-5)
    part = alone.take(np.asarray([4, 1]))
    np.testing.assert_array_equal(part.sentences, alone.sentences[[4, 1]])
    assert part.corpus.texts() == [corpus.texts()[4], corpus.texts()[1]]
    np.testing.assert_allclose([part.words[: len(corpus[4].words)].sum()], alone.sentences[[4]])


def test_sums_of_parts():
    assert sums(np.asarray([1.0, 2.0, 4.0]), np.asarray([0, 2, 2, 3])).tolist() == [3.0, 0.0, 4.0]


def test_a_text_of_unknown_tokens_is_refused(corpus):
    reader = reader_of(corpus)
    unknown = Corpus.of_words([["<unk>"] * 5])
    assert refused(score, model_of(reader), reader, unknown, "token", name="xx") == ("xx", "empty")


# --- decoders


@pytest.fixture(scope="module")
def decoder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decoder") / "run"
    settings = changed(PRETRAIN, steps=3, model__kind="gpt2", objective={"kind": "clm"})
    pretrain(parse(PretrainConfig, {**settings, "dictionary": {}}), folder)
    return folder


@pytest.fixture(scope="module")
def gpt2(tmp_path_factory, corpus):
    """A folder of somebody else: GPT-2 with one special token."""
    folder = tmp_path_factory.mktemp("gpt2")
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    end = "<|endoftext|>"
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=[end], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    tokenizer.train_from_iterator(corpus.texts(), trainer)
    names = {"bos_token": end, "eos_token": end, "unk_token": end}
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": 40, "initializer_range": 0.3}
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=tokenizer.get_vocab_size(), bos_token_id=0, eos_token_id=0, **shape)
    GPT2LMHeadModel(config).save_pretrained(folder)
    return folder


def next_tokens(folder, scored, bos):
    """Log probability of every token after <s> and the tokens before it, one sentence at a time, by transformers."""
    model, found = AutoModelForCausalLM.from_pretrained(folder).eval(), []
    for start, stop in pairwise(scored.bounds):
        row = [bos, *scored.encoded.ids[start:stop].tolist()]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([row])).logits[0].log_softmax(-1)
        found += [float(logits[at, token]) for at, token in enumerate(row[1:])]
    return found


@pytest.mark.parametrize("language", ["parent", "trans+inv"])
def test_a_decoder_has_the_log_probabilities_of_the_exported_model(decoder, corpus, language):
    opened = open_pretrained(str(decoder), None)
    reader = opened.source if language == "parent" else opened.target
    with reading([opened.model]):
        scored = score(opened.model, reader, reader.language.derive(corpus))
        same = score(opened.model, reader, reader.language.derive(corpus), "token")
    assert opened.model.causal
    expected = next_tokens(decoder / "export" / language, scored, OURS.bos)
    np.testing.assert_allclose(scored.tokens, expected, atol=1e-4)
    np.testing.assert_array_equal(scored.tokens, same.tokens)  # nothing is masked


def test_a_decoder_of_the_hub(gpt2, corpus):
    opened = open_pretrained(str(gpt2), "parent")
    with reading([opened.model]):
        scored = score(opened.model, opened.source, corpus)
    np.testing.assert_allclose(scored.tokens, next_tokens(gpt2, scored, 0), atol=1e-4)
    text = " " + " ".join(corpus[0].words)  # a word is encoded as it is after a space
    tokenizer = PreTrainedTokenizerFast.from_pretrained(gpt2)
    start, stop = scored.bounds[:2]
    assert tokenizer(text, add_special_tokens=False)["input_ids"] == scored.encoded.ids[start:stop].tolist()


def test_a_decoder_reads_one_token_more_than_an_encoder(decoder):
    opened = open_pretrained(str(decoder), None)
    pieces = len(opened.source.encode(Corpus.of_words([["a"]])).ids)
    fits = (opened.model.embeddings.length - 1) // pieces
    with reading([opened.model]):
        found = score(opened.model, opened.source, Corpus.of_words([["a"] * fits, ["a"] * (fits + 1)]))
    assert found.too_long.tolist() == [False, True] and fits * pieces == opened.model.embeddings.length - 1


def test_minicons_agrees_on_decoders(gpt2, corpus):
    minicons = pytest.importorskip("minicons.scorer")
    theirs = minicons.IncrementalLMScorer(str(gpt2), "cpu")
    if not hasattr(theirs.tokenizer, "batch_encode_plus"):  # removed from transformers 5
        theirs.tokenizer.batch_encode_plus = theirs.tokenizer.__call__
    opened = open_pretrained(str(gpt2), "parent")
    with reading([opened.model]):
        scored = score(opened.model, opened.source, corpus)
    texts = [f" {text}" for text in corpus.texts()]
    expected = theirs.sequence_score(texts, reduction=lambda x: x.sum().item(), bos_token=True)
    np.testing.assert_allclose(scored.sentences, expected, atol=1e-4)


@pytest.mark.parametrize(("masking", "metric"), [("token", "original"), ("within-word", "within_word_l2r")])
def test_minicons_agrees(run, corpus, masking, metric):
    minicons = pytest.importorskip("minicons.scorer")
    theirs = minicons.MaskedLMScorer(str(run / "export" / "parent"), "cpu")
    if not hasattr(theirs.tokenizer, "batch_encode_plus"):  # removed from transformers 5
        theirs.tokenizer.batch_encode_plus = theirs.tokenizer.__call__
    opened = open_pretrained(str(run), None)
    with reading([opened.model]):
        scored = score(opened.model, opened.source, corpus, masking)
    expected = theirs.sequence_score(corpus.texts(), reduction=lambda x: x.sum().item(), PLL_metric=metric)
    np.testing.assert_allclose(scored.sentences, expected, atol=1e-4)
