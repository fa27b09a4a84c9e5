"""The page of one paper, or of the studies of none: reading, figures, claims, details, scores."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence

from pydantic import Field

from probes.claims.comparisons import Outcome
from probes.claims.papers import read_paper
from probes.figures.drawing import Figure, shorten
from probes.report.archive import ArchivedStudy
from probes.report.findings_data import NOT_DECIDED, ONE_MODEL, WORDS, ClaimLine, Taken
from probes.report.findings_study import KINDS, figures_of_study, figures_of_tables, scores_table
from probes.report.join import pools
from probes.report.numbers import Entry, plural
from probes.report.page import Block, Bullets, Figures, Paragraph, Section, Table
from probes.report.scores import grouped
from synthlang.config import StrictModel
from synthlang.errors import InputError

PLURALS = {
    "replicates": "replicate",
    "mostly replicates": "mostly replicate",
    "does not replicate": "do not replicate",
    "inconclusive": "inconclusive",
}
"""Verdict → its form after a number of several claims."""
OUTCOMES: dict[str, Outcome] = {"hold": "holds", "are against the claim": "fails", "are inconclusive": "inconclusive"}
"""Words for the outcomes of comparisons, in the order of the page."""
SHORT = 110
"""Characters of a paper's numbers in the first table, at most."""
CAPTION = (
    "Each claim stands once, at the scale where most of its comparisons were run. Compared: the comparison or "
    "correlation that decides the verdict, with what the claim requires in brackets. Ours: its mean and interval, in "
    "points except for correlations, CKA, AUC and distances. The interval is one of 95 %, or of 90 % where a match or "
    "no loss is claimed. Over: the number of models and the scale. Verdict: brackets hold other scales with another "
    'verdict; "one model" marks intervals over seeds of one pretraining. Held: how many of the comparisons that were '
    "run hold, and for an inconclusive claim how many models would give 80 % power. docs/claims.md explains the tests."
)
EVERY_SCALE = "The same table with a row for each scale at which a claim was tested."
HEADER = ["Claim", "Paper", "Compared", "Ours", "Over", "Verdict", "Held"]
FULL = "Each claim in full, with the numbers of the paper and the number of comparisons that hold."


class Reading(StrictModel):
    """The reading of one paper, or of one study that belongs to none."""

    text: list[str] = Field(default_factory=list)
    """What the results show."""
    details: list[str] = Field(default_factory=list)
    """Models, looks at the data and further numbers, at the end of the page."""
    figures: list[str] = Field(default_factory=list)
    """Names of figures: tables of the paper, kinds of figures of its studies, or ``KIND of STUDY`` for one study."""


def paper_sections(paper: str, archived: Sequence[ArchivedStudy], found: Taken, reading: Reading) -> list[Section]:
    """Return the sections of the page of a paper; ``archived`` are the finished studies that name it."""
    told = read_paper(paper)
    lines = [line for line in found.claims if line.paper == paper]
    run = [line for line in lines if line.was_run]
    notes = [note for one in archived for note in _notes(one)]
    figures = figures_of_paper(paper, archived, found, reading.figures)
    parts = [Section("Reading", [Paragraph(told.citation), *_bullets(reading.text), *_figures(figures), *notes])]
    if run:
        rows = [_row(line, of) for line, of in ((most_asked(of), of) for of in by_claim(run).values())]
        parts.append(Section("Claims", [Paragraph(_counted(lines)), Table(CAPTION, HEADER, rows, 3, digits=2)]))
    parts += [Section("Details", [Bullets(reading.details)])] if reading.details else []
    if run:
        every = [_row(line, [line]) for line in run]
        parts.append(Section("The claims at every scale", [Table(EVERY_SCALE, HEADER, every, 3, digits=2)]))
        parts.append(_in_full(lines))
    return [*parts, Section("Scores", [block for one in archived for block in _study(one)])]


