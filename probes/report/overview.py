"""First section of a report: the verdicts, the main figure beside the scores, and the differences in words.

The main figure shows Δ: as bars beside the numbers of a paper, or else as a curve over an axis of numbers, or else as
bars. A curve in the first section is removed from the section of curves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from probes.figures.drawing import Figure, shorten
from probes.figures.printed import Bar, bars_beside
from probes.report.differences import Difference, in_words, unmade_in_words
from probes.report.judged import Comparisons
from probes.report.numbers import Entry, number
from probes.report.page import Beside, Block, Bullets, Figures, Paragraph, Section, Table, Terms
from probes.report.printed import SHOWN, Printed
from probes.report.scores import FAILED_TRAINING, Column, Condition, Material, by_rows, grouped
from probes.report.summary import caveat, claims_in_words, correlations_in_words, verdicts_in_words, what_was_run
from probes.report.training import best_perplexity
from probes.results.labels import Layout, numbers_of
from probes.results.measures import TOKENS_PER_WORD
from probes.results.scores import ALIGNMENT, MAJORITY, PERPLEXITY

TITLE = "At a glance"
ROWS = 40
"""Largest number of conditions of the table."""
PANELS = 6
"""Largest number of tasks in a figure of bars."""
CURVE = 3
"""Smallest number of labels of an axis for a curve as the main figure."""
LINES = 6
"""Largest number of lines about differences."""
AXES = {"delta": "Δ (points)", "zs": "ZS (percent)"}
NOTES = {"delta": "Δ = SUP − ZS: lower is better", "zs": "ZS: higher is better"}


def main_curve(material: Material, printed: Printed, curves: Sequence[Section | None]) -> Figure | None:
    """Return the curve that is the main figure, or None if the main figure has bars.

    For a study with scores, the first dose–response curve is chosen. At least one axis must have CURVE numbers or more,
    and no paper may print numbers. For a study without scores, the first curve of any section is chosen.

    Args:
        material: The study and its scores.
        printed: The numbers of papers.
        curves: The sections with curves, with the section on dose–response first.
    """
    if material.rows:
        is_curve = any(numbers_of(labels) and len(labels) >= CURVE for labels in material.layout.axes.values())
        curves = curves[:1] if is_curve and not printed else []
    blocks = [block for section in curves if section for block in section.blocks]
    return next((figure for block in blocks if isinstance(block, Figures) for figure in block.figures), None)


def without(section: Section | None, figure: Figure | None) -> Section | None:
    """Return a section without ``figure``, which is shown in another section of the page."""
    if section is None or figure is None:
        return section
    blocks = [
        replace(block, figures=[one for one in block.figures if one is not figure])
        if isinstance(block, Figures)
        else block
        for block in section.blocks
    ]
    return replace(section, blocks=[block for block in blocks if not isinstance(block, Figures) or block.figures])


def overview(
    material: Material, comparisons: Comparisons, found: Sequence[Difference], printed: Printed, curve: Figure | None
) -> Section:
    """Return the first section: verdicts, main figure and scores, then differences and what was run.

    Args:
        material: The study and its scores.
        comparisons: The verdicts on claims and printed numbers.
        found: The differences between conditions.
        printed: The numbers of papers.
        curve: The main figure, or None for bars of the scores.

    Raises:
        InputError: A comparison of the study is malformed.
    """
    best = "" if material.rows else best_perplexity(material)
    lead = verdicts_in_words(comparisons) or best or ("" if material.conditions else "Nothing can be compared yet.")
    blocks: list[Block] = [Paragraph(lead, "lead")] if lead else []
    measures = printed.measures(material.every)
    figure = curve or bars_of_scores(material, measures, printed)
    shown: list[Table | Figures] = [Figures([figure])] if figure else []
    shown += [_scores(material, measures, printed, figure is not None)] if material.rows else []
    blocks += [Beside(shown)] if len(shown) > 1 else shown
    claims = claims_in_words(comparisons)
    blocks += [Terms(claims)] if claims else []
    lines = [best] if best not in ("", lead) else []
    lines += [
        *_few(in_words(found)),
        *unmade_in_words(material),
        *(correlations_in_words(material) if material.conditions else ()),
    ]
    blocks += [Bullets(lines)] if lines else []
    blocks.append(Paragraph(" ".join(filter(None, (what_was_run(material), caveat(material))))))
    notes = filter(None, (material.study.told_failed, *material.study.notes))
    return Section(TITLE, [*blocks, *(Paragraph(note, "note") for note in notes)])


def _few(lines: Sequence[str]) -> list[str]:
    left = len(lines) - LINES
    return [*lines[:LINES], *([f"The table of differences below has {left} more comparisons."] if left > 0 else [])]


def bars_of_scores(material: Material, measures: Mapping[str, str], printed: Printed) -> Figure | None:
    """Draw the conditions of the first PANELS tasks beside the printed numbers, or return None without any score.

    Args:
        material: The study and its scores.
        measures: Task → the measure to draw, ``delta`` or ``zs``.
        printed: The numbers of papers.
    """
    layout, bars, drawn = material.layout, list[Bar](), list(dict.fromkeys(measures.values()))
    for c in material.conditions:
        measure = measures[c.task]
        if (ours := c.interval(measure)) is not None:
            panel = f"{c.task}, {SHOWN[measure]}" if len(drawn) > 1 else c.task
            names = layout.group(c.labels), layout.name(c.labels)
            bars.append(Bar(panel, *names, ours, printed.of(c, measure), c.values(measure)))
    title, axis = "; ".join(NOTES[name] for name in drawn), " or ".join(AXES[name] for name in drawn)
    return bars_beside("scores", title, bars, "", most=PANELS, axis=axis) if bars else None


def _scores(material: Material, measures: Mapping[str, str], printed: Printed, is_drawn: bool) -> Table:
    """Return the table of scores, alignment and perplexity, in percent, with a row for each combination of settings.

    A row has the scores of all tasks, with printed numbers in small print and the majority baseline below SUP. Excluded
    runs come last.
    """
    group = material.layout.group
    order = list(dict.fromkeys((c.has_failed, group(c.labels)) for c in material.every))
    rows = sorted(material.by_settings, key=lambda of: order.index((of[0].has_failed, group(of[0].labels))))
    columns = [("condition", [_named(of[0], material.layout) for of in rows]), *_columns(rows, measures, printed)]
    in_print = any(printed.of(c, measures[c.task]) is not None for c in material.every)
    small = ["the paper's numbers"] if in_print else []
    by_task = grouped(material.every, lambda c: c.task).values()
    small += ["the majority baseline"] if any(len(_baselines(of)) > 1 for of in by_task) else []
    below = f"; {' and '.join(small)} in small print" if small else ""
    intervals = "in the figure and under Scores" if is_drawn else "under Scores"
    return Table(f"Means in percent{below}. Intervals are {intervals}.", *by_rows(columns), 1, "", ROWS)


def _named(condition: Condition, layout: Layout) -> str:
    names = layout.name(condition.labels), layout.group(condition.labels)
    return "\n".join(shorten(text, 24) for text in names if text)


def _columns(rows: Sequence[Sequence[Condition]], measures: Mapping[str, str], printed: Printed) -> Iterator[Column]:
    tasks = list(dict.fromkeys(c.task for of in rows for c in of))
    of_task = {task: [next((c for c in of if c.task == task), None) for of in rows] for task in tasks}
    several = len(tasks) > 1
    for task, conditions in of_task.items():
        title = SHOWN[measures[task]]
        yield f"{title}\n{task}" if several else title, [_score(c, measures[task], printed) for c in conditions]
    for task, conditions in of_task.items():
        yield from _supervised(task if several else "", conditions)
    firsts = [of[0] for of in rows]
    alignment = printed.alignment([c for of in rows for c in of])
    if all(c.mean(alignment) is None for c in firsts):  # earlier results lack the directions
        alignment = ALIGNMENT
    aligned = [_beside_paper(c.mean(alignment), c, alignment, printed) for c in firsts]
    tokens = [None if (mean := c.mean(TOKENS_PER_WORD)) is None else number(mean, 2) for c in firsts]
    last: list[Column] = [("Alignment", aligned), ("Tokens per word", tokens)]
    last.append(("Perplexity", [c.mean(PERPLEXITY) for c in firsts]))
    yield from ((title, entries) for title, entries in last if any(entry is not None for entry in entries))


def _supervised(task: str, conditions: Sequence[Condition | None]) -> Iterator[Column]:
    """Yield SUP of a task with the majority baseline, or only the baseline if SUP is missing."""
    baselines = _baselines([c for c in conditions if c is not None])
    if all(c is None or c.mean("sup") is None for c in conditions):
        if baselines:
            title, values = "majority baseline", [None if c is None else c.mean(MAJORITY) for c in conditions]
            yield f"{title}\n{task}" if task else title, values
        return
    differ = len(baselines) > 1
    majority = "majority" if differ else "".join(f"majority {value}" for value in baselines)
    below = ", ".join(filter(None, (task, majority)))
    yield f"SUP\n{below}" if below else "SUP", [_sup(c, with_majority=differ) for c in conditions]


def _score(condition: Condition | None, measure: str, printed: Printed) -> Entry:
    """Return Δ or ZS with the printed number, FAILED_TRAINING for an excluded run, or None without a score."""
    ours = None if condition is None else condition.interval(measure)
    if condition is None or ours is None:
        return None
    return FAILED_TRAINING if condition.has_failed else _beside_paper(ours.mean, condition, measure, printed)


def _beside_paper(ours: float | None, condition: Condition, measure: str, printed: Printed) -> Entry:
    paper = printed.of(condition, measure)
    return None if ours is None else number(ours) + ("" if paper is None else f"\npaper {number(paper)}")


def _baselines(conditions: Sequence[Condition]) -> set[str]:
    """Return the distinct majority baselines as shown, from conditions with SUP if there are any."""
    beside = [c for c in conditions if c.mean("sup") is not None] or conditions
    return {number(value) for c in beside if (value := c.mean(MAJORITY)) is not None}


def _sup(condition: Condition | None, *, with_majority: bool) -> Entry:
    sup = None if condition is None else condition.mean("sup")
    if condition is None or sup is None:
        return None
    majority = condition.mean(MAJORITY) if with_majority else None
    return sup if majority is None else f"{number(sup)}\n{number(majority)}"
