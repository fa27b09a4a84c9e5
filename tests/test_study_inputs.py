"""Every file of the user that a task reads is noticed when it has changed, and so is another one of the same name."""

import json
import os
from pathlib import Path

import pytest
from probes.study.finished import finished
from probes.study.identity import identity
from probes.study.index import entry_of, finish
from probes.study.inputs import named_in
from probes.study.tasks import AdjustTask, AlignmentTask, PretrainTask, ProbeTask, TransferTask

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.settings import ProbeConfig
from probes.transfer.config import TransferConfig
from synthlang.config import dump_yaml, parse
from synthlang.files import write_json
from synthlang.store import Store
from tests.study_graphs import FULL, write_treebank
from tests.tiny import PRETRAIN

RUN = {**FULL["pretrain"], "source": "conllu:bank"}
LINES = "a b\nc d\n"
NLI = "premise\thypothesis\tlabel\na b\tc d\tneutral\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working folder with one file of everything."""
    monkeypatch.chdir(tmp_path)
    for name in ("bank", "other", "text"):
        write_treebank(Path(name))
    for name in ("left.txt", "right.txt", "joint.txt", "left.vec", "right.vec"):
        Path(name).write_text(LINES)
    for name in ("links.txt", "back.txt"):
        Path(name).write_text("0-0\n1-1\n")
    for name in ("muse.txt", "more.txt", "switch.txt", "types.txt"):
        Path(name).write_text("a b\n")
    for name in ("words", "maps/layer-0", "model", "parser", "hub/data"):
        Path(name).mkdir(parents=True)
    for name in ("words/dictionary.txt", "words/manifest.json", "maps/about.json", "maps/layer-0/map.safetensors"):
        Path(name).write_text("{}")
    for name in ("model/config.json", "model/model.safetensors", "parser/meta.json", "hub/data/train.csv"):
        Path(name).write_text("{}")
    Path("base.yaml").write_text("name: switched\ntransforms:\n- kind: code_switch\n  dictionary: switch.txt\n")
    Path("language.yaml").write_text("base: base.yaml\nseed: 3\n")
    Path("pairs-train.tsv").write_text(NLI)
    Path("run").mkdir()
    Path("run/config.yaml").write_text(dump_yaml(parse(PretrainConfig, {**RUN, "source": "conllu:text"})))
    write_json(Path("run/run.json"), {"fingerprint": "f", "data": "data"})
    write_json(Path("run/done.json"), {"parents": {}})
    return tmp_path


def pretrained(**values):
    return PretrainTask(parse(PretrainConfig, {**RUN, **values}))


def two(**values):
    languages = [{"name": n, "source": f"conllu:{place}"} for n, place in (("x", "bank"), ("y", "other"))]
    return parse(
        PretrainConfig,
        {k: v for k, v in RUN.items() if k not in ("language", "source")} | {"languages": languages} | values,
    )


def adjusted(pair, model="model"):
    return AdjustTask(parse(AdjustConfig, {"model": model, "pairs": {"x": pair}}), model)


def transferred(model="hubname", **values):
    return TransferTask(parse(TransferConfig, {"language": "trans", **values}), "t", 0, model)


def probed(model="hubname", **values):
    return ProbeTask(parse(ProbeConfig, values), "p", model)


