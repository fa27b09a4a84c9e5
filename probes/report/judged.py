"""Judge the claims and printed tables of papers on our results, pool by pool, and show them beside our numbers.

A pool has all studies of one scale that declare the same pool, since a claim may compare cells of two studies. Results
of different pools are never averaged. If a study of a pool declares how many models a claim is judged on (``planned``),
the verdict of the pool rests on the planned models of such studies only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeVar

from probes.claims import papers
from probes.claims.comparisons import Outcome
from probes.claims.estimates import NOTHING, counted
from probes.claims.observed import Results
from probes.claims.papers import PaperNumber, names_in, read_claims, read_tables
from probes.claims.spec import OF_PROBE, Claim, TestedOn, probe_measures
from probes.claims.tables import ComparedNumber, compare_table
from probes.claims.verdicts import WORDS, Verdict, decided_together, judge
from probes.figures.drawing import slug
from probes.report.data import Study
from probes.report.join import on_plan, plan_of, pools, results_of
from probes.report.numbers import Badge, Entry, p_value
from probes.report.page import Block, Bullets, Folded, Paragraph, Section, Table
from probes.report.printed import SHOWN
from probes.report.scores import grouped
from probes.report.verdict_texts import ALL, CAPTION, MARK, MARKED, NOT_RUN, ORDERS, OVER, READING, RULES
from probes.results.measures import range_of
from synthlang.errors import InputError
from synthlang.wording import plural

T = TypeVar("T")
KINDS: dict[str, Literal["good", "bad", "open"]] = {
    "replicates": "good",
    "does not replicate": "bad",
}
PART: dict[Outcome, Literal["good", "bad", "open"]] = {"holds": "good", "fails": "bad", "inconclusive": "open"}
"""The colour of the outcome of a comparison."""
MEASURES = {
    **SHOWN,
    **{"sup": "SUP", "parent": "Source"},
    **{"alignment_all": "alignment, all types", "alignment_forward": "alignment, source → derived"},
}
ROWS = 100
"""Largest number of rows of a paper's table on the page."""


@dataclass(frozen=True)
class PoolVerdict(Verdict):
    """The verdict of one pool on a claim or a printed number.

    Attributes:
        pool: Name of the pool (see ``join.pools``). It is "" for a single pool of studies without a scale.
        tested_on: Languages that replace the natural languages of the claim, or None.
    """

    pool: str = ""
    tested_on: TestedOn | None = None

    @property
    def was_run(self) -> bool:
        """True unless the verdict is ``not run``. A claim that waits for planned models counts as run."""
        return self.verdict != "not run"

    @property
    def marked(self) -> bool:
        """True if conditions were compared and all replicates of a side come from one pretraining."""
        return self.one_model and self.was_run

    @property
    def over(self) -> str:
        """The number of models or other replicates behind ``ours``, in words, or "" if the number is 0."""
        return counted(self.n, self.unit) if self.n else ""

    @property
    def entries(self) -> list[Entry]:
        """Our number, the verdict in its colour, and n."""
        lines = [self.verdict + (MARK if self.marked else ""), self.tally, self.still_needed]
        return [self.ours, Badge("\n".join(filter(None, lines)), KINDS.get(self.verdict, "open")), self.over or "–"]

    @property
    def circumstances(self) -> str:
        """The status of the verdict or the progress of its plan, and the languages that replaced natural ones.

        The text is "" if nothing was compared or planned.
        """
        if not self.was_run or (not self.parts and not self.plans):
            return ""
        status = self.text if self.status == "not yet judged" else self.status
        return status + (f", on {self.tested_on}" if self.tested_on else "")

    @property
    def p_values(self) -> str:
        """The p values for and against the claim in words, and the adjusted p values that decide a confirmed verdict.

        The text is a dash if no comparison was run.
        """
        if not self.outcomes:
            return "–"
        told = "{} for\n{} against".format(*map(p_value, self.p))
        return told + (",\nadjusted {} and {}".format(*map(p_value, self.adjusted)) if self.adjusted else "")


