"""Error rates and power of the whole procedure on made-up papers: planned looks, looks until decided, corrections.

A made-up paper has claims of several comparisons, each expected to be above 0. The differences of a comparison are
normal with a standard deviation of 1 over models. A part of their variance is shared by the comparisons of a claim,
since these are made on the same models. Half of the claims have no effect. Any decision on such a claim is an error,
because the truth lies at the border of both regions. All other claims have the same true effect.

``python -m probes.claims.simulation`` prints the table of docs/claims.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from probes.claims.comparisons import Comparison, against_region
from probes.claims.estimates import Estimate, EstimateOrWhy
from probes.claims.planned import Plan
from probes.claims.verdicts import WORD_OF, Verdict, Word, decided_together, p_values
from probes.statistics import Floats

CLAIMS = 20
SHARED = 0.5
"""Share of the variance over models that all comparisons of a claim have in common."""
PAPERS = 200
EFFECTS = (0.5, 1.0, 1.5, 2.0)
PROCEDURES: Sequence[tuple[str, Sequence[int], bool]] = (
    ("12 planned", [12], True),
    ("24 planned", [24], True),
    ("12, not corrected", [12], False),
    ("3, 5, 8, 14 until decided", [3, 5, 8, 14], False),
)
"""Name, numbers of models at the looks, and whether the claims of a paper are corrected together."""
DECIDED_WORDS: tuple[Word, ...] = ("replicates", "does not replicate")


class Rates(NamedTuple):
    """Rates over made-up papers, in percent.

    Attributes:
        power: Share of the claims with an effect that replicate.
        error: Share of the claims without an effect that are decided.
        false_share: Share of claims without an effect among the decided claims of a paper, as the mean over papers. It
            is 0 in a paper without decided claims.
    """

    power: float
    error: float
    false_share: float


def rates(effect: float, comparisons: int, looks: Sequence[int], *, planned: bool, papers: int = PAPERS) -> Rates:
    """Simulate papers, and return the rates of their decisions, rounded to one decimal place.

    Args:
        effect: The true effect of half of the claims, in standard deviations over models.
        comparisons: Number of comparisons of each claim.
        looks: Numbers of models, in rising order. A claim that is undecided at a look is judged again at the next look.
        planned: True to judge each claim at the last look only, and to correct the decisions over all claims, as for
            the confirmed claims of a paper.
        papers: The number of papers.
    """
    random = np.random.default_rng([comparisons, looks[-1], round(100 * effect)])
    found = [list(_paper(random, effect, comparisons, looks, planned)) for _ in range(papers)]
    power = np.mean([[word == "replicates" for word in words[CLAIMS // 2 :]] for words in found])
    wrong = np.array([[word in DECIDED_WORDS for word in words[: CLAIMS // 2]] for words in found])
    decided = np.array([sum(word in DECIDED_WORDS for word in words) for words in found])
    false_share = np.mean(wrong.sum(axis=1) / np.maximum(1, decided))
    return Rates(*(round(100 * float(share), 1) for share in (power, wrong.mean(), false_share)))


def _paper(
    random: np.random.Generator, effect: float, comparisons: int, looks: Sequence[int], planned: bool
) -> Iterator[Word]:
    """Yield the verdicts on the claims of a paper. The first half of them has no effect."""
    size = CLAIMS, comparisons, looks[-1]
    values = SHARED**0.5 * random.normal(size=(CLAIMS, 1, looks[-1])) + (1 - SHARED) ** 0.5 * random.normal(size=size)
    values[CLAIMS // 2 :] += effect
    verdicts = [_judged(of, looks, planned) for of in values]
    yield from (one.verdict for one in decided_together(verdicts))


def _judged(values: Floats, looks: Sequence[int], planned: bool) -> Verdict:
    """Return the verdict on the differences of a claim [comparisons, models], at the first look that decides."""
    for models in looks:
        parts = tuple(_comparison(row[:models]) for row in values)
        p = p_values(parts)
        if p.outcome != "inconclusive" and not planned:
            break
    plans = (Plan(models, tuple(range(models)), models),) if planned else ()
    return Verdict(WORD_OF[p.outcome], None, 0, "", parts, p=p, plans=plans)


def _comparison(differences: Floats) -> Comparison:
    n = len(differences)
    error = float(differences.std(ddof=1)) / n**0.5
    return against_region(
        "", EstimateOrWhy(Estimate(float(differences.mean()), n, "models", False, error, n - 1)), "greater"
    )


def table() -> Iterator[str]:
    """Yield the lines of the table in Markdown. A cell has the power and the error rate in percent."""
    names = [name for name, *_ in PROCEDURES]
    yield f"| comparisons | effect | {' | '.join(names)} |"
    yield f"|---:|---:|{'---:|' * len(names)}"
    for comparisons in (1, 3):
        for effect in EFFECTS:
            found = [rates(effect, comparisons, looks, planned=planned) for _, looks, planned in PROCEDURES]
            cells = [comparisons, effect, *(f"{one.power:.0f} / {one.error}" for one in found)]
            yield f"| {' | '.join(map(str, cells))} |"


if __name__ == "__main__":
    print("\n".join(table()))
