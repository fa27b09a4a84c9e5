"""The command under hard conditions: resumed and foreign folders, full disks, odd names, every option in --help.

Happy paths and the table of wrong input are in test_command.py.
"""

import errno
import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import torch
import yaml
from safetensors.torch import load_file

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes import cli
from synthlang.config import parse
from synthlang.store import Store
from tests.tiny import PRETRAIN, STUDY, changed


def call(monkeypatch, capsys, *arguments) -> tuple[int, str, str]:
    """Run the command in this process: exit code, standard output, standard error."""
    monkeypatch.setattr(sys, "argv", ["synthlang", *map(str, arguments)])
    monkeypatch.setenv("COLUMNS", "200")
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        cli.main()
    streams = capsys.readouterr()
    return int(stop.value.code or 0), streams.out, streams.err


def assert_one_line(code: int, err: str, *parts: str) -> None:
    """Exit code 2 and one line of error; lines of progress may stand before it."""
    assert code == 2
    errors = [line for line in err.splitlines() if not line.startswith(("prepare ", "pretrain ", "study "))]
    assert len(errors) == 1, err
    assert errors[0].startswith("error: ")
    for part in parts:
        assert part in errors[0]


def content(folder: Path) -> dict[Path, tuple[int, bytes]]:
    return {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in folder.rglob("*") if p.is_file()}


