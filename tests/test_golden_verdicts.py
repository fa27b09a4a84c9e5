"""Golden verdicts on every claim and every printed number of the papers, for stored results.

tests/golden/results has two tables a paper, with the columns of a study's results.parquet and measures.parquet: made-up
rows around what the paper prints, with noise and a few wrong signs, so that every claim finds something on each of its
sides, and every verdict occurs. They are given, not made by the code under test.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from probes.claims.comparisons import Comparison
from probes.claims.estimates import Estimate
from probes.claims.observed import Results
from probes.claims.papers import read_claims, read_paper
from probes.claims.tables import compare_table
from probes.claims.verdicts import WORDS, judge
from probes.report.data import read_study
from probes.report.judged import PoolVerdict, compared
from probes.results.read import measurements
from probes.statistics import Interval
from tests.golden import FOLDER, check_golden
from tests.report_study import change, change_rows, make_grid
from tests.test_study_report_join import probed, with_runs_of

PAPERS = ("align_mlm", "cao2020", "emerging", "impact", "kulshreshtha2020")
RTOL, ATOL = 1e-6, 1e-9
SEEDS = {"pretrain.seed": ["0", "1", "2"]}


@cache
def judged(paper: str) -> dict[str, Any]:
    """Every verdict on the kept results of a paper: the one place that knows how results are judged."""
    rows, measures = (pq.read_table(FOLDER / "results" / f"{paper}-{name}.parquet") for name in ("results", "measures"))
    results = Results(measurements(rows, measures))
    claims = {}
    for claim in read_claims(paper):
        found = judge(claim, results)
        parts = [[part.what, part.outcome, *_part(part)] for part in found.parts]
        head = {
            "verdict": found.verdict,
            "ours": _interval(found.ours),
            "n": found.n,
            "unit": found.unit,
            "p": [*found.p],
        }
        claims[claim.id] = {
            **head, "one model": found.one_model, "tally": found.tally, "text": found.text, "parts": parts,
        }  # fmt: skip
    tables = {}
    for name, table in read_paper(paper).tables.items():
        tables[name] = [
            [
                f"{', '.join(row.printed.quantity.where.values())}: {row.printed.quantity.measure}"
                + (" (gain)" if row.printed.against else ""),
                row.printed.value,
                row.verdict,
                *_estimate(row.ours),
                row.text,
            ]
            for row in compare_table(table, results)
        ]
    return {"claims": claims, "tables": tables}


def _estimate(ours: Estimate | None) -> list[Any]:
    """Mean and bounds, n and unit, p, and whether it is of one model; nothing of none."""
    return [] if ours is None else [_interval(ours.interval), ours.interval.n, ours.unit, ours.p, ours.one_model]


def _part(part: Comparison) -> list[Any]:
    """Return the golden values of a comparison."""
    if part.interval is None:
        return []
    return [_interval(part.interval), part.interval.n, part.unit, part.p, part.one_model]


def _interval(interval: Interval | None) -> list[float | None] | None:
    return None if interval is None else [interval.mean, interval.low, interval.high]


@pytest.mark.parametrize("paper", PAPERS)
def test_verdicts_on_kept_results(paper):
    check_golden(f"verdicts/{paper}", judged(paper), RTOL, ATOL)


def test_every_verdict_occurs():
    """So that no rule is left unpinned."""
    found = [judged(paper) for paper in PAPERS]
    of_claims = Counter(claim["verdict"] for verdicts in found for claim in verdicts["claims"].values())
    of_rows = Counter(row[2] for verdicts in found for table in verdicts["tables"].values() for row in table)
    assert set(of_claims) == {*of_rows} == {*WORDS} - {"not yet judged"}
    assert min(of_claims[word] for word in ("replicates", "does not replicate", "inconclusive")) >= 10
    units = {claim["unit"] for verdicts in found for claim in verdicts["claims"].values()}
    assert units == {"models", "adjustments", "fine-tuning seeds", "conditions"}


def test_verdicts_on_studies_that_share_runs(tmp_path):
    """Two studies of one scale, judged together and in either order, and one of another scale."""
    labels = {"objective": ["ALIGN-MLM", "MLM", "DICT-MLM", "XLM"], "transform": ["trans", "trans+inv", "trans+syn"]}
    names = {"paper": ["align_mlm/table3", "align_mlm/table6"], "claims": ["align_mlm"], "pool": "whole"}
    tasks = ("nli", "ner", "pos")
    whole = make_grid(tmp_path / "whole", labels | SEEDS, tasks, jitter=1.0, name="whole", layers=2, config=names)
    part = {"objective": ["XLM"], "transform": ["trans+inv"], "parallel": ["1%", "10%"]}
    other = make_grid(tmp_path / "other", part | SEEDS, tasks, jitter=2.0, name="other", config=names)
    with_runs_of(other, whole, {"parallel": "0%"})
    lab = make_grid(tmp_path / "lab", labels | SEEDS, tasks, jitter=3.0, name="lab", config={**names, "pool": "lab"})
    for folder in (whole, other):
        probed(folder)
    for folder, scale in ((whole, "tiny"), (other, "tiny"), (lab, "lab")):
        change(folder, scale=scale)
        change_rows(folder, lambda row, _: {"alignment_forward": row["alignment_all"]})
    for name, folders in (("shared", (whole, other)), ("shared", (other, whole)), ("scales", (whole, lab))):
        check_golden(f"verdicts/{name}", _compared(folders), RTOL, ATOL)


def _compared(folders: tuple[Path, ...]) -> dict[str, Any]:
    """Return the verdicts and our numbers, by pool, in a report on several study folders."""
    found = compared([read_study(folder) for folder in folders])
    said = {claimed.claim.id: [_said(j) for j in claimed.judged] for claimed in found.claims}
    tables = {
        f"{table.paper}/{table.name}": [
            [line.where, line.cell.quantity.measure, line.cell.value, *map(_said, line.judged)] for line in lines
        ]
        for table, lines in found.tables
    }
    return {"claims": said, "tables": tables, "notes": list(found.notes)}


def _said(found: PoolVerdict) -> list[Any]:
    return [found.pool, found.verdict, _interval(found.ours), found.entries[2], found.one_model, found.text]
