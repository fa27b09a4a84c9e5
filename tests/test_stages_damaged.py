"""Stages whose export was truncated or deleted: a start sees it, and writes it again from the checkpoint."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pretrain.adjust.loop import AdjustStep
from pretrain.step import Step
from probes.stages.adjust import AdjustStage
from probes.stages.done import damage, is_intact, is_whole, verify_store
from probes.stages.kinds import STAGE_KINDS
from probes.stages.pretrain import PretrainStage
from probes.study.gc import collect, delete_unused
from probes.transfer.run import Transfer
from synthlang.checksums import RECORD
from synthlang.errors import InputError
from tests.refusals import refused
from tests.study_cases import command, made_here, opened, own_copy, stages_of, tables
from tests.study_graphs import ADJUST, PROBE, SOURCE, STARTED, TASK

PAIR = {"kind": "derived", "source": SOURCE, "left": "trans+inv", "tokenizers": ["hi", "en"]}
QUICK = {"task": "pos", **TASK, "fine_tune": {"epochs": 1, "learning_rate": 0.01}}
ALL: dict[str, Any] = {
    **STARTED,
    "adjust": {**ADJUST, "pairs": {"x": PAIR}},
    "finetuned": QUICK,
    "probes": {"r": PROBE},
}
"""A cell with a stage of every kind that has an export."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("damaged") / "out"
    assert [cell.status for cell in made_here(folder, ALL).cells] == ["done"]
    return folder


@pytest.fixture
def out(finished, tmp_path):
    return own_copy(finished, tmp_path / "out")


@pytest.fixture
def trained(monkeypatch) -> list[str]:
    """Record what is trained: a step of a pretraining or an adjustment, or a fine-tuning for probes."""
    calls: list[str] = []

    def counted(function: Callable[..., Any], name: str) -> Callable[..., Any]:
        def called(*arguments: Any, **more: Any) -> Any:
            calls.append(name)
            return function(*arguments, **more)

        return called

    monkeypatch.setattr(Step, "__call__", counted(Step.__call__, "pretrain"))
    monkeypatch.setattr(AdjustStep, "__call__", counted(AdjustStep.__call__, "adjust"))
    monkeypatch.setattr(Transfer, "tune", counted(Transfer.tune, "tune"))
    return calls


def run_of(out: Path, which: str) -> Path:
    """The folder of the stage ``start``, ``pretrain``, ``adjust`` or ``tune``."""
    if which in ("adjust", "tune"):
        (run,) = stages_of(out, which)
        return run
    runs = {"start: null" not in (run / "config.yaml").read_text(): run for run in stages_of(out, "pretrain")}
    return runs[which == "pretrain"]


def exported(out: Path) -> dict[Path, bytes]:
    return {p.relative_to(out): p.read_bytes() for p in out.glob("stages/*/export/**/*") if p.is_file()}


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def shorten(run: Path, name: str) -> None:
    truncate(next((run / "export").rglob(name)))


DAMAGES: dict[str, Callable[[Path], None]] = {
    "truncated": lambda run: shorten(run, "model.safetensors"),
    "tokenizer": lambda run: shorten(run, "tokenizer.json"),
    "gone": lambda run: shutil.rmtree(run / "export"),
}


@pytest.mark.parametrize(
    ("which", "damage", "again"),
    [
        ("start", "truncated", []),
        ("pretrain", "tokenizer", []),
        ("pretrain", "gone", []),
        ("adjust", "gone", []),
        ("tune", "truncated", ["tune"]),  # a fine-tuned body has no checkpoint
    ],
)
def test_an_export_is_written_again_and_nothing_is_trained(which, damage, again, out, trained):
    before, results = exported(out), tables(out)
    DAMAGES[damage](run_of(out, which))
    assert exported(out) != before
    assert [cell.status for cell in made_here(out, ALL).cells] == ["done"]
    assert exported(out) == before and tables(out) == results
    assert trained == again
    assert not opened(out, ALL).to_do()


