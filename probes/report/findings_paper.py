"""The page of one paper, or of studies without a paper: reading, figures, claims, details, scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pydantic import Field

from probes.claims.comparisons import Outcome
from probes.claims.planned import Status
from probes.claims.verdicts import WORDS, Word
from probes.figures.drawing import Figure, shorten
from probes.report.data import Study
from probes.report.findings_data import about, by_paper, in_few_words
from probes.report.findings_figures import Gallery
from probes.report.judged import JudgedClaim, PoolVerdict
from probes.report.numbers import Entry
from probes.report.page import Block, Bullets, Figures, Paragraph, Section, Table
from probes.report.scores import FAILED_TRAINING, Column, Condition, Material, axis_columns, by_rows, scores_of
from probes.report.training import pretraining
from probes.results.scores import PERPLEXITY
from synthlang.config import StrictModel
from synthlang.wording import enumerated, plural

PREDICATES: dict[Word, tuple[str, str]] = {
    "replicates": ("replicates", "replicate"),
    "does not replicate": ("does not replicate", "do not replicate"),
    "inconclusive": ("is inconclusive", "are inconclusive"),
    "not yet judged": ("is not yet judged", "are not yet judged"),
}
"""Verdict → its predicate in a sentence about one claim, and about several."""
NOT_DECIDED, ONE_MODEL = "inconclusive", "one model"
OUTCOMES: dict[str, Outcome] = {"hold": "holds", "are against the claim": "fails", "are inconclusive": "inconclusive"}
"""Predicate of comparisons in a sentence → their outcome, in the order of the page."""
SHORT = 110
"""Largest number of characters of the paper's numbers and of the compared quantities in the tables of claims."""
CAPTION = (
    "Each claim has one row. The row shows the confirmed verdict if there is one, and otherwise the scale where most "
    "of its comparisons were run. The page claims.md explains the tests."
)
COLUMNS = (
    'The column "Compared" names the comparison or correlation that decides the verdict. What the claim requires of it '
    "is in brackets.",
    'The column "Ours" has its mean and interval, in points except for perplexities, correlations, CKA, AUC and '
    "distances. The interval is one of 95 %, or of 90 % if the claim is that two sides are equal or one is not worse.",
    'The column "p" has the largest p value of the comparisons for the claim, and the smallest p value against it '
    "after Holm's correction over the comparisons of the claim. Two values follow for a confirmed verdict. They are "
    "adjusted over all confirmed claims, and they decide the verdict.",
    'The column "Over" has the number of models or seeds, and the scale.',
    'The column "Verdict" also names other scales with another verdict. It has "one model" if all seeds are of one '
    "pretraining, and it names the languages that replace the natural languages of a claim.",
    'The column "Held" counts the comparisons that hold among those that were run, before the correction over the '
    "confirmed claims. A comparison at the floor, the majority baseline, is not judged. For an inconclusive claim, the "
    "number of models for 80 % power may follow, at both ends of an 80 % interval of the effect size.",
)
"""Explanations of the columns of the tables of claims."""
EVERY_SCALE = "This table has the same columns, and a row for each scale at which a claim was tested."
HEADER = ["Claim", "Paper", "Compared", "Ours", "p", "Over", "Verdict", "Held"]
STATUS: dict[Status, str] = {
    "confirmed": "These verdicts are confirmed: the number of models was planned before the study ran.",
    "exploratory": "These verdicts are exploratory: no number of models was planned, and models may have been added "
    "after a look at the results.",
    "not yet judged": "These claims are not yet judged, because planned models are missing.",
}
"""Status → the caption of the table of its claims."""
FULL = "This table has each claim in full, the numbers of the paper, and the number of comparisons that hold."
MODELS = 20
"""Number of models for which the page estimates how many more claims would be decided."""
ROWS = 60
"""Largest number of conditions of a table."""
SCORES = (
    "Scores, alignment and Δ are means in percent or points. Brackets have 95 % t intervals. SUP is the score on the "
    "other language after training on it, and ZS the score on the other language after training on the source "
    "language. Δ = SUP − ZS."
)
FAILED_LAST = " Models that failed training come last and count in nothing else."


class Reading(StrictModel):
    """The reading of one paper, or of one study that belongs to no paper."""

    text: list[str] = Field(default_factory=list)
    """Text on the results of the paper or study."""
    details: list[str] = Field(default_factory=list)
    """Text on models, data and further numbers, for the end of the page."""
    figures: list[str] = Field(default_factory=list)
    """Names of figures: tables of the paper, kinds of figures of its studies, or ``KIND of STUDY`` for one study."""


