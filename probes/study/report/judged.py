"""What studies are compared with, judged pool by pool and shown: their claims with verdicts, and the tables of their
papers with ours beside them.

Studies of one scale and the same data are judged together (pools.py), since a claim may compare cells of two of them;
numbers of models of different size, or of different texts, are never averaged. Each study is judged by its own labels,
also for runs that another one has (table.pooled).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar

from probes.figures.drawing import slug
from probes.report.numbers import Badge, Entry, plural
from probes.report.page import Block, Folded, Paragraph, Section, Table
from probes.study.judged import papers
from probes.study.judged.claims import Claim, read_claims
from probes.study.judged.estimates import NOTHING, Estimate, counted
from probes.study.judged.observed import Results
from probes.study.judged.paper_tables import Beside, beside
from probes.study.judged.papers import names_in, read_tables
from probes.study.judged.verdicts import Verdict, judge
from probes.study.report.data import Study
from probes.study.report.pools import pools, results_of
from probes.study.report.scores import Range, range_of
from synthlang.errors import InputError

KINDS: dict[str, Literal["good", "bad", "open"]] = {
    "agrees in sign": "good",
    "agrees in order": "good",
    "differs": "bad",
}
VERDICTS = (*KINDS, "too small to tell", "not run")
MEASURES = {"delta": "Δ", "zs": "ZS", "sup": "SUP", "parent": "Parent", "alignment_all": "alignment, all types"}
READING = (
    "The numbers of the papers as printed, and ours with 95 % intervals over seeds. The models differ in size, data "
    "and training, so what can be compared is the sign and the order of numbers, not their size. "
    "Agrees in order: some numbers of the column are on the same side of this one with us as in the paper, and none on "
    "the other; differs: one is, or the sign of Δ or of a gain is the other way round; agrees in sign: no order is "
    "decided, but the sign is; too small to tell: nothing is decided. An order is decided where it stands after Holm's "
    "correction over all orders of its column, a sign where our interval does not have 0 inside. Printed numbers no "
    "more than half a point apart (0.005 in a column of a probe's measure that is printed within −1 to 1) are a tie "
    "and have no order; one that near 0 has no sign."
)
MARK = ", one model"
MARKED = (
    "One model: every seed of a side that was compared, or every pair of a correlation, is of one pretraining, so its "
    "interval says nothing of another pretraining, which may turn the verdict round."
)
ROWS = 100
"""Most rows of a paper's table on the page."""


@dataclass(frozen=True)
class Judged(Verdict):
    """What one pool of ours says to a claim or a number of a paper."""

    pool: str = ""

    @property
    def count(self) -> str:
        """As 3 models; a dash where nothing was measured."""
        return counted(self.n, self.unit) if self.n else "–"

    @property
    def badge(self) -> Badge:
        """The verdict in its colour, marked where it rests on one model."""
        marked = self.one_model and self.verdict != "not run"
        text = self.verdict + (MARK if marked else "") + (f"\n{self.tally}" if self.tally else "")
        return Badge(text, KINDS.get(self.verdict, "open"))


@dataclass(frozen=True)
class Claimed:
    """A claim and a verdict for each pool."""

    claim: Claim
    judged: Sequence[Judged]


@dataclass(frozen=True)
class Printed:
    """A number of a paper, and ours of each pool."""

    where: Mapping[str, str]
    measure: str
    value: float
    ours: Sequence[Judged]


@dataclass(frozen=True)
class PrintedTable:
    """A table of a paper, and its numbers with ours."""

    table: papers.Table
    lines: Sequence[Printed]

    @property
    def note(self) -> str:
        """Where it stands, and what has to be known of it."""
        printed = f"Printed in {self.table.printed}." if self.table.printed else ""
        return " ".join(part for part in (printed, self.table.note) if part)


@dataclass(frozen=True)
class Comparisons:
    """What the studies of a report are compared with; ``notes`` say what could not be read.

    measures   of probes, by their paths, that the claims read, each once in their order
    """

    claims: Sequence[Claimed] = ()
    tables: Sequence[PrintedTable] = ()
    notes: Sequence[str] = ()
    measures: Sequence[str] = ()


