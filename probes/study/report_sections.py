"""The sections of a study report, in reading order."""

from __future__ import annotations

from collections.abc import Sequence

from probes.report.blocks import Block, Bullets, Figures, Paragraph, Section, Table
from probes.report.figure import colours
from probes.statistics import Interval
from probes.study.figures_scores import alignment_scatter, delta_bars
from probes.study.report_data import ALIGNMENTS, Cell, ResultRow, Study
from probes.study.report_provenance import provenance, settings
from probes.study.report_scores import CellScore, cell_scores, conditions, correlate, grouped, in_study_order
from probes.study.report_summary import SMALL_N, bounds, number, summary
from probes.study.report_training import training

NAMES = {"alignment_all": "all types", "alignment_dictionary": "in dictionary", "alignment_held_out": "held out"}


def sections(study: Study) -> list[Section]:
    """Everything the report says."""
    rows = in_study_order(study)
    scores = cell_scores(rows)
    notes = [Paragraph(note, "note") for note in study.notes]
    said = summary(study, scores)
    lead = Section(
        "Summary", [Paragraph(said.lead, "lead"), *([Bullets(said.comparisons)] if said.comparisons else []), *notes]
    )
    failed = [cell for cell in study.cells if cell.status == "failed"]
    parts = [lead]
    if failed:
        parts.append(Section("Failed cells", [_failed(failed)]))
    parts += [_scores(study, scores), _transfer(scores), _alignment(scores), training(study), _seeds(rows)]
    return [
        *parts,
        provenance(study),
        settings(study),
    ]


def interval_cell(interval: Interval | None) -> str:
    """The mean, and its bounds on a second line."""
    if interval is None:
        return "–"
    second = bounds(interval.low, interval.high)
    return number(interval.mean) + (f"\n{second}" if second else "")


def _failed(cells: Sequence[Cell]) -> Table:
    return Table(
        "Cells that failed. The others went on.",
        ["Cell", "Error"],
        [[c.name, c.error or "no message"] for c in cells],
        2,
    )


def _scores(study: Study, scores: Sequence[CellScore]) -> Section:
    if not scores:
        return Section("Scores", [Paragraph("No cell has been scored.", "note")])
    caption = (
        "Scores per cell in percent: mean over fine-tuning seeds, 95 % t interval below. Parent: tuned and tested on "
        "the parent. SUP: tuned and tested on the derived language. ZS: tuned on the parent, tested on the derived "
        "language. Δ = SUP − ZS. Alignment: word-embedding alignment, mean of both directions."
    )
    header = ["Cell", "Language", "Objective", "Task", "Seeds", "Parent", "SUP", "ZS", "Δ"]
    header += [f"Alignment\n{name}" for name in NAMES.values()]
    body = [
        [s.cell, s.language, s.objective, s.task, str(len(s.deltas))]
        + [interval_cell(value) for value in (s.parent, s.sup, s.zs, s.delta)]
        + [number(getattr(s, column)) for column in ALIGNMENTS]
        for s in scores
    ]
    blocks: list[Block] = [Table(caption, header, body, 4)]
    repeated = [c for c in conditions(study, scores) if c.runs > 1]
    if repeated:
        caption = "Conditions with several pretraining seeds. Means and 95 % t intervals over pretraining runs."
        header = ["Condition", "Source", "Language", "Task", "Runs", "Δ", "Alignment, all types"]
        table = [
            [c.label, c.source, c.language, c.task, str(c.runs), interval_cell(c.delta), interval_cell(c.alignment)]
            for c in repeated
        ]
        blocks.append(Table(caption, header, table, 4))
    return Section("Scores", blocks)


def _transfer(scores: Sequence[CellScore]) -> Section:
    palette = colours([score.objective for score in scores])
    tasks = grouped((s for s in scores if s.delta is not None), lambda s: s.task)
    bars = [delta_bars(task, members, palette, i) for i, (task, members) in enumerate(tasks.items(), 1)]
    if not bars:
        return Section("Zero-shot transfer", [Paragraph("No Δ to draw.", "note")])
    return Section("Zero-shot transfer", [Figures([figure]) for figure in bars])


def _alignment(scores: Sequence[CellScore]) -> Section:
    palette = colours([score.objective for score in scores])
    tasks = grouped(scores, lambda score: score.task)
    drawn = [alignment_scatter(task, members, palette, i) for i, (task, members) in enumerate(tasks.items(), 1)]
    blocks: list[Block] = [Figures([figure]) for figure in drawn if figure is not None]
    if not blocks:
        return Section("Alignment and transfer", [Paragraph("No cell has both an alignment and a Δ.", "note")])
    body = []
    for task, members in tasks.items():
        for column, name in NAMES.items():
            r = correlate(members, column)
            p = "–" if r.p is None else f"{r.p:.4f}" + (" exact" if r.exact else "")
            why = r.reason or ("too few cells for an interval" if r.low is None else "")
            body.append(
                [
                    task,
                    name + (f"\n{why}" if why else ""),
                    str(r.n),
                    number(r.rho, 2),
                    bounds(r.low, r.high, 2) or "–",
                    p,
                ]
            )
    caption = (
        "Spearman correlation of alignment with Δ over cell means. ρ < 0: better aligned, smaller loss in transfer. "
        "p: two-sided permutation test; interval: 95 % percentile bootstrap of cells."
    )
    blocks.append(Table(caption, ["Task", "Alignment", "n", "ρ", "95 % interval", "p"], body, 2))
    few = "the cells are few, they" if max(map(len, tasks.values())) < SMALL_N else "the cells"
    warning = (
        f"Read with care: {few} share languages, objectives and seeds and so are not independent, "
        "which makes p and interval look better than they are. A correlation over cells does not show that alignment "
        "causes transfer; all types and in dictionary include pairs an objective was trained on."
    )
    return Section("Alignment and transfer", [*blocks, Paragraph(warning, "note")])


def _seeds(rows: Sequence[ResultRow]) -> Section:
    if not rows:
        return Section("Every seed", [Paragraph("No results.", "note")])
    header = ["Cell", "Language", "Objective", "Task", "Metric", "Seed", "Parent", "SUP", "ZS", "Δ"]
    body = [
        [r.cell, r.language, r.objective, r.task, r.metric.replace("_", " "), r.seed]
        + [number(v, 2) for v in (r.parent, r.sup, r.zs, r.delta)]
        for r in rows
    ]
    return Section("Every seed", [Table("One row per fine-tuning seed, percent.", header, body, 5)])