def paper_sections(paper: str, gallery: Gallery, reading: Reading) -> list[Section]:
    """Return the sections of the page of a paper.

    Args:
        paper: Name of the paper, which a study of the gallery must name.
        gallery: The figures and verdicts.
        reading: The text of the page and the names of its figures.

    Raises:
        InputError: No figure has one of the names, or the paper or the claims of a study cannot be read.
    """
    told, studies = about(paper, gallery.archived), by_paper(gallery.archived)[paper]
    citation = [Paragraph(told.citation)] if told.citation else []
    claims = gallery.compared[paper].claims
    run = [claim for claim in claims if claim.was_run]
    notes = [note for study in studies.values() for note in _notes(study)]
    figures = gallery.figures(paper, reading.figures, (paper, "figures"))
    parts = [Section("Reading", [*citation, *_bullets(reading.text), *_figures(figures), *notes])]
    if run:
        explained: list[Block] = [Paragraph(_counted(claims)), Paragraph(CAPTION), Bullets(COLUMNS)]
        parts.append(Section("Claims", [*explained, *_by_status(paper, run)]))
    parts += [Section("Details", [Bullets(reading.details)])] if reading.details else []
    if run:
        every = [_row(paper, claim._replace(judged=[one]), one) for claim in run for one in claim.judged]
        parts.append(Section("The claims at every scale", [Table(EVERY_SCALE, HEADER, every, 3, digits=2)]))
        parts.append(Section("The claims in full", [_in_full(paper, claims)]))
    return [*parts, Section("Scores", [block for name, study in studies.items() for block in _study(name, study)])]


def study_sections(names: Sequence[str], gallery: Gallery, readings: Mapping[str, Reading]) -> Iterator[Section]:
    """Yield a section for each study that belongs to no paper.

    Args:
        names: Names of the studies in the archive.
        gallery: The figures and verdicts.
        readings: Name of a study → its text and the names of its figures. A study may lack an entry.

    Raises:
        InputError: No figure has one of the names, or the claims of a study cannot be read.
    """
    for name in names:
        study, own = gallery.archived[name], readings.get(name, Reading())
        figures = gallery.figures(name, own.figures, (name, "figures"))
        details = [*_notes(study), *_bullets(own.details), *_study(name, study)]
        blocks = [*_bullets(own.text), *_figures(figures), *details]
        yield Section(study.title, blocks)


def _by_status(paper: str, run: Sequence[JudgedClaim]) -> Iterator[Table]:
    """Yield the table of the claims of each status, the confirmed ones first."""
    for status, told in STATUS.items():
        if rows := [_row(paper, claim, claim.main) for claim in run if claim.main.status == status]:
            yield Table(told, HEADER, rows, 3, digits=2)


def _named(paper: str, claim: JudgedClaim) -> str:
    return f"{in_few_words(claim.claim.id, f'{claim.claim.claim} {claim.claim.paper}')}\n{paper}"


def _row(paper: str, claim: JudgedClaim, one: PoolVerdict) -> list[Entry]:
    """Return the row of a claim in one pool, with different verdicts of other pools."""
    others = [other for other in claim.judged if other.verdict not in (NOT_DECIDED, one.verdict)]
    notes = [ONE_MODEL] if one.marked else []
    notes += [f"on {one.tested_on}"] if one.tested_on else []
    notes += [f"{other.pool}: {other.verdict}" for other in others]
    floored = sum(part.at_floor for part in one.parts)
    left = len(one.parts) - len(one.outcomes) - floored
    held = f"{one.outcomes.count('holds')} of {len(one.outcomes)}" + (f", {left} not run" if left else "")
    held += f", {floored} at the floor" if floored else ""
    return [
        _named(paper, claim),
        shorten(claim.claim.paper.split(". ", maxsplit=1)[0].rstrip("."), SHORT) or "–",
        _lines(shorten(_short_paths(one.what), SHORT), one.expected) or "–",
        one.ours,
        one.p_values,
        _lines(one.over, one.pool) or "–",
        _lines(one.verdict, "; ".join(notes)),
        _lines(held, one.still_needed) if one.parts else one.text,
    ]


def _lines(*texts: str) -> str:
    return "\n".join(filter(None, texts))


def _short_paths(text: str) -> str:
    """Shorten the path of each measure in a text to its last two parts."""
    return " ".join(word if word.count(".") < 2 else ".".join(word.split(".")[-2:]) for word in text.split(" "))


def _counted(claims: Sequence[JudgedClaim]) -> str:
    """Summarise the numbers of claims, verdicts and comparisons in whole sentences."""
    run = [claim for claim in claims if claim.was_run]
    every = [one for claim in run for one in claim.judged]
    verdicts = Counter(claim.main.verdict for claim in run)
    words = [f"{count} {PREDICATES[word][count > 1]}" for word in WORDS if (count := verdicts[word])]
    told = [f"We tested {plural(len(run), 'claim')}: {enumerated(words)}."]
    statuses = Counter(claim.main.status for claim in run)
    of = [f"{plural(count, 'verdict')} {_is(count)} {one}" for one in STATUS if (count := statuses[one])]
    told.append(f"{enumerated(of)}.")
    if parts := Counter(outcome for one in every for outcome in one.outcomes):
        of = [f"{parts[outcome]} {word}" for word, outcome in OUTCOMES.items() if parts[outcome]]
        told.append(f"At all scales together, they have {plural(parts.total(), 'comparison')}.")
        before = "Before the correction over the confirmed claims, " if statuses["confirmed"] else ""
        told.append(f"{before}{enumerated(of)}.")
    if in_part := sum(len(one.parts) > len(one.outcomes) for one in every):
        told.append(f"For {plural(in_part, 'verdict')}, only a part of the comparisons was run or judged.")
    told += _undecided(run)
    if left := len(claims) - len(run):
        told.append(f"{plural(left, 'further claim')} {_is(left)} in no archived study.")
    return " ".join(told)