BANK = ["bank/x-ud-train.conllu", "bank/x-ud-test.conllu"]
OTHER = ["other/x-ud-train.conllu", "other/x-ud-test.conllu"]
TEXT = {
    "kind": "text",
    "left": "left.txt",
    "right": "right.txt",
    "links": {"kind": "file", "path": "links.txt", "reverse": "back.txt"},
}
JOINT = {"kind": "text", "joint": "joint.txt", "links": {"kind": "file", "path": "links.txt"}}
SWITCH = {"name": "s", "transforms": [{"kind": "code_switch", "dictionary": "switch.txt"}]}
RECORDS = ["run/config.yaml", "run/run.json", "run/done.json", "text/x-ud-train.conllu"]
TASKS = {
    "pretrain": (pretrained, BANK),
    "alignment": (lambda: AlignmentTask(pretrained()), BANK),
    "language": (lambda: pretrained(language=SWITCH), [*BANK, "switch.txt"]),
    "two": (lambda: PretrainTask(two(dictionary={"path": "muse.txt"})), [*BANK, *OTHER, "muse.txt"]),
    "folder of words": (lambda: PretrainTask(two(dictionary={"path": {"y": "words"}})), ["words/dictionary.txt"]),
    "parallel": (
        lambda: PretrainTask(
            two(parallel=[{"languages": ["x", "y"], "sources": ["lines:left.txt", "lines:right.txt"]}])
        ),
        ["left.txt", "right.txt"],
    ),
    "start": (
        lambda: PretrainTask(
            parse(
                PretrainConfig,
                {k: v for k, v in RUN.items() if k not in ("vocabulary", "model")} | {"start": {"model": "model"}},
            )
        ),
        ["model/config.json", "model/model.safetensors"],
    ),
    "adjust": (lambda: adjusted(TEXT), ["left.txt", "right.txt", "links.txt", "back.txt", "model/model.safetensors"]),
    "adjust joint": (lambda: adjusted(JOINT, "run"), ["joint.txt", "links.txt", *RECORDS]),
    "adjust derived": (
        lambda: adjusted({"kind": "derived", "source": "conllu:other", "left": SWITCH}),
        [*OTHER, "switch.txt"],
    ),
    "transfer": (
        lambda: transferred(train="bank", dev="pos:other#test", test="conllu:text#test"),
        [*BANK, *OTHER, "text/x-ud-test.conllu"],
    ),
    "transfer target": (
        lambda: transferred(train="bank", target={"train": "other", "test": "conllu:text"}),
        [*BANK, *OTHER, "text/x-ud-test.conllu"],
    ),
    "transfer of a run": (lambda: transferred("run"), RECORDS),
    "transfer to a language": (
        lambda: transferred(train="bank", language="language.yaml"),
        ["language.yaml", "base.yaml", "switch.txt"],
    ),
    "transfer with a parser": (lambda: transferred(train="bank", parser="spacy:parser"), ["parser/meta.json"]),
    "transfer nli": (lambda: transferred(task="nli", train="nli:pairs-train.tsv"), ["pairs-train.tsv"]),
    "transfer hub folder": (
        lambda: transferred(task="nli", train="nli:hf:hub?language=en", test="hf:hub:default"),
        ["hub/data/train.csv"],
    ),
    "transfer target model": (
        lambda: transferred("run", features={"tune": "none"}, target_model="model"),
        [*RECORDS, "model/model.safetensors"],
    ),
    "continual": (lambda: transferred(train="bank", continual={"pairs": {"x": TEXT}}), ["left.txt", "links.txt"]),
    "rotation": (
        lambda: transferred(train="bank", features={"tune": "none"}, rotation={"map": "maps"}),
        ["maps/about.json", "maps/layer-0/map.safetensors"],
    ),
    "probe": (lambda: probed("run", pairs={"x": TEXT}), [*RECORDS, "left.txt", "links.txt"]),
    "probe models": (
        lambda: probed(model2="model", language="x", cka={"paraphrase": "run"}, distances={"before": {"b": "run"}}),
        [*RECORDS, "model/config.json"],
    ),
    "probe words": (
        lambda: probed(
            words={"dictionary": "muse.txt"}, maps={"dictionary": "more.txt", "test_dictionary": "types.txt"}
        ),
        ["muse.txt", "more.txt", "types.txt"],
    ),
    "probe maps": (
        lambda: probed(
            maps={
                "sentences": {"left": "left.txt", "right": "right.txt"},
                "static": {"kind": "load", "left": "left.vec", "right": "right.vec"},
            }
        ),
        ["left.txt", "right.txt", "left.vec", "right.vec"],
    ),
    "probe retrieval": (
        lambda: probed(retrieval={"static": {"kind": "load", "left": "left.vec", "right": "right.vec"}}),
        ["left.vec", "right.vec"],
    ),
    "probe language": (lambda: probed(language="language.yaml"), ["language.yaml", "base.yaml", "switch.txt"]),
    "probe parser": (lambda: probed(retrieval={"parser": "spacy:parser"}), ["parser/meta.json"]),
}


