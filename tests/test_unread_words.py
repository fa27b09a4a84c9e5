"""A model whose tokenizer has a token for no word is refused before anything is trained or measured."""

import re
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from pretrain.adjust.config import AdjustConfig
from pretrain.adjust.run import adjust
from probes.measures.probe_command import measure
from probes.measures.probe_input import ProbeInput
from probes.measures.table import ProbeConfig
from probes.models.opening import open_pretrained
from probes.transfer.config import TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data, load_training
from probes.transfer.transfer_command import transfer_command
from synthlang.config import parse
from synthlang.derive_command import derive_command
from synthlang.errors import InputError
from synthlang.reading import Reading
from synthlang.store import Store
from tests.adjust_models import ROBERTA, save_model
from tests.refusals import refusal, refused
from tests.study_graphs import SOURCE

SETTINGS: dict[str, Any] = {"train": SOURCE, "language": "trans", "length": 36, "stride": 8}
SETTINGS |= {"train_items": 40, "dev_items": 10, "test_items": 10, "fine_tune": {"epochs": 1}}
PAIR = {"kind": "derived", "source": SOURCE, "left": "trans"}
NOTHING = r"has \d[\d,]* words, but no word has a token in the"
NO_TOKEN = r"^pairs\.x: the model's tokenizer has no token for the \d[\d,]* words of the left side"


def without_words(folder: Path, tokens: str = "") -> Path:
    """A RoBERTa whose tokenizer has the special tokens and these characters, and leaves out all others."""
    save_model(folder, "roberta")
    names = ROBERTA | {"cls_token": "<s>", "sep_token": "</s>"}
    ids = {name: number for number, name in enumerate([*ROBERTA.values(), *tokens])}
    tokenizer = Tokenizer(models.BPE(ids, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def mute(tmp_path_factory):
    return str(without_words(tmp_path_factory.mktemp("mute")))


@pytest.fixture(scope="module")
def half(tmp_path_factory):
    """It has tokens for the small letters of the source, and none for what they are in the target language."""
    return str(without_words(tmp_path_factory.mktemp("half"), "abcdefghijklmnopqrstuvwxyz"))


def transfer_of(model: str, load: Any = load_data, **changes: Any) -> Transfer:
    config = parse(TransferConfig, {**SETTINGS, **changes})
    pretrained = open_pretrained(model, config.language)
    return Transfer(pretrained, load(config, pretrained), config)


@pytest.mark.parametrize("task", ["pos", "parsing", "nli", "qa"])
def test_every_task_refuses_a_model_that_reads_no_word(task, mute):
    for load in (load_data, load_training):
        with pytest.raises(InputError, match=NOTHING) as raised:
            transfer_of(mute, load, task=task).check()
        assert "\n" not in str(raised.value)
        assert f"in the tokenizer of {Path(mute).name}; name a model" in str(raised.value)


def test_a_model_that_reads_some_words_is_taken(tmp_path):
    model = str(without_words(tmp_path, "abc"))
    for task in ("pos", "qa"):
        transfer_of(model, load_training, task=task).check()


def test_the_set_that_nothing_is_read_of_is_named(half):
    transfer_of(half, language="parent", task="pos").check()
    with pytest.raises(InputError, match=f"^target test: {NOTHING}"):
        transfer_of(half, task="pos").check()


def test_the_command_says_it_before_it_trains(mute, tmp_path, monkeypatch):
    monkeypatch.setattr(Transfer, "run", None)
    with pytest.raises(InputError, match=NOTHING):
        transfer_command(mute, parse(TransferConfig, {**SETTINGS, "task": "pos"}), 1, tmp_path / "t.json")
    assert not (tmp_path / "t.json").exists()


def test_an_adjustment_says_it(mute, tmp_path):
    config = parse(AdjustConfig, {"model": mute, "pairs": {"x": PAIR}, "rows": 4, "data": {"dev": 20}})
    with pytest.raises(InputError, match=NO_TOKEN):
        adjust(config, tmp_path / "run")


@pytest.mark.parametrize("probe", ["retrieval", "cka"])
def test_probes_say_it(probe, mute, tmp_path):
    settings = {"probes": [probe], "language": "trans", "pairs": {"x": PAIR}, "data": {"dev": 20}}
    given = ProbeInput(open_pretrained(mute, "trans"), parse(ProbeConfig, settings), None, Store(tmp_path / "store"))
    with pytest.raises(InputError, match=NO_TOKEN):
        measure(given, tmp_path / "out")


def test_a_language_of_unknown_tokens_is_refused(tmp_path):
    error = refusal(transfer_of(str(save_model(tmp_path / "model", "bert", ["the cat sat"] * 3))).check)
    assert error.code == "empty" and "unknown" in error.reason
    Reading(10, 20, 17).check("x", "a tokenizer")
    assert refused(Reading(10, 20, 19).check, "x", "a tokenizer") == ("x", "empty")


def test_derive_prints_how_the_tokenizer_reads_the_language(tmp_path, capsys):
    derive_command(
        "builtin:mini-english?types=500&sentences=60&dev=0&test=0", "trans", tmp_path / "d", vocabulary="300"
    )
    assert re.search(r"trans: [1-9]\.\d\d tokens per word, 0\.0 % of the tokens unknown", capsys.readouterr().err)
