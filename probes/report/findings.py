"""The pages of the findings: an overview, and one page for each paper.

FOLDER/studies/        the archived studies (archive.py)
FOLDER/overview.yaml   the text of the first page (findings_overview.py)
FOLDER/readings.yaml   the readings of papers, and of studies without a paper (findings_paper.py)
FOLDER/figures/        the figures of all pages. An SVG file that no page shows is deleted

PAGE.md is the overview, PAGE-PAPER.md the page of a paper, and PAGE-own.md the page of the studies that belong to no
paper. Equal results give equal bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from probes.figures.drawing import standalone_svg
from probes.report.archive import read_archive
from probes.report.findings_data import Archived, about, by_paper, papers_of
from probes.report.findings_figures import Gallery
from probes.report.findings_overview import OVERVIEW, Overview, overview_sections
from probes.report.findings_paper import Reading, paper_sections, study_sections
from probes.report.page import Block, Bullets, Paragraph, Section, figures_in, markdown_page
from synthlang.catalogue import load_yaml
from synthlang.config import parse
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file
from synthlang.wording import plural

STUDIES, FIGURES, READINGS = "studies", "figures", "readings.yaml"
TITLE, OWN_TITLE, OWN = "Findings", "Studies of our own", "own"
MADE_BY = (
    "This page is written by the command synthlang findings from the archived studies and the texts beside them; "
    "change overview.yaml or readings.yaml, not the page."
)


@dataclass(frozen=True)
class Findings:
    """The files that were written, and the archived studies.

    Attributes:
        page: The first page.
        pages: All pages.
        figures: The files of the figures.
        studies: Names of all archived studies, including unfinished studies, whose results no page shows.
    """

    page: Path
    pages: Sequence[Path]
    figures: Sequence[Path]
    studies: Sequence[str]


def page_of(page: Path, paper: str) -> Path:
    """Return the file of the page of a paper: ``findings-emerging.md`` beside ``findings.md``."""
    return page.with_name(f"{page.stem}-{paper}{page.suffix}")


def check_page(page: Path, papers: Sequence[str] = ()) -> None:
    """Check that no page would replace a folder or a file that was written by hand.

    Args:
        page: The file of the first page.
        papers: The papers whose pages are checked too.

    Raises:
        InputError: A page would replace such a file or folder.
    """
    for path in (page, *(page_of(page, paper) for paper in papers)):
        hint = "move it away, or name another page (--out)"
        if path.is_dir():
            raise InputError("is a folder, not a file", path, hint=hint, code="exists")
        if path.exists() and MADE_BY not in path.read_text(encoding="utf-8", errors="replace"):
            reason = "was not written by synthlang findings, which would replace it"
            raise InputError(reason, path, hint=hint, code="exists")


def write_findings(folder: Path, page: Path) -> Findings:
    """Write all pages of the studies that are archived in ``folder``, and their figures.

    The pages show finished studies. SVG files in ``folder``/figures that no page shows are deleted.

    Args:
        folder: The folder with the archived studies, the texts and the figures.
        page: The file of the first page, beside which the other pages are written.

    Raises:
        InputError: No study is archived, or an archived study, its claims or its thresholds cannot be read. The error
            is also raised if a text cannot be read, belongs to no archived study or paper, or names a figure that does
            not exist, or if ``check_page`` refuses a page.
        DiskError: A file cannot be written.
    """
    archived = read_archive(folder / STUDIES)
    if not archived:
        hint = "name the folder of an archive, or make one: synthlang findings FOLDER --archive STUDY"
        raise InputError(f"has no folder {STUDIES!r} with an archived study", folder, hint=hint, code="empty")
    finished = {name: study for name, study in archived.items() if not study.waiting}
    check_page(page, [*by_paper(finished), OWN])
    pages = list(_pages(Gallery(finished), archived, page, folder))
    drawn = {figure.name: figure for _, _, parts in pages for part in parts for figure in figures_in(part.blocks)}
    place = folder / FIGURES
    for path in set(place.glob("*.svg")) - {place / f"{name}.svg" for name in drawn}:
        path.unlink()
    for name, figure in drawn.items():
        _write(place / f"{name}.svg", standalone_svg(figure))
    where = Path(os.path.relpath(place, page.parent)).as_posix()
    for path, title, parts in pages:
        _write(path, markdown_page(title, MADE_BY, parts, where))
    return Findings(page, [path for path, *_ in pages], [place / f"{name}.svg" for name in drawn], list(archived))


def _pages(
    gallery: Gallery, archived: Archived, page: Path, folder: Path
) -> Iterator[tuple[Path, str, Sequence[Section]]]:
    """Yield the file, title and sections of each page, the overview first."""
    text = folder / OVERVIEW
    overview = parse(Overview, load_yaml(text), text) if text.exists() else Overview()
    readings = _readings(folder / READINGS, archived)
    own = [name for name, study in gallery.archived.items() if not papers_of(study)]
    names = {paper: page_of(page, paper).name for paper in gallery.compared}
    names |= {"": page_of(page, OWN).name} if own else {}
    try:
        sections = overview_sections(overview, gallery, names)
    except InputError as error:
        raise error.inside(path=text) from error
    notes = dict.fromkeys(note for of in gallery.compared.values() for note in of.notes)
    sections += [Section("Notes", [Paragraph(note, "note") for note in notes])] if notes else []
    yield page, TITLE, sections + _not_finished(archived)
    try:
        for paper in gallery.compared:
            sections = paper_sections(paper, gallery, readings.get(paper, Reading()))
            yield page_of(page, paper), about(paper, gallery.archived).title, sections
        if own:
            yield page_of(page, OWN), OWN_TITLE, list(study_sections(own, gallery, readings))
    except InputError as error:
        raise error.inside(path=folder / READINGS) from error


def _write(path: Path, text: str) -> None:
    with atomic_file(path, "w") as handle:
        handle.write(text)


def _readings(path: Path, archived: Archived) -> Mapping[str, Reading]:
    """Return the readings by paper or study, or {} without the file."""
    if not path.exists():
        return {}
    found = dict[str, Reading]()
    names = [*by_paper(archived), *(name for name, study in archived.items() if not papers_of(study))]
    for name, value in load_yaml(path).items():
        try:
            found[name] = parse(Reading, value, path)
        except InputError as error:
            raise error.inside(name) from error
        if name not in names:
            hint = f"{did_you_mean(name, names)}choose one of {', '.join(names)}"
            reason = "is neither an archived paper nor an archived study without a paper"
            raise InputError(reason, path, keys=[name], hint=hint, code="unknown")
    return found


def _not_finished(archived: Archived) -> list[Section]:
    """Return a section that lists the studies with cells not run yet, if there are any."""
    told = [
        f"{name}: {study.waiting:,} of {plural(len(study.cells), 'cell')} not run yet."
        for name, study in archived.items()
        if study.waiting
    ]
    blocks: list[Block] = [
        Paragraph("These studies are judged and shown when all of their cells are run."),
        Bullets(told),
    ]
    return [Section("Not finished", blocks)] if told else []
