"""References of stages are compared by content, which is read again only if a file has changed."""

import os
from pathlib import Path
from typing import Any

import pytest

from pretrain import prepare
from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures.table import ProbeConfig
from probes.stages import content_hashes, loaded
from probes.stages.adjust import AdjustStage
from probes.stages.alignment import AlignmentStage
from probes.stages.base import StageKeys
from probes.stages.content_hashes import READER_FORMATS, TABLE, ContentHashes
from probes.stages.done import is_done
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.study.executors.base import run_stage
from probes.transfer import splits
from probes.transfer.config import TransferConfig
from synthlang.config import dump_yaml, parse
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.progress import silent
from synthlang.references import Named
from synthlang.store import Store
from tests.study_graphs import FULL, graph_of, run_all, write_treebank
from tests.tiny import changed

RUN = {**FULL["pretrain"], "source": "conllu:bank"}
LINES = "a b\nc d\n"
ALIGN, TLM = {"kind": "align_mlm"}, {"kind": "xlm"}
NLI = "premise\thypothesis\tlabel\na b\tc d\tneutral\n"


class FolderEngine:
    """A parser in a folder that no library has to read."""

    def __init__(self, spec):
        self.path = spec.partition(":")[2]
        self.fingerprint = (Path(self.path) / "meta.json").read_text()


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
    monkeypatch.setattr(content_hashes, "open_engine", FolderEngine)
    return tmp_path


def pretrained(**values):
    return PretrainStage(config=parse(PretrainConfig, {**RUN, **values}))


def two(**values):
    languages = [{"name": n, "source": f"conllu:{place}"} for n, place in (("x", "bank"), ("y", "other"))]
    plain = {k: v for k, v in RUN.items() if k not in ("language", "source")}
    return PretrainStage(config=parse(PretrainConfig, plain | {"languages": languages} | values))


def started():
    run = {k: v for k, v in RUN.items() if k not in ("vocabulary", "model")}
    return PretrainStage(config=parse(PretrainConfig, run | {"start": {"model": "model"}}))


def adjusted(pair, model="model"):
    return AdjustStage(config=parse(AdjustConfig, {"model": model, "pairs": {"x": pair}}), model=model)


def transferred(model="hubname", **values):
    config = parse(TransferConfig, {"language": "trans", "train": "bank", **values})
    return TransferStage(config=config, name="t", seed=0, model=model)


def frozen(model="hubname", **values):
    return transferred(model, features={"tune": "none"}, **values)


def probed(model="hubname", **values):
    return ProbeStage(config=parse(ProbeConfig, values), name="p", model=model)