@pytest.mark.parametrize(("which", "lost"), [("pretrain", "last"), ("pretrain", "folder"), ("adjust", "all")])
def test_without_a_sound_checkpoint_the_run_is_made_again(lost, which, out, trained):
    run, before, results = run_of(out, which), exported(out), tables(out)
    metrics = len((run / "metrics.jsonl").read_text().splitlines())
    shutil.rmtree(run / "export")
    checkpoints = sorted(run.glob("checkpoints/step-*"), key=lambda path: int(path.name.removeprefix("step-")))
    for path in checkpoints[-1:] if lost == "last" else checkpoints:
        truncate(path / "model.safetensors")
    if lost == "folder":
        shutil.rmtree(run / "checkpoints")
    assert [cell.status for cell in made_here(out, ALL).cells] == ["done"]
    assert set(trained) == {which}
    assert exported(out) == before
    assert tables(out) == results
    assert len((run / "metrics.jsonl").read_text().splitlines()) == metrics


def test_cells_that_are_waiting_find_what_they_read(out, trained):
    """As after a start of some cells only: the next one, of other cells, reads the damaged export."""
    for which in ("start", "adjust"):
        shorten(run_of(out, which), "model.safetensors")
    more = {**ALL, "seeds": [0, 1]}
    assert [cell.status for cell in made_here(out, more).cells] == ["done"]
    assert trained == []


def test_what_is_no_damage(out):
    for card in out.glob("stages/*/export/**/README.md"):
        card.unlink()
    assert not opened(out, ALL).to_do(), "what people write into a card"
    for path in out.glob("stages/*/done.json"):
        done = json.loads(path.read_text())
        if done.pop("export", None) is not None:
            path.write_text(json.dumps(done, indent=2) + "\n")
            (path.parent / RECORD).unlink()
    shutil.rmtree(run_of(out, "pretrain") / "export")
    assert not opened(out, ALL).to_do(), "a version that noted no sizes and no checksums"


@pytest.mark.parametrize("keep", ["final", "results"])
def test_what_gc_deletes_is_no_damage(keep, out):
    assert collect([out], keep).freed
    assert not opened(out, ALL).to_do()


def test_after_gc_an_export_that_it_kept_is_watched(out, trained):
    collect([out], "final")
    before = exported(out)
    shutil.rmtree(run_of(out, "start") / "export" / "en")
    made_here(out, ALL)
    assert exported(out) == before
    assert trained == []


def test_a_damaged_stage_that_no_cell_has_is_deleted_as_others(out):
    run = run_of(out, "adjust")
    shutil.rmtree(run / "export")
    assert is_whole(AdjustStage.content, run)
    assert not is_intact(AdjustStage.content, run)
    made_here(out, {**ALL, "adjust": None})
    assert run in [one.folder.resolve() for one in delete_unused([out])]


def test_a_record_that_only_ends_as_it_should_is_no_record(out):
    run = run_of(out, "pretrain")
    (run / "done.json").write_bytes((run / "done.json").read_bytes()[60:])
    assert is_whole(PretrainStage.content, run)
    assert not is_intact(PretrainStage.content, run)


# --- what is found when it is read ---


def test_what_is_damaged_meanwhile_is_said_with_what_to_do(out, monkeypatch):
    shutil.rmtree(stages_of(out, "transfer")[0])
    run = opened(out, ALL)
    DAMAGES["gone"](run_of(out, "adjust"))
    run.run()
    assert [cell.error for cell in run.cells] == [
        f"{run.graph.stages[run.cells[0].keys['adjust']].label} is not finished; "
        "run the same command again, which makes the stage"
    ]
    assert [cell.status for cell in made_here(out, ALL).cells] == ["done"]


# --- every file of the store ---


