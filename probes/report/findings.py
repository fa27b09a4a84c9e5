"""The page of what came out: all claims in one table, then each paper with a reading and figures, from kept studies.

PAGE.md is short enough to be read; PAGE-numbers.md beside it has details, the scores of every study and the claims in
full.

FOLDER/studies/       the studies that are kept (kept.py)
FOLDER/readings.yaml  what was written by hand: for a paper, or a study that is of none, at most LINES short lines, the
                      details for the other page, and which figures are drawn
FOLDER/figures/       what is drawn; all SVG files of it are the page's own

Equal results give the same page, byte for byte.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field

from probes.claims.estimates import Outcome
from probes.claims.papers import read_paper
from probes.figures.drawing import Figure, shorten, standalone_svg
from probes.report.findings_data import ONE_MODEL, ClaimLine, Taken, papers_of, taken
from probes.report.findings_study import KINDS, figures_of_study, figures_of_tables, scores_table
from probes.report.kept import KeptStudy, read_kept
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Bullets, Figures, Paragraph, Section, Table, markdown_page
from probes.report.pools import pools
from probes.report.scores import grouped
from synthlang.catalogue import load_yaml
from synthlang.config import StrictModel, parse
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file

STUDIES, FIGURES, READINGS = "studies", "figures", "readings.yaml"
LINES, LENGTH = 10, 320
"""Most lines of a reading, and most characters of one."""
TITLE, NUMBERS_TITLE = "Findings", "Findings in detail"
NUMBERS = "Details, the scores of every study, and the claims at every scale and in full"
NUMBERS_OF = "Claims, figures and readings"
"""What is said of the other page."""
MADE_BY = (
    "Written by synthlang findings from the results that are kept beside it; a reading is changed in readings.yaml."
)
OPEN = "too small to tell"
WORDS = ("agrees", "mostly agrees", "differs", OPEN)
"""Verdicts, in the order that they are counted in."""
OUTCOMES: dict[str, Outcome] = {"hold": "holds", "are against": "fails", "are too small to tell": "open"}
"""What is said of comparisons, in the same order."""
FEW_OR_MANY = (20, 100)
"""Models that are told of claims that are open."""
SHORT = 110
"""Most characters of a paper's numbers in the first table."""
TALLY = "How many claims of each paper have which verdict in the next table."
CAPTION = (
    "Each claim at the scale where most of its comparisons were run; of several, the one with most models. Compared: "
    "the comparison (or correlation) that decides the verdict, and in brackets what the claim requires of it. Ours: "
    "its mean and interval (95 %; 90 % where a match or no loss is claimed), in points except for correlations, CKA, "
    "AUC and distances. Over: what the interval is over, and the scale. Verdict: in brackets those of other scales "
    "that decide the claim differently; one model: it is over seeds of one pretraining, and says nothing about "
    "another. Held: how many of the comparisons that were run hold, and for an open claim how many models would "
    "decide it (power 80 %, means and spreads as they are). A claim is decided when it agrees, mostly agrees or "
    "differs. Where models were added because a claim was open, the reading of the paper says so; such a verdict is "
    "slightly too easy. docs/claims.md says how claims are judged."
)
EVERY_SCALE = "The table of claims on the other page, with a line for each scale at which a claim was tested."
HEADER = ["Claim", "Paper", "Compared", "Ours", "Over", "Verdict", "Held"]
FULL = "The claims in full, with the papers' numbers and how many comparisons of each hold."


class Reading(StrictModel):
    """What a person reads in the results of a paper or a study; ``details`` go to the other page. ``figures``: tables
    of the paper that are drawn, and kinds of figures of all its studies or, as ``layers of STUDY``, of one."""

    lines: list[Annotated[str, Field(max_length=LENGTH)]] = Field(default_factory=list, max_length=LINES)
    details: list[str] = Field(default_factory=list)
    figures: list[str] = Field(default_factory=list)