BANK, OTHER = ([f"{place}/x-ud-{split}.conllu" for split in ("train", "test")] for place in ("bank", "other"))
RECORDS = ["run/config.yaml", "run/run.json", "run/done.json", "text/x-ud-train.conllu"]
WEIGHTS = ["model/config.json", "model/model.safetensors"]
TEXTS, LINKED, VECTORS = ["left.txt", "right.txt"], ["links.txt", "back.txt"], ["left.vec", "right.vec"]
SPOKEN = ["language.yaml", "base.yaml", "switch.txt"]
SIDES = {"left": "left.txt", "right": "right.txt"}
LINKS = {"kind": "file", "path": "links.txt"}
TEXT = {"kind": "text", **SIDES, "links": {**LINKS, "reverse": "back.txt"}}
JOINT = {"kind": "text", "joint": "joint.txt", "links": LINKS}
SWITCH = {"name": "s", "transforms": [{"kind": "code_switch", "dictionary": "switch.txt"}]}
PARALLEL = [{"languages": ["x", "y"], "sources": ["lines:left.txt", "lines:right.txt"]}]
LOAD = {"kind": "load", "left": "left.vec", "right": "right.vec"}
DERIVED = {"kind": "derived", "source": "conllu:other", "left": SWITCH}
TARGET = {"train": "other", "test": "conllu:text"}
WORDS = {"dictionary": "more.txt", "test_dictionary": "types.txt"}
TESTED = [*OTHER, "text/x-ud-test.conllu"]
MODELS: dict[str, Any] = {"model2": "model", "cka": {"paraphrase": "run"}, "distances": {"before": {"b": "run"}}}
STAGES: dict[str, Any] = {
    "pretrain": (pretrained, BANK),
    "alignment": (lambda: AlignmentStage(pretrained=pretrained()), BANK),
    "language": (lambda: pretrained(language=SWITCH), [*BANK, "switch.txt"]),
    "two": (lambda: two(objective=ALIGN, dictionary={"path": "muse.txt"}), [*BANK, *OTHER, "muse.txt"]),
    "folder of words": (lambda: two(objective=ALIGN, dictionary={"path": {"y": "words"}}), ["words/dictionary.txt"]),
    "parallel": (lambda: two(objective=TLM, parallel=PARALLEL), TEXTS),
    "start": (started, WEIGHTS),
    "adjust": (lambda: adjusted(TEXT), [*TEXTS, *LINKED, *WEIGHTS[1:]]),
    "adjust joint": (lambda: adjusted(JOINT, "run"), ["joint.txt", "links.txt", *RECORDS]),
    "adjust derived": (lambda: adjusted(DERIVED), [*OTHER, "switch.txt"]),
    "transfer": (lambda: transferred(dev="pos:other#test", test="conllu:text#test"), [*BANK, *TESTED]),
    "transfer target": (lambda: transferred(target=TARGET), [*BANK, *TESTED]),
    "transfer of a run": (lambda: transferred("run"), RECORDS),
    "transfer to a language": (lambda: transferred(language="language.yaml"), SPOKEN),
    "transfer with a parser": (lambda: transferred(parser="spacy:parser"), ["parser/meta.json"]),
    "transfer nli": (lambda: transferred(task="nli", train="nli:pairs-train.tsv"), ["pairs-train.tsv"]),
    "transfer hub folder": (lambda: transferred(task="nli", train="nli:hf:hub?language=en"), ["hub/data/train.csv"]),
    "transfer hub config": (lambda: transferred(task="nli", test="hf:hub:default"), ["hub/data/train.csv"]),
    "transfer target model": (lambda: frozen("run", target_model="model"), [*RECORDS, *WEIGHTS[1:]]),
    "continual": (lambda: transferred(continual={"pairs": {"x": TEXT}}), ["left.txt", "links.txt"]),
    "rotation": (lambda: frozen(rotation={"map": "maps"}), ["maps/about.json", "maps/layer-0/map.safetensors"]),
    "probe": (lambda: probed("run", pairs={"x": TEXT}), [*RECORDS, "left.txt", "links.txt"]),
    "probe models": (lambda: probed(language="x", **MODELS), [*RECORDS, *WEIGHTS[:1]]),
    "probe words": (
        lambda: probed(words={"dictionary": "muse.txt"}, maps=WORDS),
        ["muse.txt", "more.txt", "types.txt"],
    ),
    "probe maps": (lambda: probed(maps={"sentences": SIDES, "static": LOAD}), [*TEXTS, *VECTORS]),
    "probe retrieval": (lambda: probed(retrieval={"static": LOAD}), VECTORS),
    "probe language": (lambda: probed(language="language.yaml"), SPOKEN),
    "probe parser": (lambda: probed(retrieval={"parser": "spacy:parser"}), ["parser/meta.json"]),
}


def key_of(stage, store=None):
    """The key of a stage and those that it is made of, as a start of a study works it out."""
    known = ContentHashes(store)
    stage_keys = StageKeys(known)
    parents = {
        field: parent.model_copy(update={"key": stage_keys.key(parent)})
        for field, parent in ((name, getattr(stage, name)) for name in type(stage).model_fields)
        if isinstance(parent, PretrainStage)
    }
    key = stage_keys.key(stage.model_copy(update=parents))
    if store is not None:
        known.save(store)
    return key


@pytest.mark.parametrize("name", STAGES)
def test_a_changed_file_is_another_key(name, here):
    make, files = STAGES[name]
    store = Store(here / "store")
    store.root.mkdir()
    keys = [key_of(make(), store)]
    assert {str(here / file) for file in files} <= make().files(ContentHashes(store)).keys()
    for file in sorted({*files} - {"run/done.json"}):  # what a run made is told by run.json
        before, content = os.stat(file), Path(file).read_bytes()
        Path(file).write_bytes(changed_text(file, content))
        os.utime(file, ns=(before.st_mtime_ns, before.st_mtime_ns + 7))
        keys.append(key_of(make(), store))
        Path(file).write_bytes(content)
        assert key_of(make(), store) == keys[0], f"{file} is as it was"
    assert len({*keys}) == len(keys)


def changed_text(file, content):
    """Another content of a file that is still one of its kind."""
    if file == "base.yaml":
        return content + b"split_entities: drop\n"
    for name, old, new in (("run.json", b'"f"', b'"g"'), ("config.yaml", b"steps: 6", b"steps: 7"),
                           ("language.yaml", b"seed: 3", b"seed: 4"), ("train.conllu", b"w1\t", b"w31\t"),
                           ("test.conllu", b"w1\t", b"w31\t"), ("meta.json", b"{", b" {")):  # fmt: skip
        if file.endswith(name):
            return content.replace(old, new)
    return content + b"c d\n"


