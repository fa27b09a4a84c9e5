"""Parsing with several devices and with jobs of a cluster: the bytes of one process, whatever fails in between."""

from __future__ import annotations

import gzip
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("submitit", reason="submitit is not installed (pip install 'synthlang-study[slurm]')")
pytest.importorskip("spacy", reason="needs the extra parse: spaCy")

import probes
from probes.parse_jobs import run_parts
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.parse import ParseStage, PartConfig
from probes.study.executors.base import StageOutcome
from probes.study.executors.local import InlineExecutor
from probes.study.executors.slurm_job import run_file
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.parsing.chunks import CHUNK
from synthlang.parsing.parse_command import parse_command
from synthlang.parsing.parts import read_part, write_part
from synthlang.progress import silent, unheard
from synthlang.store import Store
from synthlang.workers import ordered_map
from tests.refusals import refused
from tests.slurm_fakes import fake_slurm  # noqa: F401  a fixture
from tests.test_export import digest
from tests.test_parsing_engines import folder_of  # noqa: F401  a fixture

SOURCE = "builtin:mini-english?types=500&sentences=500&dev=20&test=20"


@pytest.fixture
def model(folder_of):  # noqa: F811
    return str(folder_of("spacy"))


@pytest.fixture
def serial(model, tmp_path):
    """The output of one process."""
    parse_command(SOURCE, f"spacy:{model}", tmp_path / "serial", cache=tmp_path / "own cache")
    return digest(tmp_path / "serial")


def work_as_the_node(work: Path) -> list[str]:
    """Do every submitted task, and return the names of their parts."""
    jobs = read_json(work / "slurm" / "jobs.json")["jobs"]
    done = []
    for path in sorted((work / "slurm" / "tasks").glob("*.json")):
        outcome = run_file(path, work / "stages")
        assert outcome.error is None, outcome.log
        write_json(work / "slurm" / "records" / path.name, {**asdict(outcome), "job": jobs[path.stem]})
        done.append(Path(read_json(path)["config"]["part"]).name)
    return sorted(done)


@pytest.mark.parametrize("tokens", ["source", "engine"])
def test_jobs_that_are_collected_later_give_the_bytes_of_one_process(tokens, model, slurm, tmp_path, capsys):
    source, out, work = SOURCE, tmp_path / "out", tmp_path / ".parsing-out"
    if tokens == "engine":
        (tmp_path / "text.txt").write_text("".join(f"the dog {i} sees a cat .\n" for i in range(450)))
        source = f"text:{tmp_path / 'text.txt'}"
    given: Any = {"model": model, "tokens": tokens, "executor": "slurm", "slurm": ["poll=1e-9", "parse.cpus=2"]}
    assert probes.parse(source, out, **given, wait=False, job_sentences=250) == {}
    splits = ["train"] if tokens == "engine" else ["dev", "test", "train"]
    parts = [f"{split}-00000.jsonl.gz" for split in splits] + ["train-00001.jsonl.gz"]
    assert not out.exists() and slurm.sent == 1  # one array
    assert f"--array=0-{len(parts) - 1}%" in slurm.script(1) and "--cpus-per-task=2" in slurm.script(1)
    probes.parse(source, out, **given, wait=False, job_sentences=250)  # sends nothing twice
    assert slurm.sent == 1
    assert work_as_the_node(work) == parts
    counts = probes.parse(source, out, **given, job_sentences=250)
    assert not work.exists() and slurm.sent == 1
    parse_command(source, f"spacy:{model}", tmp_path / "serial", tokens, cache=tmp_path / "own cache")
    assert digest(out) == digest(tmp_path / "serial")
    assert counts == read_json(out / "manifest.json")["sentences"]
    chunks = 3 + 2 if tokens == "source" else 3
    assert f"; {chunks} of {chunks} chunks from the cache" in capsys.readouterr().err
    assert probes.parse(source, out, **given) == counts  # a finished folder needs no cluster


