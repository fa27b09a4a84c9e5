"""Fits that stages of a study have in common: one model, fine-tuned in one way on the same items, and tested in many
languages, or after rotations that leave the language that is trained on as it is.

The runner makes a folder in the store for every fit that two stages or more need, and deletes it when the last of them
has ended. A stage that finds the folder keeps its fit there, or finds it made. So weights are kept no longer than
somebody waits for them, and results do not depend on who made a fit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from probes.study.digests import Digests
from probes.study.stage import OF_DATA, Stage, StageKeys, TransferStage, TuneStage, transferred
from probes.transfer.config import FORMAT
from probes.transfer.shared import SharedPlace
from synthlang.fingerprint import fingerprint
from synthlang.store import Store

if TYPE_CHECKING:  # it loads torch, which a runner does without
    from probes.pretrained import Role

FITS = "fits"  # in the store


def fits_of(stage: Stage, stage_keys: StageKeys) -> dict[Role, str]:
    """The keys of the fits of a stage, by the language that they are trained on; none of a stage without fits."""
    if not isinstance(stage, TransferStage | TuneStage):
        return {}
    roles: tuple[Role, ...] = (
        ("source", "target") if isinstance(stage, TransferStage) and stage.config.sup else ("source",)
    )
    parents = [parent.key for parent in stage.parents]
    formats = [FORMAT, *OF_DATA]

    def key(trained: Role) -> str:
        settings = transferred(stage.config.of_fit(trained), stage.model, stage.seed, stage_keys)
        return fingerprint("fit", formats=formats, settings=settings, parents=parents, trained=trained)

    return {role: key(role) for role in roles}


def places_of(stage: Stage, store: Store) -> dict[Role, SharedPlace]:
    """Where the fits of a stage are kept that others need, too."""
    return {role: _place(key, store) for role, key in fits_of(stage, StageKeys(Digests(store))).items()}


def _place(key: str, store: Store) -> SharedPlace:
    return SharedPlace(store.root / FITS / key, store.lock("fit", key))


def left_places(store: Store) -> list[SharedPlace]:
    """Those that are there: a runner that was killed leaves them to its next start."""
    return [_place(folder.name, store) for folder in sorted((store.root / FITS).glob("*"))]


class SharedFits:
    """The places of the fits that two of the ``stages``, which are to be made, or more need."""

    def __init__(self, stages: Iterable[Stage], store: Store, stage_keys: StageKeys) -> None:
        self._store = store
        self._of = {stage.key: tuple(fits_of(stage, stage_keys).values()) for stage in stages}
        self._left = Counter(key for keys in self._of.values() for key in keys)
        self._running = set[str]()
        for key, count in self._left.items():
            if count > 1:
                _place(key, store).folder.mkdir(parents=True, exist_ok=True)

    def is_busy(self, stage: str) -> bool:
        """Whether a stage, by its key, needs a fit that one that runs may be making."""
        needed = set(self._of[stage])
        return any(not needed.isdisjoint(self._of[other]) for other in self._running)

    def started(self, stage: str) -> None:
        self._running.add(stage)

    def ended(self, stage: str) -> None:
        """A stage is over: what nobody needs any more is deleted."""
        self._running.discard(stage)
        for key in self._of.pop(stage, ()):
            self._left[key] -= 1
            if not self._left[key]:
                _place(key, self._store).delete()