def test_no_file_is_opened_that_is_as_it_was(here, monkeypatch):
    store = Store(here / "store")
    store.root.mkdir()
    stages = [make() for make, _ in STAGES.values()]
    keys = [key_of(stage, store) for stage in stages]
    for module in ("open_source", "sha256_file", "open_engine"):
        monkeypatch.setattr(content_hashes, module, lambda *_: pytest.fail("a file was opened"))
    assert [key_of(stage, store) for stage in stages] == keys


def test_a_file_counts_by_its_content_and_not_by_its_name(here):
    Path("copy.vec").write_bytes(Path("left.vec").read_bytes())
    moved = {"static": {**LOAD, "left": "copy.vec"}}
    first = key_of(probed(retrieval={"static": LOAD}))
    assert key_of(probed(retrieval=moved)) == first
    Path("copy.vec").write_bytes(b"1 2\nx 1 2\n")
    assert key_of(probed(retrieval=moved)) != first
    Path("bank").rename("moved")
    assert key_of(pretrained(source="conllu:moved")) == key_of(pretrained(source="conllu:other"))


def test_a_name_that_was_a_folder_and_is_one_of_the_hub_now(here, tmp_path_factory, monkeypatch):
    store = Store(here / "store")
    store.root.mkdir()
    stage = transferred("model", train="builtin:mini-english")
    first = key_of(stage, store)
    monkeypatch.chdir(tmp_path_factory.mktemp("another"))
    assert key_of(stage, store) != first
    monkeypatch.chdir(here)
    assert key_of(stage, store) == first


def test_another_version_of_a_parser_is_another_key(monkeypatch):
    found = set()
    for version in ("one", "two"):
        engine = type("Engine", (), {"fingerprint": version, "path": None})
        monkeypatch.setattr(content_hashes, "open_engine", lambda _, engine=engine: engine)
        found.add(key_of(probed(retrieval={"parser": "spacy:parser"})))
    assert len(found) == 2


def test_what_is_not_there_has_a_key_that_nothing_has(here):
    """A study says why when it checks its cells, and not when it looks what is done."""
    whole = key_of(pretrained())
    (here / "bank" / "x-ud-train.conllu").unlink()
    (here / "bank" / "x-ud-test.conllu").unlink()
    assert key_of(pretrained()) != whole


def test_the_words_of_a_message_are_in_no_key(here, monkeypatch):
    named, known = Named((), "file", "none.txt"), ContentHashes().of(Named((), "file", "none.txt"))

    def refuse(*_: Any) -> Any:
        raise InputError("in other words", code="missing")

    monkeypatch.setitem(content_hashes.NAMED, "file", refuse)
    again = ContentHashes().of(named)
    assert again.hash == known.hash and str(again.error) != str(known.error)


# --- files that change while a stage is made ---


@pytest.fixture
def study(here):
    """Stages of a study of the treebank."""
    whole, _ = graph_of(changed(FULL, source="conllu:bank", seeds=[0], probes={}, tasks={"pos": {}}))
    return whole, Store(here / "store")


def test_a_file_that_changed_since_the_start_is_for_the_next_start(study):
    whole, store = study
    with Path("bank/x-ud-train.conllu").open("a") as handle:
        handle.write("1\tw1\t_\tN\t_\t_\t0\tx\t_\t_\n\n")
    error = run_stage(next(iter(whole.stages.values())), store, silent).error
    said = (
        "a file that pretrain mlm trans+inv reads has changed since the command was started; run the same command again"
    )
    assert error == said
    assert not list(store.root.glob("pretrain-*"))


