"""What the findings show of a study: how well its models learned, its scores, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from probes.claims.papers import names_in, read_claims
from probes.claims.spec import OF_PROBE, probe_measures
from probes.figures.drawing import Figure, colours, slug
from probes.figures.printed import Bar, bars_beside
from probes.report.against import alignment, movements
from probes.report.data import WITHOUT_CONTEXT, FigureBudget, Study
from probes.report.dose import dose_responses
from probes.report.findings_data import BothNumbers, PrintedTable
from probes.report.layers import Along, by_layer, curves, over_training, words_alone
from probes.report.maps import maps
from probes.report.numbers import number
from probes.report.page import Block, Figures, Paragraph, Section, Table, flat
from probes.report.scores import (
    FAILED_TRAINING,
    Column,
    Condition,
    Material,
    ScoreTable,
    by_rows,
    grouped,
    material_of,
    scores_of,
)
from probes.report.training import pretrained, pretraining
from probes.results.labels import layout_of
from probes.results.scores import PERPLEXITY

PREFERRED = ("delta", "zs")
"""The first of these measures that a table has is drawn; all of its measures are drawn if it has neither."""
PANELS = 4
"""Largest number of panels of a figure."""
CURVES = 2
"""Largest number of figures of a study; maps and scatters have limits of their own."""
SCATTERS = 3
"""Largest number of scatters, one for each task."""
MAPS = 4
"""Largest number of maps, which are read beside each other: one for each label of the other axes."""
ROWS = 60
"""Largest number of conditions of a table."""
SHORT = (
    "SUP is fine-tuned and tested on the other language, ZS fine-tuned on the source language and tested on the other. "
    "Δ = SUP − ZS."
)
UNKNOWN = "The perplexity of the source language is not known"
FAILED_LAST = " Models that failed training stand last and count in nothing else."


def figures_of_tables(
    tables: Sequence[PrintedTable], scales: Mapping[str, Sequence[Study]], place: int
) -> list[Figure]:
    """Draw our numbers beside those of a paper's tables, with what the models of each pool have learned.

    A name has the same colour in all figures. ``place`` is the number of the first figure.
    """
    numbers = [_drawn(table.numbers) for table in tables]
    bars = [_bars(of, table.name) for of, table in zip(numbers, tables, strict=True)]
    palette = colours([bar.name for of in bars for bar in of])
    figures = []
    for count, (table, of, its) in enumerate(zip(tables, numbers, bars, strict=True), place):
        title = f"{table.paper}, {table.name}: {table.title}"
        scale = f"Ours: {table.scale}. " if table.scale else ""
        file = slug(f"{table.paper} {table.name} {table.scale}", count)
        note, one_unit = scale + learned(scales[table.scale]), len({one.measure for one in of}) == 1
        figures.append(bars_beside(file, title, its, palette, note, one_scale=one_unit))
    return figures


def _bars(numbers: Sequence[BothNumbers], table: str) -> list[Bar]:
    layout = layout_of(_axes(numbers), [one.labels for one in numbers], table)
    called = panel_names(one.panel for one in numbers)
    return [
        Bar(called[one.panel], layout.group(one.labels), layout.name(one.labels), one.ours, one.printed)
        for one in numbers
    ]


def panel_names(panels: Iterable[str]) -> dict[str, str]:
    """Return the short name of each panel: of measures of probes, the parts of their paths that differ.

    >>> panel_names(["nli Δ", "probe:retrieval.context.mean", "probe:retrieval.types.mean"])
    {'nli Δ': 'nli Δ', 'probe:retrieval.context.mean': 'context', 'probe:retrieval.types.mean': 'types'}
    """
    names = {panel: panel for panel in panels}
    paths = {panel: panel.removeprefix(OF_PROBE).split(".") for panel in names if panel.startswith(OF_PROBE)}
    for panel, path in paths.items():
        own = [part for part in path if any(part not in other for other in paths.values())] or path
        names[panel] = ", ".join(own).replace("_", " ")
    return names


def _drawn(numbers: Sequence[BothNumbers]) -> list[BothNumbers]:
    measure = next((name for name in PREFERRED if any(one.measure == name for one in numbers)), None)
    chosen = [one for one in numbers if measure in (None, one.measure)]
    panels = list(dict.fromkeys(one.panel for one in chosen))[:PANELS]
    return [one for one in chosen if one.panel in panels]


def _axes(numbers: Sequence[BothNumbers]) -> list[str]:
    return list(dict.fromkeys(axis for one in numbers for axis in one.labels))


def figures_of_study(name: str, study: Study, kind: str | None = None) -> list[Figure]:
    """Draw the first figures of a kind, or of the first kind that the study has data for."""
    material = material_of(study, FigureBudget(0), _claimed(study))
    for draw, most in [KINDS[kind]] if kind else KINDS.values():
        if figures := _figures_in(draw(material))[:most]:
            told = learned([study])
            return [replace(one, name=f"{name}-{one.name}", caption=f"{one.caption} {told}") for one in figures]
    return []


def _claimed(study: Study) -> list[str]:
    """Return the measures of probes that the claims of the study read."""
    claims = (claim for name in names_in(study.config.get("claims")) for claim in read_claims(name))
    return probe_measures(quantity for claim in claims for quantity in claim.quantities())


def _figures_in(section: Section | None) -> list[Figure]:
    blocks = flat(section.blocks) if section else ()
    return [figure for block in blocks if isinstance(block, Figures) for figure in block.figures]


def _deltas(material: Material) -> Section | None:
    bars = list[Bar]()
    for c in material.scores.conditions:
        if c.delta is not None:
            names = material.layout.group(c.labels), material.layout.name(c.labels)
            bars.append(Bar(f"{c.task} Δ", *names, c.delta, values=c.values("delta")))
    panels = list(dict.fromkeys(bar.panel for bar in bars))
    bars = [bar for bar in bars if bar.panel in panels[:PANELS]]
    more = f" The first {PANELS} of {len(panels)} tasks." if len(panels) > PANELS else ""
    palette = colours([bar.name for bar in bars])
    figures = [bars_beside("delta", material.study.title, bars, palette, f"Δ, lower is better.{more}")] if bars else []
    return Section("Δ", [Figures(figures)])


KINDS: dict[str, tuple[Callable[[Material], Section | None], int]] = {
    "dose": (dose_responses, CURVES),
    "maps": (maps, MAPS),
    "steps": (over_training, CURVES),
    "delta": (_deltas, CURVES),
    "alignment": (alignment, SCATTERS),
    "moved": (movements, CURVES),
    "layers": (by_layer, CURVES),
    "words": (words_alone, CURVES),
}
"""Kind of figure → the section that draws it, and the largest number of its figures.