def judged_claims(beside: Comparisons) -> Section | None:
    """The table of claims; None where the study names none."""
    notes: list[Block] = [Paragraph(note, "note") for note in beside.notes]
    if not beside.claims:
        return Section("Claims", notes) if notes else None
    several = len({judged.pool for claimed in beside.claims for judged in claimed.judged}) > 1
    run = [(c, [j for j in c.judged if j.verdict != "not run"]) for c in beside.claims]
    rest = [(c, c.judged[:1]) for c, judged in run if not judged]
    caption = (
        "What the papers claim, judged from our results by the comparison that would show it. Ours: the difference "
        "(or correlation) with its 95 % interval, paired by models or, of one model, by seeds of fine-tuning; where "
        "that cannot be it is Welch's, and the text below says that the sides are not paired. Too small to tell: the "
        "interval has 0 inside, or the margin that is asked for (see below), all values are equal, or n < 2; of a "
        "correlation, the interval has 0 inside, p is over .05, or there are fewer than five conditions."
    )
    shown: list[Block] = [_claims_table(caption, run, several=several)] if len(rest) < len(run) else []
    if _marked(beside.claims):
        shown.append(Paragraph(MARKED))
    if rest:
        why: list[list[Entry]] = [[f"{c.claim.claim}\n{c.claim.source}", j.badge, j.text] for c, (j, *_) in rest]
        table = Table("Not run, and why.", ["Claim", "Verdict", "Why"], why, 3, "claims-not-run")
        shown.append(Folded(f"{plural(len(rest), 'claim')} not run here", [table]))
    counts = {verdict: sum(j.verdict == verdict for c in beside.claims for j in c.judged) for verdict in VERDICTS}
    total = "; ".join(f"{verdict}: {count}" for verdict, count in counts.items() if count)
    texts = [
        [f"{c.claim.id}{f', {j.pool}' if several and j.pool else ''}", j.text]
        for c in beside.claims
        for j in c.judged
        if j.text and j.verdict != "not run"
    ]
    details: list[Block] = []
    if texts:
        details = [Folded("How each claim was judged", [Table("Comparisons.", ["Claim", "What was found"], texts, 2)])]
    return Section("Claims", [Paragraph(f"{total}."), *shown, *details, *notes])


def _marked(held: Sequence[Claimed] | Sequence[Printed]) -> bool:
    judged = [j for one in held for j in (one.judged if isinstance(one, Claimed) else one.ours)]
    return any(j.one_model and j.verdict != "not run" for j in judged)


def _claims_table(caption: str, claims: Sequence[tuple[Claimed, Sequence[Judged]]], *, several: bool) -> Table:
    header = ["Claim", "Verdict", *(["Scale"] if several else []), "Paper", "Ours", "n"]
    body: list[list[Entry]] = []
    for c, judged in claims:
        for j in judged:
            pool = [j.pool or "–"] if several else []
            body.append(
                [f"{c.claim.claim}\n{c.claim.source}", j.badge, *pool, c.claim.paper_and_note or "–", j.ours, j.count]
            )
    return Table(caption, header, body, 4 if several else 3, "claims", digits=2)


def beside_papers(beside: Comparisons) -> Section | None:
    """Each table of a paper with our numbers; None where the study names none."""
    if not beside.tables:
        return None
    blocks: list[Block] = [Paragraph(READING)]
    if not _marked(beside.claims) and any(_marked(table.lines) for table in beside.tables):
        blocks.append(Paragraph(MARKED))
    for number, table in enumerate(beside.tables, 1):
        measured = any(j.ours is not None for line in table.lines for j in line.ours)
        heading = f"{table.table.paper}, {table.table.name}: {table.table.title}."
        if not table.lines:
            blocks.append(Paragraph(f"{heading} No numbers are printed. {table.note}".strip(), "note"))
        elif not measured:
            blocks.append(Paragraph(f"{heading} None of its {len(table.lines)} numbers was measured here.", "note"))
        else:
            blocks += _paper_blocks(table, heading, number)
    return Section("Beside the papers", blocks)


def _paper_blocks(table: PrintedTable, heading: str, number: int) -> list[Block]:
    """The numbers that were measured here, and behind a line all that are printed."""
    axes = list(dict.fromkeys(axis for line in table.lines for axis in line.where if axis != "task"))
    held = {axis: {line.where.get(axis, "–") for line in table.lines} for axis in axes}
    varied = [axis for axis in axes if len(held[axis]) > 1] or axes[:1]
    common = ", ".join(f"{axis} {next(iter(held[axis]))}" for axis in axes if axis not in varied)
    pools = list(dict.fromkeys(j.pool for line in table.lines for j in line.ours))
    header = [", ".join(varied) or "condition", "score", "Paper"]
    for pool in pools:
        name = f"\n{pool}" if len(pools) > 1 else ""
        header += [f"Ours{name}", f"Verdict{name}", f"n{name}"]
    body: list[list[Entry]] = []
    known: list[list[Entry]] = []
    for line in table.lines:
        row: list[Entry] = [", ".join(line.where.get(axis, "–") for axis in varied), _score(line), line.value]
        of_pool = {j.pool: j for j in line.ours}
        for pool in pools:
            ours = of_pool.get(pool, Judged("not run", None, 0, "", pool=pool))
            row += [ours.ours, ours.badge, ours.count]
        body.append(row)
        if any(j.ours is not None for j in line.ours):
            known.append(row)
    verdicts = [j.verdict for line in table.lines for j in line.ours]
    counts = "; ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in VERDICTS if verdict in verdicts)
    told = f"All: {common}." if common else ""
    scale = f"Ours: {pools[0]}." if len(pools) == 1 and pools[0] else ""
    caption = " ".join(part for part in (heading, told, scale, f"Verdicts: {counts}.", table.note) if part)
    name = f"paper-{slug(f'{table.table.paper} {table.table.name}', number)}"
    notes = _notes(table, varied, name)
    if len(known) == len(body):
        return [Table(caption, header, body, 2, name, ROWS, table.table.digits), *notes]
    whole = Table(f"{heading} {told}", header, body, 2, name, ROWS, table.table.digits)
    return [
        Table(caption, header, known, 2, f"{name}-measured", ROWS, table.table.digits),
        *notes,
        Folded(f"{heading} All {len(body)} numbers", [whole]),
    ]


