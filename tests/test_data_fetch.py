"""`synthlang data fetch` against a server on the loopback interface, with the client library of the hub."""

from __future__ import annotations

import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import probes
from synthlang.data import check, fetch, list_sets
from synthlang.data.downloads import DOWNLOADS, Downloads
from synthlang.data.entries import entry
from synthlang.data.fetching import run_fetch
from synthlang.data.plans import plan_fetch
from synthlang.data.record import SOURCES, read_record
from synthlang.errors import InputError
from synthlang.files import only_writer
from synthlang.tasks import open_task
from tests.data_server import DataServer, Fault, serving
from tests.refusals import refusal, refused
from tests.study_cases import command

ROWS = 40


def parquet(**columns: list[Any]) -> bytes:
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def nli(**names: str) -> bytes:
    """Pairs with the columns of XNLI, or with other names."""
    values: dict[str, list[Any]] = {
        "premise": ["A cat\tsleeps."] * ROWS,
        "hypothesis": ["It is awake."] * ROWS,
        "label": [0, 1, 2, -1] * 10,
    }
    return parquet(**{names.get(name, name): value for name, value in values.items()})


def muse(count: int = 3000) -> bytes:
    return "".join(f"word{i} mot{i}\n" for i in range(count)).encode()


def publish(server: DataServer, name: str, files: dict[str, bytes]) -> None:
    """Put the files of a source of the hub on the server, with a file that nobody asks for."""
    source: Any = entry(name).source
    server.repos[source.repo, source.revision] = {**files, "README.md": b"about", "load.py": b"raise SystemExit"}


def nli_files(split: bytes | None = None) -> dict[str, bytes]:
    return {f"es/{part}-00000-of-00001.parquet": split or nli() for part in ("train", "validation", "test")}


MUSE = "dl.fbaipublicfiles.com/arrival/dictionaries/en-es."
MUSE_TRAIN, MUSE_TEST = f"{MUSE}0-5000.txt", f"{MUSE}5000-6500.txt"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[DataServer]:
    """A server with a data set of the hub (nli/es) and one at addresses (muse/en-es). Nothing waits."""
    with serving() as data:
        publish(data, "nli/es", nli_files())
        data.files |= {MUSE_TRAIN: muse(), MUSE_TEST: muse(500)}
        monkeypatch.setenv("HF_ENDPOINT", data.address)
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
        monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 300)
        monkeypatch.setattr("time.sleep", slept.append)
        slept.clear()
        yield data


slept: list[float] = []


def get(server: DataServer, root: Path, *names: str, **options: Any) -> list[str]:
    return fetch(names, root, source=f"{server.address}", **options)


def test_sets_are_fetched_converted_recorded_and_checked(server, tmp_path, capfd):
    assert get(server, tmp_path, "nli/es", "muse/en-es") == ["nli/es", "muse/en-es"]
    lines = (tmp_path / "nli" / "es" / "train.tsv").read_text().splitlines()
    assert lines[0] == "premise\thypothesis\tlabel" and lines[1] == "A cat sleeps.\tIt is awake.\tentailment"
    assert (tmp_path / "muse" / "en-es-test.txt").read_bytes() == muse(500)
    assert sorted(path.name for path in tmp_path.iterdir()) == [SOURCES, "muse", "nli"]
    assert not [path for _, path, _ in server.requests if path.endswith((".md", ".py"))]
    told = capfd.readouterr().err
    assert "CC-BY-NC-4.0" in told and "no checksum is known of en-es.0-5000.txt" in told
    hub, web = (read_record(tmp_path).sets[name] for name in ("nli/es", "muse/en-es"))
    assert hub.revision == entry("nli/es").source.version and all(file.verified for file in hub.received)
    assert hub.omitted == {"pairs without a gold label": 30} and hub.licence == "CC-BY-NC-4.0"
    assert [file.url for file in web.received] == [f"https://{MUSE_TRAIN}", f"https://{MUSE_TEST}"]
    assert not any(file.verified for file in web.received) and set(web.written) == {
        "muse/en-es.txt",
        "muse/en-es-test.txt",
    }
    found = {one.name: one for one in check(to=tmp_path)}
    assert all(one.is_recorded and not one.fault for one in found.values())
    train = found["nli/es"].content["train"]
    assert (train.items, train.labels["neutral"]) == (30, 10)
    before = len(server.requests)
    assert get(server, tmp_path, "nli/es", "muse/en-es") == [] and len(server.requests) == before


