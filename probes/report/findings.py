"""The pages of the findings, made from archived studies: an overview, and one page for each paper.

FOLDER/studies/        the archived studies (archive.py)
FOLDER/overview.yaml   the text of the first page (findings_overview.py)
FOLDER/readings.yaml   the readings of papers, and of studies that belong to none (findings_paper.py)
FOLDER/figures/        the figures of all pages; every SVG file there belongs to the pages

PAGE.md is the overview, PAGE-PAPER.md the page of a paper, PAGE-own.md that of the studies of no paper. Equal results
give the same pages, byte for byte.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.claims.papers import read_paper
from probes.figures.drawing import Figure, standalone_svg
from probes.report.archive import ArchivedStudy, read_archive
from probes.report.findings_data import Taken, papers_of, taken
from probes.report.findings_overview import OVERVIEW, Overview, overview_sections, read_overview
from probes.report.findings_paper import (
    Reading,
    by_claim,
    figures_named,
    figures_of_paper,
    most_asked,
    paper_sections,
    study_sections,
)
from probes.report.numbers import plural
from probes.report.page import Block, Bullets, Figures, Paragraph, Section, markdown_page
from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file

STUDIES, FIGURES, READINGS = "studies", "figures", "readings.yaml"
TITLE, OWN_TITLE, OWN = "Findings", "Studies of our own", "own"
MADE_BY = (
    "This page is written by the command synthlang findings from the archived studies and the texts beside them; "
    "change overview.yaml or readings.yaml, not the page."
)


class _Readings(StrictModel):
    readings: dict[str, Reading]


@dataclass(frozen=True)
class Findings:
    """The files that were written, and the archived studies that they show."""

    page: Path
    pages: Sequence[Path]
    figures: Sequence[Path]
    studies: Sequence[str]


@dataclass(frozen=True)
class _Material:
    """Everything that the pages are made of: the finished studies, what claims find in them, and the texts."""

    archived: Sequence[ArchivedStudy]
    found: Taken
    readings: Mapping[str, Reading]
    overview: Overview

    @property
    def papers(self) -> list[str]:
        return _papers(self.archived)

    @property
    def own(self) -> list[ArchivedStudy]:
        """The studies that belong to no paper."""
        return [one for one in self.archived if not papers_of(one.study)]

    def of(self, paper: str) -> list[ArchivedStudy]:
        return [one for one in self.archived if paper in papers_of(one.study)]

    def figures(self, whose: str, name: str) -> Sequence[Figure]:
        """Return the figures of a paper or a study by their name."""
        names = [name] if name else []
        if whose in self.papers:
            return figures_of_paper(whose, self.of(whose), self.found, names)
        return figures_named(whose, [one for one in self.archived if one.name == whose], names)


def _papers(archived: Sequence[ArchivedStudy]) -> list[str]:
    """Return the papers that the studies name."""
    return sorted({paper for one in archived for paper in papers_of(one.study)})


def page_of(page: Path, paper: str) -> Path:
    """Return the file of the page of a paper: ``findings-emerging.md`` beside ``findings.md``."""
    return page.with_name(f"{page.stem}-{paper}{page.suffix}")


def check_page(page: Path, papers: Sequence[str] = ()) -> None:
    """Refuse pages that would replace a folder, or a file that was written by hand.

    Raises:
        InputError: One of the files is in the way.
    """
    for path in (page, *(page_of(page, paper) for paper in papers)):
        if path.is_dir():
            raise InputError("is a folder", path, hint="name a file for the page", code="exists")
        if path.exists() and MADE_BY not in path.read_text(encoding="utf-8", errors="replace"):
            hint = "move it away or name another file (--out)"
            raise InputError("was not written by synthlang findings", path, hint=hint, code="exists")


def write_findings(folder: Path, page: Path) -> Findings:
    """Write all pages of the studies that are archived in ``folder``, and their figures.

    Raises:
        InputError: No study is archived, one is damaged, a text cannot be read or is of nothing that is archived, or
            ``check_page`` refuses a page.
    """
    kept = read_archive(folder / STUDIES)
    if not kept:
        hint = "archive a finished one with synthlang findings FOLDER --archive STUDY"
        raise InputError("no study is archived here", folder, hint=hint, code="empty")
    finished = [one for one in kept if not one.study.waiting]
    check_page(page, [*_papers(finished), OWN])
    material = _Material(
        finished,
        taken([one.study for one in finished]),
        _readings(folder / READINGS, kept),
        read_overview(folder / OVERVIEW),
    )
    titled = {path: (title, parts) for path, title, parts in _pages(material, kept, page, folder)}
    drawn = {figure.name: figure for _, parts in titled.values() for figure in _figures_in(parts)}
    place = folder / FIGURES
    for path in set(place.glob("*.svg")) - {place / f"{name}.svg" for name in drawn}:
        path.unlink()
    for name, figure in drawn.items():
        _write(place / f"{name}.svg", standalone_svg(figure))
    where = Path(os.path.relpath(place, page.parent)).as_posix()
    for path, (title, parts) in titled.items():
        _write(path, markdown_page(title, MADE_BY, parts, where))
    return Findings(page, list(titled), [place / f"{name}.svg" for name in drawn], [one.name for one in kept])


def _pages(
    material: _Material, kept: Sequence[ArchivedStudy], page: Path, folder: Path
) -> Iterator[tuple[Path, str, list[Section]]]:
    """File, title and sections of each page, the overview first."""
    names = {paper: page_of(page, paper).name for paper in material.papers}
    names |= {"": page_of(page, OWN).name} if material.own else {}
    run = [line for line in material.found.claims if line.was_run]
    claims = {
        paper: [most_asked(of) for of in by_claim([line for line in run if line.paper == paper]).values()]
        for paper in material.papers
    }
    with_notes = [Section("Notes", [Paragraph(note, "note") for note in material.found.notes])]
    try:
        overview = overview_sections(material.overview, claims, material.figures, names)
    except InputError as error:
        raise error.inside(path=folder / OVERVIEW) from error
    overview += (with_notes if material.found.notes else []) + _not_finished(kept)
    yield page, TITLE, overview
    try:
        for paper in material.papers:
            reading = material.readings.get(paper, Reading())
            sections = paper_sections(paper, material.of(paper), material.found, reading)
            yield page_of(page, paper), read_paper(paper).title, sections
        if material.own:
            yield page_of(page, OWN), OWN_TITLE, study_sections(material.own, material.readings)
    except InputError as error:
        raise error.inside(path=folder / READINGS) from error


def _figures_in(parts: Sequence[Section]) -> Iterator[Figure]:
    for part in parts:
        for block in part.blocks:
            yield from block.figures if isinstance(block, Figures) else ()


def _write(path: Path, text: str) -> None:
    with atomic_file(path, "w") as handle:
        handle.write(text)


def _readings(path: Path, kept: Sequence[ArchivedStudy]) -> Mapping[str, Reading]:
    """Paper or study → its reading; nothing without the file."""
    if not path.exists():
        return {}
    found = parse(_Readings, {"readings": load_yaml(path)}, path).readings
    names = [*_papers(kept), *(one.name for one in kept if not papers_of(one.study))]
    for name in found:
        if name not in names:
            hint = f"{did_you_mean(name, names)}readings are of: {', '.join(names)}"
            raise InputError("is neither a paper nor a study of none", path, keys=[name], hint=hint, code="unknown")
    return found


def _not_finished(kept: Sequence[ArchivedStudy]) -> list[Section]:
    """List the studies with cells that were not run yet. There is no section without such a study."""
    left = [(one.name, one.study.waiting, len(one.study.cells)) for one in kept if one.study.waiting]
    told = [f"{name}: {waiting:,} of {plural(cells, 'cell')} not run yet." for name, waiting, cells in left]
    blocks: list[Block] = [
        Paragraph("These studies are judged and shown when all of their cells are run."),
        Bullets(told),
    ]
    return [Section("Not finished", blocks)] if left else []
