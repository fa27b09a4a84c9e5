"""Claims with their verdicts, and the tables of the papers with ours beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from probes.report.blocks import Block, Folded, Paragraph, Section, Table
from probes.report.figure import slug
from probes.report.numbers import Badge, Entry, plural
from probes.statistics import Interval

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
    "the other; differs: one is; agrees in sign: no order is decided, but the sign is; too small to tell: nothing is, "
    "since the intervals of the differences have 0 inside."
)
ROWS = 100
"""Most rows of a paper's table on the page."""


@dataclass(frozen=True)
class Judged:
    """What one scale of ours says to a claim or a number of a paper."""

    scale: str
    verdict: str
    ours: Interval | None
    n: int
    text: str = ""


@dataclass(frozen=True)
class Claimed:
    """A claim, where it stands, what the paper measured, and a verdict for each scale."""

    name: str
    claim: str
    source: str
    paper: str
    judged: Sequence[Judged]


@dataclass(frozen=True)
class Printed:
    """A number of a paper, and ours of each scale."""

    where: Mapping[str, str]
    measure: str
    value: float
    ours: Sequence[Judged]


@dataclass(frozen=True)
class PaperTable:
    """A table of a paper."""

    paper: str
    name: str
    title: str
    note: str
    lines: Sequence[Printed]


@dataclass(frozen=True)
class Comparisons:
    """What the studies of a report are compared with; ``notes`` say what could not be read."""

    claims: Sequence[Claimed] = ()
    tables: Sequence[PaperTable] = ()
    notes: Sequence[str] = ()


def badge(verdict: str) -> Badge:
    """A verdict in its colour."""
    return Badge(verdict, KINDS.get(verdict, "open"))


def judged_claims(beside: Comparisons) -> Section | None:
    """The table of claims; None where the study names none."""
    notes: list[Block] = [Paragraph(note, "note") for note in beside.notes]
    if not beside.claims:
        return Section("Claims", notes) if notes else None
    several = len({judged.scale for claimed in beside.claims for judged in claimed.judged}) > 1
    run = [(c, [j for j in c.judged if j.verdict != "not run"]) for c in beside.claims]
    rest = [(c, c.judged[:1]) for c, judged in run if not judged]
    caption = (
        "What the papers claim, judged from our results by the comparison that would show it. Ours: the difference "
        "(or correlation) with its 95 % interval, paired over seeds. Too small to tell: the interval has 0 inside, or "
        "n < 2 (fewer than five conditions for a correlation). n: models, or seeds of one model, or conditions."
    )
    shown: list[Block] = [_claims(caption, run, "claims", several=several)] if len(rest) < len(run) else []
    if rest:
        table = _claims("Nothing was measured that they compare.", rest, "claims-not-run", several=False)
        shown.append(Folded(f"{plural(len(rest), 'claim')} not run here", [table]))
    counts = {verdict: sum(j.verdict == verdict for c in beside.claims for j in c.judged) for verdict in VERDICTS}
    total = "; ".join(f"{verdict}: {count}" for verdict, count in counts.items() if count)
    texts = [
        [f"{c.name}{f', {j.scale}' if several and j.scale else ''}", j.text]
        for c in beside.claims
        for j in c.judged
        if j.text and j.verdict != "not run"
    ]
    details: list[Block] = []
    if texts:
        details = [Folded("How each claim was judged", [Table("Comparisons.", ["Claim", "What was found"], texts, 2)])]
    return Section("Claims", [Paragraph(f"{total}."), *shown, *details, *notes])


def _claims(caption: str, claims: Sequence[tuple[Claimed, Sequence[Judged]]], name: str, *, several: bool) -> Table:
    header = ["Claim", "Verdict", *(["Scale"] if several else []), "Paper", "Ours", "n"]
    body: list[list[Entry]] = []
    for c, judged in claims:
        for j in judged:
            scale = [j.scale or "–"] if several else []
            body.append([f"{c.claim}\n{c.source}", badge(j.verdict), *scale, c.paper or "–", j.ours, j.n])
    return Table(caption, header, body, 4 if several else 3, name, digits=2)


def beside_papers(beside: Comparisons) -> Section | None:
    """Each table of a paper with our numbers; None where the study names none."""
    if not beside.tables:
        return None
    blocks: list[Block] = [Paragraph(READING)]
    for number, table in enumerate(beside.tables, 1):
        measured = any(j.ours is not None for line in table.lines for j in line.ours)
        heading = f"{table.paper}, {table.name}: {table.title}."
        if not table.lines:
            blocks.append(Paragraph(f"{heading} No numbers are printed. {table.note}".strip(), "note"))
        elif not measured:
            blocks.append(Paragraph(f"{heading} None of its {len(table.lines)} numbers was measured here.", "note"))
        else:
            blocks += _beside(table, heading, number)
    return Section("Beside the papers", blocks)


def _beside(table: PaperTable, heading: str, number: int) -> list[Block]:
    """The numbers that were measured here, and behind a line all that are printed."""
    axes = list(dict.fromkeys(axis for line in table.lines for axis in line.where if axis != "task"))
    held = {axis: {line.where.get(axis, "–") for line in table.lines} for axis in axes}
    varied = [axis for axis in axes if len(held[axis]) > 1] or axes[:1]
    common = ", ".join(f"{axis} {next(iter(held[axis]))}" for axis in axes if axis not in varied)
    scales = list(dict.fromkeys(j.scale for line in table.lines for j in line.ours))
    header = [", ".join(varied) or "condition", "score", "Paper"]
    for scale in scales:
        name = f"\n{scale}" if len(scales) > 1 else ""
        header += [f"Ours{name}", f"Verdict{name}", f"Seeds{name}"]
    body: list[list[Entry]] = []
    known: list[list[Entry]] = []
    for line in table.lines:
        score = f"{line.where.get('task', '')} {MEASURES.get(line.measure, line.measure)}".strip()
        row: list[Entry] = [", ".join(line.where.get(axis, "–") for axis in varied), score, line.value]
        of_scale = {j.scale: j for j in line.ours}
        for scale in scales:
            ours = of_scale.get(scale)
            row += [None, badge("not run"), 0] if ours is None else [ours.ours, badge(ours.verdict), ours.n]
        body.append(row)
        if any(j.ours is not None for j in line.ours):
            known.append(row)
    verdicts = [j.verdict for line in table.lines for j in line.ours]
    counts = "; ".join(f"{verdict} {verdicts.count(verdict)}" for verdict in VERDICTS if verdict in verdicts)
    told = f"All: {common}." if common else ""
    scale = f"Ours: {scales[0]}." if len(scales) == 1 and scales[0] else ""
    caption = " ".join(part for part in (heading, told, scale, f"Verdicts: {counts}.", table.note) if part)
    name = f"paper-{slug(f'{table.paper} {table.name}', number)}"
    if len(known) == len(body):
        return [Table(caption, header, body, 2, name, ROWS)]
    whole = Table(f"{heading} {told}", header, body, 2, name, ROWS)
    return [
        Table(caption, header, known, 2, f"{name}-measured", ROWS),
        Folded(f"{heading} All {len(body)} numbers", [whole]),
    ]