def _notes(table: PrintedTable, varied: Sequence[str], name: str) -> list[Block]:
    """What our means are over and what was left out of them, where there is anything to say."""
    rows = [
        [", ".join(line.where.get(axis, "–") for axis in varied), _score(line), *([j.pool] if j.pool else []), j.text]
        for line in table.lines
        for j in line.ours
        if j.ours is not None and j.text
    ]
    if not rows:
        return []
    header = ["condition", "score", *(["scale"] if len(rows[0]) > 3 else []), "Of what"]
    caption = "Conditions and seeds of ours, and signs that are not the paper's."
    return [Folded("What these means are over", [Table(caption, header, rows, 4, f"{name}-over", ROWS)])]


def _score(line: Printed) -> str:
    return f"{line.where.get('task', '')} {MEASURES.get(line.measure, line.measure)}".strip()


T = TypeVar("T")
OF_PROBE = "probe:"
"""What the name of a measure of a probe starts with, in a claim."""


def compared(studies: Sequence[Study]) -> Comparisons:
    """Every claim and table that one of the studies names; a file that cannot be read is noted, the rest goes on."""
    notes: list[str] = []
    claims = _read("claims", read_claims, studies, notes)
    tables = _read("paper", read_tables, studies, notes)
    if not claims and not tables:
        return Comparisons(notes=tuple(notes))
    found = {name: results_of(held) for name, held in pools(studies).items()}
    judged, beside_ours = [_claimed(claim, found) for claim in claims], [_paper_table(table, found) for table in tables]
    return Comparisons(judged, beside_ours, tuple(notes), _measures(claims))


def _measures(claims: Sequence[Claim]) -> tuple[str, ...]:
    """Of probes, by their paths, each once."""
    read = [name for claim in claims for held in claim.quantities() for name in (held.measure, held.instead) if name]
    return tuple(dict.fromkeys(name.removeprefix(OF_PROBE) for name in read if name.startswith(OF_PROBE)))


def _read(key: str, read: Callable[[str], Iterable[T]], studies: Sequence[Study], notes: list[str]) -> list[T]:
    """All that the files of ``key`` in the configs of the studies hold, each file once."""
    found: list[T] = []
    for name in dict.fromkeys(name for study in studies for name in names_in(study.config.get(key))):
        try:
            found += read(name)
        except InputError as error:
            notes.append(f"{key} {name}: {error}")
    return found


def _claimed(claim: Claim, found: Mapping[str, Results]) -> Claimed:
    judged, telling = list[Judged](), list[Judged]()
    for pool, results in found.items():
        said = judge(claim, results)
        judged.append(Judged(**vars(said), pool=pool))
        if said.verdict != "not run" or any(part.why not in ("", NOTHING) for part in said.parts):
            telling.append(judged[-1])
    run = [held for held in judged if held.verdict != "not run"]
    return Claimed(claim, run or telling[:1] or judged[:1])


def _paper_table(table: papers.Table, found: Mapping[str, Results]) -> PrintedTable:
    rows = {pool: beside(table, results) for pool, results in found.items()}
    measured = [pool for pool, held in rows.items() if any(row.ours is not None for row in held)]
    lines = []
    for number, cell in enumerate(table.cells):
        within = range_of(cell.quantity.measure) if cell.against is None else None
        ours = [_judged(pool, rows[pool][number], within) for pool in measured]
        where = dict(cell.quantity.where)
        if cell.against is not None:
            other = ", ".join(label for axis, label in cell.against.where.items() if where.get(axis) != label)
            where["gain over"] = other
        lines.append(Printed(where, cell.quantity.measure, cell.value, ours))
    return PrintedTable(table, lines)


def _judged(pool: str, row: Beside, within: Range | None) -> Judged:
    held: Estimate | None = row.ours
    if held is None:
        return Judged(row.verdict, None, 0, row.text, pool=pool)
    ours, text = replace(held.interval, within=within), "; ".join(row.notes)
    return Judged(row.verdict, ours, ours.n, text, unit=held.unit, one_model=held.one_model, pool=pool)
