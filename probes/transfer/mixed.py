"""Test items with one text in the target language and the others in the parent's, from test sets that are translations.

Items are the same where their ids are: those of the files or, in files without ids, the numbers of the lines. So they
are put together for XNLI, XQuAD and MLQA, whose items in one language are some of those in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.tasks.batch import Answers, Rows, TaskBatch, join_batches

COMMON = 0.9  # of the items of the smaller set have to be in the other one, and as many labels of these have to agree
ONE_ONLY, OTHER_LABEL = "items of one language only", "items of another label in the other language"


@dataclass(frozen=True)
class Translated:
    """Items that two test sets have, in the order of the source's.

    both    the texts and answers of both sets, the source's first
    rows    [n] the items in the source's set, and ``target_rows`` [n] in ``both``
    counts  what was left out
    """

    source: TaskBatch
    both: TaskBatch
    rows: Rows
    target_rows: Rows
    counts: dict[str, int]


def translated(source: TaskBatch, target: TaskBatch, limit: int | None = None) -> Translated:
    """The first ``limit`` items (none: all) that both test sets have.

    Raises InputError where the sets are no translations of each other: ids or labels differ.
    """
    place = {name: row for row, name in enumerate(target.ids)}
    shared = [(row, place[name]) for row, name in enumerate(source.ids) if name in place]
    smaller = min(len(source), len(target))
    if len(shared) < COMMON * smaller:
        raise _unlike(f"{len(shared):,} of {smaller:,} items have an id that both sets have")
    labels = [None if one.label is None else one.label.values() for one in (source, target)]
    kept = shared
    if labels[0] is not None and labels[1] is not None:
        kept = [(i, j) for i, j in shared if labels[0][i] == labels[1][j]]
        if len(kept) < COMMON * len(shared):
            raise _unlike(
                f"{len(shared) - len(kept):,} of {len(shared):,} items with the same id have different labels"
            )
    counts = {ONE_ONLY: len(source) + len(target) - 2 * len(shared), OTHER_LABEL: len(shared) - len(kept)}
    rows = np.array(kept[:limit], np.int64).reshape(-1, 2)
    both = join_batches([_bare(source, target.corpus), _bare(target, source.corpus)])
    told = {why: count for why, count in counts.items() if count}
    return Translated(source, both, rows[:, 0], len(source) + rows[:, 1], told)


def _bare(batch: TaskBatch, other: Corpus) -> TaskBatch:
    """Without labels and extra texts, and without the columns that ``other`` lacks: a parser reads one set only."""
    columns = {name: column for name, column in batch.corpus.columns.items() if name in other.columns}
    return replace(batch, corpus=replace(batch.corpus, columns=columns), label=None, extra={})


def _unlike(why: str) -> InputError:
    return InputError(f"mixed: the test sets of the two languages are no translations of each other: {why}")


def mixed_items(found: Translated, field: int) -> TaskBatch:
    """The items with the text of ``field`` from the target's set and the others from the source's; answers are those of
    the text that they are in."""
    source, both = found.source, found.both
    texts = both.texts[found.rows].copy()
    texts[:, field] = both.texts[found.target_rows, field]
    return TaskBatch(
        both.corpus,
        both.text_of_sentence,
        both.field_of_text,
        texts,
        tuple(source.ids[row] for row in found.rows.tolist()),
        None if source.label is None else source.label.take(found.rows),
        _answers(both, texts, (found.rows, found.target_rows)),
        {name: tuple(values[row] for row in found.rows.tolist()) for name, values in source.extra.items()},
        found.counts,
    )


def _answers(both: TaskBatch, texts: Rows, rows: Sequence[Rows]) -> Answers:
    """Of the answers of an item in both languages those whose text is one of the item's."""
    new = np.full(len(both), -1, np.int64)
    for of_language in rows:
        new[of_language] = np.arange(len(texts))
    item = new[both.answers.item]
    text = np.searchsorted(both.word_offsets, both.answers.start, side="right") - 1
    mine = np.flatnonzero((item >= 0) & (texts[item] == text[:, None]).any(axis=1))
    mine = mine[np.argsort(item[mine], kind="stable")]
    return Answers(item[mine], both.answers.start[mine], both.answers.stop[mine])
