"""An export goes on after whatever stopped it, with the same bytes; it never touches what is not its own."""

import errno
import inspect
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import psutil
import pytest

from synthlang.errors import InputError
from synthlang.export import export_language, run
from synthlang.language import PARENT, parse_language
from synthlang.sources import base
from synthlang.sources.text import TextSource
from synthlang.workers import WorkerDiedError, ordered_map
from tests.annotated import annotated
from tests.refusals import refusal, refused
from tests.runs import forked
from tests.test_export import Listed, digest

LANGUAGE = parse_language("trans+inv")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    small(monkeypatch.setattr)
    monkeypatch.setattr(run, "cores", lambda: 8)


def small(change=setattr):
    """Make a shard of each batch, and small batches."""
    change(run, "SHARD_BATCHES", 1)
    change(base, "BATCH_SENTENCES", 100)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("text") / "t.txt"
    path.write_text("".join(f"sentence number {i} of many\n" for i in range(625)))  # seven batches
    return path


@pytest.fixture(scope="module")
def whole(text, tmp_path_factory):
    """An export without interruption."""
    folder = tmp_path_factory.mktemp("whole") / "d"
    with pytest.MonkeyPatch.context() as patch:
        small(patch.setattr)
        export_language(TextSource(text), LANGUAGE, folder, source_name="x")
    assert len(list((folder / "data" / "derived").iterdir())) == 7
    return digest(folder)


class Slow(TextSource):
    def batches(self, split):
        for batch in super().batches(split):
            time.sleep(0.1)
            yield batch


def export_slowly(text, out, workers):
    small()
    vars(run).update(cores=lambda: 8)
    export_language(Slow(text), LANGUAGE, out, source_name="x", workers=workers)


@pytest.mark.parametrize("workers", [1, 2])
def test_kill_9_in_the_middle(workers, text, whole, tmp_path):
    """No process is left, what is complete is kept, and the rest is made."""
    partial = tmp_path / ".partial-d"
    process = forked(export_slowly, text, tmp_path / "d", workers)
    parent = psutil.Process(process.pid)
    while len(list(partial.glob("done/*.json"))) < 2:
        assert process.is_alive()
        time.sleep(0.01)
    children = parent.children(recursive=True)
    process.kill()
    process.join()
    gone, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert len(gone) >= (workers if workers > 1 else 0)
    assert sorted(p.name for p in tmp_path.iterdir()) == [".lock-d", ".partial-d"]
    kept = {p: p.stat().st_mtime_ns for p in partial.glob("out/data/*/*.parquet") if not p.name.startswith(".tmp")}
    done = {p.stem for p in partial.glob("done/*.json")}
    times = {p.relative_to(partial / "out"): at for p, at in kept.items() if p.stem in done}
    (partial / "out" / "data" / "derived" / ".tmp-left").write_text("x")
    export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x", workers=2)
    assert digest(tmp_path / "d") == whole
    assert times and all((tmp_path / "d" / p).stat().st_mtime_ns == at for p, at in times.items())
    assert [p.name for p in tmp_path.iterdir()] == ["d"]


class StopError(Exception):
    pass


def stopped_after(source, batches, error=StopError):
    def generate(split):
        for number, batch in enumerate(type(source).batches(source, split)):
            if number == batches:
                raise error("stopped")
            yield batch

    source.batches = generate
    return source