CUT = [
    ("one break", [Fault(cut=9000)], ["", "bytes=9000-"]),
    ("a server error", [Fault(502), Fault(503)], ["", "", ""]),
    ("too many requests", [Fault(429, {"Retry-After": "7"})], ["", ""]),
    ("a redirect", [Fault(302, {"Location": f"/url/{MUSE_TEST}"})], [""]),
]


@pytest.mark.parametrize(("_", "faults", "ranges"), CUT)
def test_a_download_from_an_address_survives(_, faults, ranges, server, tmp_path):
    server.faults[MUSE_TRAIN] += [Fault(405), *faults]  # the first answers the question for the size
    assert get(server, tmp_path, "muse/en-es") == ["muse/en-es"]
    size = 500 if faults[0].status == 302 else 3000
    assert (tmp_path / "muse" / "en-es.txt").read_bytes() == muse(size)
    assert server.ranges(MUSE_TRAIN) == ranges
    assert (7.0 in slept) == (faults[0].status == 429)


@pytest.mark.parametrize(("_", "faults", "ranges"), CUT[:3])
def test_a_download_from_the_hub_survives(_, faults, ranges, server, tmp_path):
    name = "es/test-00000-of-00001.parquet"
    server.faults[name] += [*faults] if faults[0].cut is None else [Fault(cut=900)]
    assert get(server, tmp_path, "nli/es") == ["nli/es"]
    assert server.ranges(name) == (ranges if faults[0].cut is None else ["", "bytes=900-"])
    assert any(seconds >= 7.0 for seconds in slept) == (faults[0].status == 429)


def test_a_killed_fetch_continues(server, tmp_path):
    hub, web = "es/train-00000-of-00001.parquet", MUSE_TEST
    server.faults[hub].append(Fault(cut=800, stall=True))
    server.faults[web] += [Fault(405), Fault(cut=1000, stall=True)]
    words = ["data", "fetch", "nli/es", "muse/en-es", "--to", tmp_path, "--from", server.address, "--yes"]
    environment = {name: value for name, value in os.environ.items() if name != "HF_HUB_OFFLINE"}
    command = [sys.executable, "-m", "probes.cli", *map(str, words)]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        assert server.stalled.wait(60)
        while not any(path.stat().st_size for path in tmp_path.rglob("*.part")):
            assert process.poll() is None
            threading.Event().wait(0.05)
        process.kill()
    assert not (tmp_path / SOURCES).exists() and not (tmp_path / "nli").exists()
    assert get(server, tmp_path, "nli/es", "muse/en-es") == ["nli/es", "muse/en-es"]
    assert server.ranges(web)[-1].startswith("bytes=") and (tmp_path / "muse" / "en-es-test.txt").read_bytes() == muse(
        500
    )
    assert not list(tmp_path.rglob("*.part*"))


REFUSED = [
    ("muse/en-es", MUSE_TRAIN, [Fault(404)], "missing"),
    ("muse/en-es", MUSE_TRAIN, [Fault(403)], "failed"),
    ("muse/en-es", MUSE_TRAIN, [Fault(500)] * 6, "failed"),
    ("muse/en-es", MUSE_TRAIN, [Fault(cut=0)] * 6, "failed"),
    ("nli/es", "test-00000-of-00001.parquet", [Fault(401, {"X-Error-Code": "GatedRepo"})] * 9, "failed"),
    ("nli/es", "tree/b8dd5d7af51114dbda02c0e3f6133f332186418e/es", [Fault(401)] * 9, "failed"),
    ("nli/es", "test-00000-of-00001.parquet", [Fault(404, {"X-Error-Code": "EntryNotFound"})] * 9, "missing"),
    ("nli/es", "test-00000-of-00001.parquet", [Fault(503)] * 40, "failed"),
]


