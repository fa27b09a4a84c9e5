"""The planned models of the claims of archived or running studies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from probes.claims.papers import names_in
from probes.claims.planned import Plan, planned_models
from probes.report.data import Cell, Study
from probes.report.scores import grouped

SEED = "pretrain.seed"
FINISHED = ("done", "failed")
"""States of cells that will not change."""


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
    by_seed = grouped(study.cells, lambda cell: seed_of(study, cell))
    seeds = [seed for seed in by_seed if seed is not None][:models]
    finished = [seed for seed in seeds if all(cell.status in FINISHED for cell in by_seed[seed])]
    excluded = [seed for seed in finished if any(c.status == "failed" or c.name in study.failed for c in by_seed[seed])]
    return Plan(models, tuple(seeds), len(finished), len(excluded))


def seed_of(study: Study, cell: Cell) -> int | None:
    """Return the seed of the pretraining of a cell, or None if the model of the cell is given."""
    pretrain = study.settings.get("pretrain")
    common = pretrain.get("seed") if isinstance(pretrain, Mapping) else None
    found = str(cell.overrides.get(SEED, cell.labels.get(SEED, common)))
    return int(found) if found.isdecimal() else None


def on_plan(study: Study, plan: Plan) -> Study:
    """Return the study with only the measurements of the models that ``plan`` names by their pretraining seeds."""
    rows = study.measured["pretrain_seed"].isin(plan.seeds)
    return replace(study, measured=study.measured[rows])