class JudgedClaim(NamedTuple):
    """A claim and the verdict of each pool that ran it. If no pool ran it, one verdict gives the reason.

    Attributes:
        file: Name of the file of claims, as studies name it.
        claim: The claim.
        judged: The verdicts, at least one.
    """

    file: str
    claim: Claim
    judged: Sequence[PoolVerdict]

    @property
    def was_run(self) -> bool:
        """True if a pool ran the claim."""
        return any(one.was_run for one in self.judged)

    @property
    def main(self) -> PoolVerdict:
        """The verdict of one pool: a confirmed verdict first, else the verdict with the most comparisons.

        If verdicts tie, a verdict on several models precedes a verdict on one model. If they still tie, the verdict
        with the largest n is chosen.
        """
        return max(
            self.judged,
            key=lambda one: (
                one.status == "confirmed", len(one.outcomes), not one.marked, one.ours.n if one.ours else 0
            ),
        )  # fmt: skip


class JudgedNumber(NamedTuple):
    """A printed number, and the verdict of each pool that measured a number of its table.

    Attributes:
        cell: The printed number.
        judged: The verdicts, one for each pool.
    """

    cell: PaperNumber
    judged: Sequence[PoolVerdict]

    @property
    def where(self) -> dict[str, str]:
        """Axis → label, with the task. For a gain, ``gain over`` has the labels that only the baseline has."""
        where = dict(self.cell.quantity.where)
        if self.cell.against is not None:
            others = (label for axis, label in self.cell.against.where.items() if where.get(axis) != label)
            where["gain over"] = ", ".join(others)
        return where

    @property
    def labels(self) -> dict[str, str]:
        """Axis → label, without the task."""
        return {axis: label for axis, label in self.where.items() if axis != "task"}

    @property
    def score(self) -> str:
        """The task, if there is one, and the measure, such as ``nli Δ``."""
        measure = self.cell.quantity.measure
        return f"{self.where.get('task', '')} {MEASURES.get(measure, measure)}".strip()

    def names(self, axes: Sequence[str]) -> list[str]:
        """Return two texts that name the number in a table: its labels on ``axes``, and its ``score``."""
        return [", ".join(self.labels.get(axis, "–") for axis in axes), self.score]


class Comparisons(NamedTuple):
    """Claims and tables that the studies of a report are compared with.

    Attributes:
        claims: The claims with their verdicts.
        tables: Each printed table with its numbers and their verdicts.
        notes: Sentences on files that could not be read.
        measures: Measures of probes that the claims read, each once, in the order of the claims.
        examples: PAPER/TABLE → its tests over examples.
    """

    claims: Sequence[JudgedClaim] = ()
    tables: Sequence[tuple[papers.PaperTable, Sequence[JudgedNumber]]] = ()
    notes: Sequence[str] = ()
    measures: Sequence[str] = ()
    examples: Mapping[str, Sequence[Block]] = MappingProxyType({})


def compared(studies: Sequence[Study]) -> Comparisons:
    """Judge every claim and table that the studies name. A file that cannot be read is noted and left out."""
    notes: list[str] = []
    claims = _read("claims", read_claims, studies, notes)
    tables = _read("paper", read_tables, studies, notes)
    if not claims and not tables:
        return Comparisons(notes=notes)
    members = pools(studies)
    found = {name: results_of(of) for name, of in members.items()}
    return Comparisons(
        _decided_by_paper([JudgedClaim(file, claim, _claimed(file, claim, members, found)) for file, claim in claims]),
        [(table, _lines(table, found)) for _, table in tables],
        notes,
        tuple(probe_measures(quantity for _, claim in claims for quantity in claim.quantities())),
        {f"{table.paper}/{table.name}": _tests(table, studies) for _, table in tables},
    )


def _tests(table: papers.PaperTable, studies: Sequence[Study]) -> list[Block]:
    if all(cell.marking is None for cell in table.numbers):
        return []
    from probes.report.examples import example_blocks  # with torch, by the metrics of tasks

    found: list[Block] = []
    for number, study in enumerate(studies, 1):
        name = f"examples-{slug(f'{table.paper} {table.name}', number)}"
        blocks = example_blocks(table, study, results_of([study]), name)
        if blocks and len(studies) > 1:
            found.append(Paragraph(f"{study.name}:"))
        found += blocks
    return found


def _read(
    key: str, read: Callable[[str], Iterable[T]], studies: Sequence[Study], notes: list[str]
) -> list[tuple[str, T]]:
    """Read each file that the studies name under ``key`` once, and pair its entries with its name."""
    found: list[tuple[str, T]] = []
    for name in dict.fromkeys(name for study in studies for name in names_in(study.config.get(key))):
        try:
            found += [(name, one) for one in read(name)]
        except InputError as error:
            notes.append(f"{key} {name}: {error}")
    return found


