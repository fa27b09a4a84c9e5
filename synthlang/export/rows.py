"""The rows of a batch as Arrow tables, straight from columns of codes: no Python object a word.

parent      id, text, words, labels                                   every sentence of the source
derived     id, text, words, origin, parent_text, labels              those the language keeps
parallel    id, parent_text, derived_text, parent_words, derived_words, alignment

With a vocabulary ``parent`` and ``derived`` also have ``input_ids``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from synthlang.corpus import FORM, Column, Corpus
from synthlang.export.arrow import Strings, coded, lists, numbers
from synthlang.rewrite import INSERTED, Rewrite

CONFIGS = ("parent", "derived", "parallel")
IDS = "input_ids"
# Where codes of names stand in the files, and where numbers that mostly grow by a constant do.
ELEMENT = ".list.element"
COUNTERS = ("id", f"origin{ELEMENT}", f"alignment{ELEMENT}.parent", f"alignment{ELEMENT}.derived")


@dataclass(frozen=True)
class Side:
    """A batch of one language and the UTF-8 of its word types, encoded once."""

    corpus: Corpus
    names: Strings

    @staticmethod
    def of(corpus: Corpus) -> Side:
        """A batch whose names are distinct: parquet would take equal ones for one and count on from there."""
        form = corpus.form
        names = form.names or ()
        if len(set(names)) < len(names):
            distinct = Column.of(names)
            form, names = Column(distinct.codes[form.codes], distinct.names), distinct.names or ()
            corpus = Corpus(corpus.offsets, {**corpus.columns, FORM: form}, corpus.ids)
        return Side(corpus, Strings.of(names))

    @property
    def words(self) -> Any:
        """The words of each sentence."""
        return lists(self.corpus.offsets, coded(self.corpus.form.codes, self.names.array))

    @property
    def text(self) -> Any:
        """The words of each sentence with a space between each two."""
        words = self.names.array.take(numbers(self.corpus.form.codes))
        return pc.binary_join(lists(self.corpus.offsets, words), Strings.of([" "]).array[0])


def tables_of(
    parent: Side, derived: Side, rewrite: Rewrite, configs: Sequence[str], ids_of: Mapping[str, Any] | None = None
) -> dict[str, pa.Table]:
    """A table for each of ``configs``; ``derived`` is what ``rewrite`` makes of ``parent``.

    ``ids_of``: the token ids of both, as lists, for the configurations of the same names.
    """
    columns: dict[str, dict[str, Any]] = {}
    text, words = parent.text, parent.words
    ids, new_text, new_words = numbers(derived.corpus.ids), derived.text, derived.words
    if "parent" in configs:
        columns["parent"] = {"id": numbers(parent.corpus.ids), "text": text, "words": words, **_labels(parent.corpus)}
    if rewrite.kept is not None:  # the other configurations have only what the language kept
        text = text.take(numbers(rewrite.kept))
        words = Side(rewrite.source(parent.corpus), parent.names).words
    if "derived" in configs:
        origin = lists(derived.corpus.offsets, numbers(rewrite.origin))
        columns["derived"] = {"id": ids, "text": new_text, "words": new_words, "origin": origin}
        columns["derived"] |= {"parent_text": text, **_labels(derived.corpus)}
    if "parallel" in configs:
        columns["parallel"] = {"id": ids, "parent_text": text, "derived_text": new_text, "parent_words": words}
        columns["parallel"] |= {"derived_words": new_words, "alignment": _alignment(derived.corpus, rewrite.origin)}
    for name in (ids_of or {}).keys() & columns.keys():
        columns[name][IDS] = (ids_of or {})[name]
    return {name: pa.table(columns[name]) for name in configs}


def _labels(corpus: Corpus) -> dict[str, Any]:
    return {name: lists(corpus.offsets, _values(column)) for name, column in corpus.columns.items() if name != FORM}


def _values(column: Column) -> Any:
    if column.names is None:
        return numbers(column.codes.astype(np.int32, copy=False))
    distinct = Column.of(column.names)
    codes = distinct.codes[column.codes] if len(column.codes) else column.codes
    return coded(codes, Strings.of(distinct.names or ()).array)


def _alignment(derived: Corpus, origin: NDArray[np.int32]) -> Any:
    """For each sentence the pairs {parent, derived} of word indices; an inserted word is in none."""
    aligned = origin != INSERTED
    before = np.concatenate([[0], np.cumsum(aligned)])[derived.offsets]
    pairs = [numbers(origin[aligned]), numbers(derived.position[aligned].astype(np.int32))]
    return lists(before, pa.StructArray.from_arrays(pairs, ["parent", "derived"]))
