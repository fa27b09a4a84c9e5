"""The number of models that a claim is judged on, which a study declares before it runs.

A **model** is a pretraining, named by its seed. The planned models of a claim are those of the first seeds in the order
of the grid. A claim is judged once all of them are finished. A planned model that does not converge, or that fails, is
finished and excluded: it counts as one of the planned models, enters no comparison, and no later seed replaces it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from synthlang.wording import plural

Planned = int | Mapping[str, int]
"""The number of models of all claims, or of each claim by its id."""
Status = Literal["confirmed", "exploratory", "not yet judged"]
"""Status of a verdict.

``confirmed`` is any verdict on the number of models that was planned. ``exploratory`` is a verdict without a planned
number of models. A claim that is ``not yet judged`` waits for planned models.
"""
STATUSES: tuple[Status, ...] = get_args(Status)


def planned_models(planned: Planned | None, claim: str) -> int | None:
    """Return the number of models that is planned for a claim, or None if no number is planned."""
    return planned.get(claim) if isinstance(planned, Mapping) else planned


@dataclass(frozen=True)
class Plan:
    """The planned models of a claim in one study.

    Attributes:
        models: The planned number of models.
        seeds: The pretraining seeds of the planned models, fewer if the grid has fewer.
        finished: The number of planned models that are finished.
        excluded: The number of finished models that are excluded in at least one cell.
    """

    models: int
    seeds: tuple[int, ...]
    finished: int
    excluded: int = 0

    @property
    def complete(self) -> bool:
        """True if all planned models are finished."""
        return self.finished >= self.models

    @property
    def progress(self) -> str:
        """The number of finished models in words: ``7 of 12 planned models are finished``."""
        excluded = f", {self.excluded} of them excluded in part" if self.excluded else ""
        return f"{self.finished} of {plural(self.models, 'planned model')} are finished{excluded}"


def status_of(plans: Sequence[Plan]) -> Status:
    """Return the status of a verdict that rests on these plans. Without plans it is exploratory."""
    if not plans:
        return "exploratory"
    return "confirmed" if all(plan.complete for plan in plans) else "not yet judged"