def _claimed(
    file: str, claim: Claim, members: Mapping[str, Sequence[Study]], found: Mapping[str, Results]
) -> Sequence[PoolVerdict]:
    judged = []
    for pool, studies in members.items():
        planned = [(study, plan) for study in studies if (plan := plan_of(study, file, claim.id)) is not None]
        results = results_of([on_plan(study, plan) for study, plan in planned]) if planned else found[pool]
        verdict = judge(claim, results, [plan for _, plan in planned])
        judged.append(PoolVerdict(**vars(verdict), pool=pool, tested_on=claim.tested_on.get(studies[0].scale)))
    run = [one for one in judged if one.was_run]
    telling = [one for one in judged if any(part.why not in ("", NOTHING) for part in one.parts)]
    return run or telling[:1] or judged[:1]


def _decided_by_paper(claims: Sequence[JudgedClaim]) -> list[JudgedClaim]:
    """Decide the confirmed verdicts on the claims of each file together."""
    verdicts = {
        file: iter(decided_together([one for claim in of for one in claim.judged]))
        for file, of in grouped(claims, lambda claim: claim.file).items()
    }
    return [claim._replace(judged=list(islice(verdicts[claim.file], len(claim.judged)))) for claim in claims]


def _lines(table: papers.PaperTable, found: Mapping[str, Results]) -> list[JudgedNumber]:
    comparisons = {pool: compare_table(table, results) for pool, results in found.items()}
    measured = {pool: rows for pool, rows in comparisons.items() if any(row.ours is not None for row in rows)}
    return [
        JudgedNumber(cell, [_judged(pool, rows[number]) for pool, rows in measured.items()])
        for number, cell in enumerate(table.numbers)
    ]


def _judged(pool: str, row: ComparedNumber) -> PoolVerdict:
    if row.ours is None:
        return PoolVerdict(row.verdict, None, 0, row.text, pool=pool)
    within = range_of(row.printed.quantity.measure.removeprefix(OF_PROBE)) if row.printed.against is None else None
    ours, text = replace(row.ours.interval, within=within), "; ".join(row.notes)
    return PoolVerdict(row.verdict, ours, ours.n, text, unit=row.ours.unit, one_model=row.ours.one_model, pool=pool)


def judged_claims(comparisons: Comparisons) -> Section | None:
    """Return the section on claims, or None if no claim is named and every file of claims and papers was read."""
    notes: list[Block] = [Paragraph(note, "note") for note in comparisons.notes]
    if not comparisons.claims:
        return Section("Claims", notes) if notes else None
    every = [(c.claim, j) for c in comparisons.claims for j in c.judged]
    run = [(claim, j) for claim, j in every if j.was_run]
    counts = Counter(j.verdict for _, j in every)
    blocks: list[Block] = [Paragraph("; ".join(f"{word}: {counts[word]}" for word in WORDS if counts[word]) + ".")]
    scales = ["Scale"] if len({j.pool for _, j in every}) > 1 else []
    if run:
        body = []
        for claim, j in run:
            ours, badge, n = j.entries
            scale = [j.pool or "–" for _ in scales]
            body.append(
                [_heading(claim), badge, j.circumstances, *scale, claim.paper_and_note or "–", j.p_values, ours, n]
            )
        header = ["Claim", "Verdict", "Status", *scales, "Paper", "p", "Ours", "n"]
        blocks.append(Table(CAPTION, header, body, 5 + len(scales), "claims", digits=2))
    if any(j.marked for _, j in every):
        blocks.append(Paragraph(MARKED))
    if rest := [c for c in comparisons.claims if not c.was_run]:
        why: list[list[Entry]] = [[_heading(c.claim), c.judged[0].entries[1], c.judged[0].text] for c in rest]
        table = Table(NOT_RUN, ["Claim", "Verdict", "Why"], why, 3, "claims-not-run")
        blocks.append(Folded(f"{plural(len(rest), 'claim')} not tested here", [table]))
    if made := [row for claim, j in run for row in _comparisons(claim.id, j, by_pool=bool(scales))]:
        table = Table(ALL, ["Claim", "What was found", "Verdict", "Ours", "n"], made, 3, "comparisons", ROWS, digits=2)
        blocks.append(Folded("How each claim was judged", [Bullets(RULES), table]))
    return Section("Claims", [*blocks, *notes])


def _heading(claim: Claim) -> str:
    return f"{claim.claim}\n{claim.source}"


