"""One report of several study folders, or of what was carried away of them: study.json and the two parquet files.

Folders of one study, each with some of its cells, are put together again; studies of other settings stand side by
side, told apart by the axes ``study`` and ``scale``, and runs that several of them have count once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd

from probes.report.data import Cell, Study, names_of
from probes.report.numbers import plural
from probes.report.pools import names_of_parts
from probes.report.scores import grouped
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.read import concat, distinct, is_score, labels_of
from probes.results.schema import Labels
from synthlang.fingerprint import fingerprint

RANK = {"done": 0, "failed": 1}
"""Of the states of one cell in several folders the first counts; any other is a cell not yet run."""
STUDY, SCALE = "study", "scale"


def same_together(studies: Sequence[Study]) -> list[Study]:
    """Studies of the same name and fingerprint become one, in order of appearance.

    A cell is taken from the folder where it is done, of several such from the first; its rows and measures with it.
    """
    groups = grouped(studies, lambda study: (study.name, study.fingerprint))
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def cells_of_parts(parts: Sequence[Study]) -> list[tuple[Cell, int]]:
    """The cells of a study, each with the number of the part where it is done, of several such the first."""
    found = grouped(((c, i) for i, s in enumerate(parts) for c in s.cells), lambda numbered: numbered[0].name)
    return [min(several, key=lambda numbered: RANK.get(numbered[0].status, len(RANK))) for several in found.values()]


def _merged(studies: Sequence[Study]) -> Study:
    best = cells_of_parts(studies)
    tables = [
        study.measured[study.measured["cell"].isin([cell.name for cell, number in best if number == i])]
        for i, study in enumerate(studies)
    ]
    names = [f"folder {i}" for i in range(1, 1 + len(studies))]
    return replace(
        studies[0],
        scale=next((study.scale for study in studies if study.scale), ""),
        cells=tuple(cell for cell, _ in best),
        measured=concat(tables),
        seconds={stage: seconds for study in studies for stage, seconds in study.seconds.items()},
        environment=_one_or_all(dict(zip(names, (study.environment for study in studies), strict=True))),
        examples=max((study.examples for study in studies), key=len),
        dropped=_one_or_all({name: s.dropped for name, s in zip(names, studies, strict=True) if s.dropped}),
        notes=tuple(dict.fromkeys(note for study in studies for note in study.notes)),
    )


def without_repeats(studies: Sequence[Study]) -> list[Study]:
    """The studies without what an earlier one has: rows, measures and whole cells of equal stage fingerprints.

    A row of results is the same run where pretraining, adjustment and transfer are; one whose run is not known stays. A
    note of a study says how many of its rows count elsewhere.
    """
    runs: dict[str, str] = {}
    stages: set[str] = set()
    found = []
    for study, name in zip(studies, names_of(studies), strict=True):
        found.append(_without(study, runs, stages))
        runs = dict.fromkeys(study.measured.loc[_is_scored(study.measured), "run"].unique(), name) | runs
        stages |= {stage for cell in study.cells for stage in _stages(cell)}
    return found


def _is_scored(table: pd.DataFrame) -> pd.Series[bool]:
    """Which rows tell the run of a row of results."""
    return is_score(table) & (table["run"] != "") & ~table["measure"].isin(list(ALIGNMENT_MEASURES))


def _stages(cell: Cell) -> set[str]:
    """Kind and fingerprint of each."""
    return {f"{stage.split(' ')[0]} {key}" for stage, key in cell.stages.items() if key}


def _without(study: Study, runs: Mapping[str, str], stages: set[str]) -> Study:
    table = study.measured
    repeated = table[_is_scored(table) & table["run"].isin(list(runs))]
    gone = is_score(table) & table["row"].isin(repeated["row"]) | ~is_score(table) & table["run"].isin(list(stages))
    kept = table[~gone]
    scored = set(kept.loc[is_score(kept), "cell"].unique())
    cells = [c for c in study.cells if c.status != "done" or c.name in scored or _stages(c) - stages]
    first = ", ".join(dict.fromkeys(runs[run] for run in repeated["run"]))
    number, total = repeated["row"].nunique(), table.loc[is_score(table), "row"].nunique()
    told = f"{number:,} of {plural(total, 'row')} of results are the same runs as in {first} (equal fingerprints of "
    told += "all their stages): they count once, there."
    return replace(study, cells=tuple(cells), measured=kept, notes=(*study.notes, told) if number else study.notes)


def joined(several: Sequence[Study]) -> Study:
    """All studies as one, runs that several have once: cells called ``STUDY: CELL``, with the labels ``study`` (by
    ``names_of_parts``) and ``scale`` where these differ."""
    studies, parts_of = without_repeats(several), names_of_parts(several)
    if len(studies) == 1:
        return studies[0]
    names, scales = names_of(studies), {study.scale for study in studies}
    # studies that differ in nothing but their scale are rows of one table; the name of the study would say it again
    told = (len(scales) == len(studies) and len({_bare(study) for study in studies}) == 1) or len(set(parts_of)) == 1
    parts = {}
    for study, name, part in zip(studies, names, parts_of, strict=True):
        labels = ({} if told else {STUDY: part}) | ({SCALE: study.scale or "–"} if len(scales) > 1 else {})
        parts[name] = _part(study, name, labels)
    axes = [*([] if told else [STUDY]), *([SCALE] if len(scales) > 1 else [])]
    return replace(
        next(iter(parts.values())),
        name="joined",
        title="; ".join(dict.fromkeys(study.title for study in studies)),
        fingerprint=fingerprint("joined", studies=[study.fingerprint for study in studies]),
        scale="; ".join(dict.fromkeys(study.scale for study in studies if study.scale)),
        config={name: part.config for name, part in parts.items()},
        settings={name: part.settings for name, part in parts.items() if part.settings},
        environment=_one_or_all({name: part.environment for name, part in parts.items()}),
        axes=tuple(dict.fromkeys([*axes, *(axis for part in parts.values() for axis in part.axes)])),
        cells=tuple(cell for part in parts.values() for cell in part.cells),
        seconds={stage: seconds for part in parts.values() for stage, seconds in part.seconds.items()},
        dropped={name: part.dropped for name, part in parts.items() if part.dropped},
        examples=_examples(list(parts.values())),
        measured=concat([part.measured for part in parts.values()]),
        notes=tuple(f"{name}: {note}" for name, part in parts.items() for note in part.notes),
    )


def _examples(parts: Sequence[Study]) -> tuple[Mapping[str, str], ...]:
    """Each language and sentence once."""
    found = {(one["language"], one["text"]): one for part in reversed(parts) for one in reversed(part.examples)}
    return tuple(reversed(found.values()))


def _bare(study: Study) -> str:
    return study.name.replace(study.scale, "").strip("-_ ") if study.scale else study.name


def _part(study: Study, name: str, labels: dict[str, str]) -> Study:
    pairs = distinct(study.measured, "cell", "labels")
    texts = {cell: Labels({**labels, **(labels_of(of) or {"cell": cell})}) for cell, of in pairs}
    names = {cell: f"{name}: {cell}" for cell in texts}
    return replace(
        study,
        cells=tuple(replace(c, name=f"{name}: {c.name}", labels={**labels, **c.labels}) for c in study.cells),
        examples=tuple({**one, "cell": f"{name}: {one['cell']}"} for one in study.examples),
        measured=study.measured.assign(
            cell=study.measured["cell"].map(names), labels=study.measured["cell"].map(texts)
        ),
    )


def _one_or_all(values: dict[str, Any]) -> Any:
    """Only one of values by name where all are equal."""
    first = next(iter(values.values()), None)
    return first if values and all(value == first for value in values.values()) else values