class _Readings(StrictModel):
    readings: dict[str, Reading]


@dataclass(frozen=True)
class Findings:
    """What was written, and of what."""

    page: Path
    numbers: Path
    figures: Sequence[Path]
    studies: Sequence[str]


def numbers_beside(page: Path) -> Path:
    """Where the numbers of a page are: ``findings-numbers.md`` beside ``findings.md``."""
    return page.with_name(f"{page.stem}-numbers{page.suffix}")


def check_page(page: Path) -> None:
    """InputError where the page or its numbers would replace a folder, or a file that was written by hand."""
    for path in (page, numbers_beside(page)):
        if path.is_dir():
            raise InputError("is a folder; name a file for the page", path)
        if path.exists() and MADE_BY not in path.read_text(encoding="utf-8", errors="replace"):
            raise InputError("was not written by synthlang findings; move it away or name another file (--out)", path)


def write_findings(folder: Path, page: Path) -> Findings:
    """Write the page of the studies that are kept in ``folder``, its numbers and its figures.

    InputError where none is kept, one is damaged, a reading cannot be read or is of nothing that is kept, and as
    ``check_page`` says.
    """
    check_page(page)
    kept = read_kept(folder / STUDIES)
    if not kept:
        raise InputError(
            "no study is kept here yet: synthlang findings FOLDER --keep STUDY keeps a finished one", folder
        )
    readings = _readings(folder / READINGS, kept)
    finished = [one for one in kept if not one.study.waiting]
    found = taken([one.study for one in finished])
    parts = sections(finished, found, readings) + _not_finished(kept)
    figures = {
        f.name: f for part in parts for block in part.blocks if isinstance(block, Figures) for f in block.figures
    }
    place, numbers = folder / FIGURES, numbers_beside(page)
    for path in set(place.glob("*.svg")) - {place / f"{name}.svg" for name in figures}:
        path.unlink()
    for name, figure in figures.items():
        _write(place / f"{name}.svg", standalone_svg(figure))
    where = Path(os.path.relpath(place, page.parent)).as_posix()
    _write(page, markdown_page(TITLE, MADE_BY, parts, where, (NUMBERS, numbers.name)))
    in_numbers = number_sections(finished, found, readings)
    _write(numbers, markdown_page(NUMBERS_TITLE, MADE_BY, in_numbers, other=(NUMBERS_OF, page.name)))
    return Findings(page, numbers, [place / f"{name}.svg" for name in figures], [one.name for one in kept])


def _write(path: Path, text: str) -> None:
    with atomic_file(path, "w") as handle:
        handle.write(text)


def _readings(path: Path, kept: Sequence[KeptStudy]) -> Mapping[str, Reading]:
    """Paper or study → reading; none without the file."""
    if not path.exists():
        return {}
    found = parse(_Readings, {"readings": load_yaml(path)}, path).readings
    names = [*_papers(kept), *(one.name for one in _of_no_paper(kept))]
    for name in found:
        if name not in names:
            raise InputError(f"{name}: {did_you_mean(name, names)}there are readings of: {', '.join(names)}", path)
    return found


def _papers(kept: Sequence[KeptStudy]) -> list[str]:
    return sorted({paper for one in kept for paper in papers_of(one.study)})


def sections(kept: Sequence[KeptStudy], found: Taken, readings: Mapping[str, Reading]) -> list[Section]:
    """The claims, a section a paper, one a study that is of none."""
    parts = [_claims(found.claims, found.notes)]
    parts += [_of_paper(paper, kept, found, readings.get(paper, Reading())) for paper in _papers(kept)]
    return parts + [_of_study(one, readings.get(one.name, Reading())) for one in _of_no_paper(kept)]