def _comparisons(claim: str, judged: PoolVerdict, *, by_pool: bool) -> Iterator[list[Entry]]:
    """Yield a row for each comparison of a claim, and for each single condition."""
    name = f"{claim}, {judged.pool}" if by_pool and judged.pool else claim
    for part in judged.parts:
        for mark, one in (("", part), *(("– ", single) for single in part.singles)):
            if one.interval is not None:
                badge = Badge(one.outcome, PART.get(one.outcome, "open"))
                yield [name, mark + one.text(), badge, one.interval, counted(one.interval.n, one.unit)]
            elif one.why != NOTHING:
                yield [name, mark + one.text(), "not run", "–", "–"]


def beside_papers(comparisons: Comparisons) -> Section | None:
    """Return the section with each printed table beside our numbers, or None without a readable table."""
    if not comparisons.tables:
        return None
    blocks: list[Block] = [Paragraph(READING), Folded("What the verdicts mean", [Bullets(ORDERS)])]
    claims_marked = any(j.marked for c in comparisons.claims for j in c.judged)
    if not claims_marked and any(j.marked for _, lines in comparisons.tables for line in lines for j in line.judged):
        blocks.append(Paragraph(MARKED))
    for number, (table, lines) in enumerate(comparisons.tables, 1):
        heading = f"{table.paper}, {table.name}: {table.title}."
        note = f"{f'Printed in {table.printed}.' if table.printed else ''} {table.note}".strip()
        if not lines:
            blocks.append(Paragraph(f"{heading} The paper prints no numbers for it. {note}".strip(), "note"))
        elif not lines[0].judged:
            blocks.append(Paragraph(f"{heading} None of its {len(lines)} numbers was measured here.", "note"))
        else:
            blocks += _paper_blocks(table, lines, heading, note, f"paper-{slug(f'{table.paper} {table.name}', number)}")
            blocks += comparisons.examples.get(f"{table.paper}/{table.name}", ())
    return Section("Numbers of the papers", blocks)


def _paper_blocks(
    table: papers.PaperTable, lines: Sequence[JudgedNumber], heading: str, note: str, name: str
) -> list[Block]:
    """Return a table of the numbers that were measured here, and all numbers in a folded block."""
    axes = dict.fromkeys(axis for line in lines for axis in line.labels)
    labels = {axis: {line.labels.get(axis, "–") for line in lines} for axis in axes}
    varied = [axis for axis, of in labels.items() if len(of) > 1] or list(labels)[:1]
    common = ", ".join(f"{axis} {next(iter(of))}" for axis, of in labels.items() if axis not in varied)
    pools = [j.pool for j in lines[0].judged]
    header = [", ".join(varied) or "condition", "score", "Paper"]
    for pool in pools:
        header += [name + (f"\n{pool}" if len(pools) > 1 else "") for name in ("Ours", "Verdict", "n")]
    rows = [[*line.names(varied), line.cell.value, *(e for j in line.judged for e in j.entries)] for line in lines]
    known = [row for row, line in zip(rows, lines, strict=True) if any(j.ours is not None for j in line.judged)]
    verdicts = Counter(j.verdict for line in lines for j in line.judged)
    counts = "; ".join(f"{word} {verdicts[word]}" for word in WORDS if verdicts[word])
    told = f"All: {common}." if common else ""
    scale = f"Ours: {pools[0]}." if len(pools) == 1 and pools[0] else ""
    caption = " ".join(part for part in (heading, told, scale, f"Verdicts: {counts}.", note) if part)
    notes = _over(lines, varied, f"{name}-over")
    if len(known) == len(rows):
        return [Table(caption, header, rows, 2, name, ROWS, table.digits), *notes]
    whole = Table(f"{heading} {told}", header, rows, 2, name, ROWS, table.digits)
    measured = Table(caption, header, known, 2, f"{name}-measured", ROWS, table.digits)
    return [measured, *notes, Folded(f"{heading} All {len(rows)} numbers", [whole])]


def _over(lines: Sequence[JudgedNumber], axes: Sequence[str], name: str) -> list[Block]:
    """Return a folded table of the conditions and seeds that our numbers are means over."""
    known = [(line, j) for line in lines for j in line.judged if j.ours is not None and j.text]
    if not known:
        return []
    by_pool = bool(known[0][1].pool)
    rows = [[*line.names(axes), *([j.pool] if by_pool else []), j.text] for line, j in known]
    header = ["condition", "score", *(["scale"] if by_pool else []), "Mean over"]
    return [Folded("What the means are over", [Table(OVER, header, rows, 4, name, ROWS)])]