def weights(run: Path) -> dict[str, torch.Tensor]:
    tensors: dict[str, torch.Tensor] = load_file(run / "checkpoints" / "step-6" / "model.safetensors")
    return tensors


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """A folder with a config, a study, a finished run (made without the command) and a finished study."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "c.yaml").write_text(yaml.safe_dump(PRETRAIN))
    study = changed(STUDY, pretrain__language="trans", seeds=[0])
    del study["grid"]
    (folder / "s.yaml").write_text(yaml.safe_dump(study))
    pretrain(parse(PretrainConfig, PRETRAIN), folder / "run", Store(folder / "store"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            sys,
            "argv",
            ["synthlang", "study", f"{folder}/s.yaml", "--out", f"{folder}/out", "--executor", "in-process"],
        )
        with pytest.raises(SystemExit) as stop:
            cli.main()
        assert not stop.value.code
    return folder


@pytest.fixture(autouse=True)
def _here(work, monkeypatch):
    monkeypatch.chdir(work)


def test_the_command_runs_the_same_pretraining(work, monkeypatch, capsys, tmp_path):
    code, _, err = call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", tmp_path / "run")
    assert code == 0
    assert f"run folder: {tmp_path / 'run'}" in err
    ours, theirs = weights(tmp_path / "run"), weights(work / "run")
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_wrong_input_is_one_line_in_a_process_of_its_own(tmp_path):
    """No banner, warning or traceback of a library comes with it."""
    command = [sys.executable, "-m", "probes.cli", "derive", "text:none.txt", "--language", "inv", "--out"]
    done = subprocess.run([*command, str(tmp_path / "o")], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "error: none.txt: no such file or folder\n"
    assert not (tmp_path / "o").exists()


OPTIONS = {
    "derive": [
        *("--language", "--out", "--workers", "--parser", "--licence"),
        *("--vocabulary", "--counts", "--field", "--cache"),
    ],
    "parse": ["--out", "--engine", "--model", "--tokens", "--workers", "--cache"],
    "dictionary": ["--out", "--source", "--coverage", "--by", "--order", "--seed", "--target-source"],
    "push": ["--public"],
    "pretrain": ["--out", "--set"],
    "adjust": ["--out", "--set"],
    "transfer": [
        *("--task", "--config", "--train", "--dev", "--test", "--language"),
        *("--target-train", "--target-dev", "--target-test", "--seeds", "--out", "--keep", "--set"),
    ],
    "compare": ["--metric", "--test", "--correction", "--rounds", "--swap", "--out"],
    "probe": ["--probe", "--config", "--language", "--out", "--set"],
    "align": [
        *("--program", "--symmetrise", "--gold", "--gold-first", "--gold-reversed", "--links", "--links-first"),
        *("--links-reversed", "--also", "--lower", "--words", "--also-words", "--blank", "--out", "--scores"),
    ],
    "correlate": ["--x", "--y", "--by", "--block", "--cluster", "--kind", "--level", "--out", "--figure"],
    "study": [
        *("--out", "--store", "--size", "--executor", "--workers", "--retry", "--only", "--dry-run"),
        *("--slurm", "--no-wait", "--set"),
    ],
    "report": ["--out"],
    "gc": ["--keep", "--unused", "--dry-run"],
    "configs": [],
    "doctor": [],
}


def listed_options(out):
    return re.findall(r"^ *(?:-h, )?(--[a-z0-9-]+)", out, re.MULTILINE)


@pytest.mark.parametrize("name", OPTIONS)
def test_help_lists_every_option(name, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, name, "--help")
    assert (code, err) == (0, "")
    assert listed_options(out) == [*OPTIONS[name], "--help"]


def test_the_version_and_short_help(monkeypatch, capsys):
    assert call(monkeypatch, capsys, "--version") == (0, f"synthlang {version('synthlang')}\n", "")
    for name in ("study", "probe"):
        assert call(monkeypatch, capsys, name, "-h") == call(monkeypatch, capsys, name, "--help")


def test_the_help_names_every_command(monkeypatch, capsys):
    code, out, _ = call(monkeypatch, capsys, "--help")
    assert code == 0
    listed = [line.split()[0] for line in out.split("Commands:")[1].splitlines() if line.strip()]
    assert listed == [*OPTIONS, "order"]


ORDER_OPTIONS = {
    "fit": [
        *("--out", "--train", "--held-out", "--choose-on", "--l2", "--max-items"),
        *("--labels", "--title", "--licence", "--attribution"),
    ],
    "import": ["--out", "--labels"],
    "show": [
        *("--conllu", "--sentence", "--node", "--labels", "--substrate", "--substrate-weight"),
        *("--temperature", "--corpus-labels", "--items"),
    ],
    "evaluate": ["--held-out", "--train", "--labels"],
    "compare": ["--parent", "--target", "--parent-split", "--target-split", "--substrate", "--seed"],
}


@pytest.mark.parametrize("name", ORDER_OPTIONS)
def test_help_of_the_order_commands(name, monkeypatch, capsys):
    code, out, err = call(monkeypatch, capsys, "order", name, "--help")
    assert (code, err) == (0, "")
    assert listed_options(out) == [*ORDER_OPTIONS[name], "--help"]


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("steps", "--set steps: must be KEY=VALUE with a dotted key"),
        ("=3", "--set =3: must be KEY=VALUE"),
        ("model..layers=3", "--set model..layers=3: must be KEY=VALUE"),
        ("steps=", "--set steps=: has no value"),
        ("steps=[1", "--set steps=[1:1: "),
        ("steps.more=1", "--set steps.more=1: 'more' cannot be set inside 6, which is no mapping"),
        ("model=3", "model: 3 must be a"),
        ("objective.kind=mln", "objective.kind: 'mln'"),
        ("language=trans:1.01", "strength: 1.01"),
        ("source=builtin:latin", "the only built-in one is mini-english"),
        ("source=builtin:mini-english?type=9", "unknown option 'type'; allowed are types"),
        ("source=web:x", "must be one of: builtin:mini-english"),
    ],
)
def test_wrong_settings_name_their_key(assignment, message, work, monkeypatch, capsys):
    before = sorted(work.rglob("*"))
    code, _, err = call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", "new", "--set", assignment)
    assert_one_line(code, err, message)
    assert sorted(work.rglob("*")) == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("pretrain store --out new", "store: cannot read: Is a directory"),
        ("study c.yaml --out new", "name: is required"),
        (
            "study s.yaml --out new --set pretrain.stepz=3",
            "s.yaml cell tiny: pretrain.stepz: unknown key; did you mean steps?",
        ),
        ("study s.yaml --out out --set name=other", "out: holds another study (tiny, "),
        ("study s.yaml --out run", "run: is not empty and holds no study"),
        ("pretrain c.yaml --out run --set seed=1", "run: holds another run ("),
        ("pretrain c.yaml --out out", "out: is not empty and holds no run"),
        ("probe out", "out is no run folder"),
        ("report out store", "store: is no study folder"),
        ("transfer run --set fine_tune.epoch=1", "transfer: fine_tune.epoch: unknown key; did you mean epochs?"),
        ("transfer run --set length=64", "length 64 is longer than the 48 tokens that the model reads"),
        ("derive builtin:mini-english --language none.yaml --out new", "none.yaml: no such file"),
        ("derive builtin:mini-english --language trans+trans --out new", "transliterated at most once"),
    ],
)
def test_folders_and_files_of_others_are_left_alone(arguments, message, work, monkeypatch, capsys):
    before = content(work)
    code, _, err = call(monkeypatch, capsys, *arguments.split())
    assert_one_line(code, err, message)
    assert {p: v for p, v in content(work).items() if ".locks" not in p.parts} == {
        p: v for p, v in before.items() if ".locks" not in p.parts
    }
    assert not (work / "new").exists()


def test_a_run_that_is_not_finished(work, monkeypatch, capsys, tmp_path):
    (tmp_path / "config.yaml").write_bytes((work / "run" / "config.yaml").read_bytes())
    for name in ("probe", "transfer"):
        code, _, err = call(monkeypatch, capsys, name, tmp_path)
        assert_one_line(code, err, f"{tmp_path}: the run is not finished; run synthlang pretrain again to go on")


@pytest.mark.parametrize(
    "left", [["config.yaml"], [".tmp-config.yaml-0123abcd"], ["data", "config.yaml", ".tmp-run.json-0123abcd"]]
)
def test_a_run_killed_as_it_claimed_its_folder_goes_on(left, work, monkeypatch, capsys, tmp_path):
    for name in left:
        if name == "data":
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_bytes((work / "run" / "config.yaml").read_bytes())
    code, _, err = call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", tmp_path)
    assert code == 0, err
    assert (tmp_path / "done.json").exists()


@pytest.mark.parametrize("left", [["stages"], [".tmp-study.json-0123abcd"], ["stages", ".tmp-study.json-0123abcd"]])
def test_a_study_killed_as_it_claimed_its_folder_goes_on(left, work, monkeypatch, capsys, tmp_path):
    for name in left:
        if name == "stages":
            (tmp_path / name).mkdir()
        else:
            (tmp_path / name).write_text("{")
    code, _, err = call(monkeypatch, capsys, "study", "s.yaml", "--out", tmp_path, "--executor", "in-process")
    assert code == 0, err
    assert (tmp_path / "results.csv").read_bytes() == (work / "out" / "results.csv").read_bytes()


def test_a_config_of_something_else_does_not_make_a_folder_ours(monkeypatch, capsys, tmp_path):
    (tmp_path / "config.yaml").write_text("mine: 1\n")
    code, _, err = call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", tmp_path)
    assert_one_line(code, err, f"{tmp_path}: is not empty and holds no run")
    assert {p.name: p.read_text() for p in tmp_path.iterdir()} == {"config.yaml": "mine: 1\n"}


@pytest.mark.parametrize("text", ["{}", "[]", "null", '{"fingerprint": "x"', ""])
@pytest.mark.parametrize("command", ["pretrain", "study"])
def test_a_damaged_record_of_a_folder_is_one_line(command, text, monkeypatch, capsys, tmp_path):
    record = tmp_path / ("run.json" if command == "pretrain" else "study.json")
    record.write_text(text)
    config = "c.yaml" if command == "pretrain" else "s.yaml"
    code, _, err = call(monkeypatch, capsys, command, config, "--out", tmp_path)
    assert_one_line(code, err, record.name if text in ('{"fingerprint": "x"', "") else str(tmp_path))
    assert record.read_text() == text


ROW = "{0}\tw{0}\t_\tX\t_\t_\t{1}\tdep\t_\t_\n"
SOUND = "".join(ROW.format(i, i - 1) for i in range(1, 61)) + "\n"


@pytest.mark.parametrize(
    ("block", "line", "message"),
    [
        ("1\tw\tx\n", 1, "10 columns"),
        (ROW.format(1, 0) + ROW.format(2, 3) + ROW.format(3, 2), 2, "the heads of word 2 form a cycle"),
        (ROW.format(1, 0) + ROW.format(2, 0), 2, "words 1 and 2 are both roots"),
        (ROW.format(1, 0) + ROW.format(2, 3), 2, "the head 3 of word 2 is out of range"),
        (ROW.format(1, 1), 1, "no root"),
    ],
)
def test_a_malformed_line_deep_in_a_treebank_stops_a_pretraining(block, line, message, monkeypatch, capsys, tmp_path):
    """Nothing half-written stays, and the same command goes on once the line is mended."""
    treebank, run = tmp_path / "t.conllu", tmp_path / "run"
    treebank.write_text(SOUND + block + "\n")
    options = ["--set", f"source=conllu:{treebank}", "--set", "validation.every=0", "--set", "objective.kind=mlm"]
    code, _, err = call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", run, *options)
    assert_one_line(code, err, f"{treebank}:{61 + line}: ", message)
    assert not list(run.rglob(".tmp-*")) and not (run / "config.yaml").exists()
    if line == 1:
        treebank.write_text(SOUND)
        assert call(monkeypatch, capsys, "pretrain", "c.yaml", "--out", run, *options)[0] == 0
        assert (run / "done.json").exists()


LIMITED = """
import resource, signal, sys
limit = int(sys.argv.pop(1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from probes.cli import main
main()
"""


def test_a_disk_that_is_full_at_a_checkpoint_stops_a_pretraining_with_one_line(tmp_path):
    """No file may be larger than 20 kB: the data fits, the weights do not."""
    command = [sys.executable, "-c", LIMITED, "20000", "pretrain", "c.yaml", "--out", str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    errors = "".join(line for line in done.stderr.splitlines(keepends=True) if line.startswith("error:"))
    assert_one_line(done.returncode, errors, str(tmp_path / "run" / "checkpoints"))
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.rglob(".tmp-*"))
    assert list((tmp_path / "run" / "checkpoints").iterdir()) == []


def test_no_space_left_says_what_to_do(work, monkeypatch, capsys, tmp_path):
    def full(handle):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = (work / "run" / "config.yaml").read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        code, _, err = call(patch, capsys, "probe", work / "run", "--probe", "words", "--out", tmp_path / "p")
    error = "".join(line for line in err.splitlines(keepends=True) if line.startswith("error:"))
    assert_one_line(code, error, "no space left on the disk; free some and run the same")
    assert list(tmp_path.iterdir()) == []
    assert (work / "run" / "config.yaml").read_bytes() == before


@pytest.mark.parametrize("name", ["runs [a]", "runs [bold]", "runs [/a]"])
def test_brackets_in_a_path_are_no_markup(name, work, monkeypatch, capsys, tmp_path):
    folder = tmp_path / name
    folder.mkdir(parents=True)
    for part in ("study.json", "results.csv", "results.parquet"):
        (folder / part).write_bytes((work / "out" / part).read_bytes())
    code, out, _ = call(monkeypatch, capsys, "report", folder)
    assert code == 0
    assert f"results: {folder / 'results.csv'}" in out
    options = ["--language", "inv", "--out", folder / "derived"]
    code, _, err = call(monkeypatch, capsys, "derive", "builtin:mini-english?types=500&sentences=20", *options)
    assert code == 0
    assert f"{folder / 'derived'}: train 20 sentences" in err


def test_seeds_are_added_to_a_result(work, monkeypatch, capsys, tmp_path):
    """A seed that is there is not run again, another one is added, and another transfer is refused."""
    out = tmp_path / "t.json"
    options = ["--out", out, "--set", "fine_tune.epochs=1", "--set", "length=48", "--set", "train_items=20"]
    assert call(monkeypatch, capsys, "transfer", "run", "--seeds", 1, *options)[0] == 0
    first = json.loads(out.read_text())
    assert call(monkeypatch, capsys, "transfer", "run", "--seeds", 2, *options)[0] == 0
    second = json.loads(out.read_text())
    assert [record["seed"] for record in second["seeds"]] == [0, 1]
    assert first["seeds"] == second["seeds"][:1]
    assert first["fingerprint"] == second["fingerprint"] and first["all"] != second["all"]
    code, _, err = call(monkeypatch, capsys, "transfer", "run", "--seeds", 1, *options[:-1], "train_items=21")
    assert code == 2 and "holds something else than this transfer" in err


def test_a_transfer_to_a_language_that_the_run_did_not_read_is_told(work, monkeypatch, capsys, tmp_path):
    options = ["--seeds", 1, "--set", "fine_tune.epochs=1", "--set", "length=48", "--set", "train_items=20"]
    for language, told in (("perm", True), ("inv", False)):
        out = ["--language", language, "--out", tmp_path / f"{language}.json"]
        code, _, err = call(monkeypatch, capsys, "transfer", "run", *options, *out)
        assert code == 0 and ("note: the model was not pretrained on perm, only on parent" in err) == told, language
