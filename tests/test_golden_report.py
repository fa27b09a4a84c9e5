"""The page in Markdown and every table of the reports of made-up studies, pinned word for word."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from probes.report.folder import write_joined_report, write_report
from tests.golden import check_golden
from tests.report_study import change, change_rows, make_grid, make_study

VOLATILE = re.compile(r"/tmp/\S+|\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?\b")
"""Places and times: none are in a report today, and none are pinned should there be some."""
AXES = {
    "objective": ["ALIGN-MLM", "MLM", "XLM"],
    "transform": ["trans", "trans+inv"],
    "pretrain.seed": ["0", "1", "2"],
}


def plain(folder: Path) -> Path:
    """Three objectives × two languages, two tasks, one of its cells failed."""
    return make_study(folder, tasks=("pos", "ner"), curves="")


def replicated(folder: Path) -> Path:
    """The same with pretrainings of two seeds, and curves of training."""
    return make_study(folder, replicates=2)


def beside_papers(folder: Path) -> Path:
    """A study beside a table of a paper and its claims, with a measure of layers and steps."""
    names = {"paper": ["align_mlm/table3"], "claims": ["align_mlm"]}
    tasks = ("nli", "ner", "pos")
    made = make_grid(folder, AXES, tasks, layers=3, steps=(10, 20), jitter=1.0, name="beside", config=names)
    change_rows(made, lambda row, _: {"alignment_forward": row["alignment_all"]})
    return made


def joined(folder: Path) -> Path:
    """Two studies of other scales in one report."""
    parts = [make_grid(folder.parent / f"{scale}-part", AXES, jitter=1.0, name=f"study-{scale}") for scale in "ab"]
    for part, scale in zip(parts, ("tiny", "lab"), strict=True):
        change(part, scale=scale)
    write_joined_report(parts, folder)
    return folder


@pytest.mark.usefixtures("painted")
@pytest.mark.parametrize("make", [plain, replicated, beside_papers, joined], ids=lambda make: make.__name__)
def test_the_report(make, tmp_path):
    folder = make(tmp_path / "study")
    if make is not joined:
        write_report(folder)
    check_golden(f"report/{make.__name__}", written(folder))


def written(folder: Path) -> dict[str, Any]:
    """The lines of report.md and of each table, and the names of all files of the report."""
    files = sorted(str(path.relative_to(folder)) for name in ("tables", "figures") for path in folder.glob(f"{name}/*"))
    tables = {path.name: masked(path) for path in sorted((folder / "tables").glob("*.csv"))}
    return {"files": files, "page": masked(folder / "report.md"), "tables": tables}


def masked(path: Path) -> list[str]:
    return [VOLATILE.sub("…", line) for line in path.read_text(encoding="utf-8").splitlines()]
