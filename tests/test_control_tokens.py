"""A text that spells ``<mask>`` or ``<pad>`` has no masks and no padding: such words are unknown and counted."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pretrain.config import PretrainConfig
from pretrain.prepare import prepare
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.derive_command import derive_command
from synthlang.files import write_json
from synthlang.scripts import CONTROL_WORDS, SCRIPTS
from synthlang.store import Store
from synthlang.vocabularies.build import prefixed
from synthlang.vocabulary import CONTROL, UNK, encode_corpus, train_vocabulary
from tests.refusals import refusal, refused
from tests.tiny import PRETRAIN, changed

CONTROL_LINE = "<s> </s> <mask> <pad> <unk>"
LINES = ["the cat sat on the mat .", "a dog saw the cat .", CONTROL_LINE, "the <unk> sat ."] * 40
REVERSED = {"name": "ti", "transforms": [{"kind": "transliterate"}, {"kind": "invert"}]}
TOKENS = {"name": "tokens", "transforms": [{"kind": "invert", "unit": "token"}]}


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for split, lines in (("train", LINES), ("valid", LINES[:8])):
        (folder / f"{split}.txt").write_text("\n".join(lines) + "\n")
    return folder


def config_of(text, **values):
    values = {"source": f"text:{text}", "language": REVERSED, "objective": {"kind": "mlm"}, **values}
    return parse(PretrainConfig, changed(PRETRAIN, **values))


@pytest.mark.parametrize("kind", ["copied", "joint", "joined", "prefixed", "of tokens"])
def test_shards_have_no_control_token(text, kind, tmp_path):
    values = {"language": TOKENS} if kind == "of tokens" else {"vocabulary__kind": kind}
    artifacts = prepare(config_of(text, **values), Store(tmp_path))
    for member in artifacts.languages:
        for shards, repeats in ((member.train, 40), (member.dev, 2)):
            assert shards is not None
            assert not np.isin(shards.tokens, CONTROL).any()
            assert shards.reasons[CONTROL_WORDS] == 4 * repeats
            assert shards.counts[UNK] == 6 * repeats
    if kind == "copied":
        parent, derived = (member.train.counts for member in artifacts.languages)
        assert parent[UNK] == derived[UNK] and np.array_equal(parent[5:], derived[artifacts.id_space.copies + 5 :])


def test_shards_of_an_earlier_version_are_refused(text, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("synthlang.vocabulary.Encoded.as_text", lambda self, control, unknown: self)
        assert refused(prepare, config_of(text), Store(tmp_path))[1] == "format"
    assert refusal(prepare, config_of(text), Store(tmp_path)).hint == "delete the folder and run the command again"


@pytest.mark.parametrize("language", ["trans+inv", "trans:0.5", TOKENS])
def test_the_ids_of_a_data_set_have_no_control_token(text, language, tmp_path):
    import pyarrow.parquet as pq

    if isinstance(language, dict):
        write_json(tmp_path / "language.yaml", language)
        language = str(tmp_path / "language.yaml")
    derive_command(f"text:{text}", language, tmp_path / "d", vocabulary="400")
    manifest = json.loads((tmp_path / "d" / "manifest.json").read_text())
    assert manifest["counts"]["train"][CONTROL_WORDS] == 160 and manifest["counts"]["validation"][CONTROL_WORDS] == 8
    for config in ("parent", "derived"):
        ids = np.concatenate(pq.read_table(tmp_path / "d" / "data" / config)["input_ids"].to_pylist())
        assert not np.isin(ids, CONTROL).any() and (ids == UNK).sum() == 6 * 42


@given(st.lists(st.sampled_from(["the", "a<mask>b", "<pad>", "<unk>", "<s></s>", "<s", "mask>", "cat"]), max_size=9))
def test_words_are_counted_once_and_others_stay(words):
    tokenizer = train_vocabulary([Corpus.of_words([["the", "cat"]])], 300).parent
    corpus = Corpus.of_words([words, ["the"], words])
    raw, encoded = encode_corpus(tokenizer, corpus), encode_corpus(tokenizer, corpus).as_text()
    control = np.isin(raw.ids, CONTROL)
    assert np.array_equal(encoded.ids[~control], raw.ids[~control]) and (encoded.ids[control] == UNK).all()
    assert encoded.control_words == 2 * sum(word in ("a<mask>b", "<pad>", "<s></s>") for word in words)
    assert np.array_equal(encoded.word_offsets, raw.word_offsets)


@pytest.mark.parametrize("line", ["a<s>b c<s>d e<s>f", "x<unk> y<unk> z<unk>"])
def test_a_vocabulary_that_learned_a_special_token_has_copies(line):
    """Within words training may spell one, which no encoding uses: the tokenizer finds it before."""
    vocabulary = train_vocabulary([Corpus.of_words([line.split()] * 50)], 300)
    merges = json.loads(vocabulary.parent.to_str())["model"]["merges"]
    assert {"<s>", "<unk>"} & {left + right for left, right in merges}
    for script in SCRIPTS.values():
        derived = " ".join(script.encode(word) for word in line.split())
        expected = [i if i < 5 else i + vocabulary.size for i in vocabulary.parent.encode(line).ids]
        assert vocabulary.tokenizer(script).encode(derived).ids == expected
    under = prefixed({"en": vocabulary.parent, "fr": vocabulary.parent})
    assert under["en"].encode(line).ids == vocabulary.parent.encode(line).ids
