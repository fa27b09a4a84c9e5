"""What claims of the papers are for: the verdicts of results far better, alike and far worse than the text says.

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
    """Of all that it compares, ``shift`` of the left side over the right one, or one for each comparison."""
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


@pytest.mark.parametrize(
    ("paper", "name", "enough", "less"),
    [
        ("align_mlm", "align-gains-in-pos", (-31, -36), (-29, -34)),
        ("impact", "extended-vocabulary-helps-hindi", (1.3,) * 4, (0.5,) * 4),
    ],
)
def test_gains_of_a_size(paper, name, enough, less):
    claim = of_paper(paper, name)
    for shifts, verdict in ((enough, AGREES), (less, DIFFERS)):
        assert judge(claim, results(claim, shifts)).verdict == verdict


def test_what_hardly_matters_is_alike_on_both_sides():
    claim = of_paper("align_mlm", "alpha-hardly-matters", slice(0, 2))
    for shift, verdict in ((0, AGREES), (2, AGREES), (9, DIFFERS), (-9, DIFFERS)):
        assert judge(claim, results(claim, float(shift))).verdict == verdict


TASKS = {"de": "ner", "nl": "ner", "es": "ner", "it": "slots-snips", "hi": "slots-atis", "th": "slots-fb"}


def rotated(gains: dict[str, float], methods: tuple[str, str]) -> Results:
    """The second method gains in each language."""
    random = np.random.default_rng(1)
    return observed(
        result({"method": method, "language": language}, model, task=TASKS[language],
               zs=50 + random.normal(0, 0.5) + gain * (method == methods[1]))
        for language, gain in gains.items() for method in methods for model in range(MODELS)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        ({"de": 4.3, "nl": 2.0, "es": -0.4, "it": 1.0, "hi": 20.0}, AGREES),  # 1.7 in the mean of the close ones
        ({"de": 9.0, "nl": 8.0, "es": 7.0, "it": 9.0}, DIFFERS),  # not a little
        ({"de": -4.0, "nl": -3.0, "es": -5.0, "it": -3.0, "hi": 20.0}, DIFFERS),
    ],
)
def test_a_little_gain_of_close_languages_is_that_of_their_mean(gains, verdict):
    claim = of_paper("kulshreshtha2020", "rotation-helps-very-close-languages-little")
    assert judge(claim, rotated(gains, ("mBERT Baseline", "RotateAlign parallel"))).verdict == verdict


@pytest.mark.parametrize(
    ("gains", "verdict"),
    [
        (dict.fromkeys(TASKS, 0.9), AGREES),  # each by itself is inconclusive
        ({**dict.fromkeys(TASKS, 4.0), "th": -8.0}, DIFFERS),  # on average better, but not in all
        (dict.fromkeys(TASKS, -0.9), DIFFERS),
    ],
)
def test_centring_is_better_on_average_and_nowhere_worse(gains, verdict):
    claim = of_paper("kulshreshtha2020", "centring-improves-rotation", slice(0, 1))
    found = judge(claim, rotated(gains, ("RotateAlign parallel", "NormRotateAlign parallel")))
    assert found.verdict == verdict
    assert [len(part.singles) for part in found.parts] == [len(TASKS)] and f" of {len(TASKS)} hold" in found.tally


def test_more_pairs_help_without_the_last_step():
    """Of 50,000 and 250,000 pairs nothing is asked but that most of the gain is there."""
    claim = of_paper("cao2020", "more-pairs-help")
    for scores, verdict in (((72.4, 73.2, 74.7, 74.6), AGREES), ((72.4, 72.0, 74.0, 74.7), DIFFERS)):
        random = np.random.default_rng(2)
        rows = [
            result({"sentences": size, "language": "bg"}, model, task="nli", zs=score + random.normal(0, 0.05))
            for size, score in zip(("None", "10K", "50K", "250K"), scores, strict=True)
            for model in range(MODELS)
        ]
        assert judge(claim, observed(rows)).verdict == verdict


def test_a_correlation_in_each_pair():
    """In one of four pairs the layers go the other way: the claim differs, and the pairs are counted."""
    claim = of_paper("emerging", "cka-tells-sentence-retrieval")
    x, y = (claim.correlate or [])[0].quantities()
    for turned, verdict in ((), AGREES), (("en-ru",), DIFFERS):
        rows = [
            measured({"models": "Monolingual", "pair": pair}, 0, quantity.measure.removeprefix("probe:"),
                     float(sign * layer + 0.3 * (layer % 3)), layer=layer)
            for pair in ("en-fr", "en-de", "en-ru", "en-zh")
            for quantity, sign in ((x, 1), (y, -1 if pair in turned else 1))
            for layer in range(9)
        ]  # fmt: skip
        found = judge(claim, observed((), rows))
        assert found.verdict == verdict and len(found.parts) == 4
        assert found.tally.startswith("3 of 4 hold, 1 fails" if turned else "4 of 4 hold")


def test_a_side_without_an_axis():
    """mBERT has no axis body: cells that have one are another model."""
    claim = of_paper("impact", "extended-vocabulary-transfers-better", slice(0, 3))
    rows = [
        result({"language": "hi", "method": "Original", **body}, model, task=task, zs=value + model / 9 + model * extra)
        for task in ("nli", "qa-mlqa", "qa-xquad")
        for body, value, extra in (({"body": "EmBERT"}, 60.0, 0.1), ({}, 50.0, 0.0))
        for model in range(3)
    ]
    found = judge(claim, observed(rows))
    assert found.verdict == AGREES and [round(part.interval.mean) for part in found.parts if part.interval] == [10] * 3
