"""One report of several studies: merging the parts of a study, joining studies, and the pools for their verdicts.

The planned models of a claim are chosen here too (``plan_of``), because the verdict of a pool rests on them.

The folder of a study can come from another machine. A report needs its study.json and its Parquet files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from probes.claims.observed import Results, is_after
from probes.claims.papers import names_in
from probes.claims.planned import Plan, planned_models
from probes.report.data import Cell, Study
from probes.report.scores import grouped
from probes.results.labels import axes_that_set
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.pooling import pooled
from probes.results.read import concat, distinct, is_score, labels_of
from probes.results.schema import Labels
from synthlang.fingerprint import fingerprint
from synthlang.wording import plural

RANK = {"done": 0, "failed": 1}
"""State of a cell → rank. If parts of a study share a cell, the part with the lowest rank is used.

Other states rank last.
"""
STUDY, SCALE = "study", "scale"
SEED = "pretrain.seed"
REPEATED = (
    "{:,} of {} of results are the same runs as in {} (equal fingerprints of all their stages). They count once, in "
    "that study."
)


def pools(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Group studies with the same scale and the same declared pool. Claims are tested on each pool as a whole.

    Returns:
        Name of each pool → its studies, in order of appearance. The name is the scale. If several pools have this
        scale, the declared name follows in brackets, or stands alone for studies without a scale.
    """
    numbered = zip(studies, _declared(studies), strict=True)
    groups = grouped(numbered, lambda pair: (pair[0].scale, pair[1]))
    pools_of = Counter(scale for scale, _ in groups)
    return {
        scale if pools_of[scale] == 1 else f"{scale} ({pool})" if scale else pool: [study for study, _ in of]
        for (scale, pool), of in groups.items()
    }


def _declared(studies: Sequence[Study]) -> list[str]:
    """Return the pool that each study declares, or the name of the study by default."""
    return [str(study.config.get("pool") or name) for study, name in zip(studies, names_of(studies), strict=True)]


def names_of_parts(studies: Sequence[Study]) -> list[str]:
    """Return the name of each study in a joined report: the name of its pool if the pool has several studies."""
    names = _declared(studies)
    return [pool if names.count(pool) > 1 else name for pool, name in zip(names, names_of(studies), strict=True)]


def results_of(studies: Sequence[Study]) -> Results:
    """Return the results of all studies of a pool. Claims find numbers in them by labels.

    The rows of a run that an earlier study has under the same labels are left out.
    """
    after = [axes_that_set(study.config, is_after) for study in studies]
    before = {axis for study, axes in zip(studies, after, strict=True) for axis in {*study.axes} - axes}
    return Results(pooled([study.table for study in studies]), set().union(*after) - before)


def same_together(studies: Sequence[Study]) -> list[Study]:
    """Merge the parts of each study, which have equal names and fingerprints. The order of appearance is kept.

    Each cell, with its rows, is taken from the first part in which it is done. If no part has finished it, a part in
    which it failed is preferred.
    """
    groups = grouped(studies, lambda study: (study.name, study.fingerprint))
    return [group[0] if len(group) == 1 else _merged(group) for group in groups.values()]


def cells_of_parts(parts: Sequence[Study]) -> list[tuple[Cell, int]]:
    """Return each cell of a study once, from the part where its state ranks first, with the index of the part."""
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
    """Return the studies without the measurements of runs that an earlier study has.

    A row of results is left out as a whole. A finished cell is left out if none of its measurements remains. A
    measurement whose run is unknown stays. If a study loses rows of results, it gets a note with their number.
    """
    runs: dict[str, str] = {}
    found = []
    for study, name in zip(studies, names_of(studies), strict=True):
        table = study.measured
        # an alignment among the scores of a task has another run than the task
        named = table[(table["run"] != "") & ~table["measure"].isin(list(ALIGNMENT_MEASURES))]
        repeated = named[named["run"].isin(list(runs))]
        scores = repeated[is_score(repeated)]
        left = table.drop(repeated.index)
        left = left[~(is_score(left) & left["row"].isin(scores["row"]))]
        gone = {*table["cell"].unique()} - {*left["cell"].unique()}
        notes = study.notes
        if not scores.empty:
            first = ", ".join(dict.fromkeys(runs[run] for run in scores["run"]))
            total = plural(table.loc[is_score(table), "row"].nunique(), "row")
            notes = (*notes, REPEATED.format(scores["row"].nunique(), total, first))
        cells = tuple(cell for cell in study.cells if cell.status != "done" or cell.name not in gone)
        found.append(replace(study, cells=cells, measured=left, notes=notes))
        runs = dict.fromkeys(named["run"].unique(), name) | runs
    return found


