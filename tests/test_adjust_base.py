"""Models that can be adjusted (models of Hugging Face and runs of ours), and refusals with one clear line."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForMaskedLM, AutoTokenizer, BertModel, RobertaConfig, RobertaForMaskedLM

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from pretrain.hub import load_model, longest_input, open_base
from synthlang.config import parse
from synthlang.scripts import SCRIPTS
from synthlang.sources import open_source
from synthlang.vocabulary import train_vocabulary
from tests.adjust_models import KINDS, LONGEST, SHAPE, save_model
from tests.refusals import refusal, refused

SOURCE = "builtin:mini-english?types=500&sentences=60&dev=0&test=0"
PAIR = {"kind": "derived", "source": SOURCE, "left": "trans+inv"}


def config(model, **changes):
    data = {"model": str(model), "pairs": {"p": PAIR}, "data": {"dev": 10}, "rows": 4, **changes}
    return parse(AdjustConfig, data)


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    return save_model(tmp_path_factory.mktemp("bert"))


@pytest.fixture
def copied(bert, tmp_path):
    return shutil.copytree(bert, tmp_path / "model")


@pytest.fixture
def run(tmp_path):
    """A finished run of ours as far as its exports go: the same weights twice, a tokenizer for each language."""
    folder = tmp_path / "run"
    vocabulary = train_vocabulary(open_source(SOURCE).batches("train"), 300)
    torch.manual_seed(0)
    shape = {**SHAPE, "max_position_embeddings": 130, "pad_token_id": 1, "type_vocab_size": 1}
    model = RobertaForMaskedLM(RobertaConfig(vocab_size=2 * vocabulary.size, **shape))
    for name, script in (("parent", None), ("trans+inv", SCRIPTS["cyrillic"])):
        model.save_pretrained(folder / "export" / name)
        vocabulary.save(folder / "export" / name, script)
    (folder / "done.json").write_text("{}")
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_the_longest_input_is_read_and_no_longer_one(tmp_path, kind):
    base = open_base(str(save_model(tmp_path, kind)))
    model = load_model(base)
    assert longest_input(model) == LONGEST
    assert not model.training
    model.base_model(input_ids=torch.full((1, LONGEST), 7))
    with pytest.raises((IndexError, RuntimeError)):
        model.base_model(input_ids=torch.full((1, LONGEST + 1), 7))


def test_a_run_of_ours(run, tmp_path):
    """Each language has its tokenizer: a transliterated word is its parent's ids, V further on."""
    base = open_base(str(run))
    assert base.is_run and sorted(base.folders) == ["parent", "trans+inv"]
    adjust(config(run), tmp_path / "out")
    done = json.loads((tmp_path / "out" / "done.json").read_text())
    assert done["after"]["related/p"] < done["before"]["related/p"]
    words = next(iter(open_source(SOURCE).batches("train")))[0].text
    exports = [tmp_path / "out" / "export" / name for name in ("parent", "trans+inv")]
    assert load_file(exports[0] / "model.safetensors").keys() == load_file(exports[1] / "model.safetensors").keys()
    for export, name in zip(exports, ("parent", "trans+inv"), strict=True):
        assert (export / "tokenizer.json").read_bytes() == (run / "export" / name / "tokenizer.json").read_bytes()
        assert AutoTokenizer.from_pretrained(export)(words).input_ids[0] == 0
        AutoModelForMaskedLM.from_pretrained(export)
        assert "tokenizer in this folder is that of **" + name in (export / "README.md").read_text()
    again = {"p": {**PAIR, "left": "inv", "tokenizers": ["parent", "parent"]}}
    adjust(config(tmp_path / "out", pairs=again), tmp_path / "again")  # what came out is a run in turn


def test_runs_that_are_refused(run, tmp_path):
    assert refused(adjust, config(run, pairs={"p": {**PAIR, "left": "inv"}}), tmp_path / "out") == (
        "pairs.p",
        "unknown",
    )
    path = run / "export" / "parent" / "model.safetensors"
    weights = load_file(path)
    weights["roberta.embeddings.word_embeddings.weight"] += 1
    save_file(weights, path, metadata={"format": "pt"})
    assert refused(adjust, config(run), tmp_path / "out") == ("run", "unsupported")
    assert not (tmp_path / "out" / "config.yaml").exists()
    adjust(config(run / "export" / "parent"), tmp_path / "out")  # one language by itself is a model
    (run / "done.json").unlink()
    assert refused(open_base, str(run)) == ("run", "missing")


