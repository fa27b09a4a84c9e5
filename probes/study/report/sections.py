"""The sections of a study report, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from probes.figures.drawing import colours, slug
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Bullets, Code, Figures, Folded, Paragraph, Section, Table
from probes.study.report.alignment import NAMES, correlations
from probes.study.report.beside import Comparisons, beside_papers, judged_claims
from probes.study.report.budget import Budget
from probes.study.report.constant import without_constant
from probes.study.report.data import Cell, Study
from probes.study.report.distances import word_distances
from probes.study.report.dose import dose_responses
from probes.study.report.dropped import dropped
from probes.study.report.figures_scores import alignment_scatter, delta_bars
from probes.study.report.layers import by_layer, over_training
from probes.study.report.provenance import provenance, settings
from probes.study.report.scores import CLIPPED, Condition, Scores, grouped, scores_of
from probes.study.report.summary import summary
from probes.study.report.training import training
from probes.study.report.words_alone import words_alone
from probes.study.table import ALIGNMENTS, SCORES

CONDITIONS, SEEDS, FAILED, LOGS = 120, 300, 50, 10
"""Most rows of a page's tables of scores, of seeds and of failed cells, and most logs."""
LOG_LINES = 60
COMPARED = 4
"""Groups whose comparison is not folded away."""
BAR_FIGURES, SCATTERS = 6, 4
EXPLAINED = (
    "Parent: tuned and tested on the parent. SUP: tuned and tested on the derived or target language. ZS: tuned on the "
    "parent, tested on the other. Δ = SUP − ZS. Alignment: word embeddings, mean of both directions. Intervals are "
    "over pretraining runs (seeds r × s: r runs, each the mean of s fine-tuning seeds); of one run over its seeds."
)
TITLES = {"delta": "Δ", "zs": "ZS", "sup": "SUP", "parent": "Parent"}
"""In the order of the tables: what matters most is seen on a phone before it is moved."""


def sections(study: Study, beside: Comparisons) -> list[Section]:
    """Everything the report says."""
    scores, budget = scores_of(study), Budget(len(study.cells))
    said = summary(study, scores)
    notes = [Paragraph(note, "note") for note in study.notes]
    scale = [Paragraph(f"Scale: {study.scale}.")] if study.scale else []
    lead: list[Block] = [Paragraph(said.lead, "lead"), *scale]
    lead += [Bullets(said.comparisons[:COMPARED])] if said.comparisons else []
    if len(said.comparisons) > COMPARED:
        lead.append(Folded("The other groups", [Bullets(said.comparisons[COMPARED:])]))
    failed = [cell for cell in study.cells if cell.status == "failed"]
    return [
        part
        for part in (
            Section("Summary", [*lead, *notes]),
            judged_claims(beside),
            beside_papers(beside),
            Section("Failed cells", _failed(failed)) if failed else None,
            _scores(scores),
            _transfer(scores, budget) if scores.rows else None,
            dose_responses(scores, budget),
            _alignment(scores, budget) if scores.rows else None,
            word_distances(study, scores.layout, budget),
            words_alone(study, scores.layout, budget),
            by_layer(study, scores.layout, budget, beside.measures),
            over_training(study, scores.layout, budget, beside.measures),
            training(study, scores.layout, budget),
            dropped(study),
            provenance(study),
            settings(study),
        )
        if part is not None
    ]


def _failed(cells: Sequence[Cell]) -> list[Block]:
    caption = "Cells that failed. The others went on."
    table = Table(caption, ["Cell", "Error"], [[c.name, c.error or "no message"] for c in cells], 2, "failed", FAILED)
    logs = [
        Folded(f"{c.name}: log", [Code("\n".join(c.log.rstrip().splitlines()[-LOG_LINES:]))])
        for c in [cell for cell in cells if cell.log.strip()][:LOGS]
    ]
    return [table, *logs]


