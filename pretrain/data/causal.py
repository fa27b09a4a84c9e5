"""Labels of causal models: each position of a row predicts the next token.

Rows that are read from left to right have a label at every position that a token follows in the row. In rows whose
positions start again in each sentence, no token counts as following the last one of a sentence. In masked rows of the
same model, the word at a masked position is predicted one position earlier ("masked next-token prediction", Charpentier
and Samuel 2024, "GPT or BERT: why not both?", section 3). All rows of such a run have ``length`` labels.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from pretrain.data.batch import IGNORE, Batch, Rows, RowSource
from pretrain.data.masking import Ids, Masked, Masker
from synthlang.rng import key_of, uniform


class CausalMasker(Masker):
    """Labelling of the rows of a causal model. The arguments are those of Masker."""

    def mask(self, rows: Rows, source: RowSource, samples: Ids) -> Batch:
        """Label rows, whose numbers in the whole run are ``samples`` [rows]. The labels are [rows, length] int64.

        Terms may change the input of a row, such as dictionary switching. Labels are the unchanged words. A changed
        position belongs to the term that changed it.
        """
        if not source.causal:
            return self._shifted(super().mask(rows, source, samples), rows)
        columns = self._columns(rows)
        inside = self.is_word[rows.ids] if rows.valid is None else self.is_word[rows.ids] & rows.valid

        def draw(name: str) -> NDArray[np.float64]:
            return uniform(key_of(name, self.seed), samples[:, None], columns)

        masked = Masked(columns, rows.ids, inside, rows.ids, rows.languages, np.where(inside, rows.ids, IGNORE))
        terms = np.full(rows.ids.shape, self.terms.index(source.term), np.int64)
        for name, relabel in self.relabels.items():
            shown = masked.shown
            masked, taken = relabel(masked, draw)
            terms[taken & (masked.shown != shown)] = self.terms.index(name)
        labels = following(rows.ids, rows)
        fields = rows.positions, rows.valid, rows.sentences
        return Batch(masked.shown, masked.languages, columns, labels, terms, *fields, (), samples)

    def _shifted(self, batch: Batch, rows: Rows) -> Batch:
        """Move the labels of masked positions to the positions before them."""
        labels = np.full(batch.input_ids.shape, IGNORE, np.int64)
        terms = np.full(batch.input_ids.shape, batch.terms.flat[0], np.int64)
        np.put_along_axis(labels, batch.masked, batch.labels, axis=1)
        np.put_along_axis(terms, batch.masked, batch.terms, axis=1)
        terms[:, :-1] = terms[:, 1:]
        return replace(batch, masked=self._columns(rows), labels=following(labels, rows), terms=terms)

    def _columns(self, rows: Rows) -> Ids:
        return np.tile(np.arange(self.length), (len(rows.ids), 1))


def following(values: Ids, rows: Rows) -> Ids:
    """Return the value at the next position, [rows, length] int64, or IGNORE if nothing follows.

    Nothing follows at the end of a row, before padding and before a position with number 0. Rows with numbers have
    number 0 at the start of each sentence, or at the start of the second half of a sentence pair.
    """
    result = np.full(values.shape, IGNORE, np.int64)
    inside = np.ones(values.shape, bool) if rows.valid is None else rows.valid
    if rows.positions is not None:
        inside = inside & (rows.positions > 0)
    result[:, :-1] = np.where(inside[:, 1:], values[:, 1:], IGNORE)
    return result
