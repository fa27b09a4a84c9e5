"""Streams of the hub: the same sentences as a download, no copy on disk, bounded memory, and exact resume."""

from __future__ import annotations

import gc
import io
import os
import shutil
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import synthlang
from pretrain.step import Step
from probes import cli
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export import export_language, run
from synthlang.files import DiskError, read_json
from synthlang.language import PARENT, parse_language
from synthlang.parsing import ParsedSource
from synthlang.parsing.chunks import CHUNK
from synthlang.parsing.parse_command import write_parsed
from synthlang.shards import write_shards
from synthlang.sources import base, open_source
from synthlang.sources.base import BATCH_SENTENCES, size_of
from synthlang.store import Store
from synthlang.strict_yaml import write_yaml
from synthlang.vocabularies import VocabularySpec, build_id_space
from tests.data_server import DataServer, Fault, serving
from tests.hub_folders import TEXT, datasets, jsonl, offline, parquet  # noqa: F401  a fixture
from tests.refusals import refusal, refused
from tests.runs import assert_same_run, forked
from tests.study_cases import command
from tests.test_export import digest
from tests.test_parsing import Chain
from tests.tiny import PRETRAIN, changed

LANGUAGE = parse_language("trans+inv")
WORDS = datasets.List(datasets.Value("string"))
TAGGED = {"tokens": WORDS, "ner_tags": datasets.List(datasets.ClassLabel(names=["O", "B-PER"]))}
ENTITIES = {"tokens": [["Anna", "ran"], ["So", "what"]], "ner_tags": [[1, 0], [0, 0]]}
TEXTS = {"text": [f"Sentence {i} is here. So is another one!\nNext line {i}" for i in range(3000)]}


def tagged(folder: Path) -> Path:
    return parquet(folder, TAGGED, train=ENTITIES, validation=ENTITIES)


def plain(folder: Path) -> Path:
    return parquet(folder, {"text": TEXT}, train=TEXTS)


def lines(folder: Path) -> Path:
    return jsonl(folder, train=TEXTS, test={"text": ["One."]})


def table(folder: Path) -> Path:
    folder.mkdir()
    (folder / "train.csv").write_text("text\nnull\n\nNA is a word.\n")
    return folder


@pytest.mark.parametrize("make", [tagged, plain, lines, table])
def test_a_stream_has_the_sentences_of_a_download(make, tmp_path):
    folder = make(tmp_path / "d")
    loaded, stream = open_source(f"hf:{folder}"), open_source(f"hf:{folder}?streaming")
    assert (stream.splits, stream.columns) == (loaded.splits, loaded.columns)
    for split in loaded.splits:
        ours, theirs = (list(source.batches(split)) for source in (stream, loaded))
        assert [len(batch) for batch in ours] == [len(batch) for batch in theirs]
        assert [dict(s.columns) for b in ours for s in b] == [dict(s.columns) for b in theirs for s in b]


def test_the_fingerprint_of_a_stream_is_of_its_files_and_options(tmp_path):
    first = open_source(f"hf:{plain(tmp_path / 'a')}?streaming").fingerprint
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    assert open_source(f"hf:{tmp_path / 'b'}?streaming").fingerprint == first
    assert open_source(f"hf:{tmp_path / 'a'}").fingerprint != first
    assert open_source(f"hf:{tmp_path / 'a'}?streaming&cjk=characters").fingerprint != first
    parquet(tmp_path / "b", {"text": TEXT}, train={"text": TEXTS["text"][:-1]})
    assert open_source(f"hf:{tmp_path / 'b'}?streaming").fingerprint != first


def test_the_number_of_sentences_is_known_or_unknown(tmp_path):
    """It is never a guess without a basis: unknown, then estimated by the share of the rows, then exact."""
    words = open_source(f"hf:{tagged(tmp_path / 'tagged')}")
    assert size_of(words, "train") == 2
    stream = open_source(f"hf:{tmp_path / 'tagged'}?streaming")
    assert size_of(stream, "train") is None  # parquet files do not state it before they are opened
    list(stream.batches("train"))
    assert size_of(stream, "train") == 2
    text = open_source(f"hf:{plain(tmp_path / 'plain')}")
    assert size_of(text, "train") is None
    batches = text.batches("train")
    next(batches)
    assert size_of(text, "train") == pytest.approx(9000, rel=0.1)
    assert sum(len(batch) for batch in batches) + BATCH_SENTENCES == size_of(text, "train") == 9000


def test_the_stated_number_of_rows_is_taken(tmp_path):
    folder = tagged(tmp_path / "d")
    (folder / "README.md").write_text(
        "---\ndataset_info:\n  features:\n  - name: tokens\n    list: string\n  - name: ner_tags\n    list: int64\n"
        "  splits:\n  - name: train\n    num_examples: 2\n  - name: validation\n    num_examples: 2\n---\n"
    )
    assert size_of(open_source(f"hf:{folder}?streaming"), "dev") == 2


