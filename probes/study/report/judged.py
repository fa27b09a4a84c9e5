"""What studies are compared with, looked up and judged: their claims and the tables of their papers, pool by pool.

Studies of one scale and the same data are judged together (pools.py), since a claim may compare cells of two of them;
numbers of models of different size, or of different texts, are never averaged. Each study is judged by its own labels,
also for runs that another one has (pooled.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from probes.study.judged.claims import Claim, read_claims
from probes.study.judged.estimates import NOTHING, Estimate
from probes.study.judged.observed import Results
from probes.study.judged.paper_tables import Beside, beside
from probes.study.judged.papers import Table, names_in, read_tables
from probes.study.judged.verdicts import judge
from probes.study.report.beside import Claimed, Comparisons, Judged, PaperTable, Printed
from probes.study.report.data import Study
from probes.study.report.pools import pools, results_of
from probes.study.report.scores import Range, range_of
from synthlang.errors import InputError

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
    judged, beside_ours = [_claimed(claim, found) for claim in claims], [_beside(table, found) for table in tables]
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
        judged.append(Judged(pool, said.verdict, said.ours, said.n, said.unit, said.one_model, said.text, said.tally))
        if said.verdict != "not run" or any(part.why not in ("", NOTHING) for part in said.parts):
            telling.append(judged[-1])
    run = [held for held in judged if held.verdict != "not run"]
    return Claimed(claim.id, claim.claim, claim.source, claim.paper_and_note, run or telling[:1] or judged[:1])


def _beside(table: Table, found: Mapping[str, Results]) -> PaperTable:
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
    note = " ".join(part for part in (f"Printed in {table.printed}." if table.printed else "", table.note) if part)
    return PaperTable(table.paper, table.name, table.title, note, table.digits, lines)


def _judged(pool: str, row: Beside, within: Range | None) -> Judged:
    held: Estimate | None = row.ours
    if held is None:
        return Judged(pool, row.verdict, None, text=row.text)
    ours = replace(held.interval, within=within)
    return Judged(pool, row.verdict, ours, ours.n, held.unit, held.one_model, "; ".join(row.notes))
