"""The data of a transfer: every set of the task in the parent's language and in the target's.

    source train, dev, test     the parent's items
    target train, dev, test     the same items derived, or those of another natural language
    mixed FIELD                 test items with that one text in the target language, the others in the parent's

What a model is chosen by is always the dev set of the language it is trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from probes.transfer.batch import Reader
from probes.transfer.config import TransferConfig
from probes.transfer.mixed import Translated, mixed_items, translated
from probes.transfer.model import Pretrained
from probes.transfer.places import Place, Places, check_columns, open_places, open_training, parsed
from probes.transfer.tasks import Task
from synthlang.errors import InputError
from synthlang.language import Language, bind_language
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import because
from synthlang.tasks import TaskSet, derive_task
from synthlang.tasks.batch import TaskBatch, join_batches

DEV_SHARE = 10  # without a dev split, one item in ten of the training items is held out


@dataclass(frozen=True)
class Set:
    """Items of one set and how each text of an item is read; ``drops``: reason → how many were left out or changed.

    What a reader left out it counts for all that was read: also of items beyond ``train_items`` and the like.
    """

    batch: TaskBatch
    readers: tuple[Reader, ...]
    drops: Mapping[str, int]


@dataclass(frozen=True)
class TransferData:
    """Every set by its name (see above); ``language`` is the target's, bound to what it needs."""

    task: Task
    sets: Mapping[str, Set]
    language: Language
    fingerprints: Mapping[str, object]

    @property
    def has_target_train(self) -> bool:
        """Whether a model can be trained on the target language, for SUP."""
        return "target train" in self.sets


def load_data(config: TransferConfig, pretrained: Pretrained, report: Report = silent) -> TransferData:
    """Read every set, and derive those of the target language."""
    task, places, own = open_places(config, pretrained.text, pretrained.length)
    if config.parser is not None:
        places = parsed(places, config.parser, report)
    assert places.train is not None, "the parent's language is trained on"
    language = pretrained.target.language
    if not pretrained.natural:
        language = _bound(language, pretrained, places.train.task)
        check_columns(language, places)
    source, target = pretrained.source, replace(pretrained.target, language=language)
    items = _read(places, config)
    fields = len(places.train.task.fields)
    sets = {f"source {name}": Set(batch, (source,) * fields, batch.counts) for name, batch in items.items()}
    if own is not None:
        mine = _read(own, config)
        sets |= {f"target {name}": Set(batch, (target,) * fields, batch.counts) for name, batch in mine.items()}
    else:
        for name, batch in items.items():
            sets[f"target {name}"] = _derived(batch, language, source, target, None)
    if config.mixed:
        both = None if own is None else _translated(places, own, config)
        for number, field in enumerate(places.train.task.fields):
            sets[f"mixed {field}"] = (
                _derived(items["test"], language, source, target, number)
                if both is None
                else _mixed(both, source, target, number)
            )
    _check_left(sets, config)
    prints: dict[str, object] = {"source": places.fingerprints, "language": language.fingerprint}
    if own is not None:
        prints["target"] = own.fingerprints
    return TransferData(task, sets, language, prints)


def load_training(config: TransferConfig, pretrained: Pretrained, report: Report = silent) -> TransferData:
    """The sets that a model is fine-tuned on in the source language, and chosen by: nothing is derived or tested."""
    task, places = open_training(config, pretrained.text, pretrained.length)
    if config.parser is not None:
        places = parsed(places, config.parser, report)
    assert places.train is not None, "the parent's language is trained on"
    readers = (pretrained.source,) * len(places.train.task.fields)
    sets = {f"source {name}": Set(batch, readers, batch.counts) for name, batch in _read(places, config).items()}
    _check_left(sets, config)
    return TransferData(task, sets, pretrained.target.language, {"source": places.fingerprints})


def _translated(places: Places, own: Places, config: TransferConfig) -> Translated:
    """What both test sets have; the first items of one need not be the first of the other."""
    assert places.test is not None and own.test is not None, "they were named"
    return translated(_items(places.test, None), _items(own.test, None), config.test_items)


def _mixed(both: Translated, source: Reader, target: Reader, field: int) -> Set:
    batch = mixed_items(both, field)
    readers = tuple(target if i == field else source for i in range(batch.texts.shape[1]))
    return Set(batch, readers, batch.counts)


def _check_left(sets: Mapping[str, Set], config: TransferConfig) -> None:
    for name, held in sets.items():
        if not len(held.batch):
            raise InputError(f"{name}: no item of the task {config.task} is left{because(held.drops)}")


def _bound(language: Language, pretrained: Pretrained, task: TaskSet) -> Language:
    """The language with the word counts that it needs: those of the pretraining text, or of the training items."""
    if not language.needs_counts:
        return language
    return bind_language(language, task.as_source() if pretrained.text is None else open_source(pretrained.text))


def _read(places: Places, config: TransferConfig) -> dict[str, TaskBatch]:
    items = {}
    if places.train is not None:
        items["train"] = _items(places.train, config.train_items)
        if places.dev is None:
            count = len(items["train"]) - max(1, len(items["train"]) // DEV_SHARE)
            if not count:
                raise InputError(f"{places.train.task.name}: one item is too few to train on and to choose by")
            every = np.arange(len(items["train"]), dtype=np.int64)
            # what the reader left out of all of them is told of the training items
            items["dev"] = replace(items["train"].take(every[count:]), counts={})
            items["train"] = items["train"].take(every[:count])
    if places.dev is not None:
        items["dev"] = _items(places.dev, config.dev_items)
    if places.test is not None:
        items["test"] = _items(places.test, config.test_items)
    return items


def _items(place: Place, limit: int | None) -> TaskBatch:
    """The items of a split, at most so many."""
    batches, count = [], 0
    for batch in place.task.batches(place.split):
        batches.append(batch)
        count += len(batch)
        if limit is not None and count >= limit:
            break
    if not count:
        counts = Counter[str]()
        for batch in batches:
            counts.update(batch.counts)
        raise InputError(f"{place.task.name}: the split {place.split} has no item{because(counts)}")
    joined = join_batches(batches)
    return joined if limit is None or count <= limit else joined.take(np.arange(limit, dtype=np.int64))


def _derived(batch: TaskBatch, language: Language, source: Reader, target: Reader, field: int | None) -> Set:
    """The items in the target language, or (``field``) with that one text in it."""
    fields = batch.texts.shape[1]
    derived, counts = derive_task(batch, language, None if field is None else (field,))
    readers = tuple(target if field in (None, i) else source for i in range(fields))
    return Set(derived, readers, {**batch.counts, **counts})
