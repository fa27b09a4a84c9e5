"""The number of models to plan for a confirmation, by a power analysis of an exploratory study.

The effects of an exploratory study are too large on average, because claims with large effects are noticed. The
analysis therefore moves the mean of each comparison half of the way to the nearest end of its region, and keeps the
spread. The planned number is the fewest models that decide the claim with a probability of at least 80 %:

- All comparisons have to hold for a claim that held. The probability is at least 1 minus the sum of their risks.
- If a comparison leans against a claim, the opposite of one comparison has to be shown. Its p value is corrected by
  Bonferroni over all comparisons that may fail the claim.

The m planned claims of a paper are decided together (verdicts.py). If all are decided, the largest of the m smallest
among 2m p values has to be at most 5 % · m / (2m · (1 + 1/2 + … + 1/(2m))), which is the level of each test
(Benjamini & Yekutieli 2001).

``python -m probes.report.planning FOLDER PAPER CLAIM …`` prints the table of docs/confirmation.md. FOLDER has archived
studies, and the claims are those planned together.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from probes.claims.comparisons import Region
from probes.claims.estimates import DECIDED, Estimate
from probes.claims.power import POWER, power
from probes.claims.verdicts import Verdict
from probes.report.archive import read_archive
from probes.report.findings_data import compared_papers
from synthlang.errors import InputError, did_you_mean

SHRUNK = 0.5
"""Share of an effect that is expected to remain."""
MOST = 100
"""Largest number of models that is tried."""


class Needed(NamedTuple):
    """The planned number of models and its power. The number is None if ``MOST`` models are too few."""

    models: int | None
    power: float


def level_of(claims: int) -> float:
    """Return the level of each test if ``claims`` claims are planned together and all are decided.

    For m claims, the level is 5 % / (2 · (1 + 1/2 + … + 1/(2m))) (Benjamini & Yekutieli 2001).
    """
    return DECIDED / 2 / sum(1 / rank for rank in range(1, 2 * claims + 1))


def shrunk(ours: Estimate, expected: Region) -> Estimate:
    """Return the estimate with its mean moved half of the way to the nearest end of the region."""
    end = expected.nearest_end(ours.mean)
    return replace(ours, mean=end + SHRUNK * (ours.mean - end))


def models_to_plan(verdict: Verdict, level: float) -> Needed | None:
    """Return the number of models to plan for a claim with this exploratory verdict.

    The docstring of the module has the rules, and ``probes.claims.power`` the equation of the power. The result is None
    if nothing was compared, or if a test has no spread, as for correlations over conditions.

    Args:
        verdict: The verdict.
        level: Largest p value of a decided test (see ``level_of``).
    """
    run = [part for part in verdict.parts if part.interval is not None]
    able = [one.tested_by for part in run for one in part.may_fail]
    tested = [one for one in able if one is not None and one[0].has_spread]
    if not run or len(tested) < len(able):
        return None
    required = [part.tested_by for part in run if part.tested_by is not None]
    against = [(ours, to) for ours, to in tested if not to.contains(ours.mean)]
    reached = 0.0
    for models in range(2, MOST + 1):
        if against:
            reached = max(power(shrunk(ours, to), to, models, len(tested), level) for ours, to in against)
        else:
            reached = 1 - sum(1 - power(shrunk(ours, to), to, models, 1, level) for ours, to in required)
        if reached >= POWER:
            return Needed(models, reached)
    return Needed(None, reached)


def table(folder: Path, paper: str, claims: Sequence[str]) -> list[str]:
    """Return the lines of a Markdown table with the number of models for each claim.

    Args:
        folder: The folder of archived studies.
        paper: The name of the paper.
        claims: The ids of the claims that are planned together.

    Raises:
        InputError: An archived study is damaged, its claims or papers cannot be found, no finished study in ``folder``
            names the paper, or a claim has no exploratory verdict.
    """
    finished = {name: study for name, study in read_archive(folder).items() if not study.waiting}
    papers = compared_papers(finished)
    if paper not in papers:
        hint = f"{did_you_mean(paper, papers)}known: {', '.join(papers) or 'none'}"
        reason = f"no finished study in this folder has claims or tables of the paper {paper!r}"
        raise InputError(reason, folder, hint=hint, code="unknown")
    of = ((one, [verdict for verdict in one.judged if verdict.status == "exploratory"]) for one in papers[paper].claims)
    known = {one.claim.id: one._replace(judged=judged).main for one, judged in of if judged}
    lines = ["| claim | exploratory verdict | models for 80 % power |", "|---|---|---:|"]
    for claim in claims:
        if claim not in known:
            hint = f"{did_you_mean(claim, known)}known: {', '.join(known) or 'none'}"
            reason = f"the claim {claim!r} of {paper} has no exploratory verdict"
            raise InputError(reason, folder, hint=hint, code="unknown")
        needed = models_to_plan(known[claim], level_of(len(claims)))
        models = "unknown" if needed is None else f"over {MOST}"
        if needed is not None and needed.models is not None:
            models = f"{needed.models} ({needed.power:.2f})"
        lines.append(f"| {claim} | {known[claim].verdict}, {known[claim].over} | {models} |")
    return lines


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(
            "error: a folder, a paper or a claim is missing; run: python -m probes.report.planning FOLDER PAPER CLAIM …"
        )
    try:
        print("\n".join(table(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])))
    except InputError as error:
        sys.exit(f"error: {error}")
