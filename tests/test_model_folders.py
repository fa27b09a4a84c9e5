"""Odd and hostile model folders: their code never runs, and each ends in one line before anything is built."""

import base64
import json
import shutil
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from pretrain.hub import load_model, open_base
from probes import cli
from probes.models.names import limits_of_model
from synthlang.files import read_json, write_json
from synthlang.model_files import LARGEST_ID, check_tokenizer_file
from synthlang.sources import open_source
from synthlang.vocabularies.checkpoint import read_checkpoint
from synthlang.vocabulary import Vocabulary, train_vocabulary
from tests.adjust_models import save_model
from tests.refusals import refused

SOURCE = "builtin:mini-english?types=500&sentences=60&dev=10&test=10"
START = {
    "languages": [{"name": "en", "source": SOURCE}],
    "steps": 1,
    "batch": {"rows": 2, "length": 16},
    "optimizer": {"warmup_steps": 0},
}
ADJUST = {"pairs": {"p": {"kind": "derived", "source": SOURCE, "left": "trans"}}}
STUDY = {"name": "s", "model": "", "tasks": {"pos": {"language": "trans", "train": SOURCE}}}
PROGRAM = """
import sys
open({trace!r}, "a").write("ran")
"""


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return {kind: save_model(tmp_path_factory.mktemp(kind), kind) for kind in ("bert", "xlmr")}


@pytest.fixture
def bert(models, tmp_path):
    return shutil.copytree(models["bert"], tmp_path / "model")


@pytest.fixture
def xlmr(models, tmp_path):
    return shutil.copytree(models["xlmr"], tmp_path / "model")


def edit(path: Path, **values: Any) -> None:
    """Set keys of a JSON file."""
    write_json(path, {**read_json(path), **values})


def with_code(folder: Path, where: str, trace: Path) -> None:
    """Give a folder code, which writes a file, in ``config.json`` or ``tokenizer_config.json``."""
    auto = dict.fromkeys(("AutoConfig", "AutoModelForMaskedLM"), "evil.Evil")
    (folder / "evil.py").write_text(PROGRAM.format(trace=str(trace)))
    if where == "config.json":
        edit(folder / where, model_type="evil", auto_map=auto | {"AutoTokenizer": ["evil.Evil", "evil.Evil"]})
    else:
        auto_map = {"AutoTokenizer": ["evil.Evil", "evil.Evil"]}
        edit(folder / where, tokenizer_class="EvilTokenizer", auto_map=auto_map)


COMMANDS = {
    "pretrain": lambda model: ["pretrain", "start.yaml", "--set", f"start.model={model}", "--out", "out"],
    "adjust": lambda model: ["adjust", model, "adjust.yaml", "--out", "out"],
    "probe": lambda model: ["probe", model, "--language", "trans", "--probe", "words", "--out", "out"],
    "transfer": lambda model: [
        "transfer",
        model,
        "--train",
        SOURCE,
        "--language",
        "trans",
        "--seeds",
        "1",
        "--out",
        "o.json",
    ],
    "study": lambda model: ["study", "study.yaml", "--set", f"model={model}", "--out", "out", "--dry-run"],
}


