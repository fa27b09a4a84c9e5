"""Figures of the findings: numbers printed in the papers beside our numbers, and figures of single studies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache

from probes.claims.papers import PaperTable, read_claims
from probes.claims.spec import OF_PROBE, probe_measures
from probes.figures.drawing import Figure, colours, slug
from probes.figures.printed import Bar, bars_beside
from probes.report.against import alignment, movements
from probes.report.data import WITHOUT_CONTEXT, Study
from probes.report.dose import dose_responses
from probes.report.figures import FigureBudget
from probes.report.findings_data import Archived, by_paper, compared_papers, papers_of, read_named
from probes.report.join import pools
from probes.report.judged import JudgedNumber
from probes.report.layers import by_layer, measure_curves, over_training, thresholds_of, words_alone
from probes.report.maps import maps
from probes.report.numbers import number
from probes.report.page import Figures, Section, figures_in
from probes.report.scores import Material, grouped, scores_of
from probes.report.training import pretrained
from probes.results.labels import layout_of
from probes.results.scores import PERPLEXITY
from probes.statistics import Interval
from synthlang.errors import InputError, did_you_mean
from synthlang.wording import enumerated

PREFERRED = ("delta", "zs")
"""Measures of a table to draw. The first one that the table has is drawn, or all measures if it has none of them."""
PANELS = 4
"""Largest number of panels of a figure."""
CURVES = 2
"""Largest number of figures of a study. Maps and scatters have separate limits."""
SCATTERS = 3
"""Largest number of scatters, one for each task."""
MAPS = 4
"""Largest number of maps. There is a map for each measure and each combination of labels of the other axes."""
UNKNOWN = "The perplexity of the source language is not known."
Numbers = Sequence[tuple[JudgedNumber, Interval]]
"""Printed numbers, each with our number and its interval."""


class Gallery:
    """The figures of archived studies and of their papers, each drawn once.

    Attributes:
        archived: The studies.
        compared: Paper → the verdicts on its claims and tables.

    Raises:
        InputError: A name of claims or of a paper is not in the catalogue, or a file is missing or not YAML.
    """

    def __init__(self, archived: Archived) -> None:
        self.archived, self.compared = archived, compared_papers(archived)
        self._of_table = cache(self._draw_table)
        self._of_study = cache(lambda name, kind: figures_of_study(name, archived[name], kind))

    def figures(self, whose: str, names: Sequence[str] = (), keys: Sequence[str] = ()) -> list[Figure]:
        """Return the figures of a paper, or of a study that belongs to no paper.

        Args:
            whose: The paper or the study.
            names: Tables of the paper, kinds of figures, or ``KIND of STUDY``. Without names, the table for which we
                have the most numbers is drawn. If there is no such table, the first figures of the studies are drawn.
            keys: The keys that lead to the names in the text of a page, for errors.

        Raises:
            InputError: There is no figure with such a name, or the claims of a study cannot be read.
        """
        studies = [name for name, study in self.archived.items() if whose in (name, *papers_of(study))]
        counts = Counter[str]()
        for table, lines in self.compared[whose].tables if whose in self.compared else ():
            counts[table.name] += sum(one.ours is not None for line in lines for one in line.judged)
        known = [name for name, count in counts.most_common() if count]
        figures: list[Figure] = []
        for name in names or known[:1]:
            if name in known:
                figures += self._of_table(whose, name, len(figures) + 1)
            else:
                figures += self._named(whose, studies, name, [*known, *KINDS], keys)
        return figures or [figure for study in studies for figure in self._of_study(study, None)]

    def _named(
        self, whose: str, studies: Sequence[str], name: str, known: Sequence[str], keys: Sequence[str]
    ) -> list[Figure]:
        kind, _, wanted = name.partition(" of ")
        of = [study for study in studies if not wanted or study == wanted]
        found = [figure for study in of if kind in KINDS for figure in self._of_study(study, kind)]
        if not found:
            if not studies:
                reason = f"there is no figure {name!r}, because no finished study is called {whose!r}"
                hint = f"{did_you_mean(whose, self.archived)}correct the name of the study"
                raise InputError(reason, keys=keys, hint=hint, code="unknown")
            others = ", ".join(one for one in known if one != kind)
            hint = f"choose one of {others}, or a kind of figure of one study, such as 'delta of {studies[0]}'"
            what = "are no data for the" if kind in KINDS and of else "is no"
            raise InputError(f"there {what} figure {name!r}", keys=keys, hint=hint, code="unknown")
        return found

    def _draw_table(self, paper: str, name: str, place: int) -> list[Figure]:
        """Draw a table of a paper for each pool. The figures are numbered from ``place``."""
        studies = pools(list(by_paper(self.archived)[paper].values()))
        drawn: list[tuple[PaperTable, str, Numbers]] = []
        for table, lines in self.compared[paper].tables:
            for i, first in enumerate(lines[0].judged if table.name == name and lines else ()):
                known = [(line, ours) for line in lines if (ours := line.judged[i].ours) is not None]
                if len(known) > 1:  # a single number compares nothing
                    drawn.append((table, first.pool, _chosen(known)))
        bars = [_bars(numbers, table.name) for table, _, numbers in drawn]
        palette = colours([bar.name for of in bars for bar in of])  # a name has one colour in all figures
        figures = []
        for count, (of, (table, pool, numbers)) in enumerate(zip(bars, drawn, strict=True), place):
            note = (f"Our numbers are for the scale {pool}. " if pool else "") + learned(studies[pool])
            file, title = slug(f"{paper} {name} {pool}", count), f"{paper}, {name}: {table.title}"
            one_scale = len({line.cell.quantity.measure for line, _ in numbers}) == 1
            figures.append(bars_beside(file, title, of, note, most=PANELS, palette=palette, one_scale=one_scale))
        return figures


def _chosen(numbers: Numbers) -> Numbers:
    """Return the numbers of the preferred measure that belong to the first PANELS panels."""
    measures = {line.cell.quantity.measure for line, _ in numbers}
    measure = next((name for name in PREFERRED if name in measures), None)
    chosen = [one for one in numbers if measure in (None, one[0].cell.quantity.measure)]
    panels = list(dict.fromkeys(line.score for line, _ in chosen))[:PANELS]
    return [one for one in chosen if one[0].score in panels]


def _bars(numbers: Numbers, table: str) -> list[Bar]:
    labels = [line.labels | dict.fromkeys(line.cell.quantity.average, "mean") for line, _ in numbers]
    layout = layout_of(list(dict.fromkeys(axis for of in labels for axis in of)), labels, table)
    called = panel_names(line.score for line, _ in numbers)
    return [
        Bar(called[line.score], layout.group(of), layout.name(of), ours, line.cell.value)
        for (line, ours), of in zip(numbers, labels, strict=True)
    ]


def panel_names(panels: Iterable[str]) -> dict[str, str]:
    """Return the short name of each panel. A measure of a probe is named by the parts in which the paths differ.

    >>> panel_names(["nli Δ", "probe:retrieval.context.mean", "probe:retrieval.types.mean"])
    {'nli Δ': 'nli Δ', 'probe:retrieval.context.mean': 'context', 'probe:retrieval.types.mean': 'types'}
    """
    names = {panel: panel for panel in panels}
    paths = {panel: panel.removeprefix(OF_PROBE).split(".") for panel in names if panel.startswith(OF_PROBE)}
    for panel, path in paths.items():
        own = [part for part in path if any(part not in other for other in paths.values())] or path
        names[panel] = ", ".join(own).replace("_", " ")
    return names


def figures_of_study(name: str, study: Study, kind: str | None = None) -> list[Figure]:
    """Draw the first figures of a kind, or of the first kind that the study has data for.

    Args:
        name: The name of the study, which precedes the names of the figures.
        study: The study.
        kind: A key of KINDS, which also limits the number of figures (default: the first kind with data).

    Returns:
        The figures. The list is empty without data.

    Raises:
        InputError: The claims of the study cannot be read.
    """
    material = scores_of(study, _claimed(study), FigureBudget(0))
    for draw, most in [KINDS[kind]] if kind else KINDS.values():
        section = draw(material)
        if figures := figures_in(section.blocks if section else ())[:most]:
            told = learned([study])
            return [replace(one, name=f"{name}-{one.name}", caption=f"{one.caption} {told}") for one in figures]
    return []


def _claimed(study: Study) -> list[str]:
    claims = (claim for claims in read_named(study, "claims", read_claims) for claim in claims)
    return probe_measures(quantity for claim in claims for quantity in claim.quantities())


def _deltas(material: Material) -> Section | None:
    bars = list[Bar]()
    for c in material.conditions:
        if c.delta is not None:
            names = material.layout.group(c.labels), material.layout.name(c.labels)
            bars.append(Bar(f"{c.task} Δ", *names, c.delta, values=c.values("delta")))
    if not bars:
        return None
    return Section(
        "Δ", [Figures([bars_beside("delta", material.study.title, bars, "Δ, lower is better.", most=PANELS)])]
    )


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

- ``dose``: curves over an axis of numbers
- ``maps``: maps over two axes of numbers
- ``steps``: curves over the steps of pretraining
- ``delta``: bars of Δ
- ``alignment``: Δ against the alignment
- ``moved``: Δ against the movement in fine-tuning
- ``layers``: curves over layers
- ``words``: bars of words without context
"""