def number_sections(kept: Sequence[KeptStudy], found: Taken, readings: Mapping[str, Reading]) -> list[Section]:
    """Details and studies of each paper, those that are of none, the claims at every scale, and in full."""
    parts = [_numbers(read_paper(paper).title, _of(paper, kept), readings.get(paper)) for paper in _papers(kept)]
    parts += [_numbers(one.study.title, [one], readings.get(one.name)) for one in _of_no_paper(kept)]
    run = [line for line in found.claims if line.was_run]
    return [*parts, *([_at_every_scale(run)] if run else []), *([_in_full(found.claims)] if found.claims else [])]


def _of(paper: str, kept: Sequence[KeptStudy]) -> list[KeptStudy]:
    return [one for one in kept if paper in papers_of(one.study)]


def _of_no_paper(kept: Sequence[KeptStudy]) -> list[KeptStudy]:
    return [one for one in kept if not papers_of(one.study)]


def _claims(lines: Sequence[ClaimLine], notes: Sequence[str]) -> Section:
    run = [line for line in lines if line.was_run]
    said: list[Block] = [Paragraph(note, "note") for note in notes]
    if not run:
        return Section("Claims", [Paragraph("No study that is kept asks a claim."), *said])
    first = [(_most_asked(of), of) for of in _by_claim(run).values()]
    table = Table(CAPTION, HEADER, [_row(line, of) for line, of in first], 3, digits=2)
    return Section("Claims", [Paragraph(_counted(lines)), _tally([line for line, _ in first]), table, *said])


def _tally(lines: Sequence[ClaimLine]) -> Table:
    """Papers by verdicts."""
    of = dict(grouped(lines, lambda line: line.paper))
    of |= {"all": lines} if len(of) > 1 else {}
    counts = {paper: Counter(line.verdict for line in its) for paper, its in of.items()}
    rows: list[list[Entry]] = [
        [paper, str(count.total()), *(str(count[word]) for word in WORDS)] for paper, count in counts.items()
    ]
    return Table(TALLY, ["Paper", "Claims", *(word.capitalize() for word in WORDS)], rows)


def _at_every_scale(lines: Sequence[ClaimLine]) -> Section:
    rows = [_row(line, [line]) for line in lines]
    return Section("The claims at every scale", [Table(EVERY_SCALE, HEADER, rows, 3, digits=2)])


def _most_asked(lines: Sequence[ClaimLine]) -> ClaimLine:
    """Of one claim the scale at which most of its comparisons were run, and of these the one with most models."""
    return max(lines, key=lambda line: (len(line.parts), not line.one_model, line.ours.n if line.ours else 0))


def _row(line: ClaimLine, lines: Sequence[ClaimLine]) -> list[Entry]:
    """A claim at one scale, and which other scales of ``lines`` decide it differently."""
    claim = f"{line.words}\n{line.paper}"
    others = [other for other in lines if other.verdict not in (OPEN, line.verdict)]
    notes = [*([ONE_MODEL] if line.one_model else []), *(f"{other.scale}: {other.verdict}" for other in others)]
    verdict = "\n".join(filter(None, [line.verdict, "; ".join(notes)]))
    return [claim, _short(line.printed), _what(line), line.ours, _over(line), verdict, _held(line)]


def _what(line: ClaimLine) -> str:
    """What is compared, of paths of measures their last parts, and what is asked of it."""
    words = (word if word.count(".") < 2 else ".".join(word.split(".")[-2:]) for word in line.what.split(" "))
    return "\n".join(filter(None, [shorten(" ".join(words), SHORT), line.asked]))


def _over(line: ClaimLine) -> str:
    return "\n".join(filter(None, [line.n, line.scale])) or "–"


def _held(line: ClaimLine) -> str:
    """How many of its comparisons hold, how many were not run, and what it takes to decide it."""
    held = f"{line.parts.count('holds')} of {len(line.parts)}" + (f", {line.left} not run" if line.left else "")
    return "\n".join(filter(None, [held, line.needs]))


def _short(printed: str) -> str:
    """The first sentence of a paper's numbers."""
    return shorten(printed.split(". ", maxsplit=1)[0].rstrip("."), SHORT) or "–"