def names_of(studies: Sequence[Study]) -> list[str]:
    """Return a name for each study, which is distinct if studies of one name have different fingerprints.

    If several studies have the same name, the first six characters of the fingerprint are appended. A study without a
    fingerprint gets its number in ``studies``, from 1.
    """
    names = [study.name for study in studies]
    return [
        study.name if names.count(study.name) == 1 else f"{study.name} {study.fingerprint[:6] or i}"
        for i, study in enumerate(studies, 1)
    ]


def joined(several: Sequence[Study]) -> Study:
    """Join all studies into one, in which a run of several studies counts once.

    A single study stays as it is. Otherwise a cell is called ``STUDY: CELL``. If the studies differ in name (see
    ``names_of_parts``) or scale, the cell also has the label ``study`` or ``scale``. At least one study is needed.
    """
    studies, parts_of = without_repeats(several), names_of_parts(several)
    if len(studies) == 1:
        return studies[0]
    names, scales = names_of(studies), {study.scale for study in studies}
    axes = [*([STUDY] if len(set(parts_of)) > 1 else []), *([SCALE] if len(scales) > 1 else [])]
    parts = {}
    for study, name, part in zip(studies, names, parts_of, strict=True):
        labels = {STUDY: part, SCALE: study.scale or "–"}
        parts[name] = _part(study, name, {axis: labels[axis] for axis in axes})
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
    """Merge the example sentences without repetitions."""
    found = {(one["language"], one["text"]): one for part in reversed(parts) for one in reversed(part.examples)}
    return tuple(reversed(found.values()))


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
    """Return the common value, or the values by name if they differ."""
    first = next(iter(values.values()), None)
    return first if values and all(value == first for value in values.values()) else values


def plan_of(study: Study, file: str, claim: str) -> Plan | None:
    """Return the planned models of a claim in a study, or None if the study declares no number for the claim.

    The result is also None if the study does not name the file of claims.

    Args:
        study: The study.
        file: The name of the file of claims, as studies name it.
        claim: The id of the claim.
    """
    names = names_in(study.config.get("claims"))
    models = planned_models(study.config.get("planned"), claim) if file in names else None
    if models is None:
        return None
    by_seed = grouped(study.cells, lambda cell: _seed_of(study, cell))
    seeds = [seed for seed in by_seed if seed is not None][:models]
    finished = [seed for seed in seeds if all(cell.status in RANK for cell in by_seed[seed])]
    excluded = [seed for seed in finished if any(c.status == "failed" or c.name in study.failed for c in by_seed[seed])]
    return Plan(models, tuple(seeds), len(finished), len(excluded))


def _seed_of(study: Study, cell: Cell) -> int | None:
    """Return the seed of the pretraining of a cell, or None if the model of the cell is given."""
    pretrain = study.settings.get("pretrain")
    common = pretrain.get("seed") if isinstance(pretrain, Mapping) else None
    found = str(cell.overrides.get(SEED, cell.labels.get(SEED, common)))
    return int(found) if found.isdecimal() else None


def on_plan(study: Study, plan: Plan) -> Study:
    """Return the study with only the measurements of the models that ``plan`` names by their pretraining seeds."""
    rows = study.measured["pretrain_seed"].isin(plan.seeds)
    return replace(study, measured=study.measured[rows])