def test_parts_in_a_known_cache_are_not_sent(model, serial, slurm, tmp_path):
    given: Any = {"model": model, "executor": "slurm", "cache": tmp_path / "own cache"}
    probes.parse(SOURCE, tmp_path / "out", **given)
    assert slurm.sent == 0 and digest(tmp_path / "out") == serial


def stages(model: str, folder: Path, *parts: list[list[str]]) -> list[ParseStage]:
    keys, found = StageKeys(ContentHashes()), []
    for number, part in enumerate(parts):
        write_part(folder / f"train-{number:05d}.jsonl.gz", [part])
        config = PartConfig(parser=f"spacy:{model}", part=str(folder / f"train-{number:05d}.jsonl.gz"), mode="words")
        found.append(keys.keyed(ParseStage(config=config, cache=str(folder / "cache"))))
    return found


def test_a_stage_is_keyed_by_its_sentences_and_its_parser_alone(model, folder_of, tmp_path):  # noqa: F811
    (tmp_path / "b").mkdir()
    a, b = stages(model, tmp_path, [["a", "b"]], [["a"]])
    [c] = stages(model, tmp_path / "b", [["a", "b"]])
    [d] = stages(str(folder_of("clearnlp")), tmp_path, [["a", "b"]])
    assert a.key == c.key and len({a.key, b.key, d.key}) == 3
    assert StageKeys(ContentHashes()).key(a.model_copy(update={"workers": 3, "cache": "elsewhere"})) == a.key
    assert list(read_part(tmp_path / "train-00001.jsonl.gz")) == [[["a"]]]


@pytest.mark.parametrize(
    ("damage", "code"),
    [(lambda raw: raw[:-12], "damaged"), (lambda raw: raw[:30] + b"\0\xff" + raw[32:], "damaged"),
     (lambda _: gzip.compress(b"[[1\n"), "damaged"), (lambda _: b"xx", "damaged")],
)  # fmt: skip
def test_a_damaged_part_is_named(damage, code, tmp_path):
    path = tmp_path / "train-00000.jsonl.gz"
    write_part(path, [["a b"] * 500, ["c d"] * 300])
    assert sum(map(len, read_part(path))) == 800
    path.write_bytes(damage(path.read_bytes()))
    assert refused(list, read_part(path)) == (path.name, code)


def test_finished_parts_are_made_once(model, tmp_path):
    store = Store(tmp_path / "stages")
    made = stages(model, tmp_path, [["a", "b"]], [["c"]])
    for tries in range(2):
        executor = InlineExecutor(store, 1)
        run_parts(iter(made), executor, store, 0, silent, unheard)
        executor.close()
        [result, _] = sorted(store.root.glob("parse-*/result.json"))
        if not tries:
            before = result.stat().st_mtime_ns
    assert result.stat().st_mtime_ns == before
    assert len(list((tmp_path / "cache").rglob("*.json.gz"))) == 2


class Failing:
    """An executor of two places, whose stages fail a number of times each."""

    def __init__(self, fails: int) -> None:
        self.fails, self.tries, self.waiting, self.most = fails, dict[str, int](), list[Any](), 0

    def submit(self, stage: Any, cell: str = "") -> None:
        self.waiting.append(stage)
        self.most = max(self.most, len(self.waiting))

    def wait(self, report: Any, timeout: float) -> list[StageOutcome]:
        if not self.waiting:
            return []
        stage = self.waiting.pop(0)
        tries = self.tries[stage.key] = self.tries.get(stage.key, 0) + 1
        return [StageOutcome(stage.key, f"no luck {tries}" if tries <= self.fails else None)]

    def capacity(self) -> int:
        return 2 - len(self.waiting)

    def close(self) -> None:
        pass