The kinds are curves over an axis of numbers, maps over two, curves over pretraining, bars of Δ, alignment and movement
against Δ, measures by layer, and words without context.
"""


def measures_drawn(study: Study) -> list[str]:
    """Return the measures that curves over layers and pretraining, and words without context, show."""
    layout, found = scores_of(study).layout, [*WITHOUT_CONTEXT]
    along: Along
    for along in ("step", "layer"):
        known = curves(study.measures[study.measures[along].notna()], layout, along, _claimed(study))
        found += [curve.measure for curve in known[:CURVES]]
    return found


def learned(studies: Sequence[Study]) -> str:
    """Describe how well the models learned: the ranges of perplexity and of SUP on each task."""
    perplexities = [
        one.perplexities["parent"].mean for s in studies for one in pretrained(s) if "parent" in one.perplexities
    ]
    conditions = [c for study in studies for c in _conditions(scores_of(study))]
    if not perplexities:
        perplexities = [interval.mean for c in conditions if (interval := c.interval(PERPLEXITY)) is not None]
    told = [f"Perplexity of the source language {_range(perplexities)}" if perplexities else UNKNOWN]
    for task, of in grouped(conditions, lambda c: c.task).items():
        values = [value for c in of if (value := c.mean("sup")) is not None]
        told += [f"SUP of {task} {_range(values)}"] if values else []
    return "; ".join(told) + "."


def _conditions(scores: ScoreTable) -> list[Condition]:
    return [*scores.conditions, *scores.failed]


def _range(values: Iterable[float]) -> str:
    ends = [number(end) for end in (min(known), max(known))] if (known := list(values)) else []
    return " to ".join(dict.fromkeys(ends))


def scores_table(study: Study) -> list[Block]:
    """Return a row for each condition with perplexity, alignment and, for each task, SUP, ZS and Δ.

    Of a study without tasks the table has the perplexities of its pretrainings.
    """
    scores = scores_of(study)
    rows = grouped(_conditions(scores), lambda c: (bool(c.first.failed), *sorted(c.labels.items()))).values()
    if not rows:
        found = pretraining(study, scores.layout)
        return list(found.blocks) if found else [Paragraph("No cell has been scored.", "note")]
    conditions = [{c.task: c for c in of} for of in rows]
    columns = list(_columns(scores, conditions))
    texts = 1 + [title for title, _ in columns].index("Seeds")
    caption = f"{study.title}: percent, means and 95 % t intervals. {SHORT}" + (FAILED_LAST if scores.failed else "")
    return [Table(caption, *by_rows(columns), texts, "", ROWS)]


def _columns(scores: ScoreTable, conditions: Sequence[Mapping[str, Condition]]) -> Iterator[Column]:
    firsts = [next(iter(of.values())) for of in conditions]
    layout = scores.layout
    for axis in layout.axes:
        yield layout.titles[axis], [c.labels.get(axis, "–") for c in firsts]
    if not layout.axes:
        yield "study", [c.label for c in firsts]
    if scores.failed:
        yield "Training", [FAILED_TRAINING if c.first.failed else "–" for c in firsts]
    yield "Seeds", [c.seeds for c in firsts]
    for name, title in ((PERPLEXITY, "Perplexity"), ("alignment_all", "Alignment")):
        values = [c.interval(name) for c in firsts]
        if any(value is not None for value in values):
            yield title, values
    for task in dict.fromkeys(c.task for of in conditions for c in of.values()):
        of_task = [of.get(task) for of in conditions]
        for name, title in (("sup", "SUP"), ("zs", "ZS")):
            yield f"{task} {title}", [None if c is None else c.mean(name) for c in of_task]
        yield f"{task} Δ", [None if c is None else c.delta for c in of_task]
