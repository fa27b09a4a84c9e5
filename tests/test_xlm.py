"""XLM's checkpoints: the weights as ours, the tokenizer made of its files, the languages by their numbers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from transformers import XLMConfig, XLMWithLMHeadModel
from transformers.models.xlm.tokenization_xlm import XLMTokenizer, lowercase_and_remove_accent

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.hub import load_model, open_base
from pretrain.model.from_hf import check_start
from pretrain.model.text import Text
from probes.models.opening import body_of, open_pretrained
from probes.transfer.config import TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from synthlang.vocabularies.checkpoint import read_checkpoint
from tests.refusals import refused

LANG2ID = {"bg": 0, "en": 2, "de": 1}
WORDS = "the small cat sees a big dog . katze hund klein sieht"
SPECIALS = ["<s>", "</s>", "<pad>", "<unk>", *(f"<special{i}>" for i in range(10))]
MERGES = [("t", "h"), ("th", "e</w>"), ("c", "a"), ("ca", "t</w>"), ("d", "o"), ("do", "g</w>"), ("k", "l"), ("s", "e")]


def save_xlm(folder: Path, **changes: object) -> Path:
    """A tiny random XLM with its files; "kl" is a merge without a token."""
    letters = sorted(set("abcdefghijklmnopqrstuvwxyz."))
    tokens = [
        *SPECIALS,
        *letters,
        *(f"{x}</w>" for x in letters),
        *("".join(pair) for pair in MERGES if pair[1] != "l"),
    ]
    settings = {"vocab_size": len(tokens), "emb_dim": 16, "n_layers": 3, "n_heads": 2, "n_langs": 3, **changes}
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = XLMConfig(max_position_embeddings=40, embed_init_std=0.5, init_std=0.3, lang2id=LANG2ID, **settings)
        XLMWithLMHeadModel(config).save_pretrained(folder)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    (folder / "merges.txt").write_text("".join(f"{a} {b} 7\n" for a, b in MERGES))
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return save_xlm(tmp_path_factory.mktemp("xlm"))


def test_words_are_cut_as_by_transformers_own_tokenizer(folder):
    """Words are compared by the BPE of transformers alone, word by word, since Moses is not needed."""
    checkpoint = read_checkpoint(str(folder))
    encoder = json.loads((folder / "vocab.json").read_text())
    merges = [pair for pair in MERGES if pair[1] != "l"]  # what XLM's own would make of "kl" is unknown
    theirs = SimpleNamespace(cache={}, bpe_ranks={pair: i for i, pair in enumerate(merges)})
    for word in (*WORDS.split(), "Thé", "CAT", "ß", "x"):
        plain = " ".join(lowercase_and_remove_accent([word]))
        pieces = XLMTokenizer.bpe(theirs, plain).split()
        found = checkpoint.tokenizer.encode(word, add_special_tokens=False).ids
        assert found == [encoder.get(piece, 3) for piece in pieces], word
    assert vars(checkpoint.specials) == {"bos": 1, "eos": 1, "pad": 2, "unk": 3, "mask": 5}


@pytest.mark.parametrize("word", ["İstanbul", "Ärger", "й", "ΕΛΛΆΣ", "Σ.", "हिन्दी", "ภาษาไทย", "العَرَبِيَّة", "어머니"])
def test_words_of_every_language_lose_the_accents_that_transformers_takes(folder, word):
    normalizer = read_checkpoint(str(folder)).tokenizer.normalizer
    assert [normalizer.normalize_str(word)] == lowercase_and_remove_accent([word])


@pytest.mark.parametrize("language", [0, 1, 2])
def test_every_layer_and_score_is_that_of_transformers(folder, language):
    base = open_base(str(folder))
    theirs, ours = load_model(base).eval(), body_of(base, base.checkpoints.values()).eval()
    ids = torch.from_numpy(np.random.default_rng(0).integers(14, 60, (3, 9)))
    ids[:, 0], ids[:, 6], ids[1, 7:] = 1, 1, 2
    valid = ids != 2
    with torch.no_grad():
        expected = theirs(ids, attention_mask=valid, langs=torch.full_like(ids, language), output_hidden_states=True)
        found = ours.read(Text.of(ids, language, valid), layers=range(4))
        for mine, states in zip(found, expected.hidden_states, strict=True):
            torch.testing.assert_close(mine[valid], states[valid], rtol=1e-5, atol=1e-5)
        scores = ours.head(found[-1]) @ ours.embeddings.words.T + ours.embeddings.bias
    torch.testing.assert_close(scores[valid], expected.logits[valid], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(found[0], ours.read(Text.of(ids, (language + 1) % 3, valid), layers=(0,))[0])


def items(path: Path, words: list[str], number: int) -> str:
    lines = (
        f"{words[i % 3]} {words[-1 - i % 3]}\t{words[i % 2]}\t{('entailment', 'neutral')[i % 2]}\n"
        for i in range(number)
    )
    path.write_text("premise\thypothesis\tlabel\n" + "".join(lines))
    return str(path)


def test_it_is_fine_tuned_in_english_and_tested_in_a_language_that_it_numbers(folder, tmp_path):
    words = WORDS.split()
    train, dev, test, other = (
        items(tmp_path / f"{name}.tsv", some, n)
        for name, some, n in (("a", words, 12), ("b", words[1:], 6), ("c", words[2:], 6), ("d", words[8:], 6))
    )
    data = {"task": "nli", "train": train, "dev": dev, "test": test, "target": {"test": other}, "length": 20}
    config = parse(TransferConfig, {**data, "fine_tune": {"epochs": 1, "rows": 4}})
    pretrained = open_pretrained(str(folder), "de", natural=True)
    assert (pretrained.source.number, pretrained.target.number) == (2, 1)
    assert pretrained.reader_of("bg", natural=True).number == 0
    transfer = Transfer(pretrained, load_data(config, pretrained), config)
    examples = transfer.examples("target test")
    text = examples.batch(np.arange(len(examples))).text
    assert text.spans[0][2] == 1 and text.input_ids[:, 0].eq(1).all()
    assert 0 <= (transfer.run(0).scores["zs"]["accuracy"] or 0) <= 100
    assert refused(open_pretrained, str(folder), "fr", natural=True) == ("language", "unknown")


@pytest.mark.parametrize(
    ("changes", "place", "code"),
    [
        ({"gelu_activation": False}, "changed", "unsupported"),
        ({"lang2id": {"en": 0}}, "config.json lang2id", "conflict"),
    ],
)
def test_what_cannot_be_read_is_said(folder, tmp_path, changes, place, code):
    shutil.copytree(folder, tmp_path / "changed")
    config = tmp_path / "changed" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text()) | changes))
    assert refused(open_pretrained, str(tmp_path / "changed"), "en", natural=True) == (place, code)


def test_it_is_neither_adjusted_nor_pretrained_further(folder, tmp_path):
    pair = {"kind": "text", "left": "a", "right": "b", "links": {"kind": "file", "path": "c"}}
    assert refused(adjust, parse(AdjustConfig, {"model": str(folder), "pairs": {"de-en": pair}}), tmp_path / "run") == (
        "model",
        "unsupported",
    )
    assert refused(check_start, str(folder), 20, []) == ("start.model", "unsupported")


def test_a_dev_set_that_two_languages_share_counts_once(folder, tmp_path):
    """One list of all languages does for each of them (Cao et al. 2020, section 3.5)."""
    words = WORDS.split()
    files = {
        name: items(tmp_path / f"{name}.tsv", words[i:], 6 + i) for i, name in enumerate(("train", "en", "de", "bg"))
    }
    files["test"] = items(tmp_path / "test.tsv", words[1:4], 5)

    def chosen_by(language: str) -> tuple[str, ...]:
        data = {"task": "nli", "train": files["train"], "dev": files["en"], "test": files["test"], "chosen_by": "mean"}
        also = [{"language": name, "dev": files[name]} for name in ("de", "bg")]
        target = {"dev": files[language], "test": files["test"]}
        config = parse(TransferConfig, {**data, "length": 20, "target": target, "dev_also": also})
        pretrained = open_pretrained(str(folder), language, natural=True)
        return Transfer(pretrained, load_data(config, pretrained), config).chosen_by("source")

    assert chosen_by("de") == ("source dev", "target dev", "dev bg")
    assert chosen_by("en") == ("source dev", "dev de", "dev bg")
