"""Sections on measures of probes: curves over layers or steps, words without context, and a table of other measures."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import chain
from typing import Literal

import pandas as pd

from probes.figures.bars import Bar, retrieval_bars
from probes.figures.drawing import COLOURS, Figure, slug
from probes.report.data import WITHOUT_CONTEXT, titled
from probes.report.figures import Lines, curves
from probes.report.numbers import Entry, where_bounds
from probes.report.page import Block, Figures, Folded, Paragraph, Section, Table
from probes.report.scores import CLIPPED, Material, conditions_of, intervals_over_models
from probes.results.measures import measure_of
from probes.statistics import Interval
from synthlang.wording import plural

Along = Literal["layer", "step"]
ROLES = ("source", "target")
"""Parts of the names of measures that name a language."""
CONDITIONS = 100
"""Largest number of conditions in the table of a measure. measures.csv has all of them."""
MOST = 6
"""Largest number of figures over layers, and over steps."""
NOTE = "Bands are 95 % intervals over pretraining seeds or adjustments of one pretraining. One model has no band."
WORDS_ROWS, BARS = 100, 24
"""Largest number of conditions of a table, and of a figure, of words without context."""
WORDS_NOTE = (
    "The bars show how often the nearest word is a translation (P@1 under CSLS, %, the mean of both directions) for "
    "words that are one subword in both languages: by embeddings before and after a rotation, and by static vectors."
)
WORDS_LINES = (
    " Lines are 95 % intervals over pretraining seeds or adjustments of one pretraining. One model has no line."
)


@dataclass(frozen=True)
class MeasureCurve:
    """A measure of a probe at several layers or steps.

    Attributes:
        probe: Name of the probe.
        measure: Name of the measure.
        at: Text with the layer of a curve over steps, which ends the title, or "".
        rows: The measurements, with the columns condition and place.
    """

    probe: str
    measure: str
    at: str
    rows: pd.DataFrame

    @cached_property
    def lines(self) -> Lines:
        """Condition → layer or step → interval over models, in ascending order of layers or steps.

        Raises:
            InputError: All values of a condition at a layer or step are NaN or infinite.
        """
        lines: dict[str, dict[float, Interval]] = {}
        for (name, place, _), interval in intervals_over_models(self.rows, ["condition", "place"]).items():
            lines.setdefault(name, {})[place] = interval
        return {name: dict(sorted(line.items())) for name, line in lines.items()}

    def figure(self, number: int, along: Along, label: str, note: str) -> Figure:
        """Draw the lines of the first conditions, one for each colour.

        Args:
            number: A number that makes the file name unique.
            along: ``layer`` or ``step``.
            label: Label of the horizontal axis.
            note: Text after the title in the caption.

        Raises:
            InputError: All values of a condition at a layer or step are NaN or infinite.
        """
        title = f"{self.probe}: {_title(self.probe, self.measure)}{self.at}"
        axes = label, " ".join(self.measure.split(".")[-2:]).replace("_", " ")
        declared = measure_of(self.measure)
        log_y = declared is not None and declared.unit == "perplexity"
        return curves(f"{along}-{slug(title, number)}", title, self.lines, axes, note, NOTE, log_y=log_y)


def _title(probe: str, measure: str) -> str:
    """Return the declared title of a measure, or its path in the results of the probe."""
    declared = measure_of(measure)
    path = measure.removeprefix(f"{probe}.")
    if declared is None or not declared.title:
        return path.replace("_", " ").replace(".", ", ")
    language = next((part for part in path.split(".") if part in ROLES), "")
    return declared.title + (f", {language}" if language else "")


def by_layer(material: Material) -> Section | None:
    """Return the section on measures at several layers of the last checkpoint, or None without such a measure.

    Raises:
        InputError: All values of a condition at a layer are NaN or infinite.
    """
    return curves_section("By layer", "layer", "layer", "Layer 0 is the embeddings.", material)


def measure_curves(material: Material, along: Along, first: Iterable[str] = ()) -> list[MeasureCurve]:
    """Return a curve for each measure and position that has values at several layers or steps.

    Curves over layers use the last step that was measured. The measures of claims come first, in the order of the
    claims, then the measures ``first``, then the main measures of the probes.
    """
    table = material.study.table
    rows = table[table[along].notna()]
    if along == "layer":
        steps = rows["step"].fillna(-1)
        keys = [rows[name] for name in ("cell", "probe", "measure")]
        rows = rows[steps == steps.groupby(keys, observed=True).transform("max")].assign(at="")
    else:
        layers = rows["layer"].map(lambda layer: f", layer {layer}", na_action="ignore")
        rows = rows.assign(at=layers.astype(object).fillna(""))
    rows = rows.assign(condition=conditions_of(rows, material.layout), place=rows[along])
    found = [
        MeasureCurve(str(probe), str(measure), str(at), part)
        for (probe, measure, at), part in rows.groupby(["probe", "measure", "at"], sort=False, observed=True)
        if part["place"].nunique() > 1
    ]
    rank = {measure: place for place, measure in enumerate(dict.fromkeys((*material.claimed, *first)))}

    def order(curve: MeasureCurve) -> tuple[int, bool]:
        declared = measure_of(curve.measure)
        return rank.get(curve.measure, len(rank)), not (declared and declared.main)

    return sorted(found, key=order)


def curves_section(
    heading: str,
    along: Along,
    label: str,
    note: str,
    material: Material,
    first: Iterable[str] = (),
    summarised: Callable[[Sequence[MeasureCurve]], Table | None] | None = None,
) -> Section | None:
    """Return the section on measures at several layers or steps, or None without such a measure.

    Args:
        heading: The heading.
        along: ``layer`` or ``step``.
        label: Label of the horizontal axis.
        note: Text after the titles in captions.
        material: The study and its scores.
        first: Measures that are drawn after the measures of claims, and before all others.
        summarised: Function from the drawn curves to a table that follows the figures, or to None for no table.

    Raises:
        InputError: All values of a condition at a layer or step are NaN or infinite.
    """
    found = measure_curves(material, along, first)
    if not found:
        return None
    draws = [partial(curve.figure, number, along, label, note) for number, curve in enumerate(found, 1)]
    blocks = material.budget.draw(draws, MOST)
    drawn = found[: sum(len(block.figures) for block in blocks if isinstance(block, Figures))]
    if any(len(curve.lines) > len(COLOURS) for curve in drawn):
        blocks.append(Paragraph(f"Figures have the first {len(COLOURS)} conditions.", "note"))
    if summarised is not None and (summaries := summarised(drawn)) is not None:
        blocks.append(summaries)
    body: list[list[Entry]] = [
        [f"{curve.probe}: {curve.measure}{curve.at}", name, str(place), interval]
        for curve in drawn
        for name, points in list(curve.lines.items())[:CONDITIONS]
        for place, interval in points.items()
    ]
    if body:
        header = ["Measure", "Condition", along.capitalize(), "Value"]
        caption = f"The measures of the figures by {along}: means over the models of a condition"
        caption += f"{where_bounds(chain(*body), ', with 95 % intervals')}."
        table = Table(caption, header, body, 3, f"by-{along}", 100, 3)
        blocks.append(Folded(f"Numbers by {along}", [table]))
    return Section(heading, blocks)


def words_alone(material: Material) -> Section | None:
    """Return the section on words without context, or None if no probe measured such words.

    Each probe has a table of all conditions and, as far as the budget of figures allows, a figure of the first BARS
    conditions.

    Raises:
        InputError: All values of a measure under a condition are NaN or infinite.
    """
    found: dict[str, dict[str, dict[str, Interval]]] = {}
    for (probe, condition, measure), interval in _by_condition(material, list(WITHOUT_CONTEXT)).items():
        found.setdefault(probe, {}).setdefault(condition, {})[measure] = interval
    blocks: list[Block] = []
    for number, (probe, conditions) in enumerate(found.items(), 1):
        name, title = f"words-alone-{slug(probe, number)}", f"Words of one subword, {probe}"
        if material.budget.take():
            blocks.append(Figures([_words_figure(name, title, conditions)]))
        if len(conditions) > BARS:
            blocks.append(Paragraph(f"{plural(len(conditions) - BARS, 'further condition')} not drawn.", "note"))
        kinds = [measure for measure in WITHOUT_CONTEXT if any(measure in of for of in conditions.values())]
        body: list[list[Entry]] = [[condition, *map(of.get, kinds)] for condition, of in conditions.items()]
        header = ["condition", *(WITHOUT_CONTEXT[measure].replace(", ", "\n", 1) for measure in kinds)]
        caption = f"{title} (P@1, %): mean{where_bounds(chain(*body), ', 95 % t interval below')}. {CLIPPED}"
        blocks.append(Table(caption, header, body, 1, name, WORDS_ROWS))
    return Section("Words without context", blocks) if blocks else None


def measures_alone(material: Material) -> Section | None:
    """Return the section with a table of measures that have a title but no layer or step, or None if there are none.

    Measures of words without context are in the section of ``words_alone``.

    Raises:
        InputError: All values of a measure under a condition are NaN or infinite.
    """
    names = [name for name in titled(material.study.table) if name not in WITHOUT_CONTEXT]
    body: list[list[Entry]] = [
        [f"{probe}: {measure}", _title(probe, measure), condition, interval]
        for (probe, condition, measure), interval in _by_condition(material, names).items()
    ]
    if not body:
        return None
    caption = "Measures of probes: means over the models of a condition"
    caption += f"{where_bounds(chain(*body), ', with 95 % intervals')}."
    table = Table(caption, ["Measure", "Title", "Condition", "Value"], body, 3, "measures-alone", CONDITIONS, 3)
    return Section("Measures of probes", [table])


def _by_condition(material: Material, names: Sequence[str]) -> dict[tuple[str, str, str], Interval]:
    """Return intervals over models by (probe, condition, measure), without values at layers or steps."""
    rows = material.study.table
    rows = rows[rows["measure"].isin(names) & rows["layer"].isna() & rows["step"].isna()]
    rows = rows.assign(condition=conditions_of(rows, material.layout))
    return intervals_over_models(rows, ["probe", "condition"])


def _words_figure(name: str, title: str, conditions: Mapping[str, Mapping[str, Interval]]) -> Figure:
    bars = [
        Bar("", condition, kind, of[measure].shown)
        for condition, of in list(conditions.items())[:BARS]
        for measure, kind in WITHOUT_CONTEXT.items()
        if measure in of
    ]
    note = WORDS_NOTE + where_bounds((bar.accuracy for bar in bars), WORDS_LINES)
    return retrieval_bars(name, title, bars, note).figure()