@pytest.mark.parametrize(
    ("name", "place", "code"),
    [
        ("./nowhere", "nowhere", "missing"),
        ("some-one/some-model", "some-model", "missing"),
        ("no such name!", "no such name!", "format"),
        ("empty", "empty", "missing"),
    ],
)
def test_models_that_cannot_be_had(name, place, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert refused(open_base, name) == (place, code)


def test_weights_that_cannot_be_read(bert, copied):
    path = copied / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert refused(load_model, open_base(str(copied))) == ("model.safetensors", "damaged")
    path.rename(copied / "pytorch_model.bin")
    assert refused(open_base, str(copied)) == ("model", "unsupported")
    (copied / "pytorch_model.bin").unlink()
    assert refused(open_base, str(copied)) == ("model", "missing")
    BertModel.from_pretrained(bert).save_pretrained(copied)
    assert refused(load_model, open_base(str(copied))) == ("model", "missing")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"loss": {"layers": [4]}}, "the model has no layer 4"),
        ({"loss": {"layers": [-1, 3]}}, "[-1, 3] names layer 3 twice"),
        ({"data": {"length": 41}}, "41 is more than the 40 tokens"),
        ({"rows": 3, "accumulation": 2}, "3 is not a multiple of processes × accumulation (1 × 2 = 2)"),
        ({"pairs": {"p": {**PAIR, "split": "devel"}}}, "the source has no split 'devel'"),
        ({"pairs": {"p": {**PAIR, "source": "text:TEXT", "left": "reorder@fr"}}}, "needs the column 'upos'"),
    ],
)
def test_what_does_not_fit(bert, tmp_path, monkeypatch, changes, reason):
    (tmp_path / "TEXT").write_text("a b c\n")
    monkeypatch.chdir(tmp_path)
    assert reason in refusal(adjust, config(bert, **changes), tmp_path / "out").reason


@pytest.mark.parametrize(
    ("links", "place"),
    [
        ("0-0 1-1\n", "l pairs.p"),
        ("\n\n", "l pairs.p"),
        ("0p0\n7-7\n", "l pairs.p"),  # possible, and out of range
    ],
)
def test_links_that_do_not_fit_the_text(bert, tmp_path, links, place):
    (tmp_path / "t").write_text("the cat ||| le chat\na dog ||| un chien\n", encoding="utf-8")
    (tmp_path / "l").write_text(links, encoding="utf-8")
    pair = {"kind": "text", "joint": str(tmp_path / "t"), "links": {"kind": "file", "path": str(tmp_path / "l")}}
    assert refused(adjust, config(bert, pairs={"p": pair}), tmp_path / "out")[0] == place


def test_text_with_links_from_files(bert, tmp_path):
    """Both directions are symmetrised; links out of range are counted; changed files are another adjustment."""
    lines = ["the small cat ||| le petit chat", "a dog ||| un chien", "black cat sees ||| chat noir voit"] * 4
    (tmp_path / "t").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "f").write_text("1-1 2-2 3-3 9-9\n1-1 2-2\n1-2 2-1 3-3 3-2\n" * 4, encoding="utf-8")
    (tmp_path / "r").write_text("1-1 3-3 9-9\n2-2\n1-2 2-1\n" * 4, encoding="utf-8")
    links = {"kind": "file", "path": str(tmp_path / "f"), "reverse": str(tmp_path / "r"), "first": 1}
    pair = {"kind": "text", "joint": str(tmp_path / "t"), "links": links}
    made = config(bert, pairs={"p": pair}, data={"dev": 3})
    adjust(made, tmp_path / "out")
    done = json.loads((tmp_path / "out" / "done.json").read_text())
    assert done["counts"]["p"]["links to words that are not there"] == 4
    (tmp_path / "r").write_text("1-1\n2-2\n1-2 2-1\n" * 4, encoding="utf-8")
    assert refused(adjust, made, tmp_path / "out") == ("out", "changed")


def test_folders_of_something_else(bert, tmp_path):
    (tmp_path / "notes.txt").write_text("mine")
    assert refused(adjust, config(bert), tmp_path) == (tmp_path.name, "exists")
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]
