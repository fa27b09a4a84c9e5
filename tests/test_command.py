"""The command: each sub-command on tiny input, and every wrong input as one clear line."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from probes import cli
from synthlang.files import read_json
from tests.tiny import PRETRAIN, STUDY, changed


def call(monkeypatch, capsys, *arguments):
    """Run the command in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["synthlang", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    with pytest.raises(SystemExit) as stop:
        cli.main()
    streams = capsys.readouterr()
    return stop.value.code or 0, streams.out, streams.err


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A finished run, made by ``python -m probes.cli pretrain``."""
    folder = tmp_path_factory.mktemp("command")
    (folder / "c.yaml").write_text(yaml.safe_dump(changed(PRETRAIN, steps=4)))
    command = [
        sys.executable,
        "-m",
        "probes.cli",
        "pretrain",
        str(folder / "c.yaml"),
        "--out",
        str(folder / "run"),
        "--set",
        "steps=6",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert str(folder / "run") in done.stderr
    return folder / "run"


def test_pretrain_obeys_set_and_writes_the_run(run):
    assert yaml.safe_load((run / "config.yaml").read_text())["steps"] == 6
    assert read_json(run / "done.json")["steps"] == 6


def test_probe_and_transfer_write_their_results(run, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "probe", run, "--probe", "words")
    assert code == 0
    assert "in dictionary" in out
    probe = read_json(run / "probes" / "probes.json")["probes"]["words"]
    assert "Word embeddings" in (run / "probes" / "probes.html").read_text()
    assert probe["scores"]["in_dictionary"]["n"] + probe["scores"]["held_out"]["n"] == probe["types"]
    options = ["--set", "fine_tune.epochs=1", "--set", "length=48", "--set", "train_items=40"]
    code, out, _ = call(monkeypatch, capsys, "transfer", run, "--seeds", 2, "--out", run / "t.json", *options)
    assert code == 0
    assert "SUP − ZS" in out
    results = read_json(run / "t.json")["seeds"]
    assert [r["seed"] for r in results] == [0, 1]
    for result in results:
        assert result["delta"] == pytest.approx(result["sup"] - result["zs"], abs=1e-3)
        assert 0 < result["parent"] < 100


def test_derive_shows_sentences(tmp_path, monkeypatch, capsys):
    (tmp_path / "t.txt").write_text("the cat sat .\n")
    code, out, _ = call(
        monkeypatch, capsys, "derive", f"text:{tmp_path / 't.txt'}", "--language", "inv", "--out", tmp_path / "d"
    )
    assert code == 0
    assert "→ sat cat the ." in out
    assert (tmp_path / "d" / "data" / "derived" / "train-00000.parquet").exists()


def test_study_and_report(tmp_path, monkeypatch, capsys):
    data = changed(STUDY, pretrain__language="trans", seeds=[0])
    del data["grid"]
    (tmp_path / "s.yaml").write_text(yaml.safe_dump(data))
    code, out, _ = call(
        monkeypatch, capsys, "study", tmp_path / "s.yaml", "--out", tmp_path / "o", "--executor", "in-process"
    )
    assert code == 0
    assert "report.html" in out
    assert "alignment" in out
    before = (tmp_path / "o" / "report.html").read_bytes()
    (tmp_path / "o" / "report.html").unlink()
    code, out, _ = call(monkeypatch, capsys, "report", tmp_path / "o")
    assert code == 0
    assert (tmp_path / "o" / "report.html").read_bytes() == before


def test_doctor(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "doctor")
    assert code == 0
    assert "torch" in out
    monkeypatch.setattr("probes.doctor._version", lambda name: None if name == "transformers" else "99")
    code, out, _ = call(monkeypatch, capsys, "doctor")
    assert code == 1
    assert "pip install 'transformers" in out


COMMANDS = ["derive", "pretrain", "transfer", "compare", "probe", "study", "report", "doctor"]


@pytest.mark.parametrize("name", COMMANDS)
def test_help(name, monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, name, "--help")
    assert code == 0
    assert f"synthlang {name}" in out or "Usage" in out
    assert ("--out" in out) == (name != "doctor")


def row(number, head, relation="dep"):
    return f"{number}\tw{number}\tw\tX\t_\t_\t{head}\t{relation}\t_\t_\n"


TREEBANKS = {
    "columns": (row(1, 0) + "2\tw\tx\n", "x.conllu:2: "),
    "cycle": (row(1, 0, "root") + row(2, 3) + row(3, 2), "x.conllu:2: "),
    "two roots": (row(1, 0) + row(2, 0), "x.conllu:2: "),
    "head out of range": (row(1, 0) + row(2, 9), "x.conllu:2: the head 9"),
    "empty": ("", "x.conllu: "),
}


@pytest.mark.parametrize("name", TREEBANKS)
def test_malformed_treebanks(name, tmp_path, monkeypatch, capsys):
    content, message = TREEBANKS[name]
    path = tmp_path / "x.conllu"
    path.write_text(content)
    code, _, err = call(monkeypatch, capsys, "derive", f"conllu:{path}", "--language", "inv", "--out", tmp_path / "d")
    assert_one_line(code, err, message)
    assert not (tmp_path / "d").exists()


def assert_one_line(code, err, message):
    assert code == 2
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err


WRONG = {
    "missing config": ("pretrain none.yaml --out o", "none.yaml: no such file"),
    "empty config": ("pretrain empty.yaml --out o", "empty.yaml: "),
    "not UTF-8": ("pretrain latin.yaml --out o", "latin.yaml"),
    "unknown key": ("pretrain c.yaml --out o --set stepz=3", "stepz: unknown key"),
    "wrong type": ("pretrain c.yaml --out o --set steps=many", "steps: 'many'"),
    "out of range": ("pretrain c.yaml --out o --set objective.mask_rate=2", "objective.mask_rate: 2"),
    "strength": ("derive text:t.txt --language trans:2 --out o", "strength: 2"),
    "language": ("derive text:t.txt --language tarns --out o", "'tarns' is none of trans, inv, perm"),
    "set": ("pretrain c.yaml --out o --set steps", "--set steps: must be KEY=VALUE"),
    "missing text": ("derive text:none.txt --language inv --out o", "none.txt: no such file or folder"),
    "empty text": ("derive text:empty.yaml --language inv --out o", "empty.yaml: holds no word"),
    "text not UTF-8": ("derive text:latin.yaml --language inv --out o", "not UTF-8"),
    "missing treebank": ("derive conllu:none --language inv --out o", "none: no such file or folder"),
    "scheme": ("derive txt:t.txt --language inv --out o", "must be one of: builtin:mini-english"),
    "existing folder": ("derive text:t.txt --language inv --out full", "full: exists already"),
    "not a run": ("probe full", "full is no run folder: name the folder of the results with --out DIR"),
    "transfer of no run": ("transfer full", "full is no pretraining run, so its languages are not known"),
    "not a study": ("report full", "full: is no study folder"),
    "study in a full folder": ("study s.yaml --out full", "full: is not empty and holds no study"),
    "executor": (
        "study s.yaml --out o --executor cloud",
        "executor must be one of local, in-process, slurm, not 'cloud'",
    ),
    "no tags": ("study s.yaml --out o --set source=text:t.txt", "needs the column 'upos'"),
    "out without a name": ("derive text:t.txt --language inv --out .", "'.' is no name"),
    "no such home": (
        "derive text:~nobody-at-all/x --language inv --out o",
        "~nobody-at-all/x: there is no such home folder",
    ),
    "digits": (f"derive text:t.txt --language inv@{'9' * 5000} --out o", "chunk"),
    "field of a text": ("derive text:t.txt --language inv --out o --field x", "--field is for a labelled task"),
    "ids of a task": ("derive nli:t.txt --language inv --out o --vocabulary 300", "--vocabulary is for a source"),
    "no trees": (
        "pretrain c.yaml --out o --set source=text:t.txt --set language=trans+reorder@ga",
        "needs the column 'upos'",
    ),
    "study source": ("study s.yaml --out o --set source=conllu:none", "none: no such file or folder"),
}


@pytest.fixture
def inputs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text(yaml.safe_dump(PRETRAIN))
    Path("s.yaml").write_text(yaml.safe_dump(STUDY))
    Path("t.txt").write_text("a b c .\n")
    Path("empty.yaml").write_text("")
    Path("latin.yaml").write_bytes("a: caf\xe9\n".encode("latin-1"))
    Path("late.txt").write_bytes(b"a b c .\n" * 3000 + b"\xff\n")
    Path("full").mkdir()
    Path("full/mine.txt").write_text("mine")
    return tmp_path


@pytest.mark.parametrize("name", WRONG)
def test_wrong_input_is_one_line_and_costs_nothing(name, inputs, monkeypatch, capsys):
    arguments, message = WRONG[name]
    before = sorted(inputs.rglob("*"))
    code, _, err = call(monkeypatch, capsys, *arguments.split())
    assert_one_line(code, err, message)
    assert sorted(inputs.rglob("*")) == before


def test_an_error_in_the_middle_leaves_no_folder(inputs, monkeypatch, capsys):
    before = sorted(inputs.rglob("*"))
    code, _, err = call(monkeypatch, capsys, *["derive", "text:late.txt", "--language", "inv", "--out", "p/q/r"])
    assert code == 2 and err.splitlines()[-1].startswith("error: late.txt:3001: not UTF-8")
    assert sorted(inputs.rglob("*")) == before


def test_unknown_probe_and_task(run, monkeypatch, capsys):
    code, _, err = call(monkeypatch, capsys, "probe", run, "--probe", "cca")
    assert_one_line(code, err, "--probe cca: there is words, ")
    code, _, err = call(monkeypatch, capsys, "transfer", run, "--task", "chunking")
    assert_one_line(code, err, "task: 'chunking'")


LIMITED = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
from probes.cli import main
main()
"""


def test_no_space_left(inputs):
    """A real limit on the size of files; the message names the place, where the same command would go on."""
    command = [
        sys.executable,
        "-c",
        LIMITED,
        "derive",
        "builtin:mini-english?types=500&sentences=500",
        "--language",
        "inv",
        "--out",
        "o",
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    )
    assert_one_line(done.returncode, done.stderr, "o: ")
    assert sorted(p.name for p in inputs.iterdir()) == [
        ".partial-o",
        "c.yaml",
        "empty.yaml",
        "full",
        "late.txt",
        "latin.yaml",
        "s.yaml",
        "t.txt",
    ]