def measures_drawn(study: Study) -> list[str]:
    """Return the measures that the figures of a study show: curves over layers or steps, and words without context.

    Raises:
        InputError: The claims of the study cannot be read.
    """
    material, found = scores_of(study, _claimed(study)), [*WITHOUT_CONTEXT]
    for curves in (measure_curves(material, "step", thresholds_of(study)), measure_curves(material, "layer")):
        found += [curve.measure for curve in curves[:CURVES]]
    return found


def learned(studies: Sequence[Study]) -> str:
    """Return sentences on how well models learned: the ranges of mean perplexity and of mean SUP of each task."""
    conditions = [c for study in studies for c in scores_of(study).every]
    perplexities = [one.perplexities.get("parent") for study in studies for one in pretrained(study)]
    if not any(perplexities):
        perplexities = [c.interval(PERPLEXITY) for c in conditions]
    known = [interval.mean for interval in perplexities if interval is not None]
    told = [f"{_range(known)} for the perplexity of the source language"] if known else []
    for task, of in grouped(conditions, lambda c: c.task).items():
        values = [value for c in of if (value := c.mean("sup")) is not None]
        told += [f"{_range(values)} for SUP of {task}"] if values else []
    means = [f"The means of the conditions are {enumerated(told)}."] if told else []
    return " ".join([*means, *([] if known else [UNKNOWN])])


def _range(values: Sequence[float]) -> str:
    return " to ".join(dict.fromkeys(number(end) for end in (min(values), max(values))))