@pytest.mark.parametrize(("name", "path", "faults", "code"), REFUSED)
def test_a_refusal_is_one_line_and_costs_no_other_set(name, path, faults, code, server, tmp_path):
    other = {"nli/es": "muse/en-es", "muse/en-es": "nli/es"}[name]
    server.faults[path] += [Fault(405), *faults] if path == MUSE_TRAIN else faults
    error = refusal(get, server, tmp_path, name, other)
    assert error.code == code and error.hint
    assert str(error.path).startswith(("http", "https")) and not (tmp_path / name).exists()
    assert list(read_record(tmp_path).sets) == [other]


@pytest.mark.parametrize("name", ["nli/es", "muse/en-es"])
def test_a_server_that_fails_again_and_again_is_named_with_the_remedy(name, server, tmp_path):
    hub, server_failed = "the hub failed (HTTP 503)", "the server did not send the file (HTTP 503)"
    path, reason = ("test-00000-of-00001.parquet", hub) if name == "nli/es" else (MUSE_TRAIN, server_failed)
    server.faults[path] += [Fault(503)] * 40
    error = refusal(get, server, tmp_path, name)
    assert error.reason == reason
    assert error.hint == "wait, then run the same command again to continue"


def test_an_archive_needs_space_for_its_members_too(server, tmp_path, monkeypatch):
    server.files[ZIP] = zipped((ZIP_MEMBER, TABLE))
    plan = plan_fetch(["pairs/xnli/fr-en"], tmp_path, None, server.address)
    [job] = plan.jobs
    assert job.scratch == 3 * len(server.files[ZIP]) / 1e6 and job.disk == entry("pairs/xnli/fr-en").disk
    need = sum(size.megabytes for size in (*plan.to_download, *plan.disk) if size is not None)
    for free, fits in ((need + job.scratch / 2, False), (need + job.scratch * 2, True)):
        disk = shutil._ntuple_diskusage(10**12, 0, int(free * 1e6))
        monkeypatch.setattr("shutil.disk_usage", lambda _, disk=disk: disk)
        assert (run_fetch(plan) if fits else [refusal(run_fetch, plan).code]) == (
            ["pairs/xnli/fr-en"] if fits else ["resources"]
        )


def test_a_revision_that_is_gone_is_named(server, tmp_path):
    [commit] = [commit for _, commit in server.repos]
    server.repos["facebook/xnli", "0" * 40] = server.repos.pop(("facebook/xnli", commit))
    error = refusal(get, server, tmp_path, "nli/es")
    assert error.code == "missing" and commit in error.reason


def test_content_that_is_not_the_expected_one_is_refused(server, tmp_path):
    massive = entry("slots/atis/tr").lab
    assert massive is not None
    server.files[massive.source.address.removeprefix("https://")] = b"other"
    error = refusal(get, server, tmp_path, "slots/atis/tr", size="lab")
    assert error.code == "damaged" and "SHA-256" in error.reason and not list(tmp_path.rglob("*.gz*"))

    publish(server, "nli/es", nli_files(nli(premise="sentence1")))
    error = refusal(get, server, tmp_path, "nli/es")
    assert error.code == "missing" and "no column 'premise'; the columns are sentence1" in error.reason
    assert not (tmp_path / "nli" / "es").exists()

    publish(server, "nli/es", nli_files(nli()[:-20]))
    shutil.rmtree(tmp_path)
    assert refusal(get, server, tmp_path, "nli/es").code == "damaged"