@pytest.mark.parametrize("damage", ["flip", "truncate", "remove", "types", "record", None])
def test_a_shard_that_is_not_as_it_was_is_written_again(damage, text, whole, tmp_path):
    with pytest.raises(StopError):
        export_language(stopped_after(TextSource(text), 3), LANGUAGE, tmp_path / "d", source_name="x")
    partial = tmp_path / ".partial-d"
    shard = partial / "out" / "data" / "parallel" / "train-00001.parquet"
    record = partial / "done" / "train-00001.json"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    match damage:
        case "flip":
            shard.write_bytes(data)
        case "truncate":
            shard.write_bytes(data[: len(data) // 2])
        case "remove":
            shard.unlink()
        case "types":
            record.with_suffix(".npz").write_bytes(b"")
        case "record":
            record.write_text('{"sha2')
    export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert digest(tmp_path / "d") == whole


def test_a_killed_worker_is_one_line_and_the_command_goes_on(text, whole, tmp_path):
    source, out = TextSource(text), tmp_path / "d"
    about = refused(export_language, source, LANGUAGE, out, source_name="x", workers=2, progress=kill_a_worker)
    assert about == ("d", "resources")
    export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x", workers=2)
    assert digest(tmp_path / "d") == whole


def kill_a_worker(split, sentences):
    for child in multiprocessing.active_children():
        child.kill()  # unlike os.kill, no error where it has ended meanwhile


@pytest.mark.parametrize("stage", ["shard", "card", "rename"])
def test_a_full_disk_keeps_what_is_there(stage, text, whole, tmp_path, monkeypatch):
    calls = []

    def full(*arguments):
        calls.append(arguments)
        if stage != "shard" or len(calls) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        target = {"shard": "os.fsync", "card": "synthlang.export.manifest.sha256_file", "rename": "pathlib.Path.rename"}
        patch.setattr(target[stage], full)
        with pytest.raises(InputError, match=r"[Nn]o space (is )?left"):
            export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert [p.name for p in tmp_path.iterdir()] == [".partial-d"]
    assert list((tmp_path / ".partial-d" / "done").glob("*.json"))
    export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert digest(tmp_path / "d") == whole


def test_killed_between_the_rename_and_the_clearing_up(text, whole, tmp_path, monkeypatch):
    def killed(path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("shutil.rmtree", lambda path, **options: None if options else killed(path))
        with pytest.raises(KeyboardInterrupt):
            export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert sorted(p.name for p in tmp_path.iterdir()) == [".partial-d", "d"]
    result = export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert result["splits"]["train"]["kept"] == 625
    assert digest(tmp_path / "d") == whole and not (tmp_path / ".partial-d").exists()


def test_wrong_input_leaves_nothing_in_any_process(tmp_path):
    language = parse_language({"name": "x", "transforms": [{"kind": "mark", "case": {"obj": "o"}}]})
    for workers in (1, 2):
        source = Listed(train=[annotated(f"{word}/NOUN/obj/0") for word in ("fine", "bad·o")])
        source.columns = ("form", "upos", "deprel", "head")  # type: ignore[assignment]
        refusal(export_language, source, language, tmp_path / "d", source_name="x", workers=workers)
        assert list(tmp_path.iterdir()) == []


def test_a_finished_export_is_left_as_it_is_and_a_damaged_one_refused(text, tmp_path):
    first = export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x", licence="MIT")
    before = digest(tmp_path)
    assert export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x", licence="MIT") == first
    assert digest(tmp_path) == before
    for other, licence in ((PARENT, "MIT"), (LANGUAGE, "Apache-2.0")):
        again = partial(export_language, source_name="x", licence=licence)
        assert refused(again, TextSource(text), other, tmp_path / "d") == ("d", "exists")
    (tmp_path / "d" / "language.yaml").write_text("inv")
    again = partial(export_language, source_name="x", licence="MIT")
    assert refused(again, TextSource(text), LANGUAGE, tmp_path / "d") == ("language.yaml", "damaged")


def test_the_partial_folder_of_another_export_is_refused(text, tmp_path):
    with pytest.raises(StopError):
        export_language(stopped_after(TextSource(text), 1), LANGUAGE, tmp_path / "d", source_name="x")
    before = digest(tmp_path)
    for language in (PARENT, parse_language("inv")):
        about = refused(export_language, TextSource(text), language, tmp_path / "d", source_name="x")
        assert about == (".partial-d", "exists")
    assert digest(tmp_path) == before


@pytest.mark.parametrize(("name", "content"), [("mine.txt", "x"), ("partial.json", "[]"), ("partial.json", "{")])
def test_a_folder_that_is_no_partial_one_is_refused(name, content, text, tmp_path):
    (tmp_path / ".partial-d").mkdir()
    (tmp_path / ".partial-d" / name).write_text(content)
    refusal(export_language, TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
    assert (tmp_path / ".partial-d" / name).read_text() == content


def test_a_second_process_that_is_refused_leaves_the_first_one_alone(text, tmp_path):
    """It deleted what the first one had written so far."""
    turned_away = []

    def second(split, sentences):
        with pytest.raises(InputError, match="is being written by process"):
            export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x")
        turned_away.append(split)

    export_language(TextSource(text), LANGUAGE, tmp_path / "d", source_name="x", progress=second)
    export_language(TextSource(text), LANGUAGE, tmp_path / "alone", source_name="x")
    assert turned_away and digest(tmp_path / "d") == digest(tmp_path / "alone")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["alone", "d"]


def test_an_item_that_raises_raises_here_and_the_order_is_kept():
    assert list(ordered_map(delayed, [5, 1, 4, 0, 3, 2], 3)) == [5, 1, 4, 0, 3, 2]
    with pytest.raises(InputError, match="item 4"):
        list(ordered_map(delayed, [1, -4, 2], 2))
    with pytest.raises(WorkerDiedError):
        list(ordered_map(os._exit, [3], 2))


def test_workers_look_for_modules_where_their_parent_does(tmp_path):
    """They looked into the working folder first: a user's file of a name of ours or of Python's ran in them."""
    for name in ("statistics.py", "random.py", "synthlang/__init__.py", "numpy/__init__.py"):
        (tmp_path / "here" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "here" / name).write_text("raise SystemExit('a file of the user ran')")
    (tmp_path / "seen.py").write_text("import os, signal\n" + inspect.getsource(seen))
    (tmp_path / "command.py").write_text(
        "import os\nfrom seen import seen\nfrom synthlang.workers import ordered_map\n"
        "if __name__ == '__main__': print(*ordered_map(seen, range(2), 2), [os.environ.get('PYTHONSAFEPATH')])"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run([sys.executable, tmp_path / "command.py"], cwd=tmp_path / "here", env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    assert (
        done.stdout == f"{[environment['PYTHONPATH'], None, True]} {[environment['PYTHONPATH'], None, True]} [None]\n"
    ), done
    assert not done.stderr


def seen(_item):
    hears_no_interrupt = signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])
    return [os.environ.get("PYTHONPATH"), os.environ.get("PYTHONSAFEPATH"), hears_no_interrupt]


def delayed(item):
    if item < 0:
        raise InputError(f"item {-item}")
    time.sleep(item / 50)
    return item