def made(store, task):
    """Let a task and those it needs look finished."""
    for one in (*task.needs, task):
        folder = store.path(one.kind, "f" * 16)
        folder.mkdir(parents=True, exist_ok=True)
        for name in one.content:
            write_json(folder / name, {"made": True})
        finish(store, one, "f" * 16, 1.0)


@pytest.mark.parametrize("name", TASKS)
def test_a_changed_file_is_noticed(name, here):
    make, files = TASKS[name]
    task, store = make(), Store(here / "store")
    for file in files:
        made(store, task)
        assert finished(store, task) == "f" * 16
        before = os.stat(file)
        Path(file).write_bytes(Path(file).read_bytes() + b"\n")
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns + 7))
        assert finished(store, task) is None, file
    (entry,) = (entry_of(store, task.key),)
    assert entry is not None and {str(here / file) for file in files} <= entry["inputs"].keys()


def test_a_name_that_was_a_folder_and_is_one_of_the_hub_now(here, tmp_path_factory, monkeypatch):
    store, task = Store(here / "store"), transferred("model", train="builtin:mini-english")
    made(store, task)
    assert finished(store, task) is not None
    monkeypatch.chdir(tmp_path_factory.mktemp("another"))
    assert finished(store, transferred("model", train="builtin:mini-english")) is None
    monkeypatch.chdir(here)
    assert finished(store, task) is not None


def test_the_parser_of_a_probe_counts_by_its_content(monkeypatch):
    config = parse(ProbeConfig, {"probes": ["retrieval"], "retrieval": {"parser": "spacy:parser"}})
    assert [named.name for named in named_in(config) if named.kind == "parser"] == ["spacy:parser"]
    found = []
    for content in ("one", "two"):
        monkeypatch.setattr(
            "probes.study.identity.open_engine", lambda spec, c=content: type("E", (), {"fingerprint": spec + c})
        )
        found.append(json.dumps(identity(config, {})))
    assert found[0] != found[1]


def test_a_probe_with_a_rotation_or_static_vectors_is_another_stage(here):
    """By the settings, and by what is in the files and not by what they are called."""
    Path("copy.vec").write_bytes(Path("left.vec").read_bytes())
    load = {"kind": "load", "left": "left.vec", "right": "right.vec"}
    kinds = [
        {}, {"rotation": {}}, {"rotation": {"supervision": "sentences"}}, {"rotation": {"normalise": "centre"}},
        {"rotation": {"words": None}}, {"rotation": {"moves": "source"}}, {"static": {"kind": "train"}},
        {"static": {"kind": "train", "text": "apart"}}, {"static": load}, {"static": {**load, "lower": True}},
    ]  # fmt: skip
    configs = [parse(ProbeConfig, {"probes": ["retrieval"], "retrieval": kind}) for kind in kinds]
    assert len({json.dumps(identity(config, {})) for config in configs}) == len(kinds)
    assert len({probed(retrieval=kind).key for kind in kinds}) == len(kinds)
    assert len({config.fits for config in configs[1:]}) == 1 and not configs[0].fits and configs[1].fits
    moved = parse(ProbeConfig, {"probes": ["retrieval"], "retrieval": {"static": {**load, "left": "copy.vec"}}})
    assert identity(moved, {}) == identity(configs[8], {})
    Path("copy.vec").write_bytes(b"1 2\nx 1 2\n")
    assert identity(moved, {}) != identity(configs[8], {})


def test_what_has_no_files(here):
    assert PretrainTask(parse(PretrainConfig, PRETRAIN)).files() == []
    assert transferred("bert", train="hf:conll2003").files() == []
