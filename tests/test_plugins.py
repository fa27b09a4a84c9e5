"""A package of somebody else adds a transform, a term, a probe and a task; ours is not edited."""

import json
import re
import shutil
from importlib.metadata import Distribution
from importlib.util import find_spec
from pathlib import Path
from runpy import run_path

import pytest
import yaml

from tests.refusals import refused
from tests.runs import run_anew
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
    """Write the files that pip leaves in site-packages."""
    shutil.rmtree(folder, ignore_errors=True)
    package, record = folder / "my_package", folder / f"my_package-{version}.dist-info"
    package.mkdir(parents=True)
    record.mkdir()
    for name in ("repeat_transform", "small_term", "lengths_probe", "length_task"):
        shutil.copy(HERE / f"{name}.py", package)
    (package / "__init__.py").write_text(TASK)
    (record / "METADATA").write_text(f"Metadata-Version: 2.1\nName: my-package\nVersion: {version}\n")
    (record / "entry_points.txt").write_text("".join(f"[synthlang.{group}]\n{e}\n" for group, e in entries.items()))


def run(folder, program, *arguments, code=0):
    """The output of a program with what is installed in the folder on its path."""
    return run_anew(program, *arguments, path=(folder, HERE.parent), folder=folder, exit_code=code)


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


UNDRAWN = """
from probes.figures import drawing, lines, printed, scatter
for module in (drawing, lines, printed, scatter):
    module.draw = lambda *_: "<svg></svg>"
drawing.png = lambda *_: b""
"""


REFERENCE = """
from probes import reference
reference.main(["transforms", "terms", "probes", "measures", "tasks", "language", "pretrain", "probe"])
"""


def synthlang(folder, *commands, code=0, before="", after=""):
    """Commands one after the other in one process, which then imports once."""
    return run(folder, before + COMMANDS + after, json.dumps([list(map(str, words)) for words in commands]), code=code)


def test_one_of_each_kind_end_to_end(tmp_path):
    """In the processes of derive, too; another version of the package is other work."""
    site, study, out = tmp_path / "site", tmp_path / "study.yaml", tmp_path / "out"
    install(site)
    study.write_text(yaml.safe_dump(TINY))
    look = ("study", study, "--out", out, "--dry-run")
    said = synthlang(site, ("study", study, "--out", out, "--executor", "in-process"), look, before=UNDRAWN)
    done = r"│ all +│ +4 │ +0 │ +{} │"
    assert re.search(done.format(4), said)
    stages = {path.name.split("-")[0]: path for path in (out / "stages").iterdir() if path.is_dir()}
    record = json.loads((stages["probe"] / "probes.json").read_text())["probes"]
    assert list(record) == ["lengths"] and record["lengths"]["counts"] == {"sentences counted": 6}
    words = record["lengths"]["words"]["source"]
    line = next(line for line in (out / "measures.csv").read_text().splitlines() if "lengths.words.source" in line)
    assert f"p,lengths.words.source,,,{words}" in line
    assert "p: lengths.words.source | words in a sentence" in (out / "report.md").read_text()
    assert "length_accuracy" in (stages["transfer"] / "result.json").read_text()
    row = json.loads((stages["pretrain"] / "metrics.jsonl").read_text().splitlines()[-1])
    assert row["loss"] == pytest.approx(row["mlm"] + 2.0 * row["small"], abs=1e-3)
    install(site, "1.1")
    source = "builtin:mini-english?types=500&sentences=50&dev=0&test=0"
    derive = ("derive", source, "--language", "repeat", "--out", tmp_path / "data", "--workers", 2)
    said = synthlang(site, look, derive, ("doctor",), after=REFERENCE)
    assert re.search(done.format(0), said) and "of my-package 1.1" in said
    for row in (
        "| `repeat` | `repeat`",
        "| `small` | `small_mlm` | `small_rate` |",
        "| `lengths` | `words.*` | words | 0 … ∞ | sentences |",
        "| `length` | ",
        "### `transforms[]` of kind `repeat`",
        "| `times` | ",
        "| `small_rate` | ",
        "### `lengths`",
        "| `most` | ",
    ):
        assert row in said, row


