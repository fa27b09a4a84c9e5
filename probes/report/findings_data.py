"""Data of the pages of findings: a line for each claim and pool, and numbers of a paper beside ours.

Nothing else of these pages reads what ``compared`` returns.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from probes.claims.comparisons import Outcome
from probes.claims.estimates import counted
from probes.claims.papers import claims_files, names_in, read_claims
from probes.claims.spec import Claim
from probes.report.data import Study
from probes.report.judged import JudgedClaim, JudgedNumber, PoolVerdict, compared
from probes.statistics import Interval

NOT_RUN = "not run"
ONE_MODEL = "one model"
NOT_DECIDED = "inconclusive"
WORDS = ("replicates", "mostly replicates", "does not replicate", NOT_DECIDED)
"""Verdicts in the order of the pages."""


@dataclass(frozen=True)
class ClaimLine:
    """The verdict of one pool on a claim.

    Attributes:
        words: The claim in few words; ``sentence`` has it in full, and ``source`` its place in the paper.
        printed: The paper's numbers; ``printed_and_note`` adds what a reader must know of them.
        what: The comparison that ``ours`` is of; ``asked`` is the condition under which it holds.
        n: The models that ``ours`` is over.
        told: How many comparisons hold, or why none was run.
        needed: Number of models that would decide an inconclusive claim; ``needs`` has it in words.
        parts: Outcome of each comparison that was run; ``left`` is the number of those that were not.
    """

    paper: str
    words: str
    sentence: str
    source: str
    printed: str
    printed_and_note: str
    scale: str
    verdict: str
    ours: Interval | None = None
    what: str = ""
    asked: str = ""
    n: str = ""
    one_model: bool = False
    told: str = ""
    needed: float | None = None
    needs: str = ""
    parts: Sequence[Outcome] = ()
    left: int = 0

    @property
    def was_run(self) -> bool:
        """Whether the claim has a verdict."""
        return self.verdict != NOT_RUN


@dataclass(frozen=True)
class BothNumbers:
    """A printed number and ours; ``panel`` names task and measure, ``labels`` the other axes."""

    panel: str
    measure: str
    labels: Mapping[str, str]
    printed: float
    ours: Interval


@dataclass(frozen=True)
class PrintedTable:
    """The numbers of a paper's table that the studies of a pool measured, too."""

    paper: str
    name: str
    title: str
    scale: str
    numbers: Sequence[BothNumbers]


@dataclass(frozen=True)
class Taken:
    """Claims and tables of all papers; ``notes`` are sentences on files that could not be read."""

    claims: Sequence[ClaimLine]
    tables: Sequence[PrintedTable]
    notes: Sequence[str]


def taken(studies: Sequence[Study]) -> Taken:
    """Compare the studies of each paper, pool by pool, with its claims and with the tables that they name."""
    claims, tables, notes = list[ClaimLine](), list[PrintedTable](), list[str]()
    for paper, of in studies_by_paper(studies).items():
        comparisons = compared(of)
        notes += (note for note in comparisons.notes if note not in notes)
        own = _claims_of(paper, of)
        judged_claims = (judged for judged in comparisons.claims if judged.claim in own)
        claims += (line for judged in judged_claims for line in _claim_lines(judged, paper))
        for table, lines in comparisons.tables:
            for place, first in enumerate(lines[0].judged if lines and table.paper == paper else ()):
                numbers = tuple(_both(lines, place))
                tables.append(PrintedTable(table.paper, table.name, table.title, first.pool, numbers))
    return Taken(claims, tables, notes)


def studies_by_paper(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Return paper → studies that name claims or tables of it, ordered by the name of the paper."""
    papers = sorted({paper for study in studies for paper in papers_of(study)})
    return {paper: [study for study in studies if paper in papers_of(study)] for paper in papers}


def papers_of(study: Study) -> list[str]:
    """Return the papers whose claims or tables a study names, each once."""
    claims = [_paper_of_claims(name) for name in names_in(study.config.get("claims"))]
    return list(dict.fromkeys([*claims, *(name.partition("/")[0] for name in names_in(study.config.get("paper")))]))


def _claims_of(paper: str, studies: Sequence[Study]) -> list[Claim]:
    """Return the claims in the files that the studies name and that are called by the paper."""
    names = dict.fromkeys(name for study in studies for name in names_in(study.config.get("claims")))
    return [claim for name in names if _paper_of_claims(name) == paper for claim in read_claims(name)]


def _paper_of_claims(name: str) -> str:
    return claims_files(name)[-1].stem


def _claim_lines(judged: JudgedClaim, paper: str) -> Iterator[ClaimLine]:
    claim = judged.claim
    for verdict in judged.judged:
        yield ClaimLine(
            paper=paper,
            words=in_few_words(claim.id, f"{claim.claim} {claim.paper}"),
            sentence=claim.claim,
            source=claim.source,
            printed=claim.paper,
            printed_and_note=claim.paper_and_note,
            scale=verdict.pool,
            verdict=verdict.verdict,
            ours=verdict.ours,
            what=verdict.what,
            asked=verdict.expected,
            n=counted(verdict.n, verdict.unit) if verdict.n else "",
            one_model=verdict.marked,
            told=verdict.tally if verdict.verdict != NOT_RUN else verdict.text,
            needed=verdict.needed,
            needs=verdict.still_needed,
            parts=verdict.outcomes,
            left=len(verdict.parts) - len(verdict.outcomes),
        )


def _both(lines: Sequence[JudgedNumber], place: int) -> Iterator[BothNumbers]:
    for line in lines:
        verdict: PoolVerdict = line.judged[place]
        if verdict.ours is not None:
            labels = {axis: label for axis, label in line.where.items() if axis != "task"}
            labels |= dict.fromkeys(line.cell.quantity.average, "mean")
            yield BothNumbers(line.names([])[1], line.cell.quantity.measure, labels, line.cell.value, verdict.ours)


def in_few_words(name: str, text: str) -> str:
    """Return the name of a claim as words, with the capitals that these words have in its text.

    >>> in_few_words("align-beats-mlm", "ALIGN-MLM transfers better than MLM.")
    'ALIGN beats MLM'
    >>> in_few_words("anchors-are-not-needed", "Without any shared string …")
    'Anchors are not needed'
    """
    capitals = {word.lower(): word for word in re.findall(r"[A-Za-z]+", text) if word[1:] != word[1:].lower()}
    words = " ".join(capitals.get(word, word) for word in re.findall(r"[^-_ ]+", name))
    return words[:1].upper() + words[1:]