def _counted(lines: Sequence[ClaimLine]) -> str:
    """How many claims are decided, verdicts of each word, likewise of their comparisons, and how many claims none of
    these studies asks."""
    run = [line for line in lines if line.was_run]
    verdicts = Counter(line.verdict for line in run)
    asked, decided = _claims_in(run), _claims_in([line for line in run if line.verdict != OPEN and not line.left])
    left = len(_claims_in(lines) - asked)
    told = "; ".join(f"{word}: {verdicts[word]}" for word in WORDS if verdicts[word])
    rest = f" {plural(left, 'further claim')} {'is' if left == 1 else 'are'} asked by no study here." if left else ""
    partly = len(asked) - len(decided) - len(_open(run))
    more = f", {partly} more by some of them" if partly else ""
    claims = f"{plural(len(asked), 'claim')}, {len(decided)} decided by all of their comparisons at one scale{more}. "
    claims += f"{plural(verdicts.total(), 'verdict')}{f': {told}' if told else ''}."
    parts = Counter(part for line in run for part in line.parts)
    of = "; ".join(f"{parts[outcome]} {word}" for word, outcome in OUTCOMES.items() if parts[outcome])
    comparisons = f" Of {plural(parts.total(), 'comparison')} {of}." if parts else ""
    in_part = sum(line.left > 0 for line in run)
    partial = f" {plural(in_part, 'verdict')} {'is' if in_part == 1 else 'are'} of claims that were run in part only."
    return f"{claims}{_still_open(run)}{comparisons}{partial if in_part else ''}{rest}"


def _still_open(run: Sequence[ClaimLine]) -> str:
    """How many models would decide the claims that are open wherever they were run."""
    still = _open(run)
    if not still:
        return ""
    least = [min((line.needed for line in lines if line.needed is not None), default=math.inf) for lines in still]
    counts = [sum(needed <= models for needed in least) for models in FEW_OR_MANY]
    few, many = (f"{models} models would decide {n}" for models, n in zip(FEW_OR_MANY, counts, strict=True))
    are = "is" if len(still) == 1 else "are"
    return f" {plural(len(still), 'claim')} {are} open, of which {few}, and {many} (power 80 %)."


def _open(run: Sequence[ClaimLine]) -> list[list[ClaimLine]]:
    """The claims that no scale decides, each with its lines."""
    return [lines for lines in _by_claim(run).values() if all(line.verdict == OPEN for line in lines)]


def _by_claim(lines: Sequence[ClaimLine]) -> dict[tuple[str, str], list[ClaimLine]]:
    """Paper and claim → a line for each scale."""
    return grouped(lines, lambda line: (line.paper, line.words))


def _claims_in(lines: Sequence[ClaimLine]) -> set[tuple[str, str]]:
    return {*_by_claim(lines)}


def _of_paper(paper: str, kept: Sequence[KeptStudy], found: Taken, reading: Reading) -> Section:
    told = read_paper(paper)
    figures = _figures(paper, kept, found, reading)
    lines = [line for line in found.claims if line.paper == paper]
    blocks: list[Block] = [Paragraph(f"{told.citation} {_counted(lines) if lines else ''}".strip())]
    notes = [note for one in _of(paper, kept) for note in _notes(one)]
    return Section(told.title, [*blocks, *_shown(figures, reading), *notes])


def _figures(paper: str, kept: Sequence[KeptStudy], found: Taken, reading: Reading) -> list[Figure]:
    """Those that the reading names; else the table with most numbers of ours, or what the studies have themselves."""
    tables = [table for table in found.tables if table.paper == paper and table.numbers]
    counts = Counter({name: sum(len(t.numbers) for t in of) for name, of in grouped(tables, lambda t: t.name).items()})
    of = _of(paper, kept)
    scales = pools([one.study for one in of])
    figures = list[Figure]()
    for name in reading.figures or [name for name, _ in counts.most_common(1)]:
        drawn = [table for table in tables if table.name == name]
        several = [table for table in drawn if len(table.numbers) > 1]  # or there is nothing to compare
        figures += figures_of_tables(several, scales, len(figures) + 1)
        if not drawn:
            figures += _of_kind(paper, of, name, [*counts, *KINDS])
    return figures or [figure for one in of for figure in figures_of_study(one.name, one.study)]