def test_minimal_pairs_are_fetched_and_read(server, tmp_path):
    """BLiMP from a Parquet file for each paradigm, and a language of MultiBLiMP as it is."""
    columns: dict[str, list[Any]] = {
        "sentence_good": ["A cat sleeps."],
        "sentence_bad": ["A cat sleep."],
        "pair_id": [0],
    }
    terms = {"adjunct_island": "island_effects", "wh_island": "island_effects", "npi": "npi_licensing"}
    publish(
        server,
        "minimal/blimp",
        {
            f"{uid}/train-00000-of-00001.parquet": parquet(**columns, UID=[uid], linguistics_term=[term])
            for uid, term in terms.items()
        },
    )
    table = "sen\twrong_sen\tphenomenon\nLe chat dort.\tLe chat dorment.\tSV-#\n"
    publish(server, "minimal/multiblimp/fr", {"fra/data.tsv": table.encode(), "deu/data.tsv": b"other"})
    names = ["minimal/blimp", "minimal/multiblimp/fr"]
    assert get(server, tmp_path, *names) == names
    assert not [path for _, path, _ in server.requests if "deu" in path]
    [blimp] = open_task(f"minimal:{tmp_path / names[0]}").batches("test")
    assert blimp.ids == tuple(f"{uid}-0" for uid in sorted(terms))
    assert blimp.label is not None and blimp.label.values() == [terms[uid] for uid in sorted(terms)]
    [french] = open_task(f"minimal:{tmp_path / names[1]}").batches("test")
    assert french.corpus.texts() == ["Le chat dort .", "Le chat dorment ."]
    check(names, tmp_path)


def test_the_first_content_of_an_address_is_trusted_and_no_other_one(server, tmp_path):
    get(server, tmp_path, "muse/en-es")
    (tmp_path / "muse" / "en-es.txt").unlink()
    server.files[MUSE_TRAIN] = muse(7)
    assert refusal(get, server, tmp_path, "muse/en-es").code == "changed"
    server.files[MUSE_TRAIN] = muse()
    shutil.rmtree(tmp_path / DOWNLOADS)
    assert get(server, tmp_path, "muse/en-es") == ["muse/en-es"]


def test_without_a_network_the_error_says_so_and_a_folder_serves(server, tmp_path, monkeypatch):
    there = tmp_path / "there"
    assert get(server, there, "nli/es", "muse/en-es", keep_downloads=True)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    error = refusal(fetch, ["nli/es"], tmp_path / "here")
    assert error.code == "failed" and "--from" in error.hint
    error = refusal(fetch, ["muse/en-es"], tmp_path / "here", source="http://127.0.0.1:9")
    assert error.code == "failed" and "--from" in error.hint
    mirror = there / DOWNLOADS
    assert fetch(["nli/es", "muse/en-es"], tmp_path / "here", source=mirror) == ["nli/es", "muse/en-es"]
    assert mirror.is_dir() and not any(one.verified for one in read_record(tmp_path / "here").sets["nli/es"].received)
    (mirror / "url" / MUSE_TEST).unlink()
    error = refusal(fetch, ["muse/en-es", "nli/es"], tmp_path / "third", source=mirror)
    assert error.code == "missing" and error.path == mirror / "url" / MUSE_TEST
    assert list(read_record(tmp_path / "third").sets) == ["nli/es"]
    (tmp_path / "empty").mkdir()
    [other] = refusal(fetch, ["muse/en-es", "nli/es"], tmp_path / "fourth", source=tmp_path / "empty").others
    assert other.reason.startswith(str(tmp_path / "empty" / "hub")), "the message shows the path of the first error"