def study_sections(archived: Sequence[ArchivedStudy], readings: Mapping[str, Reading]) -> list[Section]:
    """Return one section for each study that belongs to no paper."""
    found = []
    for one in archived:
        own = readings.get(one.name, Reading())
        figures = figures_named(one.name, [one], own.figures)
        blocks = [*_bullets(own.text), *_figures(figures), *_notes(one), *_bullets(own.details), *_study(one)]
        found.append(Section(one.study.title, blocks))
    return found


def most_asked(lines: Sequence[ClaimLine]) -> ClaimLine:
    """Return the scale of a claim at which most of its comparisons were run, of equal ones that with most models."""
    return max(lines, key=lambda line: (len(line.parts), not line.one_model, line.ours.n if line.ours else 0))


def by_claim(lines: Sequence[ClaimLine]) -> dict[tuple[str, str], list[ClaimLine]]:
    """Return paper and claim → a line for each scale."""
    return grouped(lines, lambda line: (line.paper, line.words))


def figures_of_paper(paper: str, archived: Sequence[ArchivedStudy], found: Taken, names: Sequence[str]) -> list[Figure]:
    """Return the named figures; without names the table with most numbers of ours, or what the studies draw."""
    tables = [table for table in found.tables if table.paper == paper and table.numbers]
    counts = Counter({name: sum(len(t.numbers) for t in of) for name, of in grouped(tables, lambda t: t.name).items()})
    scales = pools([one.study for one in archived])
    figures = list[Figure]()
    for name in names or [name for name, _ in counts.most_common(1)]:
        drawn = [table for table in tables if table.name == name]
        several = [table for table in drawn if len(table.numbers) > 1]  # a single number compares nothing
        figures += figures_of_tables(several, scales, len(figures) + 1)
        if not drawn:
            figures += _of_kind(paper, archived, name, [*counts, *KINDS])
    return figures or [figure for one in archived for figure in figures_of_study(one.name, one.study)]


def figures_named(whose: str, archived: Sequence[ArchivedStudy], names: Sequence[str]) -> list[Figure]:
    """Return the figures of these kinds; without names the first figures that the studies draw."""
    figures = [figure for kind in names for figure in _of_kind(whose, archived, kind, [*KINDS])]
    return figures or [figure for one in archived for figure in figures_of_study(one.name, one.study)]


def _of_kind(whose: str, archived: Sequence[ArchivedStudy], asked: str, known: Sequence[str]) -> list[Figure]:
    kind, _, study = asked.partition(" of ")
    of = [one for one in archived if not study or study == one.name]
    found = [f for one in of if kind in KINDS for f in figures_of_study(one.name, one.study, kind)]
    if not found:
        allowed = f"{', '.join(known)}, or KIND of STUDY with one of {', '.join(one.name for one in archived)}"
        raise InputError(f"there is no figure {asked!r}", keys=[whose], hint=f"name one of {allowed}", code="unknown")
    return found


def _row(line: ClaimLine, lines: Sequence[ClaimLine]) -> list[Entry]:
    """Return a claim at one scale, with the other scales of ``lines`` that decide it differently."""
    claim = f"{line.words}\n{line.paper}"
    others = [other for other in lines if other.verdict not in (NOT_DECIDED, line.verdict)]
    notes = [*([ONE_MODEL] if line.one_model else []), *(f"{other.scale}: {other.verdict}" for other in others)]
    verdict = "\n".join(filter(None, [line.verdict, "; ".join(notes)]))
    return [claim, _short(line.printed), _compared(line), line.ours, _over(line), verdict, _held(line)]


def _compared(line: ClaimLine) -> str:
    """Return the comparison with what is required of it, and only the last two parts of the path of a measure."""
    words = (word if word.count(".") < 2 else ".".join(word.split(".")[-2:]) for word in line.what.split(" "))
    return "\n".join(filter(None, [shorten(" ".join(words), SHORT), line.asked]))


def _over(line: ClaimLine) -> str:
    return "\n".join(filter(None, [line.n, line.scale])) or "–"


