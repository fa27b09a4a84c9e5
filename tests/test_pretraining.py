"""Runs that resume, split over processes and load elsewhere; finished ones that are opened; all kinds of language."""

import inspect
import json
import runpy
import shutil
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from pretrain.build import trained_model
from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics, steps_in
from pretrain.prepare import prepare
from pretrain.run import DONE, Trainer, open_run, pretrain, store_of
from pretrain.step import Step
from probes.models.opening import of_run, open_pretrained
from probes.transfer.config import TransferConfig
from probes.transfer.result import seed_record
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.store import Store
from tests.refusals import refused
from tests.runs import assert_same_run, forked, run_anew, untimed, weights
from tests.study_graphs import write_treebank
from tests.test_pretrain_config import config_of
from tests.tiny import PRETRAIN, TRANSFER, changed


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A finished tiny run."""
    folder = tmp_path_factory.mktemp("runs")
    pretrain(config_of(), folder / "run", Store(folder / "store"))
    return folder


class Killed(BaseException):
    """Stands for the end of the process."""


def killed_before(step, config, run, store):
    """Train until the process ends before a step, which counts from 0."""
    train = Step.__call__

    def dies(self, number, batches):
        if number == step:
            raise Killed
        return train(self, number, batches)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Step, "__call__", dies)
        with pytest.raises(Killed):
            pretrain(config, run, store)


@pytest.mark.parametrize("at", [1, 4])
def test_a_stopped_run_ends_as_an_uninterrupted_one(finished, tmp_path, at):
    """Stopped before step ``at + 1``, between or at checkpoints (every 2 steps), with dropout on."""
    killed_before(at, config_of(), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run" / "export").exists()
    pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert_same_run(finished / "run", tmp_path / "run")


NAMED = {"checkpoints": {"every": 6, "keep": 1, "at": [1, 0.5]}, "validation__every": 6}


@pytest.fixture(scope="module")
def named(finished):
    """A run with checkpoints at steps 1, 3 and 6."""
    pretrain(config_of(**NAMED), finished / "named", Store(finished / "store"))
    return finished / "named"


@pytest.mark.parametrize("killed", [2, 3, 5])
def test_a_run_with_named_checkpoints_stops_and_ends_as_an_uninterrupted_one(finished, named, tmp_path, killed):
    """The checkpoints are validated, too. Weights are those of a run without them."""
    config = config_of(**NAMED)
    killed_before(killed, config, tmp_path / "run", Store(finished / "store"))
    pretrain(config, tmp_path / "run", Store(finished / "store"))
    assert_same_run(named, tmp_path / "run")
    for run in (named, tmp_path / "run"):
        assert steps_in(run / "checkpoints") == [1, 3, 6]
        assert [row["step"] for row in untimed(run) if "validation/parent" in row] == [1, 3, 6]
    plain, same = weights(finished / "run"), weights(named)
    assert all(torch.equal(plain[name], same[name]) for name in plain)


@pytest.mark.parametrize("batches", ["mixed", "one-language"])
def test_a_run_with_a_schedule_stops_within_a_stage(finished, tmp_path, batches):
    """The log has the tokens of each language, and a resumed run is that of an uninterrupted one."""
    stages = [
        {"start": 0, "shares": {"parent": 1, "trans+inv": 0}},
        {"start": 3, "shares": {"parent": 1, "trans+inv": 3}},
    ]
    config = config_of(sampling={"schedule": stages, "batches": batches}, log_every=1)
    pretrain(config, tmp_path / "whole", Store(finished / "store"))
    killed_before(5, config, tmp_path / "run", Store(finished / "store"))
    assert steps_in(tmp_path / "run" / "checkpoints") == [2, 4]
    pretrain(config, tmp_path / "run", Store(finished / "store"))
    assert_same_run(tmp_path / "whole", tmp_path / "run")
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    one, two = ([row[f"tokens_seen/{name}"] // 48 for row in rows] for name in ("parent", "trans+inv"))
    assert [row["tokens_seen"] for row in rows] == [48 * (a + b) for a, b in zip(one, two, strict=True)]
    assert (one[:3], two[:3]) == ([8, 16, 24], [0, 0, 0])
    if batches == "mixed":
        assert (one[3:], two[3:]) == ([26, 28, 30], [6, 12, 18])
    else:
        assert {b - a for a, b in pairwise(two)} <= {0, 8}


def test_the_run_folder(finished):
    run = finished / "run"
    assert parse(PretrainConfig, yaml.safe_load((run / "config.yaml").read_text())) == config_of()
    rows = read_metrics(run / "metrics.jsonl")
    assert [row["step"] for row in rows] == [2, 3, 4, 6]
    for row in rows:
        assert row["loss"] == pytest.approx(row["mlm"] + 10 * row["align"], rel=1e-5)
        assert row["tokens_seen"] == row["step"] * 8 * 48
    assert all(row["validation/parent"] > 1 for row in rows if row["step"] in (3, 6))
    assert all(0 <= row["alignment/trans+inv"] <= 100 for row in rows if row["step"] in (3, 6))
    assert steps_in(run / "checkpoints") == [4, 6]
    assert {p.name for p in (run / "export").iterdir()} == {"parent", "trans+inv"}


def test_a_finished_run_is_not_run_again(finished):
    before = {p: p.stat().st_mtime_ns for p in (finished / "run").rglob("*")}
    pretrain(config_of(), finished / "run", Store(finished / "store"))
    assert before == {p: p.stat().st_mtime_ns for p in (finished / "run").rglob("*")}


def test_folders_of_something_else_are_refused(finished, tmp_path):
    with pytest.raises(InputError, match="because settings or data have changed"):
        pretrain(config_of(seed=1), finished / "run", Store(finished / "store"))
    with pytest.raises(InputError, match=r" → trans; language.transforms: 2 → 1 values\)"):
        pretrain(config_of(language="trans"), finished / "run")
    with pytest.raises(InputError, match=r"holds another run \(seed: 0 → 1; batch.rows: 8 → 16\); choose"):
        pretrain(config_of(seed=1, batch__rows=16, log_every=5), finished / "run")
    (tmp_path / "thesis.txt").write_text("mine")
    assert refused(pretrain, config_of(), tmp_path / "thesis.txt") == ("thesis.txt", "exists")
    with pytest.raises(InputError, match="is not empty and holds no run"):
        pretrain(config_of(), tmp_path, Store(finished / "store"))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    adjusted = tmp_path / "adjusted"
    adjusted.mkdir()
    (adjusted / "run.json").write_text('{"fingerprint": "0"}')
    (adjusted / "config.yaml").write_text("words: {}\n")
    for store in (None, Store(finished / "store")):
        with pytest.raises(InputError, match="adjusted: holds an adjustment; choose another folder"):
            pretrain(config_of(), adjusted, store)
    with pytest.raises(InputError, match="holds an adjustment"):
        store_of(adjusted)


def test_a_run_whose_text_has_changed_is_refused_with_the_name_of_the_text(tmp_path, monkeypatch):
    def dies(self):
        raise Killed

    monkeypatch.setattr(Trainer, "train", dies)
    text, other = tmp_path / "x.txt", tmp_path / "y.txt"
    for path in (text, other):
        path.write_text("the cat sees a dog .\n" * 200)
    languages = [{"source": f"text:{path}", "name": path.stem, "language": "parent"} for path in (text, other)]
    vocabulary, objective = {"kind": "joint", "size": 300}, {"kind": "mlm"}
    config = config_of(source="", language=None, languages=languages, vocabulary=vocabulary, objective=objective)
    with pytest.raises(Killed):
        pretrain(config, tmp_path / "run")
    text.write_text("the cat sees a bird .\n" * 200)
    with pytest.raises(InputError) as raised:
        pretrain(config, tmp_path / "run")
    assert raised.value.reason.endswith(f"because the content of text:{text} has changed")
    assert raised.value.code == "changed"


def test_open_run_asks_for_a_finished_run(tmp_path, finished):
    with pytest.raises(InputError, match="is not a run folder"):
        open_run(tmp_path)
    (tmp_path / "config.yaml").write_text("x: 1")
    with pytest.raises(InputError, match="not finished"):
        open_run(tmp_path)
    assert open_run(finished / "run")[0] == config_of()


def train_once(tmp_path, finished, name, **values):
    config = config_of(**values)
    artifacts = prepare(config, Store(finished / "store"))
    (tmp_path / name).mkdir()
    trainer = Trainer(config, artifacts, tmp_path / name)
    trainer.train()
    return weights(tmp_path / name)


def test_micro_batches_give_the_same_weights(finished, tmp_path):
    whole = train_once(tmp_path, finished, "a", model__dropout=0.0)
    parts = train_once(tmp_path, finished, "b", model__dropout=0.0, batch__accumulation=4)
    for name, tensor in whole.items():
        torch.testing.assert_close(tensor, parts[name], rtol=1e-3, atol=1e-4)


def by_path(path, *arguments):
    """As Python starts a file: its folder comes first."""
    sys.argv, sys.path[:0] = [str(path), *map(str, arguments)], [str(path.parent)]
    runpy.run_path(str(path), run_name="__main__")


def test_the_command_by_path_is_the_same_run(finished, tmp_path):
    (tmp_path / "c.yaml").write_text(yaml.safe_dump(PRETRAIN))
    path = Path(inspect.getfile(pretrain)).with_name("train.py")
    process = forked(by_path, path, tmp_path / "c.yaml", "--out", tmp_path / "run")
    process.join()
    assert process.exitcode == 0
    assert_same_run(finished / "run", tmp_path / "run")


def test_an_export_loads_without_this_project(finished, tmp_path):
    """A text that is too long is cut to the positions that the model has, in the pipeline of transformers, too."""
    code = """
