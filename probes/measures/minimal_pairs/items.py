"""The pairs of the probe ``minimal_pairs`` in each language."""

from __future__ import annotations

import numpy as np

from probes.measures.minimal_pairs import MinimalPairsConfig
from probes.measures.probe_input import ProbeInput
from probes.models.pretrained import Role
from synthlang.errors import InputError
from synthlang.language import bind_language, checked_source
from synthlang.sources.base import with_columns
from synthlang.sources.limited import without_limit
from synthlang.tasks import TaskSet, choose, derive_task, open_task, split_for
from synthlang.tasks.batch import TaskBatch, join_batches

BUILTIN = "builtin:"
HINT = "give pairs, such as minimal:FILE, or remove the probe minimal_pairs"


def open_items(spec: str, key: str) -> tuple[TaskSet, str]:
    """Open minimal pairs, and return them with the name of the split to read.

    ``spec`` is the spec of the pairs, and ``key`` is the key of the settings that has it, for errors.

    Raises:
        InputError: The pairs cannot be opened, are items of another task, or lack the split.
    """
    try:
        plain, chosen = choose(spec)
        task = open_task(plain)
        if not task.paired:
            hint = "give pairs, such as minimal:FILE"
            raise InputError("is not a set of minimal pairs", spec, hint=hint, code="type")
        return task, split_for(task, "test", chosen, spec)
    except InputError as error:
        raise error.inside(key) from error


def spec_of_text(text: str | None) -> str:
    """Return the spec of the minimal pairs of the built-in grammar, for a pretraining text of this grammar.

    ``text`` is the spec of the pretraining text, or None if it is not known.

    Raises:
        InputError: The text is not known, or is not of the built-in grammar.
    """
    if text is None or not text.startswith(BUILTIN):
        reason = "no minimal pairs are known for the pretraining text"
        raise InputError(reason, keys="items", hint=HINT, code="missing")
    return f"minimal:{without_limit(text)[0]}"


def check_items(settings: MinimalPairsConfig, text: str | None, _other: str | None, natural: bool) -> None:
    """Check the minimal pairs of both languages, without reading them (see ``ProbeSettings.check``).

    Args:
        settings: The settings of the probe.
        text: The spec of the pretraining text in the source language, or None if it is not known.
        natural: True if the other language is natural.

    Raises:
        InputError: Pairs are not known, cannot be opened, are items of another task, or lack the split.
    """
    open_items(settings.items or spec_of_text(text), "items")
    if settings.other is not None:
        open_items(settings.other, "other")
    elif natural:
        reason = "is required, because no minimal pairs of the natural language are known"
        raise InputError(reason, keys="other", hint=HINT, code="missing")


def read_items(given: ProbeInput) -> tuple[dict[Role, TaskBatch], dict[str, int]]:
    """Return the pairs of each language, and counts of pairs left out by reason.

    Raises:
        InputError: Pairs are not known, cannot be opened (see `open_items`) or read, lack a column that the language
            needs, or cannot be derived (see `bind_language` and `derive_task`). The error is also raised if no pair is
            left.
    """
    settings, pretrained = given.config.of(MinimalPairsConfig), given.pretrained
    language = pretrained.target.language
    task, split = open_items(settings.items or spec_of_text(pretrained.text), "items")
    if given.is_other and settings.other is None:
        task = with_columns(task, language.requires)
    own = _read(task, split, settings.most)
    found: dict[Role, TaskBatch] = {"source": own}
    counts = dict(own.counts)
    if settings.other is not None:
        found["target"] = _read(*open_items(settings.other, "other"), settings.most)
        counts |= {f"{given.name('target')}: {reason}": count for reason, count in found["target"].counts.items()}
    elif given.is_other:
        checked_source(language, task.as_source(), task.name)
        bound = bind_language(language, task.as_source(), name=task.name)
        found["target"], changed = derive_task(own, bound)
        counts |= {f"{bound.name}: {reason}": count for reason, count in changed.items()}
    if not len(found.get("target", own)):
        hint = "set minimal_pairs.other to pairs in that language"
        reason = "no minimal pair is left in the derived language"
        raise InputError(reason, keys="minimal_pairs.items", hint=hint, code="empty")
    return found, counts


def _read(task: TaskSet, split: str, most: int | None) -> TaskBatch:
    """Read the first ``most`` pairs of a split."""
    batches: list[TaskBatch] = []
    for batch in task.batches(split):
        batches.append(batch)
        if most is not None and sum(map(len, batches)) >= most:
            break
    found = join_batches(batches)
    return found if most is None else found.take(np.arange(min(most, len(found))))