def _held(line: ClaimLine) -> str:
    """How many comparisons hold, how many were not run, and how many models would decide the claim."""
    held = f"{line.parts.count('holds')} of {len(line.parts)}" + (f", {line.left} not run" if line.left else "")
    return "\n".join(filter(None, [held, line.needs]))


def _short(printed: str) -> str:
    """Return the first sentence of a paper's numbers."""
    return shorten(printed.split(". ", maxsplit=1)[0].rstrip("."), SHORT) or "–"


def _counted(lines: Sequence[ClaimLine]) -> str:
    """Return the number of claims, verdicts, comparisons and undecided claims, in whole sentences."""
    run = [line for line in lines if line.was_run]
    asked, verdicts = by_claim(run), Counter(most_asked(of).verdict for of in by_claim(run).values())
    words = ", ".join(f"{count} {word if count == 1 else PLURALS[word]}" for word in WORDS if (count := verdicts[word]))
    told = [f"We tested {plural(len(asked), 'claim')}: {words}."]
    parts = Counter(part for line in run for part in line.parts)
    of = ", ".join(f"{parts[outcome]} {word}" for word, outcome in OUTCOMES.items() if parts[outcome])
    told += [f"Over all scales they make {plural(parts.total(), 'comparison')}, of which {of}."] if parts else []
    if in_part := sum(line.left > 0 for line in run):
        told.append(f"{plural(in_part, 'verdict')} {_is(in_part)} of claims that were run in part only.")
    told += filter(None, [_undecided(asked)])
    if left := len(by_claim(lines)) - len(asked):
        told.append(f"{plural(left, 'further claim')} {_is(left)} in no archived study.")
    return " ".join(told)


def _undecided(asked: Mapping[tuple[str, str], Sequence[ClaimLine]]) -> str:
    """How many models would decide the claims that are inconclusive at every scale."""
    still = [lines for lines in asked.values() if all(line.verdict == NOT_DECIDED for line in lines)]
    least = [min((line.needed for line in lines if line.needed is not None), default=math.inf) for lines in still]
    few, many = (sum(needed <= models for needed in least) for models in (20, 100))
    if not still:
        return ""
    return (
        f"Of {plural(len(still), 'claim')} that no scale decides, 20 models would decide {few} and 100 models {many}, "
        "at 80 % power and with the means and spreads as they are."
    )


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _in_full(lines: Sequence[ClaimLine]) -> Section:
    rows: list[list[Entry]] = [
        [
            f"{of[0].words}\n{of[0].paper}",
            f"{of[0].sentence}\n{of[0].source}",
            of[0].printed_and_note or "–",
            "; ".join(_found(line) for line in of),
        ]
        for of in by_claim(lines).values()
    ]
    return Section("The claims in full", [Table(FULL, ["Claim", "In full", "Paper", "Result"], rows, 4)])


def _found(line: ClaimLine) -> str:
    scale = f"{line.scale}: " if line.scale and line.was_run else ""
    return f"{scale}{line.verdict}" + (f" ({line.told})" if line.told else "")


def _bullets(lines: Sequence[str]) -> list[Block]:
    return [Bullets(lines)] if lines else []


def _figures(figures: Sequence[Figure]) -> list[Block]:
    return [Figures(figures)] if figures else []


def _study(one: ArchivedStudy) -> list[Block]:
    """Return the scores of a study after its name and size."""
    study = one.study
    failed = study.count("failed")
    scale = f", {study.scale}" if study.scale else ""
    broken = f", {failed} of them failed" if failed else ""
    told = f"Study {study.name}{scale}: {plural(len(study.cells), 'cell')}{broken}; archived as {one.name}, "
    told += f"fingerprint {study.fingerprint}."
    return [Paragraph(told), *_notes(one), *scores_table(study)]


def _notes(one: ArchivedStudy) -> list[Block]:
    """Cells that failed or did not learn, which a reader must not miss."""
    return [Paragraph(note, "note") for note in (one.study.told_failed, *one.study.notes) if note]
