"""The command: each sub-command on tiny input, its options, and wrong input as one clear line that costs nothing."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import subprocess
import sys
from contextlib import nullcontext
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file
from typer.testing import CliRunner

from pretrain.config import PretrainConfig
from pretrain.folder import read_metrics
from pretrain.prepare import prepare
from pretrain.run import pretrain
from probes import cli
from synthlang import __version__
from synthlang.config import parse
from synthlang.distribution import install_command
from synthlang.files import only_writer, read_json
from synthlang.store import Store
from tests.tiny import PRETRAIN, STUDY, changed


@pytest.fixture
def call(monkeypatch, capsys):
    """Run the command in this process: exit code, standard output, standard error."""

    def called(*arguments) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["synthlang", *map(str, arguments)])
        monkeypatch.setenv("COLUMNS", "200")
        capsys.readouterr()
        with pytest.raises(SystemExit) as stop:
            cli.main()
        streams = capsys.readouterr()
        return int(stop.value.code or 0), streams.out, streams.err

    return called


def assert_one_line(code: int, err: str, *parts: str) -> None:
    """Exit code 2 and one line of error; lines of progress may stand before it."""
    assert code == 2
    errors = [
        line
        for line in err.splitlines()
        if not line.startswith(("prepare ", "pretrain ", "study ", "derive ", "dictionary "))
    ]
    assert len(errors) == 1, err
    assert errors[0].startswith("error: ")
    for part in parts:
        assert part in errors[0]


def content(folder: Path) -> dict[Path, tuple[int, bytes]]:
    files = (p for p in folder.rglob("*") if p.is_file() and ".locks" not in p.parts)
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with configs, texts, a finished run (made without the command) and a finished study."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "c.yaml").write_text(yaml.safe_dump(PRETRAIN))
    study = changed(STUDY, pretrain__language="trans", seeds=[0])
    del study["grid"]
    (folder / "s.yaml").write_text(yaml.safe_dump(study))
    (folder / "t.txt").write_text("the cat sat .\n")
    (folder / "empty.yaml").write_text("")
    (folder / "latin.yaml").write_bytes("a: caf\xe9\n".encode("latin-1"))
    (folder / "late.txt").write_bytes(b"a b c .\n" * 3000 + b"\xff\n")
    (folder / "full").mkdir()
    (folder / "full" / "mine.txt").write_text("mine")
    pretrain(parse(PretrainConfig, PRETRAIN), folder / "run", Store(folder / "store"))
    words = ["study", f"{folder}/s.yaml", "--out", f"{folder}/out", "--executor", "in-process"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["synthlang", *words])
        with pytest.raises(SystemExit) as stop:
            cli.main()
    assert not stop.value.code
    return folder


@pytest.fixture(autouse=True)
def _here(work, monkeypatch):
    monkeypatch.chdir(work)


def test_the_command_runs_the_same_pretraining(work, call, tmp_path):
    code, _, err = call("pretrain", "c.yaml", "--out", tmp_path / "run", "--set", "log_every=1")
    assert code == 0 and f"run folder: {tmp_path / 'run'}" in err
    assert yaml.safe_load((tmp_path / "run" / "config.yaml").read_text())["log_every"] == 1
    ours, theirs = (load_file(f / "run" / "checkpoints" / "step-6" / "model.safetensors") for f in (tmp_path, work))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_probe_derive_report_and_doctor(work, call, tmp_path, monkeypatch):
    code, out, _ = call("probe", "run", "--probe", "words", "--out", tmp_path / "p")
    assert code == 0 and "in dictionary" in out
    probe = read_json(tmp_path / "p" / "probes.json")["probes"]["words"]
    assert "Word embeddings" in (tmp_path / "p" / "probes.html").read_text()
    assert probe["scores"]["in_dictionary"]["n"] + probe["scores"]["held_out"]["n"] == probe["types"]
    code, out, _ = call("derive", "text:t.txt", "--language", "inv", "--out", tmp_path / "d")
    assert code == 0 and "→ sat cat the ." in out
    assert (tmp_path / "d" / "data" / "derived" / "train-00000.parquet").exists()
    before = (work / "out" / "report.html").read_bytes()
    (work / "out" / "report.html").unlink()
    code, out, _ = call("report", "out")
    assert code == 0 and "report.html" in out and (work / "out" / "report.html").read_bytes() == before
    monkeypatch.setattr("probes.doctor.requires", lambda name: ["torch", "transformers>=5", 'spacy; extra == "parse"'])
    code, out, _ = call("doctor")
    assert code == 0 and "torch" in out
    monkeypatch.setattr("probes.doctor._version", lambda name: None if name == "transformers" else "99")
    code, out, _ = call("doctor")
    assert code == 1 and "pip install 'transformers" in out

    def missing(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("probes.doctor.requires", missing)
    code, _, err = call("doctor")
    assert_one_line(code, err, "not installed as synthlang-study", install_command())


def test_in_a_process_of_its_own(tmp_path):
    """No banner, warning or traceback of a library comes with an error, and a terminal without our letters shows ?."""
    words = ["derive", "text:none.txt", "--language", "inv", "--out", str(tmp_path / "o")]
    command = [sys.executable, "-m", "probes.cli"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    place = tmp_path / "none.txt"
    assert done.stderr == f"error: none.txt: no such file or folder (looked for {place}); correct the path\n"
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    words = ["configs", "runs", "align_mlm/trans+inv/tiny"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=False, env=environment)
    assert (done.returncode, done.stderr) == (0, "") and "MLM + 10 ? alignment loss" in done.stdout


def test_findings_of_a_finished_study(work, call, tmp_path):
    code, out, err = call("findings", tmp_path / "what", "--archive", work / "out")
    kept = tmp_path / "what" / "studies" / "tiny"
    assert (code, err) == (0, "") and f"archived: {kept} (" in out and f"{tmp_path}/what.md and beside it (" in out
    text = (tmp_path / "what-own.md").read_text(encoding="utf-8")
    assert (
        re.search(r"are \d+\.\d for the perplexity of the source language and [\d.]+ for SUP of pos", text)
        and str(work) not in text
    )
    assert call("report", kept)[0] == 0  # a study folder, too


def test_help_and_version(call):
    code, out, err = call("study", "--help")
    assert (code, err) == (0, "") and "--executor" in out and call("study", "-h") == (code, out, err)
    assert call("--version") == (0, f"synthlang {__version__}\n", "")


SET, DERIVE, STARTED = "pretrain c.yaml --out new --set ", " --language inv --out new", "study s.yaml --out new"
WRONG = [
    (SET + "steps", "--set steps: must be KEY=VALUE, with dots between nested keys"),
    (SET + "steps=[1", "--set steps=[1: "),
    (SET + "batch.rows=1000000000", "; make batch.rows or batch.length smaller, or batch.accumulation larger"),
    (SET + "steps.more=1", "--set steps.more=1: 'more' cannot be set inside 6, which has no keys"),
    (SET + "stepz=3", "stepz: unknown key"),
    ("pretrain empty.yaml --out new", "empty.yaml: "),
    ("pretrain latin.yaml --out new", "latin.yaml"),
    ("pretrain store --out new", "store: cannot be read: this is a folder, not a file; name a file"),
    ("derive text:t.txt --language tarns --out new", "'tarns' is neither a short name"),
    ("derive text:t.txt --language trans+case-marked --out new", "case-marked is an entry of the catalogue"),
    ("derive text:t.txt --language case-marked:0.5 --out new", "case-marked is an entry of the catalogue"),
    (f"derive text:t.txt --language inv@{'9' * 5000} --out new", "chunk"),
    ("derive text:latin.yaml" + DERIVE, "not UTF-8"),
    ("derive text:late.txt" + DERIVE + "/q/r", "late.txt:3001: is not UTF-8"),
    ("derive text:~nobody-at-all/x" + DERIVE, "~nobody-at-all/x: the home folder of this user is unknown"),
    ("derive text:t.txt --language inv --out full", "full: exists already"),
    ("derive text:t.txt --language inv --out .", ".: cannot be an output"),
    ("derive text:t.txt --field x" + DERIVE, "--field: the option is for a labelled task"),
    ("derive nli:t.txt --vocabulary 300" + DERIVE, "--vocabulary: the option is for a source"),
    (
        "probe full",
        "full: is not a run folder, so there is no default place for the results; give a folder",
    ),
    ("probe run --probe cca", "--probe: unknown probe 'cca'; choose from words, "),
    ("transfer full", "full is not a pretraining run, so its languages are not known"),
    ("transfer run --set fine_tune.epoch=1", "transfer: fine_tune.epoch: unknown key; did you mean epochs?"),
    ("transfer out", "out: is a study, not a model; give "),
    ("report out store", "store: is not a study folder"),
    ("findings new", "new: has no folder 'studies' with an archived study"),
    ("findings new --archive store", "store: is not a study folder"),
    ("findings new --archive out --out t.txt", "t.txt: was not written by synthlang findings, which would replace it"),
    ("study c.yaml --out new", "name: is required"),
    (STARTED + " --executor cloud", "--executor: unknown executor 'cloud'"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=[arguments[:60] for arguments, _ in WRONG])
def test_wrong_input_is_one_line_and_costs_nothing(arguments, message, work, call):
    before = content(work)
    code, _, err = call(*arguments.split())
    assert_one_line(code, err, message)
    assert content(work) == before
    assert not (work / "new").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        *(
            "pretrain c.yaml",
            "adjust run tiny",
            "transfer run",
            "probe run --probe words",
            "study s.yaml",
            "report out",
        ),
        *("derive text:t.txt --language trans", "dictionary trans --source text:t.txt --coverage 1", "findings {}/f"),
    ],
)
def test_who_writes_the_output_is_named(arguments, work, call, tmp_path):
    out = tmp_path / "x.json"
    (tmp_path / "link").symlink_to(tmp_path)
    before = content(work)
    held = tmp_path / "f" if arguments.startswith("findings") else out
    with only_writer(tmp_path / "link" / held.name):
        code, _, err = call(*arguments.format(tmp_path).split(), "--out", out)
        assert_one_line(code, err, f"{held}: is being written by process {os.getpid()} on {socket.gethostname()} (")
    assert content(work) == before and not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["link"]


def test_a_second_command_does_not_write_a_folder_that_is_being_written(work, call, tmp_path):
    """In the middle of the first run, which completes; two at once wrote the lines of both into one log before."""
    refused: list[str] = []

    def second(config, store, report):
        first = (tmp_path / "run", "c.yaml"), (tmp_path / "adjusted", "tiny")
        for command, (out, name) in zip(("pretrain", "adjust"), first, strict=True):
            with only_writer(out) if command == "adjust" else nullcontext():
                words = [name] if command == "pretrain" else [work / "run", name]
                code, _, err = call(command, *words, "--out", out)
            assert_one_line(code, err, f"{out}: is being written by process {os.getpid()} on ")
            refused.append(command)
        return prepare(config, store, report)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pretrain.run.prepare", second)
        code, _, err = call("pretrain", "c.yaml", "--out", tmp_path / "run")
    assert code == 0 and refused == ["pretrain", "adjust"], err
    steps = [row["step"] for row in read_metrics(tmp_path / "run" / "metrics.jsonl")]
    assert steps == sorted(set(steps)) and (tmp_path / "run" / "done.json").exists()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


@pytest.mark.parametrize(
    "arguments",
    [
        "derive text:~/t.txt --language ~/switch.yaml --out=~/new",
        "derive text:~/t.txt --language=trans --vocabulary=~/run/export/parent --out=~/new",
        "dictionary ~/pairs.txt --out=~/new",
        "align ~/t.txt ~/t.txt --links ~/l.txt --out=~/new",
        "pretrain ~/c.yaml --set steps=1 --out=~/new",
        "correlate ~/out/results.csv --x alignment_all --y delta --kind spearman --out=~/new",
    ],
)
def test_a_tilde_is_the_home_folder_everywhere(arguments, work, call, tmp_path, monkeypatch):
    for name in ("t.txt", "c.yaml", "out", "run"):
        (tmp_path / name).symlink_to(work / name)
    (tmp_path / "pairs.txt").write_text("the la\n")
    (tmp_path / "l.txt").write_text("0-0\n")
    (tmp_path / "switch.yaml").write_text(
        "name: x\ntransforms: [{kind: code_switch, dictionary: ~/pairs.txt, probability: 1.0}]"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    code, _, err = call(*arguments.split())
    assert code == 0 and (tmp_path / "new").exists() and not (work / "~").exists(), err


def test_a_run_that_is_not_finished(work, call, tmp_path):
    (tmp_path / "config.yaml").write_bytes((work / "run" / "config.yaml").read_bytes())
    for name in ("probe", "transfer"):
        code, _, err = call(name, tmp_path)
        assert_one_line(
            code, err, f"{tmp_path}: the run is not finished; run the command of the run again to finish it"
        )


def test_what_was_killed_as_it_claimed_its_folder_goes_on(work, call, tmp_path):
    run, study = tmp_path / "run", tmp_path / "study"
    for folder in (run / "data", study / "stages"):
        folder.mkdir(parents=True)
    for name in ("config.yaml", ".tmp-run.json-0123abcd"):
        (run / name).write_bytes((work / "run" / "config.yaml").read_bytes())
    (study / ".tmp-study.json-0123abcd").write_text("{")
    code, _, err = call("pretrain", "c.yaml", "--out", run)
    assert code == 0 and (run / "done.json").exists(), err
    code, _, err = call("study", "s.yaml", "--out", study, "--executor", "in-process")
    assert code == 0, err
    assert (study / "results.csv").read_bytes() == (work / "out" / "results.csv").read_bytes()


@pytest.mark.parametrize(
    ("name", "text"),
    [("config.yaml", "mine: 1\n"), ("run.json", '{"fingerprint": "x"'), ("study.json", "[]")],
)
def test_a_config_or_record_of_something_else_is_left_alone(name, text, call, tmp_path):
    (tmp_path / name).write_text(text)
    words = ("study", "s.yaml") if name == "study.json" else ("pretrain", "c.yaml")
    code, _, err = call(*words, "--out", tmp_path)
    assert_one_line(code, err, name if text.endswith('"x"') else str(tmp_path))
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {name: text}


@pytest.mark.parametrize(
    ("limit", "arguments", "left"),
    [
        (20_000, "pretrain c.yaml --out {}/o", "o/checkpoints"),  # the data fits, the weights do not
        (2000, "derive builtin:mini-english?types=500&sentences=500 --language inv --out {}/o", ".partial-o/"),
    ],
)
def test_a_disk_that_is_full(limit, arguments, left, call, tmp_path):
    """A real limit on the size of files; the message names the place, where the same command would go on."""
    handler, limits = signal.signal(signal.SIGXFSZ, signal.SIG_IGN), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limits[1]))
    try:
        code, _, err = call(*arguments.format(tmp_path).split())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert_one_line(code, "".join(re.findall("^error:.*\n", err, re.MULTILINE)), f"{tmp_path}/{left}")
    assert "Traceback" not in err and not list(tmp_path.rglob(".tmp-*"))
    assert (tmp_path / ".partial-o").exists() or list((tmp_path / "o" / "checkpoints").iterdir()) == []


def test_a_transfer_adds_its_seeds_to_a_result_and_notes_a_language_that_is_new(call, tmp_path):
    options = ["--set", "fine_tune.epochs=1", "--set", "length=48", "--set", "train_items=20", "--language", "perm"]
    for seeds in (1, 2):
        code, shown, err = call("transfer", "run", "--out", tmp_path / "t.json", "--seeds", seeds, *options)
        assert code == 0 and "SUP − ZS" in shown
        assert "note: the model was not pretrained on perm, only on parent" in err
        assert len(read_json(tmp_path / "t.json")["seeds"]) == seeds


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("st", ["study"]),
        ("study quickst", ["quickstart"]),
        ("study --executor s", ["slurm"]),
        ("transfer RUN --task pa", ["parsing"]),
        ("configs cl", ["claims"]),
        ("derive text:x --language case", ["case-marked"]),
        ("pretrain my-run.ya", []),  # the shell completes files
    ],
)
def test_a_shell_completes_commands_options_and_names(typed, expected):
    words = f"synthlang {typed}"
    shell = {"_SYNTHLANG_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = CliRunner().invoke(cli.app, [], prog_name="synthlang", env=shell)
    assert done.output.split() == expected


def test_a_name_that_is_no_utf_8_is_one_line(call):
    code, _, err = call("derive", "text:caf\udce9.txt", "--language", "inv", "--out", "x")
    assert_one_line(code, err, "not UTF-8")
