"""Sentences for a paper: scores with n and intervals, tests, versions, and references."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from probes.claims.estimates import UNPAIRED
from probes.claims.papers import read_paper
from probes.report.data import Study
from probes.report.differences import Difference
from probes.report.findings_data import papers_of
from probes.report.numbers import number, shown_p, where_bounds
from probes.report.page import Block, Bullets, Paragraph, Section
from probes.report.printed import SHOWN
from probes.report.scores import Condition, Material, metric_name
from probes.statistics import Interval
from synthlang import catalogue
from synthlang.errors import InputError
from synthlang.sources import READERS
from synthlang.tasks import SCHEMES, choose
from synthlang.wording import first_few, plural

TITLE = "For a paper"
MOST = 20
"""Largest number of conditions and of differences. The tables have all of them."""
SCORES = {"parent": "source", "zs": "ZS", "sup": "SUP", "delta": "Δ"}
PACKAGES = ("synthlang", "torch", "transformers", "tokenizers")
ABOUT = (
    "These lines can be copied. They have the scores of each condition, and the tested differences between conditions."
)
LEVEL = (
    "Brackets hold 95 % t intervals over pretraining runs, where a run is the mean of its fine-tuning seeds. With one "
    "run, they are over fine-tuning seeds."
)
NO_LEVEL = "There are no intervals, because each mean is of one value."
PAIRED = "Conditions are compared by paired t-tests over models with the same seeds"
WELCH = "and by Welch's test where they share no seeds"
BUILT_IN = "a grammar of synthlang, which needs no other reference"
OF_HUB = "cite what the card of the data set names"
OF_FILES = "cite what the README of the data set names"


def for_paper(material: Material, found: Sequence[Difference]) -> Section | None:
    """Return the section with sentences for a paper, or None for a study without scores.

    Args:
        material: The study and its scores.
        found: The differences between conditions. Only the tested ones become sentences.
    """
    if not material.conditions:
        return None
    scores = [_scores(c) for c in material.conditions]
    compared = [_difference(one) for one in found if one.p is not None]
    blocks: list[Block] = [Paragraph(ABOUT), Bullets(_first(scores, "condition"))]
    blocks += [Bullets(_first(compared, "difference"))] if compared else []
    blocks.append(Paragraph(_methods(material, found)))
    if named := [*_versions(material.study), *_cited(material.study)]:
        blocks.append(Bullets(named))
    return Section(TITLE, blocks)


def _first(lines: Sequence[str], what: str) -> list[str]:
    left = len(lines) - MOST
    return [*lines[:MOST], *([f"{plural(left, f'further {what}')} in the tables."] if left > 0 else [])]


def _scores(condition: Condition) -> str:
    """Return the scores of a condition on a task with their intervals and n."""
    known = {title: condition.interval(name) for name, title in SCORES.items()}
    told = [f"{title} {_with_interval(one)}" for title, one in known.items() if one is not None]
    name = f"{condition.label}, {condition.task}" if condition.label else condition.task
    return f"{name} ({metric_name([condition])}, %): {', '.join(told)}; n = {condition.seeds}."


def _difference(one: Difference) -> str:
    """Return a tested difference with its interval, n and p."""
    where = ", ".join(filter(None, (one.group, one.task)))
    n = f"n = {plural(one.ours.n, 'pair')} of {one.ours.unit}" if UNPAIRED not in one.ours.notes else "not paired"
    p = shown_p(one.p)
    p = f"p {p}" if p.startswith("<") else f"p = {p}"
    difference = f"{SHOWN[one.measure]} {_with_interval(one.ours.interval)} points"
    return f"{one.compared} ({where}): {difference}; {n}; {p}."


def _with_interval(interval: Interval) -> str:
    shown = interval.shown
    mean = number(shown.mean)
    if shown.low is None or shown.high is None:
        return mean
    return f"{mean} [{number(shown.low)}, {number(shown.high)}]"


def _methods(material: Material, found: Sequence[Difference]) -> str:
    """Return the sentences on intervals and tests."""
    intervals = [c.interval(name) for c in material.conditions for name in SCORES]
    told = [where_bounds(intervals, LEVEL) or NO_LEVEL]
    tested = [one for one in found if one.p is not None]
    if tested:
        welch = f", {WELCH}" if any(UNPAIRED in one.ours.notes for one in tested) else ""
        holm = f"; p values are corrected for {len(tested)} tests by Holm's method" if len(tested) > 1 else ""
        told.append(f"{PAIRED}{welch}{holm}.")
    return " ".join(told)


def _versions(study: Study) -> Iterator[str]:
    known = [f"{name} {study.environment[name]}" for name in PACKAGES if study.environment.get(name)]
    if known:
        yield f"Software: {', '.join(known)}."


def _cited(study: Study) -> Iterator[str]:
    """Yield a line for each reproduced paper of the catalogue, and for each kind of source of the data."""
    with suppress(InputError):  # the section on claims notes a file that cannot be read
        papers = [read_paper(name) for name in papers_of(study) if name in catalogue.names("papers")]
        yield from (f"Paper: {paper.title}. {paper.citation}" for paper in papers)
    given = (study.settings, study.config, *(cell.overrides for cell in study.cells))
    sources = list(dict.fromkeys(source for one in given for source in _sources(one)))
    kinds = {"builtin": BUILT_IN, "hf": OF_HUB}
    for how in dict.fromkeys(kinds.get(_scheme(one), OF_FILES) for one in sources):
        names = [one for one in sources if kinds.get(_scheme(one), OF_FILES) == how]
        yield f"Data: {first_few(names, MOST)} ({how})."


def _sources(value: Any) -> Iterator[str]:
    """Yield the specifications of sources in settings, without options and names of tasks."""
    if isinstance(value, Mapping | list | tuple):
        for inner in value.values() if isinstance(value, Mapping) else value:
            yield from _sources(inner)
    elif isinstance(value, str):
        scheme, _, rest = value.partition(":")
        spec = rest if scheme in SCHEMES and _scheme(rest) in {"builtin", *READERS} else value
        if _scheme(spec) in {"builtin", *READERS, *SCHEMES} and spec.partition(":")[2]:
            yield choose(spec)[0].partition("?")[0]


def _scheme(spec: str) -> str:
    return spec.partition(":")[0]
