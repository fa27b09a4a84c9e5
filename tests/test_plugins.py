"""A package of somebody else adds a transform, a term, a probe and a task; ours is not edited."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.tiny import STUDY, changed

HERE = Path(__file__).parent
ENTRIES = {
    "transforms": "repeat = my_package.repeat_transform:Repeat",
    "terms": "small = my_package.small_term:Small",
    "probes": "lengths = my_package.lengths_probe:LengthsConfig",
    "tasks": "length = my_package:LENGTH",
}
TASK = 'from probes.transfer.tasks.entry import TaskEntry\n\nLENGTH = TaskEntry("my_package.length_task:Length")\n'
TINY = changed(
    STUDY,
    pretrain__objective={"kind": "small_mlm", "small_rate": 2.0},
    tasks={"length": {}},
    learned={"sup": 0},  # so that a model that has learned nothing is in the report, too
    probes={"p": {"probes": ["lengths"], "lengths": {"most": 6}, "data": {"dev": 40}}},
    seeds=[0],
    grid={"product": {"pretrain.language": ["repeat@3"]}},
)


def install(folder, version="1.0", entries=ENTRIES):
    """What pip leaves in site-packages."""
    shutil.rmtree(folder, ignore_errors=True)
    package, record = folder / "my_package", folder / f"my_package-{version}.dist-info"
    package.mkdir(parents=True)
    record.mkdir()
    for name in ("repeat_transform", "small_term", "lengths_probe", "length_task"):
        shutil.copy(HERE / f"{name}.py", package)
    (package / "__init__.py").write_text(TASK)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-package\nVersion: {version}\n")
    (record / "entry_points.txt").write_text("".join(f"[synthlang.{group}]\n{e}\n" for group, e in entries.items()))


def run(folder, *arguments, code=0):
    """``python …`` with what is installed in the folder on its path; what it said."""
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{HERE.parent}"}
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=folder)
    assert done.returncode == code, done.stderr
    return done.stdout if code == 0 else done.stderr


COMMANDS = """
import json, sys
from probes.cli import main
for words in json.loads(sys.argv[1]):
    sys.argv = ["synthlang", *words]
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
"""


def synthlang(folder, *commands, code=0):
    """Commands one after the other in one process, which then imports once."""
    return run(folder, "-c", COMMANDS, json.dumps([list(map(str, words)) for words in commands]), code=code)


def test_one_of_each_kind_end_to_end(tmp_path):
    """In the processes of a study and of derive, too; another version of the package is other work."""
    site, study, out = tmp_path / "site", tmp_path / "study.yaml", tmp_path / "out"
    install(site)
    study.write_text(yaml.safe_dump(TINY))
    look = ("study", study, "--out", out, "--dry-run")
    said = synthlang(site, ("study", study, "--out", out, "--workers", 2, "--executor", "local"), look)
    done = r"│ all +│ +4 │ +0 │ +{} │"
    assert re.search(done.format(4), said)
    stages = {path.name.split("-")[0]: path for path in (out / "stages").iterdir() if path.is_dir()}
    record = json.loads((stages["probe"] / "probes.json").read_text())["probes"]
    assert list(record) == ["lengths"] and record["lengths"]["counts"] == {"sentences counted": 6}
    words = record["lengths"]["words"]["source"]
    line = next(line for line in (out / "measures.csv").read_text().splitlines() if "lengths.words.source" in line)
    assert f"p,lengths.words.source,,,{words}" in line
    assert "p: lengths.words.source | words in a sentence" in (out / "report.md").read_text()
    assert "| `lengths` | `words.*` | words | 0 … ∞ | sentences |" in run(site, "-m", "probes.reference", "measures")
    assert "length_accuracy" in (stages["transfer"] / "result.json").read_text()
    row = json.loads((stages["pretrain"] / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["loss"] == pytest.approx(row["mlm"] + 2.0 * row["small"], abs=1e-3)
    install(site, "1.1")
    source = "builtin:mini-english?types=500&sentences=50&dev=0&test=0"
    derive = ("derive", source, "--language", "repeat", "--out", tmp_path / "data", "--workers", 2)
    said = synthlang(site, look, derive, ("doctor",))
    assert re.search(done.format(0), said) and "of my-package 1.1" in said


def test_fingerprints_have_the_version(tmp_path):
    code = """
import json
from pretrain.config import ObjectiveConfig
from probes.measures.table import ProbeConfig
from probes.stages.base import StageKeys
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.transfer.config import TransferConfig
from synthlang.language import parse_language
keys = StageKeys()
print(json.dumps([
    parse_language("repeat").fingerprint,
    ObjectiveConfig(kind="small_mlm").identity(),
    keys.key(ProbeStage(config=ProbeConfig(probes=["lengths"]), model="m", name="p")),
    keys.key(TransferStage(config=TransferConfig(task="length"), model="m", name="t", seed=0)),
]))
"""
    told = []
    for version in ("1.0", "1.1"):
        install(tmp_path, version)
        told.append(json.loads(run(tmp_path, "-c", code)))
    assert all(one != other for one, other in zip(*told, strict=True))


def test_what_was_made_without_plugins_is_the_same_with_them(tmp_path):
    code = """
from pretrain.config import PretrainConfig
from probes.measures.table import ProbeConfig
from synthlang.config import dump_yaml
from synthlang.language import parse_language
from synthlang.references import resolved
config = PretrainConfig(source="builtin:mini-english", language=parse_language("trans"))
print(config.fingerprint({}), dump_yaml(config), dump_yaml(ProbeConfig()), resolved(ProbeConfig(), lambda n: n.name))
"""
    install(tmp_path / "with")
    (tmp_path / "without").mkdir()
    assert run(tmp_path / "with", "-c", code) == run(tmp_path / "without", "-c", code)


@pytest.mark.parametrize("module", ["my_package", "my_package.repeat_transform", "my_package.small_term"])
def test_a_package_can_be_imported_before_ours(tmp_path, module):
    """As in its own tests, and where a worker reads an object of it."""
    install(tmp_path)
    run(tmp_path, "-c", f"import {module}, probes.measures.table, probes.transfer.config")


WRONG = [
    ("transforms", "repeat = my_package.gone:Repeat", r"cannot be imported: ModuleNotFoundError: .*my_package.gone"),
    (
        "transforms",
        "invert = my_package.repeat_transform:Repeat",
        "the name is taken by synthlang; rename it, or uninstall",
    ),
    (
        "transforms",
        "again = my_package.repeat_transform:Repeat",
        "the class declares the name 'repeat'; use the same name for the entry point",
    ),
    ("terms", "small = my_package:TASK", "cannot be imported: AttributeError"),
    ("probes", "layers = my_package.lengths_probe:LengthsConfig", "the name is taken by synthlang"),
    ("tasks", "length = my_package.lengths_probe:LengthsConfig", "must be an instance of TaskEntry"),
    ("tasks", "length = my_package.length_task:Length", r"cannot be imported: .*circular import.*CONTRIBUTING\.md"),
]


@pytest.mark.parametrize(("group", "entry", "message"), WRONG)
def test_what_is_wrong_is_one_line(tmp_path, group, entry, message):
    install(tmp_path, entries={group: entry})
    said = synthlang(tmp_path, ("study", "quickstart", "--out", tmp_path / "out", "--dry-run"), code=2)
    assert said.startswith(f"error: plugin {entry.split()[0]} (synthlang.{group}, ") and said.count("\n") == 1
    assert "of my-package 1.0" in said
    assert re.search(message, said), said
