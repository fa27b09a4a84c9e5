"""First section of a report: the verdicts, the main figure beside the scores, and the differences in words.

The main figure is bars of Δ beside the paper's numbers where a paper prints them, else a curve over an axis of numbers,
else bars. A figure is shown once, so the section that it comes from loses it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from probes.claims.papers import names_in
from probes.figures.drawing import Figure, colours, shorten
from probes.figures.printed import Bar, bars_beside
from probes.report.data import Study
from probes.report.differences import Difference, in_words
from probes.report.dose import TITLE as DOSES
from probes.report.judged import Comparisons
from probes.report.numbers import Badge, Entry, number
from probes.report.page import Beside, Block, Bullets, Figures, Paragraph, Section, Table, Terms
from probes.report.printed import SHOWN, Printed, alignment_shown, measures_shown, printed_among, printed_numbers
from probes.report.scores import Condition, ScoreTable, by_rows, grouped
from probes.report.summary import (
    caveat,
    claims_in_words,
    correlations_in_words,
    verdicts_in_words,
    what_was_run,
)
from probes.report.training import best_perplexity
from probes.results.labels import numbers_of
from probes.results.measures import TOKENS_PER_WORD
from probes.results.scores import ALIGNMENT, MAJORITY, PERPLEXITY

TITLE = "At a glance"
ROWS = 40
"""Largest number of conditions of the table."""
PANELS = 6
"""Largest number of tasks of the bars of Δ."""
CURVE = 3
"""Smallest number of labels of an axis whose curve becomes the main figure."""
LINES = 6
"""Largest number of lines on differences."""
AXES = {"delta": "Δ (points)", "zs": "ZS (percent)"}
NOTES = {"delta": "Δ = SUP − ZS: lower is better", "zs": "ZS: higher is better"}
NOT_LEARNED = Badge("not learned", "bad")


class Overview:
    """The first section, and the figure that another section gives up for it."""

    def __init__(self, study: Study, scores: ScoreTable, comparisons: Comparisons, found: Sequence[Difference]) -> None:
        self._study, self._scores, self._comparisons, self._found = study, scores, comparisons, found
        self._printed = printed_numbers([name for key in _configs(study) for name in names_in(key.get("paper"))])
        self._main: Figure | None = None

    @property
    def _is_curve(self) -> bool:
        """Whether an axis has enough numbers that a curve shows more than bars."""
        return any(numbers_of(labels) and len(labels) >= CURVE for labels in self._scores.layout.axes.values())

    def takes_from(self, section: Section | None) -> Section | None:
        """Return the section without its first figure if that becomes the main figure.

        Of a study with scores only a curve over several numbers is taken, and only where no paper prints its numbers.
        """
        if section is None or self._main is not None:
            return section
        if self._scores.rows and (self._printed or section.title != DOSES or not self._is_curve):
            return section
        for place, block in enumerate(section.blocks):
            if isinstance(block, Figures) and block.figures:
                self._main, *others = block.figures
                rest: list[Block] = [Figures(others)] if others else []
                return replace(section, blocks=[*section.blocks[:place], *rest, *section.blocks[place + 1 :]])
        return section

    def section(self) -> Section:
        """Return verdicts, main figure and scores, then differences and what was run."""
        study, scores = self._study, self._scores
        best = "" if scores.rows else best_perplexity(study, scores.layout)
        lead = (
            verdicts_in_words(self._comparisons)
            or best
            or ("" if scores.conditions else "Nothing can be compared yet.")
        )
        blocks: list[Block] = [Paragraph(lead, "lead")] if lead else []
        every = [*scores.conditions, *scores.failed]
        measures = measures_shown(((c.task, c.labels, c.delta is not None) for c in every), self._printed)
        figure = self._main or bars_of_scores(scores, measures, self._printed)
        drawn: list[Block] = [Figures([figure])] if figure else []
        table = _scores(scores, measures, self._printed, figure is not None) if scores.rows else None
        blocks += [Beside([Figures([figure]), table])] if figure and table else [table] if table else drawn
        claims = claims_in_words(self._comparisons)
        blocks += [Terms(claims)] if claims else []
        lines = [best] if best not in ("", lead) else []
        lines += [*_few(in_words(self._found)), *(correlations_in_words(scores) if scores.conditions else ())]
        blocks += [Bullets(lines)] if lines else []
        blocks.append(Paragraph(" ".join(filter(None, (what_was_run(study, scores), caveat(scores))))))
        notes = filter(None, (study.told_failed, *study.notes))
        return Section(TITLE, [*blocks, *(Paragraph(note, "note") for note in notes)])


def _configs(study: Study) -> Iterator[Mapping[str, object]]:
    """Yield the config of the study, or of each study that is joined."""
    yield study.config
    yield from (part for part in study.config.values() if isinstance(part, Mapping))


def _few(lines: Sequence[str]) -> list[str]:
    left = len(lines) - LINES
    return [*lines[:LINES], *([f"{left} more comparisons are in the table of differences below."] if left > 0 else [])]


def bars_of_scores(scores: ScoreTable, measures: Mapping[str, str], printed: Printed) -> Figure | None:
    """Draw a panel for each task: its measure of each condition beside the printed numbers; None without either."""
    layout, bars, drawn = scores.layout, list[Bar](), list(dict.fromkeys(measures.values()))
    for c in scores.conditions:
        measure = measures[c.task]
        ours = c.interval(measure)
        if ours is not None:
            panel = f"{c.task}, {SHOWN[measure]}" if len(drawn) > 1 else c.task
            names = layout.group(c.labels), layout.name(c.labels)
            paper = printed_among(printed, c.labels, c.task, measure)
            bars.append(Bar(panel, *names, ours, paper, c.values(measure)))
    panels = list(dict.fromkeys(bar.panel for bar in bars))
    shown = [bar for bar in bars if bar.panel in panels[:PANELS]]
    more = f"The first {PANELS} of {len(panels)} tasks." if len(panels) > PANELS else ""
    if not bars:
        return None
    title, axis = "; ".join(NOTES[name] for name in drawn), " or ".join(AXES[name] for name in drawn)
    return bars_beside("scores", title, shown, colours([bar.name for bar in shown]), more, axis=axis)


def _scores(scores: ScoreTable, measures: Mapping[str, str], printed: Printed, is_drawn: bool) -> Table:
    """Return a row for each condition: the measure of each task with the printed number, SUP, alignment, perplexity.

    The majority baseline is beside SUP. Conditions that have not learned come last.
    """
    every = [*scores.conditions, *scores.failed]
    places = {(bool(c.first.failed), scores.layout.group(c.labels)): None for c in every}
    order = {place: i for i, place in enumerate(places)}
    found = grouped(every, lambda c: (bool(c.first.failed), *sorted(c.labels.items())))
    rows = sorted(found.values(), key=lambda of: order[bool(of[0].first.failed), scores.layout.group(of[0].labels)])
    columns = [("condition", [_named(of[0], scores) for of in rows]), *_columns(rows, measures, printed)]
    in_print = (printed_among(printed, c.labels, c.task, measures[c.task]) for c in every)
    small = ["the paper's numbers"] if any(value is not None for value in in_print) else []
    by_task = grouped(every, lambda c: c.task).values()
    small += ["the majority baseline"] if any(len(_baselines(of)) > 1 for of in by_task) else []
    below = f"; {' and '.join(small)} in small print" if small else ""
    intervals = "in the figure, and under Scores" if is_drawn else "under Scores"
    told = f"Means in percent{below}. Intervals: {intervals}."
    return Table(told, *by_rows(columns), 1, "", ROWS)


def _named(condition: Condition, scores: ScoreTable) -> Entry:
    name, group = scores.layout.name(condition.labels), scores.layout.group(condition.labels)
    return "\n".join(shorten(text, 24) for text in (name, group) if text)


def _columns(
    rows: Sequence[Sequence[Condition]], measures: Mapping[str, str], printed: Printed
) -> Iterator[tuple[str, Sequence[Entry]]]:
    tasks = list(dict.fromkeys(c.task for of in rows for c in of))
    of_task = {task: [next((c for c in of if c.task == task), None) for of in rows] for task in tasks}
    several = len(tasks) > 1
    for task, conditions in of_task.items():
        title = SHOWN[measures[task]]
        yield f"{title}\n{task}" if several else title, [_score(c, measures[task], printed) for c in conditions]
    for task, conditions in of_task.items():
        baselines = _baselines([c for c in conditions if c is not None])
        if all(c is None or c.mean("sup") is None for c in conditions):
            if baselines:
                title, values = "majority baseline", [None if c is None else c.mean(MAJORITY) for c in conditions]
                yield f"{title}\n{task}" if several else title, values
            continue
        differ = len(baselines) > 1
        majority = "majority" if differ else "".join(f"majority {value}" for value in baselines)
        below = ", ".join(filter(None, (task if several else "", majority)))
        yield f"SUP\n{below}" if below else "SUP", [_sup(c, with_majority=differ) for c in conditions]
    alignment = alignment_shown(((c.task, c.labels) for of in rows for c in of), printed)
    if all(of[0].mean(alignment) is None for of in rows):  # results of before it was measured by direction
        alignment = ALIGNMENT
    last: list[tuple[str, list[Entry]]] = [
        ("Alignment", [_beside_paper(of[0].mean(alignment), of[0], alignment, printed) for of in rows]),
        ("Tokens per word", [None if (m := of[0].mean(TOKENS_PER_WORD)) is None else number(m, 2) for of in rows]),
        ("Perplexity", [of[0].mean(PERPLEXITY) for of in rows]),
    ]
    for title, entries in last:
        if any(entry is not None for entry in entries):
            yield title, entries


def _score(condition: Condition | None, measure: str, printed: Printed) -> Entry:
    """Return Δ or ZS with the printed number."""
    ours = None if condition is None else condition.interval(measure)
    if condition is None or ours is None:
        return None
    return NOT_LEARNED if condition.first.failed else _beside_paper(ours.mean, condition, measure, printed)


def _beside_paper(ours: float | None, condition: Condition, measure: str, printed: Printed) -> Entry:
    """Return our mean with the printed number."""
    paper = printed_among(printed, condition.labels, condition.task, measure)
    return None if ours is None else number(ours) + ("" if paper is None else f"\npaper {number(paper)}")


def _baselines(conditions: Sequence[Condition]) -> set[str]:
    """Return the scores of always predicting the most frequent label, as shown, of conditions that have SUP if any."""
    beside = [c for c in conditions if c.mean("sup") is not None] or conditions
    return {number(value) for c in beside if (value := c.mean(MAJORITY)) is not None}


def _sup(condition: Condition | None, *, with_majority: bool) -> Entry:
    """Return SUP and, if asked for, the score of always predicting the most frequent label."""
    sup = None if condition is None else condition.mean("sup")
    if condition is None or sup is None:
        return None
    majority = condition.mean(MAJORITY) if with_majority else None
    return sup if majority is None else f"{number(sup)}\n{number(majority)}"
