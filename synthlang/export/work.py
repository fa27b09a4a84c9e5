"""Write every shard of an export, here or in workers; those that are there already are kept."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, count, islice
from typing import Any

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.export.shard import SHARD_BATCHES, Job, Plan, finished, write_job, write_shard
from synthlang.export.spool import write_batches
from synthlang.progress import already
from synthlang.sources.base import Source
from synthlang.workers import ordered_map

Progress = Callable[[str, int], None]
Record = dict[str, Any]


def write_shards(plan: Plan, source: Source, workers: int, progress: Progress) -> list[Record]:
    """The records of all shards, in the order of the splits and of their sentences.

    A split without a sentence has none. InputError if no sentence is there, or none is left.
    """
    held: list[Record] = []
    if workers == 1:
        for split, number, batches in _missing(plan, source, held, progress):
            held.append(write_shard(plan, split, number, _counted(batches, split, progress)))
    else:
        for record in ordered_map(partial(write_job, plan), _jobs(plan, source, held, progress), workers):
            held.append(record)
            progress(record["split"], record["sentences"])
    if not any(record["sentences"] for record in held):
        raise InputError("the source holds no sentence in any split")
    if plan.configs != ("parent",) and not any(record["kept"] for record in held):
        counts = sum((Counter(record["counts"]) for record in held), Counter[str]())
        reasons = "; ".join(f"{reason}: {number}" for reason, number in counts.items())
        raise InputError(f"the language {plan.language.name} drops every sentence ({reasons})")
    order = {split: rank for rank, split in enumerate(source.splits)}
    return sorted(held, key=lambda record: (order[record["split"]], record["number"]))


def _jobs(plan: Plan, source: Source, held: list[Record], progress: Progress) -> Iterator[Job]:
    """Reading is done here: sentence ids count through a split."""
    (plan.folder / "spool").mkdir(exist_ok=True)
    for split, number, batches in _missing(plan, source, held, progress):
        spool = plan.folder / "spool" / f"{split}-{number:05d}.arrow"
        write_batches(spool, batches)
        yield Job(split, number, spool)


def _missing(
    plan: Plan, source: Source, held: list[Record], progress: Progress
) -> Iterator[tuple[str, int, Iterable[Corpus]]]:
    """(split, number, batches) of the shards to write; records of the others go to ``held``."""
    for split in source.splits:
        batches = iter(source.batches(split))
        for number in count():
            first = next(batches, None)
            if first is None:
                break
            shard = chain([first], islice(batches, SHARD_BATCHES - 1))
            record = finished(plan, split, number)
            if record is None:
                yield split, number, shard
            else:
                deque(shard, maxlen=0)  # read past it
                held.append(record)
                already(progress, split, record["sentences"])


def _counted(batches: Iterable[Corpus], split: str, progress: Progress) -> Iterator[Corpus]:
    for batch in batches:
        yield batch
        progress(split, len(batch))