@pytest.mark.parametrize("changed_too", [True, False], ids=["other content", "touched"])
@pytest.mark.parametrize("kind", ["pretrain", "transfer"])
def test_what_was_read_of_a_file_while_it_changed_is_not_kept(study, monkeypatch, kind, changed_too):
    """A file that was only touched, and another one beside it, are no reason."""
    whole, store = study
    *before, last = whole.stages.values()
    stage = whole.stages[whole.of_cell["full"]["pretrain"]] if kind == "pretrain" else last
    if kind == "transfer":
        run_all({one.key: one for one in before}, store)
    assert loaded, "no module that a stage imports is imported while a function is replaced"
    module, name = (prepare, "prepare") if kind == "pretrain" else (splits, "load_data")
    read = getattr(module, name)
    file = Path("bank/x-ud-test.conllu")
    content = file.read_bytes()

    def meanwhile(*arguments):
        Path("bank/notes.md").write_text("mine")
        if changed_too:
            file.write_bytes(content + b"1\tw1\t_\tN\t_\t_\t0\tx\t_\t_\n\n")
        else:
            os.utime(file)
        return read(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(module, name, meanwhile)
        outcome = run_stage(stage, store, silent)
    if changed_too:
        assert outcome.error is not None and "has changed while it was read" in outcome.error
        assert not is_done(store, stage)
        file.write_bytes(content)
    assert run_stage(stage, store, silent).error is None and is_done(store, stage)


# --- what is no content, what was made by other code, what cannot be opened ---


def named(kind, name):
    return Named((), kind, name)


def test_another_version_of_a_reader_finds_nothing_that_was_noted(here, monkeypatch):
    store, file = Store(here / "store"), named("source", "conllu:bank")
    hashes = ContentHashes(store)
    hashes.of(file)
    hashes.save(store)
    noted = read_json(store.root / TABLE)
    monkeypatch.setattr("probes.stages.content_hashes.READER_FORMATS", (*READER_FORMATS[:-1], READER_FORMATS[-1] + 1))
    again = ContentHashes(store)
    again.of(file)
    again.save(store)
    assert len(read_json(store.root / TABLE)) == 2 * len(noted)


def test_cards_and_hidden_files_are_no_content(here):
    for folder in ("a", "b"):
        Path(folder, ".git").mkdir(parents=True)
        Path(folder, "train.json").write_text('{"words": ["x"]}')
    Path("b/.git/index").write_text("1")
    Path("b/README.md").write_text("# About")
    a, b = (ContentHashes().of(named("source", f"hf:{folder}")) for folder in ("a", "b"))
    assert a.hash == b.hash
    Path("b/train.json").write_text('{"words": ["y"]}')
    assert ContentHashes().of(named("source", "hf:b")).hash != a.hash


def test_a_checkpoint_in_the_folder_export_counts(here):
    for folder, weights in (("a", "1"), ("b", "2")):
        Path(folder, "export").mkdir(parents=True)
        Path(folder, "export", "model.safetensors").write_text(weights)
    assert ContentHashes().of(named("model", "a")).hash != ContentHashes().of(named("model", "b")).hash


def test_a_record_that_is_not_ours_is_a_problem_and_no_traceback(here):
    Path("foreign").mkdir()
    Path("foreign/run.json").write_text("[]")
    error = ContentHashes().of(named("model", "foreign")).error
    assert error is not None and error.code == "format"


def test_names_of_languages_count_since_a_model_may_have_one_of_the_name():
    one, other = (ContentHashes().of(named("language", name)).hash for name in ("trans", "trans:1.0"))
    assert one != other


@pytest.mark.parametrize("entry", [None, [], {}, {"digest": 1, "files": {}}, {"digest": "x", "file": {}}])
def test_a_damaged_entry_of_the_table_counts_as_none(entry, here):
    store, file = Store(here / "store"), named("file", "muse.txt")
    hashes = ContentHashes(store)
    before = hashes.of(file).hash
    hashes.save(store)
    table = store.root / TABLE
    write_json(table, dict.fromkeys(read_json(table), entry))
    assert ContentHashes(store).of(file).hash == before


def test_items_of_a_probe_name_their_task(tmp_path):
    """Their hash follows the content of the files, not their place, and covers the split."""

    def hash_of(spec):
        found = ContentHashes().of(Named(("items",), "items", spec))
        assert found.error is None
        return found.hash

    paths = [tmp_path / name / "x.tsv" for name in ("here", "there")]
    for path in paths:
        path.parent.mkdir()
        path.write_text("a b\tb a\n")
    first = hash_of(f"minimal:{paths[0]}")
    assert first == hash_of(f"minimal:{paths[1]}") != hash_of(f"minimal:{paths[1]}#test")
    paths[1].write_text("a b\tb b\n")
    assert hash_of(f"minimal:{paths[1]}") != first
    builtin = "minimal:builtin:mini-english?types=500"
    assert hash_of(builtin) != hash_of(f"{builtin}&seed=1")
    wrong = ContentHashes().of(Named(("items",), "items", f"minimal:{tmp_path / 'none'}"))
    assert wrong.error is not None and wrong.error.code == "missing"


def test_a_stored_hash_of_items_is_not_used_after_a_change_of_their_reader(tmp_path, monkeypatch):
    (tmp_path / "x.tsv").write_text("a b\tb a\n")
    store, named = Store(tmp_path / "store"), Named(("items",), "items", f"minimal:{tmp_path / 'x.tsv'}")
    hashes = ContentHashes(store)
    before = hashes.of(named).hash
    hashes.save(store)
    monkeypatch.setattr("synthlang.tasks.minimal.READER", -1)
    assert ContentHashes(store).of(named).hash != before