@pytest.mark.parametrize("where", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("command", COMMANDS)
def test_no_code_of_a_folder_runs_whatever_is_answered(command, where, bert, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    trace = tmp_path / "trace"
    with_code(bert, where, trace)
    for name, content in (("start", START), ("adjust", ADJUST), ("study", STUDY)):
        Path(f"{name}.yaml").write_text(json.dumps(content))
    answers = StringIO("y\n" * 20)
    monkeypatch.setattr(sys, "stdin", answers)
    monkeypatch.setattr(sys, "argv", ["synthlang", *COMMANDS[command](str(bert))])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    error = capsys.readouterr().err
    assert not trace.exists() and answers.tell() == 0
    if where == "config.json":
        assert stop.value.code == 2 and error.count("error: ") == 1 and "evil" in error.splitlines()[-1]
    assert "Traceback" not in error


CONFIGS: dict[str, tuple[dict[str, Any], str, str]] = {
    "no layers": ({"num_hidden_layers": 0}, "config.json num_hidden_layers", "range"),
    "more layers than exist": ({"num_hidden_layers": 10**9}, "config.json num_hidden_layers", "range"),
    "more layers than weights": ({"num_hidden_layers": 9_000}, "config.json", "conflict"),
    "a wide state": ({"hidden_size": 10**12}, "config.json hidden_size", "range"),
    "many positions": ({"max_position_embeddings": 10**12}, "config.json max_position_embeddings", "range"),
    "many words": ({"vocab_size": 10**12}, "config.json vocab_size", "range"),
    "words of a wrong type": ({"vocab_size": "many"}, "config.json vocab_size", "range"),
    "no heads": ({"num_attention_heads": 0}, "config.json num_attention_heads", "range"),
    "heads that do not divide": ({"num_attention_heads": 3}, "model", "damaged"),
    "quantized": ({"quantization_config": {"quant_method": "bnb"}}, "config.json quantization_config", "unsupported"),
    "other words": ({"vocab_size": 121}, "model", "damaged"),
    "no type": ({"model_type": None}, "config.json", "format"),
    "padding of a wrong type": ({"pad_token_id": "x"}, "config.json", "format"),
    "padding outside": ({"pad_token_id": 5000}, "model", "damaged"),
}


@pytest.mark.parametrize("case", CONFIGS)
def test_a_config_is_checked_before_anything_is_built(case, bert):
    changes, place, code = CONFIGS[case]
    edit(bert / "config.json", **changes)
    assert refused(lambda: load_model(open_base(str(bert)))) == (place, code)


def test_a_config_that_is_no_map(bert):
    (bert / "config.json").write_text("[1]")
    for opened in (limits_of_model, read_checkpoint, lambda name: load_model(open_base(name))):
        assert refused(opened, str(bert)) == ("config.json", "format")


HARMLESS: dict[str, dict[str, Any]] = {
    "attention of the hub": {"attn_implementation": "some-one/kernel", "_attn_implementation": "some-one/kernel"},
    "code beside a known type": {"auto_map": {"AutoModelForMaskedLM": "evil.Evil"}},
    "labels of a classifier": {"num_labels": 10**9},
}


@pytest.mark.parametrize("case", HARMLESS)
def test_keys_that_a_masked_language_model_does_not_need_are_ignored(case, bert):
    before = load_model(open_base(str(bert))).state_dict()
    edit(bert / "config.json", **HARMLESS[case])
    after = load_model(open_base(str(bert))).state_dict()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_weights_larger_than_the_memory(bert, monkeypatch):
    monkeypatch.setattr("pretrain.hub.memory_of_machine", lambda: 1000)
    assert refused(lambda: load_model(open_base(str(bert)))) == ("model", "resources")


INDEX = "model.safetensors.index.json"


@pytest.mark.parametrize(
    ("placed", "code"),
    [
        ("/etc/passwd", "conflict"),
        ("../model/model-1.safetensors", "conflict"),
        ("pytorch_model.bin", "conflict"),
        (INDEX, "conflict"),
        ("nowhere.safetensors", "conflict"),
        (7, "conflict"),
        (None, "format"),
    ],
)
def test_an_index_of_weights_names_files_of_its_folder_alone(placed, code, bert):
    names = list(load_file(bert / "model.safetensors"))
    (bert / "model.safetensors").rename(bert / "model-1.safetensors")
    (bert / "pytorch_model.bin").write_bytes(b"no weights")
    write_json(bert / INDEX, {"metadata": {}, "weight_map": dict.fromkeys(names, "model-1.safetensors")})
    assert load_model(open_base(str(bert))) is not None
    weights = [1, 2] if placed is None else dict.fromkeys(names, "model-1.safetensors") | {names[0]: placed}
    write_json(bert / INDEX, {"metadata": {}, "weight_map": weights})
    assert refused(open_base, str(bert)) == (f"{INDEX} weight_map", code)


def test_an_adapter_is_no_model(bert):
    write_json(bert / "adapter_config.json", {"base_model_name_or_path": "some-one/else", "peft_type": "LORA"})
    assert refused(open_base, str(bert)) == ("model", "unsupported")


def table(trie: list[int], text: bytes = b"a\0") -> str:
    raw = b"".join(unit.to_bytes(4, "little") for unit in trie)
    return base64.b64encode(len(raw).to_bytes(4, "little") + raw + text).decode()


EMPTY = [0] * 256
OUTSIDE = [256 << 10, *[0] * 1023]  # a leaf for "a", whose text begins behind the end
OUTSIDE[0x161], OUTSIDE[0x361] = 0x200 << 10 | 1 << 8 | 0x61, 1 << 20
TABLES = {
    "empty": "",
    "no base64": "!!",
    "shorter than it names": base64.b64encode((1024).to_bytes(4, "little") + b"abcd").decode(),
    "one unit": table([0]),
    "no whole unit": base64.b64encode((7).to_bytes(4, "little") + b"\0" * 9).decode(),
    "places outside": table([0xFFFFFFFF] * 256),
    "text outside": table(OUTSIDE),
    "no UTF-8": table(EMPTY, b"\xff\0"),
}


@pytest.mark.parametrize("case", TABLES)
def test_a_damaged_table_of_a_normalizer(case, xlmr):
    normalizer = {"type": "Precompiled", "precompiled_charsmap": TABLES[case]}
    edit(xlmr / "tokenizer.json", normalizer={"type": "Sequence", "normalizers": [normalizer]})
    assert refused(read_checkpoint, str(xlmr)) == ("tokenizer.json", "damaged")


def test_a_sound_table_is_read(xlmr):
    normalizer = {"type": "Precompiled", "precompiled_charsmap": table(EMPTY)}
    edit(xlmr / "tokenizer.json", normalizer=normalizer)
    assert read_checkpoint(str(xlmr)).rows


def test_a_panic_of_the_library_is_one_line(xlmr, monkeypatch):
    """A panic is no Exception, and whatever the checks miss ends in it."""
    monkeypatch.setattr("synthlang.model_files._is_sound", lambda _: True)
    edit(xlmr / "tokenizer.json", normalizer={"type": "Precompiled", "precompiled_charsmap": TABLES["one unit"]})
    assert refused(read_checkpoint, str(xlmr)) == ("model", "failed")


HUGE = 4_000_000_000
IDS = {
    "tokenizer.json": lambda data: data["model"]["vocab"].update(zzz=HUGE),
    "added tokens": lambda data: data["added_tokens"].append({**data["added_tokens"][0], "content": "z", "id": HUGE}),
    "negative": lambda data: data["model"]["vocab"].update(zzz=-1),
    "no number": lambda data: data["model"]["vocab"].update(zzz=[]),
}


@pytest.mark.parametrize("case", IDS)
def test_ids_of_billions(case, bert):
    """The library makes a list as long as the largest id."""
    data = read_json(bert / "tokenizer.json")
    IDS[case](data)
    write_json(bert / "tokenizer.json", data)
    assert refused(read_checkpoint, str(bert)) == ("tokenizer.json", "range")


def test_ids_of_billions_in_a_vocabulary_of_ours(tmp_path):
    """A vocabulary that ``derive`` reads is a file of the user as well."""
    train_vocabulary(open_source(SOURCE).batches("train"), 300).save(tmp_path)
    data = read_json(tmp_path / "tokenizer.json")
    data["model"]["vocab"]["zzz"] = HUGE
    write_json(tmp_path / "tokenizer.json", data)
    assert refused(Vocabulary.load, tmp_path) == ("tokenizer.json", "range")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("vocab.json", {"a": HUGE}),
        ("added_tokens.json", {"a": LARGEST_ID + 1}),
        ("tokenizer_config.json", {"added_tokens_decoder": {str(HUGE): {"content": "a"}}}),
    ],
)
def test_ids_of_billions_in_other_files(name, content, tmp_path):
    write_json(tmp_path / name, content)
    assert refused(check_tokenizer_file, tmp_path / name) == (name, "range")
