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
from probes.study.labels import Layout, settings_of
from probes.study.report.budget import Budget
from probes.study.report.data import Study
from probes.study.report.measures import WITHOUT_CONTEXT, Measure, over_models
from probes.study.report.ranges import CLIPPED, interval_within

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
    for number, (probe, conditions) in enumerate(_by_probe(study.measures, held).items(), 1):
        title = f"Words of one subword, {probe}"
        if budget.take(1, 1):
            blocks.append(Figures([_drawn(f"words-alone-{slug(probe, number)}", title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        blocks.append(_table(title, conditions, f"words-alone-{slug(probe, number)}"))
    return Section("Words without context", blocks) if blocks else None


def _by_probe(measures: Sequence[Measure], held: Layout) -> Mapping[str, Found]:
    values: dict[str, dict[str, dict[str, list[tuple[str, float]]]]] = {}
    for one in measures:
        if one.measure in WITHOUT_CONTEXT:
            condition = held.whole(settings_of(one.labels, one.cell))
            found = values.setdefault(one.probe, {}).setdefault(condition, {}).setdefault(one.measure, [])
            found.append((one.run, one.value))
    return {
        probe: {
            condition: {measure: interval_within(over_models(held), measure) for measure, held in of.items()}
            for condition, of in conditions.items()
        }
        for probe, conditions in values.items()
    }


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