def _scores(scores: Scores) -> Section:
    if not scores.cells:
        return Section("Scores", [Paragraph("No cell has been scored.", "note")])
    blocks: list[Block] = [Paragraph(f"{EXPLAINED} {CLIPPED}")]
    blocks += [_table(task, members, scores, number) for number, (task, members) in enumerate(scores.tasks.items(), 1)]
    return Section("Scores", [*blocks, Folded("Every seed", [_seeds(scores)])])


def _table(task: str, conditions: Sequence[Condition], scores: Scores, number: int) -> Table:
    held = scores.layout
    columns = [*TITLES, *(name for name in ALIGNMENTS if any(c.interval(name) for c in conditions))]
    shown = [*TITLES.values(), *(f"Alignment\n{NAMES[name]}" for name in columns[len(TITLES) :])]
    metric = conditions[0].first.metric.replace("_", " ")
    caption = f"{task}{f' ({metric})' if metric else ''}, percent: mean, 95 % t interval below."
    body: list[list[Entry]] = [
        [*([c.labels.get(axis, "–") for axis in held.axes] or [c.label]), c.seeds, *map(c.interval, columns)]
        for c in conditions
    ]
    header = [*(held.titles[axis] for axis in held.axes)] or ["study"]
    name = f"scores-{slug(task, number)}"
    return without_constant(Table(caption, [*header, "Seeds", *shown], body, len(header), name, CONDITIONS), ("Δ",))


def _transfer(scores: Scores, budget: Budget) -> Section:
    tasks = grouped((c for c in scores.conditions if c.delta is not None), lambda c: c.task)
    if not tasks:
        return Section("Zero-shot transfer", [Paragraph("No Δ to draw.", "note")])
    palette = _palette(scores)
    drawn = list(tasks.items())[: budget.take(len(tasks), BAR_FIGURES)]
    figures = [delta_bars(task, held, scores.layout, palette, i) for i, (task, held) in enumerate(drawn, 1)]
    blocks: list[Block] = [Figures(figures)] if figures else []
    return Section("Zero-shot transfer", [*blocks, *_left_out(len(tasks) - len(drawn))])


def _alignment(scores: Scores, budget: Budget) -> Section:
    tasks = grouped(scores.cells, lambda score: score.task)
    both = {
        task: held
        for task, held in tasks.items()
        if any(s.mean("alignment_all") is not None and s.mean("delta") is not None for s in held)
    }
    if not both:
        return Section("Alignment and transfer", [Paragraph("No cell has both an alignment and a Δ.", "note")])
    palette = _palette(scores)
    drawn = list(both.items())[: budget.take(len(both), SCATTERS)]
    figures = [alignment_scatter(task, held, scores, palette, i) for i, (task, held) in enumerate(drawn, 1)]
    known = [figure for figure in figures if figure is not None]
    blocks: list[Block] = [Figures(known)] if known else []
    found = correlations({task: scores.tasks[task] for task in both})
    return Section("Alignment and transfer", [*blocks, *_left_out(len(both) - len(drawn)), *found])


def _palette(scores: Scores) -> dict[str, str]:
    """A colour for each label of the main axis, also of those that only measures have."""
    held = scores.layout
    labels = [] if held.main is None else [held.text(held.main, {held.main: name}) for name in held.axes[held.main]]
    return colours(labels or [held.alone])


def _left_out(count: int) -> list[Block]:
    if not count:
        return []
    return [Paragraph(f"{plural(count, 'further task')} without a figure: the tables have the numbers.", "note")]


def _seeds(scores: Scores) -> Table:
    header = ["Cell", "Task", "Metric", "Pretraining seed", "Fine-tuning seed", "Parent", "SUP", "ZS", "Δ"]
    body = [
        [r.cell, r.task, r.metric.replace("_", " "), _seed(r.pretrain_seed), _seed(r.seed)]
        + [r.values.get(column) for column in SCORES]
        for r in scores.rows
    ]
    caption = "One row per fine-tuning seed, percent."
    return Table(caption, header, body, 3, "seeds", SEEDS, 2)


def _seed(seed: int | None) -> str:
    return "–" if seed is None else str(seed)