def zero(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


INJURIES: dict[str, Callable[[Path], None]] = {
    "delete": Path.unlink,
    "truncate": truncate,
    "zero": zero,
    "flip": flip,
}
UNREAD = {"README.md", "stage.json", "predictions.parquet.lock"}
"""Files that are for people, or for forecasts."""


def files_of(store: Path) -> list[Path]:
    """Every file of a finished store that something reads, without the lists of the store itself."""
    paths = sorted(path for path in store.glob("*-*/**/*") if path.is_file() and path.stat().st_size)
    return [path for path in paths if path.name not in UNREAD and not path.name.startswith(".")]


@pytest.mark.parametrize("injury", INJURIES)
def test_no_damage_of_a_file_is_missed(injury, out):
    store = out / "stages"
    files = files_of(store)
    kinds = {path.relative_to(store).parts[0].partition("-")[0] for path in files}
    assert kinds >= {"pretrain", "adjust", "tune", "alignment", "probe", "transfer", "shards", "vocabulary"}
    assert not verify_store(store)
    for path in files:
        before, times = path.read_bytes(), (path.stat().st_atime_ns, path.stat().st_mtime_ns)
        INJURIES[injury](path)
        if "checkpoints" not in path.parts:
            folder = store / path.relative_to(store).parts[0]
            assert damage(folder) == [str(path.relative_to(folder))]
            kind = folder.name.partition("-")[0]
            assert kind not in STAGE_KINDS or not is_intact(STAGE_KINDS[kind].content, folder)
        path.write_bytes(before)
        os.utime(path, ns=times)
    assert not verify_store(store)


@pytest.mark.parametrize("injury", ["delete", "flip"])  # a file that is gone, and one of its size
def test_a_log_that_was_damaged_is_trained_again_and_changes_no_result(injury, out, trained):
    results, said = tables(out), list[str]()
    run = run_of(out, "pretrain")
    INJURIES[injury](run / "metrics.jsonl")
    started = opened(out, ALL)
    started.run(say=said.append)
    assert [cell.status for cell in started.cells] == ["done"] and tables(out) == results
    assert "pretrain" in trained and any("damaged files: metrics.jsonl" in line for line in said)


@pytest.mark.parametrize("injury", ["delete", "flip"])
def test_a_stage_that_reads_damaged_data_finds_them_made_again(injury, out, trained):
    """Everything that is no stage is damaged, and every export, and the probes and transfers are gone."""
    results = tables(out)
    for path in files_of(out / "stages"):
        kind = path.relative_to(out / "stages").parts[0].partition("-")[0]
        if kind not in STAGE_KINDS or "export" in path.parts:
            INJURIES[injury](path)
    for kind in ("probe", "transfer", "alignment"):
        shutil.rmtree(stages_of(out, kind)[0])
    assert [cell.status for cell in made_here(out, ALL).cells] == ["done"]
    assert tables(out) == results and not verify_store(out / "stages")
    assert trained == ["tune"]  # a fine-tuned body has no checkpoint


def test_damage_that_keeps_size_and_time_is_found_by_reading_all(out, monkeypatch, capsys):
    path = run_of(out, "adjust") / "metrics.jsonl"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    flip(path)
    os.utime(path, ns=times)
    config = out.parent / "study.yaml"
    config.write_text(yaml.safe_dump(ALL))
    assert not opened(out, ALL).to_do()
    for words in (["study", config, "--out", out, "--verify"], ["gc", out, "--dry-run"]):
        assert command(monkeypatch, *words) == 0
        told = capsys.readouterr().out
        assert str(path.parent.name) in told and "1 damaged file: metrics.jsonl; the next start makes adjust" in told
    assert [stage.kind for stage in opened(out, ALL).to_do()] == ["adjust"]


def test_a_stage_that_reads_damage_of_the_same_size_and_time_refuses_it(out):
    weights = next((run_of(out, "pretrain") / "export").rglob("model.safetensors"))
    times = weights.stat().st_atime_ns, weights.stat().st_mtime_ns
    flip(weights)
    os.utime(weights, ns=times)
    shutil.rmtree(stages_of(out, "transfer")[0])
    (cell,) = made_here(out, ALL).cells
    assert "model.safetensors" in str(cell.error) and "is damaged" in str(cell.error)
    assert [cell.status for cell in made_here(out, ALL).cells] == ["done"]


@pytest.mark.parametrize("name", ["studies.json", "pretrain-*/stage.json", "*-*/.checksums.json"])
@pytest.mark.parametrize("injury", INJURIES)
def test_a_damaged_list_of_the_store_is_named_or_made_again(injury, name, out):
    path = sorted((out / "stages").glob(name))[0]
    INJURIES[injury](path)
    named: list[str] = []
    try:
        opened(out, ALL).look()
        verify_store(out / "stages")
    except InputError as error:
        named.append(Path(str(error.path)).name)
    assert set(named) <= {path.name, "stages"}


def test_a_damaged_record_is_named(out):
    path = run_of(out, "adjust") / RECORD
    path.write_text("[]")
    assert refused(opened, out, ALL) == (RECORD, "damaged")