@pytest.mark.parametrize(
    ("options", "place", "code"),
    [
        ("?streaming=yes", "hf:d streaming", "type"),
        ("?stream", "hf:d stream", "unknown"),
        ("?", "hf:d", "unknown"),
        ("?revision", "hf:d revision", "type"),
        ("?streaming&revision=main", "hf:d revision", "no_effect"),
        ("?revision=main", "hf:d revision", "no_effect"),
    ],
)
def test_bad_options(options, place, code, tmp_path, monkeypatch):
    tagged(tmp_path / "d")
    monkeypatch.chdir(tmp_path)
    assert refused(open_source, f"hf:d{options}") == (place, code)


@pytest.mark.parametrize(
    ("line", "place", "code"), [(b"{bad\n", "hf:d", "failed"), (b'{"text": "\xff"}\n', "hf:d train", "format")]
)
def test_a_damaged_line_of_a_stream_is_found_in_its_data_set(line, place, code, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "train.jsonl").write_bytes(b'{"text": "One."}\n' + line)
    assert refused(open_source, "hf:d?streaming") == (place, code)


def test_a_stream_that_breaks_off_is_one_line_and_goes_on_later(tmp_path, monkeypatch):
    """What is finished is kept, which another wrong input would delete."""
    monkeypatch.setattr(run, "SHARD_BATCHES", 1)
    spec, out = f"hf:{plain(tmp_path / 'd')}?streaming", tmp_path / "out"
    whole = tmp_path / "whole"
    export_language(open_source(spec), LANGUAGE, whole, source_name="x")
    iterate = datasets.IterableDataset.iter

    def broken(self: Any, batch_size: int) -> Iterator[Any]:
        for number, one in enumerate(iterate(self, batch_size)):
            if number == 2:
                raise ConnectionError("the network is gone\nand more")
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(datasets.IterableDataset, "iter", broken)
        error = refusal(export_language, open_source(spec), LANGUAGE, out, source_name="x")
    assert isinstance(error, DiskError)
    assert str(error).startswith(
        f"hf:{tmp_path / 'd'}: the data set cannot be read to its end: the network is gone and more;"
    )
    assert len(list((tmp_path / ".partial-out" / "done").glob("*.json"))) == 3
    export_language(open_source(spec), LANGUAGE, out, source_name="x")
    assert digest(out) == digest(whole)


# --- memory


class Watched:
    """A source that counts how many of its batches are alive at once."""

    def __init__(self, source: Any) -> None:
        self._source, self.most, self.read = source, 0, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    def batches(self, split: str) -> Iterator[Corpus]:
        alive: list[weakref.ref[Corpus]] = []
        for batch in self._source.batches(split):
            alive = [one for one in alive if one() is not None]
            alive.append(weakref.ref(batch))
            self.most, self.read = max(self.most, len(alive)), self.read + 1
            yield batch
            del batch
            gc.collect()


def derived(source: Any, folder: Path) -> None:
    export_language(source, LANGUAGE, folder / "out", source_name="x")


def packed(source: Any, folder: Path) -> None:
    [tokenizer] = build_id_space(VocabularySpec(size=300), [("parent", source, PARENT)], Store(folder))[0].languages
    write_shards(source, "train", PARENT, tokenizer, folder / "out")


def parsed(source: Any, folder: Path) -> None:
    write_parsed(ParsedSource(source, Chain(log=str(folder / "log")), folder / "cache"), folder / "out")


@pytest.fixture
def frozen_objects() -> Iterator[None]:
    """Leave the objects of the process so far out of garbage collections, which makes a collection a batch cheap."""
    gc.freeze()
    yield
    gc.unfreeze()