def _undecided(run: Sequence[JudgedClaim]) -> list[str]:
    """Return a sentence with the number of undecided claims that MODELS models would decide, if any are undecided."""
    still = [claim.main for claim in run if all(one.verdict == NOT_DECIDED for one in claim.judged)]
    known = [one.needed for one in still if one.needed is not None]
    surely, perhaps = (sum(needed[end] <= MODELS for needed in known) for end in (1, 0))
    share = f"{surely}" if surely == perhaps else f"{surely} to {perhaps}"
    undecided = f"No scale decides {plural(len(still), 'claim')}."
    needed = (
        f"The number of models that would decide a claim can be estimated for {len(known)} of them. With {MODELS} "
        f"models, {share} would be decided with 80 % power, at the two ends of 80 % intervals of the effect sizes."
    )
    return [undecided, *([needed] if known else [])] if still else []


def _is(number: int) -> str:
    return "is" if number == 1 else "are"


def _in_full(paper: str, claims: Sequence[JudgedClaim]) -> Table:
    rows: list[list[Entry]] = [
        [
            _named(paper, claim),
            f"{claim.claim.claim}\n{claim.claim.source}",
            claim.claim.paper_and_note or "–",
            "; ".join(_found(one) for one in claim.judged),
        ]
        for claim in claims
    ]
    return Table(FULL, ["Claim", "In full", "Paper", "Result"], rows, 4)


def _found(one: PoolVerdict) -> str:
    scale = f"{one.pool}: " if one.pool and one.was_run else ""
    told = one.tally if one.was_run else one.text
    return f"{scale}{one.verdict}" + (f" ({told})" if told else "")


def _bullets(lines: Sequence[str]) -> list[Block]:
    return [Bullets(lines)] if lines else []


def _figures(figures: Sequence[Figure]) -> list[Block]:
    return [Figures(figures)] if figures else []


def _study(name: str, study: Study) -> list[Block]:
    failed = study.count("failed")
    scale = f" ({study.scale})" if study.scale else ""
    broken = f", of which {failed} failed" if failed else ""
    told = f"The study {study.name}{scale} has {plural(len(study.cells), 'cell')}{broken}. "
    told += f"It is archived as {name} with the fingerprint {study.fingerprint}."
    return [Paragraph(told), *_notes(study), *_scores(study)]


def _notes(study: Study) -> list[Block]:
    """Return the notes of a study, with the excluded cells first."""
    return [Paragraph(note, "note") for note in (study.told_failed, *study.notes) if note]


def _scores(study: Study) -> Sequence[Block]:
    """Return a table of conditions with perplexity and alignment, and with SUP, ZS and Δ of each task.

    For a study without tasks the table has the perplexities of its pretrainings.
    """
    scores = scores_of(study)
    if not scores.rows:
        found = pretraining(scores)
        return found.blocks if found else [Paragraph("No cell has been scored.", "note")]
    conditions = [{c.task: c for c in of} for of in scores.by_settings]
    columns = list(_columns(scores, conditions))
    texts = 1 + [title for title, _ in columns].index("Seeds")
    caption = f"{study.title}. {SCORES}" + (FAILED_LAST if scores.failed else "")
    return [Table(caption, *by_rows(columns), texts, "", ROWS)]


def _columns(scores: Material, conditions: Sequence[Mapping[str, Condition]]) -> Iterator[Column]:
    firsts = [next(iter(of.values())) for of in conditions]
    yield from axis_columns(scores.layout, [c.labels for c in firsts])
    if scores.failed:
        yield "Training", [FAILED_TRAINING if c.has_failed else "–" for c in firsts]
    yield "Seeds", [c.seeds for c in firsts]
    for name, title in ((PERPLEXITY, "Perplexity"), ("alignment_all", "Alignment")):
        values = [c.interval(name) for c in firsts]
        if any(value is not None for value in values):
            yield title, values
    for task in dict.fromkeys(c.task for of in conditions for c in of.values()):
        of_task = [of.get(task) for of in conditions]
        yield f"{task} SUP", [None if c is None else c.mean("sup") for c in of_task]
        yield f"{task} ZS", [None if c is None else c.mean("zs") for c in of_task]
        yield f"{task} Δ", [None if c is None else c.delta for c in of_task]
