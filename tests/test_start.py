"""Runs that start from a checkpoint in the format of Hugging Face, as it is or with new subwords."""

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertConfig, BertForMaskedLM

from pretrain.build import new_model, trained_model
from pretrain.config import PretrainConfig
from pretrain.model.text import Text
from pretrain.prepare import prepare
from pretrain.run import open_run, pretrain
from synthlang.config import parse
from synthlang.store import Store
from tests.refusals import refused
from tests.tokenizer_folders import make_folder

PLACES = ("tree", "man")
ENGLISH = [f"the {a} {b} a {c} ." for a in ("old", "new", "big") for b in ("cat", "dog", "house") for c in PLACES]
HINDI = [f"यह {a} {b} है ।" for a in ("पुराना", "नया", "बड़ा") for b in ("बिल्ली", "कुत्ता", "मकान", "पेड़")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A BERT that knows English words and of Hindi hardly more than letters, and text in both languages."""
    place = tmp_path_factory.mktemp("start")
    checkpoint = make_folder("bert", ENGLISH * 4 + HINDI[:4], 140, place / "bert")
    rows = len(AutoTokenizer.from_pretrained(checkpoint))
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
    BertForMaskedLM(BertConfig(vocab_size=rows, max_position_embeddings=24, **shape)).save_pretrained(checkpoint)
    for name, lines in (("en", ENGLISH), ("hi", HINDI)):
        (place / name).mkdir()
        for split, times in (("train", 20), ("dev", 5)):
            (place / name / f"{split}.txt").write_text("\n".join(lines * times), encoding="utf-8")
    return place


def config_of(folder, **values):
    languages = [{"name": name, "source": f"lines:{folder / name}"} for name in ("en", "hi")]
    settings = {
        "languages": languages,
        "start": {"model": str(folder / "bert")},
        "steps": 4,
        "batch": {"rows": 8, "length": 24},
        "optimizer": {"learning_rate": 1e-3, "warmup_steps": 1},
        "validation": {"every": 2, "rows": 8},
        "log_every": 2,
        "checkpoints": {"every": 2},
    }
    return parse(PretrainConfig, settings | values)


EXTENDED = {"language": "hi", "size": 30, "min_frequency": 2}


def test_step_0_is_the_checkpoint(folder, tmp_path):
    config = config_of(folder)
    artifacts = prepare(config, Store(tmp_path))
    model = new_model(config, artifacts).eval()
    theirs = AutoModelForMaskedLM.from_pretrained(folder / "bert").eval()
    ids = torch.tensor([[2, 7, 9, 4, 11, 3]])
    with torch.no_grad():
        for member in (0, 1):
            hidden = model.read(Text.of(ids, member))[0]
            torch.testing.assert_close(hidden, theirs.bert(ids).last_hidden_state, atol=1e-5, rtol=1e-5)


def test_a_run_from_an_extended_checkpoint(folder, tmp_path):
    config = config_of(folder, start={"model": str(folder / "bert"), "extend": EXTENDED})
    pretrain(config, tmp_path / "run", Store(tmp_path / "store"))
    old, new = AutoTokenizer.from_pretrained(folder / "bert"), AutoTokenizer.from_pretrained(tmp_path / "run/export/hi")
    added = len(new) - len(old)
    assert 0 < added <= 30
    assert all(new.get_vocab()[token] == index for token, index in old.get_vocab().items())
    pieces = [sum(len(tokenizer.tokenize(line)) for line in HINDI) for tokenizer in (old, new)]
    assert pieces[1] < pieces[0]
    assert new.tokenize("the old cat") == old.tokenize("the old cat")
    exported = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "export" / "hi")
    assert isinstance(exported, BertForMaskedLM)
    assert exported.config.vocab_size == len(new)
    before = load_file(folder / "bert" / "model.safetensors")["bert.embeddings.word_embeddings.weight"]
    after = exported.bert.embeddings.word_embeddings.weight
    assert not torch.equal(after[: len(old)], before)  # it was trained on


def test_other_weights_are_another_run(folder, tmp_path):
    config = config_of(folder)
    names = set()
    for seed in (0, 1):
        torch.manual_seed(seed)
        model = AutoModelForMaskedLM.from_pretrained(folder / "bert")
        with torch.no_grad():
            model.bert.embeddings.word_embeddings.weight.add_(seed)
        model.save_pretrained(folder / "bert")
        names.add(config.fingerprint(prepare(config, Store(tmp_path)).parents))
    assert len(names) == 2


def test_an_adapted_model_has_the_same_logits_as_its_export_and_is_no_checkpoint(folder, tmp_path):
    pretrain(config_of(folder), tmp_path / "run", Store(tmp_path / "store"))
    opened, artifacts = open_run(tmp_path / "run")
    model = trained_model(tmp_path / "run", opened, artifacts).eval()
    exported = AutoModelForMaskedLM.from_pretrained(tmp_path / "run" / "export" / "hi").eval()
    ids = torch.tensor([[2, 7, 9, 4, 11, 3]])
    with torch.no_grad():
        states = model.head(model.read(Text.of(ids, 1))[0])
        logits = states @ model.embeddings.words.T + model.embeddings.bias
        torch.testing.assert_close(exported(ids).logits, logits, atol=1e-5, rtol=1e-5)
    assert refused(prepare, config_of(folder, start={"model": str(tmp_path / "run")}), Store(tmp_path / "store")) == (
        "start.model",
        "type",
    )


@pytest.mark.parametrize(
    ("values", "place", "code"),
    [
        ({"batch": {"rows": 8, "length": 32}}, "batch.length", "range"),
        ({"start": {"model": "no/such/folder"}}, "folder", "missing"),
        ({"sharing": {"layers": [3]}}, "sharing.layers", "range"),
        ({"start": {"model": "SELF", "extend": {"language": "de", "size": 5}}}, "start.extend.language", "unknown"),
    ],
)
def test_bad_input(values, place, code, folder, tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    if values.get("start", {}).get("model") == "SELF":
        values = {"start": values["start"] | {"model": str(folder / "bert")}}
    assert refused(pretrain, config_of(folder, **values), tmp_path / "run", Store(tmp_path / "store")) == (place, code)
    assert not (tmp_path / "store").exists() or not list((tmp_path / "store").glob("shards-*"))


def test_a_language_that_the_checkpoint_cannot_write(folder, tmp_path):
    source = "builtin:mini-english?types=500&sentences=50&dev=5&test=5"
    languages = [{"name": "en", "source": source}, {"name": "trans", "source": source, "language": "trans"}]
    assert refused(pretrain, config_of(folder, languages=languages), tmp_path / "run", Store(tmp_path / "store")) == (
        "language trans",
        "empty",
    )