@pytest.mark.usefixtures("frozen_objects")
@pytest.mark.parametrize("work", [derived, packed, parsed])
def test_a_stream_is_held_in_few_batches_however_long_it_is(work, tmp_path, monkeypatch):
    monkeypatch.setattr(run, "SHARD_BATCHES", 2)
    monkeypatch.setattr(base, "BATCH_SENTENCES", CHUNK)  # much less text for as many batches
    most = []
    for rows in (5 * CHUNK // 2, 20 * CHUNK // 2):
        texts = {"text": [f"Sentence {i} is here. Next one!" for i in range(rows)]}
        folder = parquet(tmp_path / f"d{rows}", {"text": TEXT}, train=texts)
        source = Watched(open_source(f"hf:{folder}?streaming"))
        (tmp_path / str(rows)).mkdir()
        work(source, tmp_path / str(rows))
        assert source.read >= rows * 2 / CHUNK
        most.append(source.most)
    assert most[0] == most[1] <= 3


# --- a hub on the loopback interface

COMMIT = "c" * 40
CARD = b"---\nconfigs:\n- config_name: en\n  data_files:\n  - split: train\n    path: en/train-*\n---\n"
FILES = "/{repo_id}/resolve/{revision}/"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    """A hub that this process uses, too."""
    with serving() as server:
        files = {"README.md": CARD}
        for part in range(4):
            buffer = io.BytesIO()
            pq.write_table(pa.table({"text": [f"Row {part} {i} is long." for i in range(2000)]}), buffer)
            files[f"en/train-0000{part}-of-00004.parquet"] = buffer.getvalue()
        server.repos["me/wiki", COMMIT] = files
        use_hub(server.address, tmp_path / "home", monkeypatch.setattr)
        yield server


def use_hub(address: str, home: Path, change: Callable[[object, str, object], None] = setattr) -> None:
    """Let the libraries, which may be loaded already, use a hub, and keep in ``home`` what they keep."""
    places = {"ENDPOINT": address, "HUGGINGFACE_CO_URL_TEMPLATE": f"{address}{FILES}{{filename}}"}
    for name, value in {**places, "HF_HUB_OFFLINE": False, "HF_HUB_CACHE": str(home / "hub")}.items():
        change(sys.modules["huggingface_hub"].constants, name, value)
    places = {"HF_ENDPOINT": address, "HUB_DATASETS_URL": f"{address}/datasets{FILES}{{path}}"}
    for name, value in {**places, "HF_HUB_OFFLINE": False, "HF_DATASETS_CACHE": str(home / "datasets")}.items():
        change(datasets.config, name, value)


def nothing_is_stored(home: Path) -> bool:
    return any(home.iterdir()) and not any(home.rglob("*.parquet")) and not any(home.rglob("*.arrow"))


def derive(address: str, home: Path, spec: str, out: Path) -> None:
    """Derive a data set in a process that may be killed."""
    use_hub(address, home)
    vars(run).update(SHARD_BATCHES=1)
    synthlang.derive(spec, "trans+inv", out, examples=0)


def test_a_killed_derivation_from_the_hub_ends_with_the_same_bytes(hub, tmp_path, monkeypatch):
    """Nothing of the text is stored, and the fingerprint has the commit behind the branch."""
    monkeypatch.setattr(run, "SHARD_BATCHES", 1)
    home, out, name = tmp_path / "home", tmp_path / "out", "hf:me/wiki:en?streaming"
    synthlang.derive(f"{name}&revision={COMMIT}", "trans+inv", tmp_path / "whole", examples=0)
    assert nothing_is_stored(home)
    hub.faults["en/train-00002-of-00004.parquet"].append(Fault(cut=1000, stall=True))
    process = forked(derive, hub.address, home, name, out)
    assert hub.stalled.wait(60)
    process.kill()
    process.join()
    before = len(list((tmp_path / ".partial-out" / "done").glob("*.json")))
    assert before in (1, 2), "a shard for each whole file before the one that stalls, of four in all"
    synthlang.derive(name, "trans+inv", out, examples=0)
    assert digest(out / "data") == digest(tmp_path / "whole" / "data")
    manifests = [read_json(folder / "manifest.json") for folder in (out, tmp_path / "whole")]
    assert manifests[0]["fingerprint"] == manifests[1]["fingerprint"]


def test_a_hub_that_does_not_answer_is_one_line(tmp_path):
    with pytest.raises(InputError, match=r"hf:me/wiki: cannot be loaded: .*; check the name, its options"):
        open_source("hf:me/wiki?streaming")  # offline


def pretrain(address: str, home: Path, config: Path, out: Path, die_at: int = 0) -> None:
    """Train in a process that may be killed, or ends at a step."""
    use_hub(address, home)
    train = Step.__call__

    def dies(self: Step, step: int, batches: Any) -> Any:
        return os._exit(9) if step == die_at else train(self, step, batches)

    setattr(Step, "__call__", dies)  # noqa: B010 (a method)
    sys.argv = ["synthlang", "pretrain", str(config), "--out", str(out)]
    cli.main()


def test_a_pretraining_on_a_stream_resumes_exactly_after_kills_in_the_stream_and_in_training(
    hub, tmp_path, monkeypatch
):
    """A killed reading of the stream starts again, and a killed training continues from its checkpoint."""
    [files] = hub.repos.values()
    for name in ("en/train-00002-of-00004.parquet", "en/train-00003-of-00004.parquet"):
        del files[name]
    files["en/test-00000-of-00001.parquet"] = files["en/train-00000-of-00004.parquet"]
    files["README.md"] = CARD.removesuffix(b"---\n") + b"  - split: validation\n    path: en/test-*\n---\n"
    config = tmp_path / "config.yaml"
    config.write_text(write_yaml(changed(PRETRAIN, source=f"hf:me/wiki:en?streaming&revision={COMMIT}")))
    home, out, whole = tmp_path / "home", tmp_path / "run", tmp_path / "whole"
    assert command(monkeypatch, "pretrain", config, "--out", whole) == 0
    hub.faults["en/train-00001-of-00004.parquet"].append(Fault(cut=1000, stall=True))
    process = forked(pretrain, hub.address, home, config, out)
    assert hub.stalled.wait(300)
    process.kill()
    process.join()
    assert not (out / "checkpoints").exists()
    process = forked(pretrain, hub.address, home, config, out, 5)
    process.join(300)
    assert process.exitcode == 9
    assert [path.name for path in sorted((out / "checkpoints").iterdir())] and not (out / "done.json").exists()
    assert command(monkeypatch, "pretrain", config, "--out", out) == 0
    assert_same_run(whole, out)
    assert read_json(out / "done.json")["fingerprint"] == read_json(whole / "done.json")["fingerprint"]
    assert nothing_is_stored(home)
