"""The first page of the findings: setup, verdicts by paper, a summary of each paper, own results and limits.

Its text is in ``overview.yaml`` beside the archived studies. Without this file, the page has only the verdicts and one
figure for each paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import Field

from probes.claims.planned import STATUSES
from probes.claims.verdicts import WORDS, Word
from probes.report.findings_data import about
from probes.report.findings_figures import Gallery
from probes.report.judged import PoolVerdict
from probes.report.numbers import Entry
from probes.report.page import Block, Bullets, Figures, Links, Paragraph, Section, Table, Terms
from synthlang.config import StrictModel

OVERVIEW = "overview.yaml"
TALLY = (
    "A confirmed verdict rests on a number of models that was planned before the study ran. A claim counts once, with "
    "its confirmed verdict or at the scale with most comparisons."
)


class Picture(StrictModel):
    """A figure of an archived study or of a paper's table."""

    figure: str = ""
    """The table of the paper, the kind of figure, or ``KIND of STUDY`` (default: as in ``Gallery.figures``)."""
    number: int = Field(default=1, ge=1)
    """The number of the figure among the figures with this name."""
    alt: str = Field(default="", max_length=250)
    """A description of the figure in at most 250 characters, which replaces its caption and alternative text."""


class PaperSummary(Picture):
    """The summary of a paper on the first page, with its figure."""

    summary: list[str] = Field(default_factory=list)
    """The sentences of the summary, preferably three to five."""


class OwnResult(Picture):
    """A result of a study that belongs to no paper, with its figure."""

    title: str
    """The title of the result."""
    study: str
    """The name of the archived study."""
    text: str
    """The text on the result."""


class Overview(StrictModel):
    """The text of the first page.

    Attributes:
        setup: The text of the section on the setup.
        papers: Paper → its summary.
        results: Results of studies that belong to no paper.
        limits: The items of the section on limits.
    """

    setup: str = ""
    papers: dict[str, PaperSummary] = Field(default_factory=dict)
    results: list[OwnResult] = Field(default_factory=list)
    limits: list[str] = Field(default_factory=list)


def overview_sections(text: Overview, gallery: Gallery, pages: Mapping[str, str]) -> list[Section]:
    """Return the sections of the first page.

    Args:
        text: The text of the page, which was written by hand.
        gallery: The figures and verdicts.
        pages: The page of each paper. The key "" has the page of studies that belong to no paper.

    Raises:
        InputError: The text names a figure that does not exist, or a paper or the claims of a study cannot be read.
    """
    verdicts = {paper: [claim.main for claim in of.claims if claim.was_run] for paper, of in gallery.compared.items()}
    parts = [Section("Setup", [Paragraph(text.setup)])] if text.setup else []
    parts += [Section("Verdicts", [_tally(verdicts)])] if any(verdicts.values()) else []
    parts += [_paper(paper, text.papers.get(paper, PaperSummary()), gallery, pages[paper]) for paper in verdicts]
    parts += [_results(text.results, gallery, pages.get(""))] if text.results or "" in pages else []
    return [*parts, *([Section("Limits", [Bullets(text.limits)])] if text.limits else [])]


def _tally(verdicts: Mapping[str, Sequence[PoolVerdict]]) -> Table:
    counts = {
        (paper, status): Counter(one.verdict for one in of if one.status == status)
        for status in STATUSES
        for paper, of in verdicts.items()
    }
    for status in STATUSES if sum(map(bool, verdicts.values())) > 1 else ():
        counts["all", status] = sum((counts[paper, status] for paper in verdicts), Counter[Word]())
    every = sum(counts.values(), Counter[Word]())
    words = [word for word in WORDS if every[word]]
    rows: list[list[Entry]] = [
        [status.capitalize(), paper, str(count.total()), *(str(count[word]) for word in words)]
        for (paper, status), count in sorted(counts.items(), key=lambda one: STATUSES.index(one[0][1]))
        if count
    ]
    return Table(TALLY, ["Status", "Paper", "Claims", *(word.capitalize() for word in words)], rows, 2)


def _paper(paper: str, own: PaperSummary, gallery: Gallery, page: str) -> Section:
    blocks: list[Block] = [Paragraph(" ".join(own.summary))] if own.summary else []
    blocks += _picture(own, paper, gallery, "papers", paper)
    return Section(about(paper, gallery.archived).title, [*blocks, Links([("Claims, figures and scores", page)])])


def _results(results: Sequence[OwnResult], gallery: Gallery, page: str | None) -> Section:
    blocks: list[Block] = []
    for number, result in enumerate(results):
        figures = _picture(result, result.study, gallery, "results", str(number))
        blocks += [Terms([(result.title, [result.text])]), *figures]
    links = [Links([("All studies that belong to no paper", page)])] if page else []
    return Section("Results of our own", [*blocks, *links])


def _picture(picture: Picture, whose: str, gallery: Gallery, *keys: str) -> list[Block]:
    """Return the block with the figure of ``picture``, or no block if there are fewer figures than its number.

    A description of the picture replaces the alternative text and the caption. ``keys`` lead to the picture in the text
    of the page.
    """
    drawn = gallery.figures(whose, [picture.figure] if picture.figure else [], (*keys, "figure"))
    chosen = drawn[picture.number - 1 : picture.number]
    shown = [replace(one, alt=picture.alt, caption="") if picture.alt else one for one in chosen]
    return [Figures(shown)] if shown else []
