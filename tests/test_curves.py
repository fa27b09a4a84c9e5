"""Curves over the steps of pretraining: areas, final values, steps to thresholds, in claims and in reports."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import integrate, interpolate, optimize, stats

from probes.claims.spec import Claim, Quantity
from probes.claims.verdicts import judge
from probes.results.curves import Threshold, named_summary, summary
from synthlang.config import parse
from tests.claims import interval, measured, observed
from tests.refusals import refused
from tests.report_study import cells_of, change, make_grid, report, write_measures

RISES, FALLS = Threshold(at_least=50), Threshold(at_most=50)


def curves(number: int) -> list[tuple[list[int], list[float]]]:
    """Random curves with steps in ascending order."""
    random = np.random.default_rng(7)
    found = []
    for _ in range(number):
        steps = np.unique(random.integers(1, 5000, random.integers(2, 12)))
        if len(steps) > 1:
            found.append((steps.tolist(), random.uniform(0, 100, len(steps)).tolist()))
    return found


@pytest.mark.parametrize(("steps", "values"), curves(20))
def test_the_area_is_the_integral_over_log_step(steps: list[int], values: list[float]) -> None:
    """Against SciPy's trapezoid, and against numerical integration of the interpolated line."""
    x = np.log10(steps)  # the base has no effect
    found = summary(list(zip(steps, values, strict=True))[::-1], "area")
    assert found is not None and not found.censored
    assert found.value == pytest.approx(integrate.trapezoid(values, x) / (x[-1] - x[0]))
    fine = np.linspace(x[0], x[-1], 200_001)
    line = interpolate.interp1d(x, values)(np.clip(fine, x[0], x[-1]))
    assert found.value == pytest.approx(float(line.mean()), abs=0.01)
    assert min(values) <= found.value <= max(values)


@pytest.mark.parametrize("threshold", [RISES, FALLS])
@pytest.mark.parametrize(("steps", "values"), curves(20))
def test_the_steps_to_a_threshold_are_the_first_root(
    steps: list[int], values: list[float], threshold: Threshold
) -> None:
    """Against Brent's method between the checkpoints around the first value beyond the threshold."""
    found = summary(zip(steps, values, strict=True), threshold)
    beyond = [value >= 50 if threshold is RISES else value <= 50 for value in values]
    assert found is not None and found.censored == (not any(beyond))
    if not any(beyond):
        assert found.value == steps[-1]
    elif beyond[0]:
        assert found.value == steps[0]
    else:
        after = beyond.index(True)
        line = interpolate.interp1d(np.log(steps), values)
        root = optimize.brentq(lambda x: float(line(x)) - 50, math.log(steps[after - 1]), math.log(steps[after]))
        assert found.value == pytest.approx(math.exp(root), rel=1e-6)


def test_small_curves_by_hand() -> None:
    points = [(1, 0.0), (10, 40.0), (100, 60.0), (1000, 60.0)]
    values = {name: found.value for name in ("area", "final") if (found := summary(points, name))}
    assert values == {"area": pytest.approx((20 + 50 + 60) / 3), "final": 60.0}
    assert summary(points, RISES).value == pytest.approx(10**1.5)  # type: ignore[union-attr]
    assert summary(points, Threshold(at_least=61)).censored  # type: ignore[union-attr]
    assert summary([(0, 9.0), *points], "area") == summary(points, "area")
    assert summary(points[:1], "final") is None and summary([], "area") is None
    assert math.isnan(summary([*points, (2000, math.nan)], RISES).value)  # type: ignore[union-attr]
    assert [named_summary(one) for one in ("area", RISES, FALLS)] == ["area", "steps to ≥ 50", "steps to ≤ 50"]


@pytest.mark.parametrize(("values", "code"), [({}, "missing"), ({"at_least": 1, "at_most": 2}, "conflict")])
def test_a_threshold_has_one_direction(values: dict[str, Any], code: str) -> None:
    assert refused(parse, Threshold, values) == ("", code)


# --- claims ---

PATH = "text.bits"
LEVELS = {"A": 10.0, "B": 20.0}


def rows() -> list[dict[str, Any]]:
    """Falling curves of two objectives, of which B is higher everywhere. The selected checkpoint has another value."""
    found: list[dict[str, Any]] = []
    for objective, level in LEVELS.items():
        for seed in range(3):
            for place, step in enumerate((1, 10, 100)):
                value = (level + seed * (1 + seed + place) * level / 100) * (3 - place) / 3
                found.append({**measured({"objective": objective}, seed, PATH, value), "step": step})
            found.append({**measured({"objective": objective}, seed, PATH, 77.0), "step": None})
    return found


def of_model(objective: str, seed: int) -> list[tuple[int, float]]:
    """Step and value of each checkpoint of a model."""
    own = [row for row in rows() if row["labels"] == json.dumps({"objective": objective})]
    return [(row["step"], row["value"]) for row in own if row["pretrain_seed"] == seed and row["step"]]


