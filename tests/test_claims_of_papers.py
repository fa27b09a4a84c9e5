"""Verdicts on the claims of the papers, for results that are far better than, equal to and far worse than the text.

Results are made of what a claim compares: models that differ by a tenth of a point, and one side ``shift`` above the
other.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from probes.claims.observed import Results
from probes.claims.papers import read_claims
from probes.claims.spec import Claim, Quantity
from probes.claims.verdicts import judge
from tests.claims import measured, observed, result

AGREES, DIFFERS = "replicates", "does not replicate"
MODELS = 5


def of_paper(paper: str, name: str, parts: slice = slice(None)) -> Claim:
    """A claim, or some of its comparisons."""
    found = next(one for one in read_claims(paper) if one.id == name)
    return found.model_copy(update={"compare": (found.compare or [])[parts]})


def results(claim: Claim, shift: float | Sequence[float]) -> Results:
    """Return results in which the left side of each comparison is ``shift`` above the right side."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    random = np.random.default_rng(0)
    for number, entry in enumerate(claim.compare or ()):
        left, *others = entry.quantities()
        base = 50.0 if entry.value is None else entry.value
        for quantity, value in [
            *((other, base) for other in others),
            (left, base + (shift if isinstance(shift, float) else shift[number])),
        ]:
            for labels, model in product(all_labels(quantity), range(MODELS)):
                rows[*sorted(labels.items()), quantity.measure, model] = row(
                    labels, model, quantity.measure, value + random.normal(0, 0.1)
                )
    scores = [one for one in rows.values() if "measure" not in one]
    return observed(scores, [one for one in rows.values() if "measure" in one])


def all_labels(quantity: Quantity) -> Sequence[dict[str, str]]:
    """The labels of the cells it is a mean over."""
    axes = {axis: labels for axis, labels in quantity.average.items() if labels}
    return [{**quantity.where, **dict(zip(axes, labels, strict=True))} for labels in product(*axes.values())]


def row(labels: dict[str, str], model: int, measure: str, value: float) -> dict[str, Any]:
    if measure.startswith("probe:"):
        return measured(labels, model, measure.removeprefix("probe:"), value)
    rest = {axis: label for axis, label in labels.items() if axis != "task"}
    return result(rest, model, task=labels.get("task", "none")) | {measure: value}


@pytest.mark.parametrize(
    ("paper", "name", "parts", "better"),
    [
        ("align_mlm", "script-alone-is-easy", slice(None), -10),
        ("align_mlm", "align-matches-xlm-under-syntax", slice(None), -10),
        ("align_mlm", "align-outperforms-or-is-on-par", slice(None), -10),
        ("emerging", "anchors-are-not-needed", slice(None), 10),
        ("cao2020", "retrieval-of-types", slice(None), 10),
        ("cao2020", "aligned-bert-matches-translate-train", slice(None), 10),
        ("cao2020", "alignment-closes-the-gap-of-classes", slice(None), 10),
        ("cao2020", "other-scripts-align-worse", slice(2, 4), 10),
        ("kulshreshtha2020", "rotation-does-not-help-thai", slice(None), -10),
        ("impact", "adjustment-keeps-one-language", slice(None), 10),
    ],
)
def test_what_does_as_well_may_be_better_but_not_worse(paper, name, parts, better):
    """Ten points better and as good hold, ten points worse differ; that no help may also be harm is the same."""
    claim = of_paper(paper, name, parts)
    for shift, verdict in ((better, AGREES), (0, AGREES), (-better, DIFFERS)):
        assert judge(claim, results(claim, float(shift))).verdict == verdict