def _of_kind(whose: str, kept: Sequence[KeptStudy], asked: str, known: Sequence[str]) -> list[Figure]:
    """The figures of a kind of each study, or as ``layers of STUDY`` of one; InputError for none."""
    kind, _, study = asked.partition(" of ")
    of = [one for one in kept if not study or study == one.name]
    found = [f for one in of if kind in KINDS for f in figures_of_study(one.name, one.study, kind)]
    if not found:
        there = f"{', '.join(known)}; KIND of one of {', '.join(one.name for one in kept)}"
        raise InputError(f"{READINGS}: {whose}: there is nothing to draw of {asked!r}; there may be: {there}")
    return found


def _of_study(one: KeptStudy, reading: Reading) -> Section:
    figures = [figure for kind in reading.figures for figure in _of_kind(one.name, [one], kind, [*KINDS])]
    figures = figures or figures_of_study(one.name, one.study)
    return Section(one.study.title, [*_shown(figures, reading), *_notes(one)])


def _shown(figures: Sequence[Figure], reading: Reading) -> list[Block]:
    said: list[Block] = [Bullets(reading.lines)] if reading.lines else []
    return said + ([Figures(figures)] if figures else [])


def _numbers(title: str, kept: Sequence[KeptStudy], reading: Reading | None) -> Section:
    details: list[Block] = [Bullets(reading.details)] if reading and reading.details else []
    return Section(title, [*details, *(block for one in kept for block in _study(one))])


def _study(one: KeptStudy) -> list[Block]:
    """Its scores, after what has to be known of it."""
    study = one.study
    failed = study.count("failed")
    scale = f", {study.scale}" if study.scale else ""
    broken = f", {failed} of them failed" if failed else ""
    told = f"Study {study.name}{scale}: {plural(len(study.cells), 'cell')}{broken}; kept as {one.name}, "
    told += f"fingerprint {study.fingerprint}."
    return [Paragraph(told), *_notes(one), *scores_table(study)]


def _notes(one: KeptStudy) -> list[Block]:
    """What must not be missed: cells that failed or did not learn."""
    return [Paragraph(note, "note") for note in (one.study.told_failed, *one.study.notes) if note]


def _not_finished(kept: Sequence[KeptStudy]) -> list[Section]:
    """Which studies have cells to run yet; no section where none has."""
    left = [(one.name, one.study.waiting, len(one.study.cells)) for one in kept if one.study.waiting]
    told = [f"{name}: {waiting:,} of {plural(cells, 'cell')} not run yet." for name, waiting, cells in left]
    said: list[Block] = [Paragraph("Judged and shown when all of their cells are run."), Bullets(told)]
    return [Section("Not finished", said)] if left else []


def _in_full(lines: Sequence[ClaimLine]) -> Section:
    claims = _by_claim(lines).values()
    rows: list[list[Entry]] = [
        [
            f"{of[0].words}\n{of[0].paper}",
            f"{of[0].sentence}\n{of[0].source}",
            of[0].printed_and_note or "–",
            "; ".join(_found(line) for line in of),
        ]
        for of in claims
    ]
    return Section("The claims in full", [Table(FULL, ["Claim", "In full", "Paper", "What was found"], rows, 4)])


def _found(line: ClaimLine) -> str:
    scale = f"{line.scale}: " if line.scale and line.was_run else ""
    return f"{scale}{line.verdict}" + (f" ({line.told})" if line.told else "")
