"""Words without context, the conditions side by side: rows of the embedding matrix, and static vectors of these words.

Figure 4a of Emerging Cross-lingual Structure (section 5.1.1), from the measures of the probe ``maps``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from probes.figures.bars import Bar, retrieval_bars
from probes.figures.drawing import Figure, slug
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Figures, Paragraph, Section, Table
from probes.statistics import Interval
from probes.study.labels import Layout
from probes.study.report.budget import Budget
from probes.study.report.data import WITHOUT_CONTEXT, Study
from probes.study.report.scores import CLIPPED, conditions_of, intervals_over_models

ROWS, BARS = 100, 24
"""Most conditions of a table, and of a figure."""
NOTE = (
    "How often the nearest word is a translation, both directions, under CSLS (P@1, %), of words that are one subword "
    "on both sides: rows of the embedding matrix before and after a rotation, and static vectors of the same words. "
    "Lines: 95 % t intervals over the pretrainings of a condition, or the adjustments of one; one model has none."
)

Found = Mapping[str, Mapping[str, Interval]]
"""Condition → measure → its interval over models."""


def words_alone(study: Study, held: Layout, budget: Budget) -> Section | None:
    """A figure and a table for each probe that measured rows of the embedding matrix; None where none did."""
    blocks: list[Block] = []
    for number, (probe, conditions) in enumerate(_by_probe(study, held).items(), 1):
        title = f"Words of one subword, {probe}"
        if budget.take(1, 1):
            blocks.append(Figures([_drawn(f"words-alone-{slug(probe, number)}", title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        blocks.append(_table(title, conditions, f"words-alone-{slug(probe, number)}"))
    return Section("Words without context", blocks) if blocks else None


def _by_probe(study: Study, held: Layout) -> Mapping[str, Found]:
    rows = study.measures[study.measures["measure"].isin(list(WITHOUT_CONTEXT))]
    rows = rows.assign(condition=conditions_of(rows, held))
    found: dict[str, dict[str, dict[str, Interval]]] = {}
    for (probe, condition, measure), interval in intervals_over_models(rows, ["probe", "condition"]).items():
        found.setdefault(probe, {}).setdefault(condition, {})[measure] = interval
    return found


def _drawn(name: str, title: str, conditions: Found) -> Figure:
    bars = [
        Bar("", condition, kind, of[measure].shown)
        for condition, of in list(conditions.items())[:BARS]
        for measure, kind in WITHOUT_CONTEXT.items()
        if measure in of
    ]
    return retrieval_bars(name, title, bars, NOTE).figure()


def _table(title: str, conditions: Found, name: str) -> Table:
    kinds = [measure for measure in WITHOUT_CONTEXT if any(measure in of for of in conditions.values())]
    rows: list[Sequence[Entry]] = [
        [condition, *(of.get(measure) for measure in kinds)] for condition, of in conditions.items()
    ]
    header = ["condition", *(WITHOUT_CONTEXT[measure].replace(", ", "\n", 1) for measure in kinds)]
    return Table(f"{title} (P@1, %): mean, 95 % t interval below. {CLIPPED}", header, rows, 1, name, ROWS)