def test_fingerprints_have_the_version_and_what_was_made_without_plugins_is_the_same(tmp_path):
    plain = """
from pretrain.config import PretrainConfig
from probes.measures.table import ProbeConfig
from synthlang.config import dump_yaml
from synthlang.language import parse_language
from synthlang.references import resolved
config = PretrainConfig(source="builtin:mini-english", language=parse_language("trans"))
print(config.fingerprint({}), dump_yaml(config), dump_yaml(ProbeConfig()), resolved(ProbeConfig(), lambda n: n.name))
"""
    made = """
import json
from pretrain.config import ObjectiveConfig
from probes.stages.base import StageKeys
from probes.stages.probe import ProbeStage
from probes.stages.transfer import TransferStage
from probes.transfer.config import TransferConfig
keys = StageKeys()
print(json.dumps([
    parse_language("repeat").fingerprint,
    ObjectiveConfig(kind="small_mlm").identity(),
    keys.key(ProbeStage(config=ProbeConfig(probes=["lengths"]), model="m", name="p")),
    keys.key(TransferStage(config=TransferConfig(task="length"), model="m", name="t", seed=0)),
]))
"""
    without = run(tmp_path, plain)
    told = []
    for version in ("1.0", "1.1"):
        install(tmp_path / version, version)
        *same, own = run(tmp_path / version, plain + made).splitlines(keepends=True)
        assert "".join(same) == without
        told.append(json.loads(own))
    assert all(one != other for one, other in zip(*told, strict=True))


def test_a_package_can_be_imported_before_ours(tmp_path):
    """As in its own tests, and where a worker reads an object of it; each module in a fork that has none of ours."""
    install(tmp_path)
    code = """
import os
import numpy, pydantic
for module in ("my_package", "my_package.repeat_transform", "my_package.small_term"):
    if not os.fork():
        __import__(module)
        import probes.measures.table, probes.transfer.config
        os._exit(0)
    assert os.wait()[1] == 0, module
"""
    run(tmp_path, code)


WRONG = [
    ("synthlang.transforms.table", "repeat = tests.gone:Repeat", "failed"),
    ("synthlang.transforms.table", "invert = tests.repeat_transform:Repeat", "duplicate"),
    ("synthlang.transforms.table", "again = tests.repeat_transform:Repeat", "conflict"),
    ("pretrain.objectives.table", "small = tests.small_term:GONE", "failed"),
    ("probes.measures.table", "layers = tests.lengths_probe:LengthsConfig", "duplicate"),
    ("probes.transfer.tasks.table", "length = tests.lengths_probe:LengthsConfig", "type"),
]
GROUPS = dict(zip(dict.fromkeys(table for table, *_ in WRONG), ENTRIES, strict=True))


@pytest.mark.parametrize(("table", "entry", "code"), WRONG)
def test_a_wrong_entry_is_refused(tmp_path, monkeypatch, table, entry, code):
    """The module of the table is executed again."""
    install(tmp_path, entries={GROUPS[table]: entry})
    [package] = Distribution.discover(path=[str(tmp_path)])
    found = {GROUPS[table]: tuple(package.entry_points)}
    monkeypatch.setattr("synthlang.plugins._entries", lambda group: found.get(group, ()))
    name, _, value = entry.split()
    place = f"plugin {name} (synthlang.{GROUPS[table]}, {value}) of my-package 1.0"
    file = find_spec(table)
    assert file is not None and file.origin is not None
    assert refused(run_path, file.origin) == (place, code)


def test_what_is_wrong_is_one_line(tmp_path):
    install(tmp_path, entries={"tasks": "length = my_package.length_task:Length"})
    said = synthlang(tmp_path, ("study", "quickstart", "--out", tmp_path / "out", "--dry-run"), code=2)
    assert said.startswith("error: plugin length (synthlang.tasks, my_package.length_task:Length) of my-package 1.0")
    assert said.count("\n") == 1 and re.search(r"cannot be imported: .*circular import.*CONTRIBUTING\.md", said)