import sys, torch
from transformers import AutoModelForMaskedLM, AutoTokenizer, pipeline
for folder in sys.argv[1:]:
    model, info = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    ids = AutoTokenizer.from_pretrained(folder)("тхе <mask> ис хере", return_tensors="pt")
    assert ids["input_ids"].max() < model.config.vocab_size
    assert torch.isfinite(model(**ids).logits).all()
    print(type(model).__name__, ids["input_ids"][0, 0].item())
fill = pipeline("fill-mask", model=sys.argv[1], tokenizer_kwargs={"truncation": True})
text = f"{fill.tokenizer.mask_token} " + "the cat sat . " * 100
print(fill.tokenizer.model_max_length, len(fill.tokenizer(text, truncation=True).input_ids), len(fill(text)))
assert not any(m.split(".")[0] in ("synthlang", "pretrain", "probes") for m in sys.modules)
"""
    folders = [finished / "run" / "export" / name for name in ("parent", "trans+inv")]
    length = str(config_of().batch.length)
    assert run_anew(code, *folders, folder=tmp_path).split() == [*["RobertaForMaskedLM", "0"] * 2, length, length, "5"]


def test_an_empty_dictionary_is_an_error_before_training(finished, tmp_path):
    with pytest.raises(InputError, match=r"dictionary.coverage: 0.001 of [0-9]+ types"):
        pretrain(config_of(dictionary__coverage=0.001), tmp_path / "run", Store(finished / "store"))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("line", [b'{"step": 2, "lo', b"123", b"\xff\xfe", b'{"loss": 1}', b"null"])
def test_metrics_end_at_a_line_that_is_none(line, tmp_path):
    (tmp_path / "m.jsonl").write_bytes(b'{"step": 1}\n' + line + b'\n{"step": 3}\n')
    assert read_metrics(tmp_path / "m.jsonl") == [{"step": 1}]
    assert read_metrics(tmp_path / "none") == []


def test_what_a_killed_export_left_goes(finished, tmp_path, monkeypatch):
    train, left = Trainer.train, tmp_path / "run" / "export" / ".tmp-parent-00000000"

    def killed(self):
        train(self)
        left.mkdir(parents=True)
        raise KeyboardInterrupt

    monkeypatch.setattr(Trainer, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert left.exists()
    monkeypatch.setattr(Trainer, "train", train)
    pretrain(config_of(), tmp_path / "run", Store(finished / "store"))
    assert not left.exists() and (tmp_path / "run" / "export" / "parent").exists()


def test_what_a_killed_builder_left_goes(tmp_path):
    """Only leftovers of the same artifact are deleted, because another process may be building another artifact."""
    mine, other = tmp_path / ".tmp-shards-x-00000000", tmp_path / ".tmp-shards-y-00000000"
    for folder in (mine, other):
        folder.mkdir()
    Store(tmp_path).obtain("shards", "x", lambda path: path.mkdir())
    assert not mine.exists() and other.exists()


def test_done_says_what_was_left_out_of_each_text(tmp_path):
    """Whole sentences in short rows: those of over 38 tokens do not fit, and the record says how many of each text."""
    settings = changed(PRETRAIN, language="trans", objective={"kind": "xlm"}, steps=3)
    del settings["dictionary"]
    config = parse(PretrainConfig, {**settings, "batch": {"rows": 8, "length": 40, "packing": "sentences"}})
    pretrain(config, tmp_path / "run")
    counts = json.loads((tmp_path / "run" / DONE).read_text())["counts"]
    _, artifacts = open_run(tmp_path / "run")
    for member in artifacts.languages:
        for split, shards in (("train", member.train), ("dev", member.dev)):
            assert shards is not None
            long = int((np.diff(shards.offsets) > 38).sum())
            assert long and counts[f"{member.name} {split}"] == {"sentences dropped, over 38 tokens": long}
    [pairs] = [count for name, count in counts.items() if name.endswith(" pairs")]
    assert pairs["pairs drawn"] > pairs["pairs dropped, a side has over 18 tokens"] > 0


def test_a_run_with_a_damaged_last_checkpoint_is_not_measured_as_an_older_model(finished, tmp_path):
    run, store = finished / "run", Store(finished / "store")
    copied = shutil.copytree(run, tmp_path / "copied")
    (copied / "run.json").write_text((run / "run.json").read_text().replace("../store", str(finished / "store")))
    path = copied / "checkpoints" / "step-6" / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(
        InputError, match=r"step-6: the last checkpoint of the finished run is damaged.*delete done\.json"
    ):
        open_pretrained(str(copied), None)
    # what the message says mends it
    (copied / DONE).unlink()
    pretrain(config_of(), copied, store)
    assert_same_run(run, copied)
    opened = [open_pretrained(str(folder), None) for folder in (run, copied)]
    assert opened[0].fingerprint == opened[1].fingerprint
    for a, b in zip(*(one.model.parameters() for one in opened), strict=True):
        assert torch.equal(a, b)


def test_messages_name_the_model(finished, tmp_path):
    run, other = finished / "run", tmp_path / "other"
    settings = changed(PRETRAIN, language="parent", objective={"kind": "mlm"})
    del settings["dictionary"]
    pretrain(parse(PretrainConfig, settings), other, Store(finished / "store"))
    found = refused(open_pretrained, str(run), None, target_model=str(other))
    assert found == ("other language", "missing")
    assert refused(open_pretrained, str(other), "foo", target_model=str(run)) == ("run language", "unknown")
    assert refused(open_pretrained, "runs/nothing", None) == ("language", "missing")
    (tmp_path / "empty").mkdir()
    assert refused(open_pretrained, str(tmp_path / "empty"), None) == ("language", "missing")
    (tmp_path / "empty" / "study.json").write_text("{}")
    assert refused(open_pretrained, str(tmp_path / "empty"), None) == ("empty", "type")
    assert json.loads((other / DONE).read_text())["steps"] == 6


def test_a_run_whose_text_has_changed_or_is_gone_is_refused(tmp_path):
    bank = write_treebank(tmp_path / "bank")
    settings = changed(PRETRAIN, source=f"conllu:{bank}", steps=3, validation={"every": 0})
    pretrain(parse(PretrainConfig, settings), tmp_path / "run")
    assert open_pretrained(str(tmp_path / "run"), None).run is not None
    file = bank / "x-ud-train.conllu"
    text = file.read_text()
    file.write_text(text.replace("w1\t", "w31\t"))
    with pytest.raises(
        InputError, match=r"run: does not fit its data, because the content of conllu:.*bank has changed"
    ):
        open_pretrained(str(tmp_path / "run"), None)
    file.write_text(text)
    assert open_pretrained(str(tmp_path / "run"), None).run is not None
    bank.rename(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"bank: the data of the run .* cannot be read again: .*; restore this path"):
        open_pretrained(str(tmp_path / "run"), None)
    moved = parse(PretrainConfig, changed(settings, source=f"conllu:{tmp_path / 'elsewhere'}"))
    assert open_run(tmp_path / "run", moved)[0] is moved


LANGUAGES = {
    "tokens": {
        "name": "tokens",
        "transforms": [
            {"kind": "transliterate", "strength": 0.5, "order": "frequent", "unit": "token"},
            {"kind": "invert", "unit": "token"},
        ],
    },
    "order model": "trans+reorder@ga",
    "dropped sentences": {
        "name": "dropped",
        "transforms": [{"kind": "transliterate"}, {"kind": "reorder", "max_items": 4, "policy": "drop-sentence"}],
    },
    "inserted words": {
        "name": "marked",
        "transforms": [{"kind": "mark", "after_verb": {"word": "zu", "distance": 2}}, {"kind": "transliterate"}],
    },
}


@pytest.mark.parametrize("name", LANGUAGES)
def test_a_run_on_every_kind_of_language(name, finished, tmp_path):
    config = parse(PretrainConfig, changed(PRETRAIN, language=LANGUAGES[name], validation__every=0))
    pretrain(config, tmp_path / "run", Store(finished / "store"))
    opened, artifacts = open_run(tmp_path / "run")
    parent, derived = (member.train for member in artifacts.languages)
    assert len(parent) == 200
    assert (len(derived) < 200) == (name == "dropped sentences")
    size = artifacts.id_space.size // 2
    moved = derived.counts[size:].sum() / derived.counts.sum()
    assert (0.05 < moved < 0.95) if name == "tokens" else moved == 1.0
    model = trained_model(tmp_path / "run", opened, artifacts)
    settings = parse(TransferConfig, {"task": "pos", **TRANSFER, "sup": False})
    pretrained = of_run(opened, artifacts, model, "a run")
    transfer = Transfer(pretrained, load_data(settings, pretrained), settings)
    record = seed_record(transfer.run(0), "accuracy")
    assert 0 <= record["zs"] <= 100 and json.dumps(record)