def test_a_full_disk(server, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("shutil.disk_usage", lambda _: shutil._ntuple_diskusage(10, 10, 0))
        assert refusal(get, server, tmp_path, "nli/es").code == "resources"
        assert not list(tmp_path.rglob("*.parquet"))
    real = Path.open

    def no_space(self: Path, *args: Any, **kwargs: Any) -> Any:
        if self.suffix == ".part" and "a" in str(args):
            raise OSError(28, "No space left on device")
        return real(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", no_space)
        assert refusal(get, server, tmp_path, "muse/en-es").code == "resources"
    assert get(server, tmp_path, "nli/es", "muse/en-es")


def test_a_web_page_in_place_of_a_file_is_refused_and_forgotten(server, tmp_path):
    server.files[MUSE_TEST] = b"\n<!DOCTYPE html><html><body>Sign in to this network</body></html>\n"
    assert refusal(get, server, tmp_path, "muse/en-es").code == "damaged"
    assert list_sets(["muse/en-es"], tmp_path)[0].state == "missing"
    server.files[MUSE_TEST] = muse(500)
    assert get(server, tmp_path, "muse/en-es") == ["muse/en-es"]


def test_the_remedy_for_a_damaged_file_works(server, tmp_path):
    get(server, tmp_path, "nli/es")
    dev = tmp_path / "nli" / "es" / "dev.tsv"
    dev.write_bytes(dev.read_bytes().replace(b"cat", b"dog"))
    [found] = check(["nli/es"], tmp_path)
    remedy = f"delete {tmp_path / 'nli' / 'es'}, and run: synthlang data fetch nli/es --to {tmp_path}"
    assert found.fault == f"differs from the record: nli/es/dev.tsv has changed; {remedy}"
    assert list_sets(["nli/es"], tmp_path)[0].state == "here", "a list reads no content"
    shutil.rmtree(tmp_path / "nli" / "es")
    assert list_sets(["nli/es"], tmp_path)[0].state == "missing"
    assert get(server, tmp_path, "nli/es") == ["nli/es"]
    assert [one.fault for one in check(["nli/es"], tmp_path)] == [""]


@pytest.mark.parametrize(
    ("name", "file", "content", "fault"),
    [
        ("nli/es", "nli/es/dev.tsv", None, "nli/es/dev.tsv is gone"),
        ("nli/es", "nli/es/test.tsv", b"", "nli/es/test.tsv has 0 bytes instead of "),
        ("muse/en-es", "muse/en-es-test.txt", None, "muse/en-es-test.txt is gone"),
        ("muse/en-es", "muse/en-es.txt", b"x", "muse/en-es.txt has 1 byte instead of "),
    ],
)
def test_an_incomplete_data_set_is_named_and_fetched_again(name, file, content, fault, server, tmp_path, capfd):
    get(server, tmp_path, "nli/es", "muse/en-es")
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    [item] = list_sets([name], tmp_path)
    assert item.state == "incomplete" and not item.is_here and item.fault.startswith(fault)
    probes.list_data(to=tmp_path)
    assert f"{name}: incomplete: {fault}" in capfd.readouterr().out
    for wanted in ([name], []):
        [found] = [one for one in check(wanted, tmp_path) if one.name == name]
        assert fault in found.fault and found.fault.endswith(f"; run: synthlang data fetch {name} --to {tmp_path}")
    capfd.readouterr()
    assert get(server, tmp_path, "nli/es", "muse/en-es") == [name]
    assert f"replaces an incomplete data set: {fault}" in capfd.readouterr().err
    assert list_sets([name], tmp_path)[0].state == "here" and not check([name], tmp_path)[0].fault


def test_two_fetches_at_once(server, tmp_path):
    plan = plan_fetch(["nli/es"], tmp_path, None, server.address)
    with only_writer(tmp_path / SOURCES):
        assert refusal(run_fetch, plan).code == "locked"
    assert run_fetch(plan) == ["nli/es"]


def test_consent_comes_first(server, tmp_path):
    plans: list[Any] = []
    assert get(server, tmp_path, "nli/es", confirm=plans.append) == []
    assert [file.size for file in plans[0].files] == [len(nli())] * 3 and not list(tmp_path.iterdir())


def test_data_that_cannot_be_fetched_says_how_to_obtain_it(server, tmp_path, monkeypatch, capfd):
    error = refusal(fetch, ["pairs/yandex/ru-en"], tmp_path)
    assert error.code == "missing" and "by hand. Register at" in capfd.readouterr().err
    assert str(error) == (
        "1 data set can only be obtained by hand: pairs/yandex/ru-en; use --size lab, which has a free source for "
        "pairs/yandex/ru-en; otherwise obtain this data set as described above, and run: synthlang data check "
        f"pairs/yandex/ru-en --to {tmp_path}"
    )
    assert "--size" not in refusal(fetch, ["qa/squad-sov/en"], tmp_path).hint
    assert "2 data sets" in refusal(get, server, tmp_path, "ner/zh", "muse/en-es", "slots/snips/it").reason
    assert list_sets(["muse/en-es"], tmp_path)[0].state == "here", "the others are fetched"
    server.files.clear()
    error = refusal(get, server, tmp_path, "ner/zh", "muse/en-de")
    assert error.code == "missing" and [other.reason for other in error.others] == [
        "1 data set can only be obtained by hand: ner/zh"
    ]
    assert command(monkeypatch, "data", "fetch", "ner/zh", "--to", tmp_path) == 2, "without a question"
    (tmp_path / "muse").mkdir(exist_ok=True)
    for name in ("en-de.txt", "en-de-test.txt"):
        (tmp_path / "muse" / name).write_text("house Haus\n")
    [item] = list_sets(["muse/en-de"], tmp_path)
    [found] = check(["muse/en-de"], tmp_path)
    assert item.state == "here, by hand" and not found.fault and not found.is_recorded
    (tmp_path / "muse" / "en-de.txt").write_text("three words here\n")
    assert "en-de.txt:1" in check(["muse/en-de"], tmp_path)[0].fault


@pytest.mark.parametrize(
    ("name", "files", "fault"),
    [
        (
            "ner/zh",
            ["train.tsv"],
            "lacks the splits dev and test; add a file with dev in its name, a file with test in",
        ),
        (
            "ner/zh",
            ["train.tsv", "dev.tsv"],
            "lacks the split test; add a file with test in its name; layout: train, dev",
        ),
        ("ner/zh", ["train.tsv", "valid.tsv", "test.tsv"], ""),
        ("ner/en", ["train.tsv"], "lacks the splits dev and test"),
        ("text/fr-cc", ["train.txt"], "lacks the split dev"),
        ("text/fr-cc", ["train.txt", "valid.txt"], ""),
        ("text/en-parsed", ["train.conllu"], "lacks the split dev"),
        ("qa/squad-sov/en", ["train.json"], "lacks the split dev"),
        ("qa/squad-sov/en", ["train.json", "dev.json"], ""),
        ("slots/snips/it", ["train"], "lacks the splits dev and test"),
        ("slots/snips/it", ["train", "valid", "test"], ""),
        ("qa/xquad/en", ["dev.json"], ""),
    ],
)
def test_a_folder_filled_by_hand_has_the_splits_that_studies_read(name, files, fault, tmp_path):
    for file in files:
        path = tmp_path / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix:
            path.write_bytes(CONTENT[path.suffix])
            continue
        path.mkdir()
        for part in ("seq.in", "seq.out", "label"):
            (path / part).write_text("O\n")
    [found] = check([name], tmp_path)
    assert found.fault.startswith(fault) and bool(found.fault) == bool(fault)
    assert probes.check_data([name], to=tmp_path) == (not fault)


# --- hostile archives


def zipped(*members: tuple[str, bytes], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in members:
            about = zipfile.ZipInfo(name)
            about.compress_type = zipfile.ZIP_DEFLATED
            about.external_attr = (0o120777 if name == link else 0o100644) << 16
            archive.writestr(about, body)
    return buffer.getvalue()


def tarred(*members: tuple[str, bytes], link: str = "") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, body in members:
            about = tarfile.TarInfo(name)
            about.size, about.linkname = (0, "/etc/passwd") if name == link else (len(body), "")
            about.type = tarfile.SYMTYPE if name == link else tarfile.REGTYPE
            archive.addfile(about, io.BytesIO(body))
    return buffer.getvalue()


ZIP, ZIP_MEMBER = "dl.fbaipublicfiles.com/XNLI/XNLI-15way.zip", "XNLI-15way/xnli.15way.tok.tsv"
TAR = "dl.fbaipublicfiles.com/MLQA/mlqa-translate-train.tar.gz"
TAR_MEMBERS = [f"mlqa-translate-train/es_squad-translate-train-{part}-v1.1.json" for part in ("train", "dev")]
SQUAD = json.dumps(
    {
        "data": [
            {
                "paragraphs": [
                    {
                        "context": "Un gato.",
                        "qas": [{"id": "1", "question": "¿Qué?", "answers": [{"text": "gato", "answer_start": 3}]}],
                    }
                ]
            }
        ]
    }
).encode()
CONTENT = {
    ".tsv": b"Ann\tB-PER\n\n",
    ".txt": b"One cat sleeps .\n",
    ".conllu": b"1\tcats\tcat\tNOUN\t_\t_\t0\troot\t_\t_\n\n",
    ".json": SQUAD,
}
"""Content of a file of a data set, by the ending of its name."""
TABLE = b"en\tfr\nthe cat\tle chat\n"
BOMB = bytes(80_000_000)


@pytest.mark.parametrize(
    ("name", "place", "pack", "members", "link", "code"),
    [
        ("pairs/xnli/fr-en", ZIP, zipped, [(ZIP_MEMBER, TABLE)], "", None),
        ("pairs/xnli/fr-en", ZIP, zipped, [("../evil", b"x"), (ZIP_MEMBER, TABLE)], "", "unsupported"),
        ("pairs/xnli/fr-en", ZIP, zipped, [("/evil", b"x"), (ZIP_MEMBER, TABLE)], "", "unsupported"),
        ("pairs/xnli/fr-en", ZIP, zipped, [("C:\\evil", b"x"), (ZIP_MEMBER, TABLE)], "", "unsupported"),
        ("pairs/xnli/fr-en", ZIP, zipped, [(ZIP_MEMBER, b"/etc/passwd")], ZIP_MEMBER, "unsupported"),
        ("pairs/xnli/fr-en", ZIP, zipped, [(ZIP_MEMBER, BOMB)], "", "range"),
        ("pairs/xnli/fr-en", ZIP, zipped, [("other", TABLE)], "", "missing"),
        ("qa/squad/es", TAR, tarred, [(one, SQUAD) for one in TAR_MEMBERS], "", None),
        ("qa/squad/es", TAR, tarred, [("../evil", b"x")], "", "unsupported"),
        ("qa/squad/es", TAR, tarred, [("/evil", b"x")], "", "unsupported"),
        ("qa/squad/es", TAR, tarred, [(TAR_MEMBERS[0], b"")], TAR_MEMBERS[0], "unsupported"),
        ("qa/squad/es", TAR, tarred, [("other", BOMB)], "", "range"),
        ("qa/squad/es", TAR, lambda *_, link: b"no archive", [], "", "damaged"),
    ],
)
def test_archives(name, place, pack, members, link, code, server, tmp_path):
    server.files[place] = pack(*members, link=link)
    root = tmp_path / "data"
    if code is None:
        assert get(server, root, name) == [name]
    else:
        assert refusal(get, server, root, name).code == code
        assert (root / DOWNLOADS / "url" / place).exists() == (code != "damaged"), "it would never be downloaded again"
        assert not [path for path in tmp_path.rglob("*") if path.name == "evil" or path.is_symlink()]
        assert not (root / "qa").exists() and not list((root / "pairs").rglob("*.fr"))
    assert [path.name for path in tmp_path.iterdir()] == ["data"] and not list(root.rglob(".tmp*"))


def test_a_mirror_must_be_a_folder(tmp_path):
    assert refusal(Downloads, tmp_path, str(tmp_path / "none")).code == "missing"
    assert refusal(Downloads, tmp_path, "~no-such-user/mirror").code == "missing"


def test_an_unknown_name_is_corrected():
    error = refusal(fetch, ["nli/eng"])
    assert isinstance(error, InputError) and error.code == "unknown" and "did you mean nli/en" in error.hint


@pytest.mark.parametrize(
    ("content", "code"),
    [("{", "format"), ("[]", "damaged"), ('{"format": 999, "sets": {}}', "unsupported"), ('{"format": 1}', "missing")],
)
def test_a_record_that_cannot_be_used_is_one_line(content, code, tmp_path):
    (tmp_path / SOURCES).write_text(content, encoding="utf-8")
    assert refused(read_record, tmp_path)[1] == code


def test_a_file_is_no_folder_of_data(tmp_path):
    path = tmp_path / "data"
    path.write_text("", encoding="utf-8")
    assert refused(fetch, ["muse/en-fr"], to=path) == ("data", "type")
    assert refused(list_sets, ["muse/en-fr"], path) == ("data", "type")
