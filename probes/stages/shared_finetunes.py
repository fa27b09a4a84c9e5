"""Fine-tuned models that stages of a study share.

A model that was fine-tuned once can be tested in many languages, and after rotations that do not change the training
language. The runner makes a folder in the store for every fine-tuning that at least two stages need, and deletes the
folder when the last of them has ended. The first stage stores its fine-tuning in the folder, and the others load it.
Weights are therefore kept only while a stage needs them, and results do not depend on the stage that made them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from probes.stages.base import Stage, StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.transfer.shared import SharedPlace
from synthlang.store import Store

if TYPE_CHECKING:  # with torch, which a runner does without
    from probes.models.pretrained import Role

FITS = "fits"
"""Folder of the store with the shared fine-tunings."""


def shared_places(stage: Stage, store: Store) -> dict[Role, SharedPlace]:
    """Return the place in the store of each fine-tuning of a stage: language of training → place.

    Other stages with the same fine-tuning have the same place.

    Raises:
        InputError: The table of content hashes in the store cannot be read.
    """
    return {role: _place(key, store) for role, key in stage.finetune_keys(StageKeys(ContentHashes(store))).items()}


def _place(key: str, store: Store) -> SharedPlace:
    return SharedPlace(store.root / FITS / key, store.lock("fit", key))


def left_places(store: Store) -> list[SharedPlace]:
    """Return the places of all shared fine-tunings in a store.

    Running studies may use some of them. A place that no running study uses was left by a killed runner.
    """
    return [_place(folder.name, store) for folder in sorted((store.root / FITS).glob("*"))]


class SharedFinetunes:
    """Places of the fine-tunings that at least two unfinished stages need. The constructor makes their folders.

    Args:
        stages: The unfinished stages.
        store: The store of the stages.
        keys: Cache of the keys of stages.
    """

    def __init__(self, stages: Iterable[Stage], store: Store, keys: StageKeys) -> None:
        self._store = store
        self._of = {stage.key: tuple(stage.finetune_keys(keys).values()) for stage in stages}
        self._left = Counter(key for needed in self._of.values() for key in needed)
        self._running = set[str]()
        for key, count in self._left.items():
            if count > 1:
                _place(key, store).folder.mkdir(parents=True, exist_ok=True)

    def is_busy(self, stage: str) -> bool:
        """Return whether a stage, given by its key, needs a fine-tuning that a running stage may be making."""
        needed = set(self._of[stage])
        return any(not needed.isdisjoint(self._of[other]) for other in self._running)

    def started(self, stage: str) -> None:
        """Record the start of a stage, given by its key."""
        self._running.add(stage)

    def ended(self, stage: str) -> None:
        """Record the end of a stage, given by its key, and delete the fine-tunings that no other stage needs."""
        self._running.discard(stage)
        for key in self._of.pop(stage, ()):
            self._left[key] -= 1
            if not self._left[key]:
                _place(key, self._store).delete()