@pytest.mark.parametrize(("fails", "retry", "reason"), [
    (1, 1, None), (1, 0, "3 of 3 parts failed, the first one with: no luck 1"),
    (3, 1, "3 of 3 parts failed, the first one with: no luck 2"),
])  # fmt: skip
def test_a_failed_part_is_tried_again_and_the_others_go_on(fails, retry, reason, model, tmp_path):
    executor, said = Failing(fails), list[str]()
    made = stages(model, tmp_path, [["a"]], [["b"]], [["c"]])
    arguments: Any = (iter(made), executor, Store(tmp_path / "stages"), retry, silent, said.append)
    if reason is None:
        run_parts(*arguments)
    else:
        with pytest.raises(InputError, match=reason):
            run_parts(*arguments)
    assert executor.most == 2  # it waits for a free place
    assert set(executor.tries.values()) == {min(fails, retry) + 1} and len(said) == 3 * min(fails, retry)


def test_parts_with_equal_sentences_are_parsed_once(model, slurm, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("text.txt").write_text("a b .\n" * 3 * CHUNK)
    given: Any = {"model": model, "executor": "slurm", "slurm": ["poll=1e-9"], "job_sentences": CHUNK}
    assert not probes.parse("lines:text.txt", "out", **given, wait=False)
    assert "submitted 1 part;" in capsys.readouterr().err
    assert len(work_as_the_node(tmp_path / ".parsing-out")) == 1
    assert probes.parse("lines:text.txt", "out", **given) == {"train": 3 * CHUNK}


@pytest.mark.parametrize(
    ("options", "place", "code"),
    [
        ({"executor": "cloud"}, "--executor", "unknown"),
        ({"slurm": ["time=3"]}, "--slurm", "no_effect"),
        ({"wait": False}, "--no-wait", "no_effect"),
        ({"retry": 1}, "--retry", "no_effect"),
        ({"job_sentences": 5}, "--job-sentences", "no_effect"),
        ({"executor": "slurm", "workers": 2}, "--workers", "no_effect"),
        ({"executor": "in-process", "workers": 2}, "--workers", "no_effect"),
        ({"executor": "slurm", "slurm": ["tune.time"]}, "--slurm", "format"),
    ],
)
def test_bad_options(options, place, code, tmp_path):
    assert refused(probes.parse, SOURCE, tmp_path / "out", **options) == (place, code)
    assert not list(tmp_path.iterdir())


def test_the_folder_of_other_work_is_refused(model, slurm, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given: Any = {"model": model, "executor": "slurm", "slurm": ["poll=1e-9"], "wait": False}
    probes.parse(SOURCE, "out", **given, job_sentences=400)
    others: list[dict[str, Any]] = [{"job_sentences": 200}, {"job_sentences": 400, "cache": tmp_path / "c"}]
    for options in others:
        assert refused(probes.parse, SOURCE, "out", **given, **options) == (".parsing-out", "exists")


# --- devices


def seen(item: int) -> tuple[int, str | None]:
    time.sleep(0.2)  # so that every worker gets an item
    return os.getpid(), os.environ.get("CUDA_VISIBLE_DEVICES")


def test_each_worker_sees_one_device(monkeypatch):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    found = list(ordered_map(seen, range(12), 4, ["3", "GPU-7"]))
    by_worker = dict(found)
    assert len(set(found)) == len(by_worker) == 4  # a worker never changes its device
    assert sorted(map(str, by_worker.values())) == ["3", "3", "GPU-7", "GPU-7"]
    assert {device for _, device in ordered_map(seen, range(4), 2)} == {None}


@pytest.mark.parametrize(
    ("options", "workers", "devices"),
    [
        ({}, 2, ["0", "1"]),
        ({"workers": 4}, 4, ["0", "1"]),
        ({"workers": 1}, 1, []),
        ({"executor": "in-process"}, 1, []),
    ],
)
def test_there_is_a_worker_for_each_device(options, workers, devices, monkeypatch, tmp_path):
    called: dict[str, Any] = {}
    monkeypatch.setattr("probes.study.executors.resources.cuda_devices", lambda: ["0", "1"])
    monkeypatch.setattr("synthlang.parse", lambda *_, **given: called.update(given) or {})
    probes.parse(SOURCE, tmp_path / "out", **options)
    assert (called["workers"], called["devices"]) == (workers, devices)