def compared(curve: Any, relation: str = "less", **more: Any) -> Claim:
    sides = {side: {"where": {"objective": label}} for side, label in (("left", "A"), ("right", "B"))}
    entry = {"measure": f"probe:{PATH}", "curve": curve, "relation": relation, **sides, **more}
    return parse(Claim, {"id": "c", "claim": "C.", "source": "S", "compare": [entry]})


@pytest.mark.parametrize("curve", ["area", "final", {"at_most": 9}])
def test_a_claim_compares_summaries_of_curves_by_model(curve: Any) -> None:
    """The difference is that of the summaries of each model, paired by seed, with Student's t."""
    found = judge(compared(curve), observed([], rows()))
    which: Any = curve if isinstance(curve, str) else Threshold(**curve)
    of = {
        objective: [one.value for seed in range(3) if (one := summary(of_model(objective, seed), which))]
        for objective in LEVELS
    }
    differences = np.subtract(of["A"], of["B"])
    assert found.n == 3 and interval(found).mean == pytest.approx(differences.mean())
    low, high = stats.t.interval(0.95, 2, differences.mean(), stats.sem(differences))
    assert (interval(found).low, interval(found).high) == pytest.approx((low, high))
    assert named_summary(which) in found.parts[0].what


def test_curves_that_do_not_reach_a_threshold_are_counted() -> None:
    """Those of B never fall to 6. They count with their last step, and the text gives their number."""
    one = judge(compared({"at_most": 6}), observed([], rows()))
    assert "3 of 6 curves do not reach the threshold and count with their last step" in one.parts[0].said
    assert one.verdict == "replicates"
    none = judge(compared({"at_most": -1}), observed([], rows()))
    assert none.verdict == "not run" and none.parts[0].why == "no curve reaches the threshold"


def test_without_curve_a_claim_reads_the_selected_checkpoint() -> None:
    found = observed([], rows()).series(Quantity({"objective": "A"}, f"probe:{PATH}"))
    assert {value for parts in found.values() for part in parts.values() for value in part.values()} == {77.0}


def test_a_side_has_the_curve_of_its_entry_and_scores_have_none() -> None:
    entry = compared("area", left={"where": {"objective": "A"}, "curve": "final"}).compare
    assert entry is not None and [one.curve for one in entry[0].quantities()] == ["final", "area"]
    assert refused(compared, "area", measure="delta") == ("", "no_effect")
    assert refused(compared, "middle")[1] in ("unknown", "type")


# --- reports ---


def test_a_report_has_the_summaries_of_each_condition(tmp_path: Path) -> None:
    """Means and intervals over models against SciPy, the models that reach the threshold, and thresholds first."""
    folder = make_grid(tmp_path, {"objective": ["A", "B"], "pretrain.seed": ["0", "1", "2"]})
    lines, of = [], dict[str, dict[str, list[Any]]]()
    for place, cell in enumerate(cells_of(folder)):
        points = [(step, 14.0 + 4 * place + place % 3 - 2.5 * np.log10(step)) for step in (1, 10, 1000)]
        lines += [
            (cell["name"], json.dumps(cell["labels"]), cell["labels"]["pretrain.seed"], "text", PATH, "", *point)
            for point in points
        ]
        values = of.setdefault(cell["labels"]["objective"], {"area": [], "final": [], "steps": []})
        for name, which in (("area", "area"), ("final", "final"), ("steps", Threshold(at_most=20))):
            values[name].append(summary(points, which))  # type: ignore[arg-type]
    write_measures(folder, lines)
    change(folder, config={"thresholds": {PATH: {"at_least": None, "at_most": 20.0}}})
    made = report(folder)
    table = made.file("curves")
    assert [row["Condition"] for row in table] == ["A", "B"]
    for row in table:
        for name, column in (("area", "Area"), ("final", "Final"), ("steps", "Steps")):
            expected = [one.value for one in of[row["Condition"]][name]]
            assert float(row[column]) == pytest.approx(np.mean(expected), rel=1e-4)
        reached = sum(not one.censored for one in of[row["Condition"]]["steps"])
        assert row["Reached"] == f"{reached} of 3" and row["Threshold"] == "≤ 20"
    assert "a lower bound" in made.text and any(name.startswith("step-") for name in made.figures)


def test_a_report_without_thresholds_has_areas_and_final_values(tmp_path: Path) -> None:
    made = report(make_grid(tmp_path, {"objective": ["A", "B"], "pretrain.seed": ["0", "1"]}, steps=(100, 200)))
    assert list(made.file("curves")[0])[:3] == ["Measure", "Condition", "Models"]
    assert "Threshold" not in made.file("curves")[0] and "lower bound" not in made.text


def test_a_threshold_that_was_damaged_is_refused(tmp_path: Path) -> None:
    folder = make_grid(tmp_path, {"objective": ["A", "B"]}, steps=(100, 200))
    change(folder, config={"thresholds": {PATH: {"at_least": "high"}}})
    assert refused(report, folder) == (f"study.json config.thresholds.{PATH}.at_least", "type")
