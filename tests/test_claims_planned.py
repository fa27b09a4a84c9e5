"""Verdicts on the number of models that a study planned, and the correction over the confirmed claims of a paper."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy import stats

from probes.claims.planned import Plan
from probes.claims.verdicts import PValues, Verdict, decided_together, judge
from probes.report.data import read_study
from probes.report.join import on_plan, plan_of, results_of
from probes.report.judged import PoolVerdict, compared
from probes.report.summary import verdicts_in_words
from probes.study.cells import load_study
from tests.claims import delta_rows, less, observed
from tests.refusals import refused
from tests.report_study import cells_of, change, change_rows, make_grid
from tests.tiny import STUDY, changed

SEEDS = ["3", "1", "0", "2"]
CLAIMS = """
claims:
  - {id: first, claim: B loses less., source: S, compare: [&b {
      measure: delta, left: {where: {objective: B}}, right: {where: {objective: A}}, relation: less}]}
  - {id: second, claim: B loses less again., source: S, compare: [*b]}
"""


def study(folder: Path, planned: Any, name: str = "one", pool: str = "", **more: Any) -> Path:
    """Two objectives with four models each, whose Δ depends on the seed."""
    (folder / "claims.yaml").write_text(CLAIMS)
    config = {"claims": [str(folder / "claims.yaml")], "planned": planned, "pool": pool, **more}
    axes = {"objective": ["A", "B"], "pretrain.seed": SEEDS}
    run = make_grid(folder / name, axes, seeds=1, name=name, config=config)
    change_rows(
        run, lambda row, of: {"delta": 9.0 if of["objective"] == "A" else 5 + 0.3 * int(of["pretrain.seed"]) ** 2}
    )
    return run


def judged(*folders: Path) -> list[PoolVerdict]:
    """The verdict on each of the two claims."""
    return [claim.main for claim in compared([read_study(folder) for folder in folders]).claims]


def test_a_claim_is_judged_on_the_first_planned_seeds_of_the_list(tmp_path):
    run = study(tmp_path, {"first": 3})
    first, second = judged(run)
    assert (first.status, first.n, second.status, second.n) == ("confirmed", 3, "exploratory", 4)
    differences = [-4 + 0.3 * int(seed) ** 2 for seed in SEEDS[:3]]
    assert first.ours is not None and first.ours.mean == pytest.approx(float(np.mean(differences)))
    assert first.p.replicates == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert [one.status for one in judged(study(tmp_path, 4))] == ["confirmed", "confirmed"]


@pytest.mark.parametrize(("seed", "status"), [("1", "not yet judged"), ("2", "confirmed")])
def test_a_claim_waits_for_its_planned_models_only(seed, status, tmp_path):
    run = study(tmp_path, 3)
    cells = cells_of(run)
    waits = next(cell for cell in cells if cell["labels"]["pretrain.seed"] == seed)
    change(run, cells=[{**cell, "status": "pending"} if cell is waits else cell for cell in cells])
    found = judged(run)[0]
    assert found.status == status
    if status == "not yet judged":
        assert (found.verdict, found.ours) == (status, None) and found.text == "2 of 3 planned models are finished"
        assert verdicts_in_words(compared([read_study(run)])) == "", "no claim was tested"
    [few, _] = judged(study(tmp_path, 5))
    assert few.verdict == "not yet judged", "the grid has four seeds"


@pytest.mark.parametrize("excluded", ["failed", "not learned"])
def test_an_excluded_model_counts_as_planned_and_is_not_replaced(excluded, tmp_path):
    run = study(tmp_path, 3, learned={"sup": 40})
    cells = cells_of(run)
    lost = next(cell for cell in cells if cell["labels"] == {"objective": "B", "pretrain.seed": "1"})
    if excluded == "failed":
        change(run, cells=[{**cell, "status": "failed"} if cell is lost else cell for cell in cells])
    change_rows(run, lambda row, of: {"sup": 9.0 if row["cell"] == lost["name"] else 90.0, "parent": 90.0})
    found = judged(run)[0]
    assert (found.status, found.n, found.plans[0].excluded) == ("confirmed", 2, 1)
    assert found.ours is not None and found.ours.mean == pytest.approx(-4 + 0.3 * 9 / 2)


def test_studies_of_a_pool_that_plan_nothing_do_not_count(tmp_path):
    """The claim rests on the study that declares it, although the other study of the pool has the same conditions."""
    planned = study(tmp_path, {"first": 3}, pool="all")
    other = study(tmp_path, None, "other", pool="all")
    change_rows(other, lambda row, of: {"delta": float(row["delta"]) + 50 * (of["objective"] == "B")})
    for folders in ((planned, other), (other, planned)):
        assert judged(*folders)[0].ours == judged(planned)[0].ours
    assert judged(planned, other)[1].ours != judged(planned)[1].ours


def test_the_verdict_is_that_of_a_study_of_the_planned_models_alone(tmp_path):
    one = read_study(study(tmp_path, 3))
    plan = plan_of(one, str(tmp_path / "claims.yaml"), "first")
    assert plan == Plan(3, (3, 1, 0), 3)
    found = judge(less(), results_of([on_plan(one, plan)]), [plan])
    alone = judge(less(), observed(delta_rows([9.0] * 3, [5.0 + 0.3 * int(seed) ** 2 for seed in SEEDS[:3]])))
    assert found.verdict == alone.verdict and found.p.replicates == pytest.approx(alone.p.replicates)


# --- the study file ---


def saved(folder: Path, **more: Any) -> Path:
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(changed(STUDY, claims=["align_mlm"], **more)))
    return path


@pytest.mark.parametrize(
    ("planned", "place", "code"),
    [
        (1, "planned", "range"),
        ({"align-beats-mlm": 1}, "planned.align-beats-mlm", "range"),
        ({"align-beats-mln": 5}, "planned.align-beats-mln", "unknown"),
    ],
)
def test_a_wrong_plan_is_refused(planned, place, code, tmp_path):
    assert refused(load_study, saved(tmp_path, planned=planned), []) == (f"study.yaml {place}", code)


def test_a_plan_changes_no_fingerprint(tmp_path):
    plain, planned = (load_study(saved(tmp_path, **more), []) for more in ({}, {"planned": {"align-beats-mlm": 5}}))
    assert plain[0].fingerprint == planned[0].fingerprint


# --- several confirmed claims ---


def of(p: float, against: float, planned: int = 3, finished: int = 3) -> Verdict:
    """A verdict with these p values."""
    plans = (Plan(planned, (0, 1, 2), finished),) if planned else ()
    found = judge(less(), observed(delta_rows([9.0, 9.5, 9.1], [5.0, 5.2, 5.1])), plans)
    return found if found.status == "not yet judged" else replace(found, p=PValues(p, against))


def test_confirmed_claims_are_decided_at_a_false_discovery_rate():
    """By the formula of Benjamini & Yekutieli over both p values of all claims; what waits counts as 1."""
    pairs = [(0.001, 1.0), (0.02, 1.0), (1.0, 0.004), (0.6, 0.4)]
    exploratory = of(0.04, 1.0, planned=0)
    found = decided_together([*(of(*pair) for pair in pairs), of(1, 1, finished=2), exploratory])
    ps = sorted([p for pair in pairs for p in pair] + [1.0, 1.0])
    harmonic = sum(1 / k for k in range(1, len(ps) + 1))
    by_hand = {p: min(1.0, *(q * len(ps) * harmonic / (k + 1) for k, q in enumerate(ps) if q >= p)) for p in ps}
    for (p, against), one in zip(pairs, found, strict=False):
        assert one.adjusted == pytest.approx((by_hand[p], by_hand[against]))
    words = [one.verdict for one in found]
    assert by_hand[0.001] < 0.05 < by_hand[0.004]
    assert words == ["replicates", *["inconclusive"] * 3, "not yet judged", exploratory.verdict]
    assert found[-1] == exploratory
