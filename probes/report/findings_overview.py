"""The first page of the findings: the setup, the verdicts by paper, a summary of each paper, own results, limits.

Its text stands in ``overview.yaml`` beside the archived studies. Without that file the page holds the verdicts and one
figure a paper.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import Field

from probes.claims.papers import read_paper
from probes.figures.drawing import Figure
from probes.report.findings_data import WORDS, ClaimLine
from probes.report.numbers import Entry
from probes.report.page import Block, Bullets, Figures, Links, Paragraph, Section, Table, Terms
from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, parse

OVERVIEW = "overview.yaml"
TALLY = "Verdicts by paper. A claim counts once, at the scale where most of its comparisons were run."


class Picture(StrictModel):
    """A figure of an archived study or of a paper's table."""

    figure: str = ""
    """The table of the paper, the kind of figure, or ``KIND of STUDY``. Empty: the first figure of the page."""
    number: int = Field(default=1, ge=1)
    """The place of the figure among those of its name."""
    alt: str = Field(default="", max_length=250)
    """A description of what the figure shows, at most 30 words. It is printed below the figure, too."""


class PaperSummary(Picture):
    """The summary of one paper."""

    summary: list[str] = Field(default_factory=list)
    """Three to five sentences."""


class OwnResult(Picture):
    """A result of a study that belongs to no paper."""

    title: str
    study: str
    """The name of the archived study."""
    text: str


class Overview(StrictModel):
    """The text of the first page."""

    setup: str = ""
    papers: dict[str, PaperSummary] = Field(default_factory=dict)
    results: list[OwnResult] = Field(default_factory=list)
    limits: list[str] = Field(default_factory=list)


FindFigures = Callable[[str, str], Sequence[Figure]]
"""From a paper or an archived study and a name of a figure to the figures of that name."""


def read_overview(path: Path) -> Overview:
    """Return the text of the first page, empty where there is no file.

    Raises:
        InputError: The file is not as ``Overview`` describes.
    """
    return parse(Overview, load_yaml(path), path) if path.exists() else Overview()


def overview_sections(
    text: Overview, claims: Mapping[str, Sequence[ClaimLine]], find: FindFigures, pages: Mapping[str, str]
) -> list[Section]:
    """Return the sections of the first page.

    Args:
        text: What was written by hand.
        claims: For each paper its claims, each at one scale.
        find: Draws the figures of a paper or a study.
        pages: The file of the page of each paper, and under "" the one of the studies of no paper.
    """
    parts = [Section("Setup", [Paragraph(text.setup)])] if text.setup else []
    parts += [Section("Verdicts", [_tally(claims)])] if any(claims.values()) else []
    parts += [_paper(paper, text.papers.get(paper, PaperSummary()), find, pages[paper]) for paper in claims]
    parts += _results(text.results, find, pages.get(""))
    return [*parts, *([Section("Limits", [Bullets(text.limits)])] if text.limits else [])]


def _tally(claims: Mapping[str, Sequence[ClaimLine]]) -> Table:
    everything = [line for lines in claims.values() for line in lines]
    words = [word for word in WORDS if any(line.verdict == word for line in everything)]
    of = {paper: lines for paper, lines in claims.items() if lines}
    of |= {"all": everything} if len(of) > 1 else {}
    counts = {paper: Counter(line.verdict for line in lines) for paper, lines in of.items()}
    rows: list[list[Entry]] = [
        [paper, str(count.total()), *(str(count[word]) for word in words)] for paper, count in counts.items()
    ]
    return Table(TALLY, ["Paper", "Claims", *(word.capitalize() for word in words)], rows)


def _paper(paper: str, own: PaperSummary, find: FindFigures, page: str) -> Section:
    told = read_paper(paper)
    blocks: list[Block] = [Paragraph(" ".join(own.summary))] if own.summary else []
    blocks += _picture(own, paper, find)
    return Section(told.title, [*blocks, Links([("Claims, figures and scores", page)])])


def _results(results: Sequence[OwnResult], find: FindFigures, page: str | None) -> list[Section]:
    if page is None:
        return []
    blocks: list[Block] = []
    for result in results:
        blocks += [Terms([(result.title, [result.text])]), *_picture(result, result.study, find)]
    return [Section("Results of our own", [*blocks, Links([("All studies that belong to no paper", page)])])]


def _picture(picture: Picture, whose: str, find: FindFigures) -> list[Block]:
    """Return the figure, with a short description in the place of its long one."""
    drawn = [replace(one, alt=picture.alt, caption="") if picture.alt else one for one in find(whose, picture.figure)]
    chosen = drawn[picture.number - 1 : picture.number]
    return [Figures(chosen)] if chosen else []
