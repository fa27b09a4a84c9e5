"""Scores of sentences: the log probability of every token of a text in its sentence.

causal                 log p(x_t | <s> x_1 … x_{t−1})
masked                 pseudo-log-likelihood: log p(x_t | the sentence with x_t masked) (Salazar et al. 2020)
masked, within words   pseudo-log-likelihood with the later tokens of the word masked, too (Kauf & Ivanova 2023). This
                       is the better estimate, since the first token of a word cannot be read off its other tokens.

The score of a word or a sentence is the sum over its tokens. All values are natural logarithms.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.model.language_model import LanguageModel
from pretrain.model.text import Text
from probes.models.pretrained import Reader, bounded_batches
from probes.states import words_of
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.reading import Reading
from synthlang.vocabularies import Specials
from synthlang.vocabulary import Encoded

Masking = Literal["within-word", "token"]
LOGITS = 1 << 24
"""Maximum number of logits in memory at once (64 MB)."""
AROUND = 2
"""Number of special tokens of a row: one before and one after the sentence. A decoder does not read the second one."""

Ids = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scored:
    """Sentences with the log probability of every token.

    Attributes:
        corpus: The sentences as words.
        encoded: The tokens of their words.
        tokens: Log probability of each token in nats, [tokens] float64. It is NaN in sentences that the model cannot
            read (``too_long``).
        too_long: True for sentences with more tokens than the model reads, [sentences] bool.
    """

    corpus: Corpus
    encoded: Encoded
    tokens: Floats
    too_long: NDArray[np.bool_]

    @property
    def bounds(self) -> Ids:
        """Index of the first token of each sentence, and the number of tokens at the end, [sentences + 1] int64."""
        return self.encoded.word_offsets[self.corpus.offsets]

    @property
    def words(self) -> Floats:
        """Log probability of each word in nats, [words]. It is 0 for a word without tokens.

        Words with tokens in a sentence that is too long have NaN.
        """
        return sums(self.tokens, self.encoded.word_offsets)

    @property
    def sentences(self) -> Floats:
        """Log probability of each sentence in nats, [sentences]. It is NaN for a sentence that is too long."""
        return sums(self.tokens, self.bounds)

    def take(self, rows: Ids) -> Scored:
        """Return the sentences at ``rows`` [n], in this order, with their scores."""
        words, tokens = words_of(self.corpus.offsets, rows), words_of(self.bounds, rows)
        offsets = np.concatenate([[0], np.cumsum(np.diff(self.encoded.word_offsets)[words])]).astype(np.int64)
        encoded = replace(self.encoded, ids=self.encoded.ids[tokens], word_offsets=offsets)
        return Scored(self.corpus.take(rows), encoded, self.tokens[tokens], self.too_long[rows])


def sums(values: Floats, offsets: Ids) -> Floats:
    """Return the sum of each part of ``values`` [n], [parts] float64.

    Part i has the values offsets[i] … offsets[i + 1] − 1, so ``offsets`` is [parts + 1].
    """
    part = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    found: Floats = np.bincount(part, weights=values, minlength=len(offsets) - 1).astype(np.float64)
    return found


def score(
    body: LanguageModel,
    reader: Reader,
    corpus: Corpus,
    masking: Masking = "within-word",
    report: Report = silent,
    name: str = "the text",
) -> Scored:
    """Return the log probability of every token of a corpus, by the equations of this module.

    Call this function within ``probes.states.reading([body])``. Sentences with more tokens than the model reads get
    NaN. Memory holds a batch of rows and LOGITS logits, besides a number for each token.

    Args:
        body: The model.
        reader: The reader of the language.
        corpus: The sentences.
        masking: ``token`` masks only the scored token. ``within-word`` also masks the later tokens of its word. A
            causal model masks no token.
        report: Function that receives the progress.
        name: Name of the language, for the progress and for errors.

    Raises:
        InputError: Nearly all tokens are unknown to the model, a log probability is NaN or infinite, or the transforms
            of the language work on tokens of another tokenizer.
    """
    encoded = reader.encode(corpus)
    Reading.of(encoded, reader.specials.unk).check(name, "the tokenizer of the model")
    bounds = encoded.word_offsets[corpus.offsets]
    too_long = np.diff(bounds) + (AROUND - body.causal) > body.embeddings.length
    rows = _Rows(encoded, bounds, reader.specials)
    tokens = np.full(len(encoded.ids), np.nan)
    read = np.flatnonzero(~too_long)
    work = rows.whole(read) if body.causal else rows.masked(read, masking)
    device = body.norm.weight.device
    batches = bounded_batches(work.lengths)
    for done, at in enumerate(batches, 1):
        batch = work.take(at)
        text = Text.of(batch.input_ids, reader.number, batch.valid).to(device)
        states = body.read(text, batch.columns.to(device))[0][batch.predicted.to(device)]
        found = _log_probs(body, states, rows.ids[batch.tokens], reader.number)
        if not np.isfinite(found).all():
            reason = f"the log probabilities of {name} contain NaN or infinity"
            raise InputError(reason, hint="use an earlier checkpoint, or another model", code="damaged")
        tokens[batch.tokens] = found
        report(f"scores of {name}", done, len(batches), "")
    return Scored(corpus, encoded, tokens, too_long)


def _log_probs(body: LanguageModel, states: Tensor, labels: Tensor, language: int) -> Floats:
    """Return the log probabilities of ``labels`` [n] from states [n, d], with at most LOGITS logits at a time."""
    size = max(1, LOGITS // body.embeddings.size)
    parts = zip(torch.split(states, size), torch.split(labels.to(states.device), size), strict=True)
    losses = [body.token_losses(of_states, own, language) for of_states, own in parts]
    return -torch.cat(losses).double().cpu().numpy() if losses else np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Batch:
    """A batch of r rows of w tokens for a model, with up to k predictions a row.

    Attributes:
        input_ids: [r, w] The token ids.
        valid: [r, w] False for padding.
        columns: [r, k] The columns of the predictions.
        predicted: [r, k] False for columns that only fill a row up to k.
        tokens: [n] The indices in the text of the predicted tokens, row by row.
    """

    input_ids: Tensor
    valid: Tensor
    columns: Tensor
    predicted: Tensor
    tokens: Ids


class _Rows:
    """Maker of the rows that score a text: a row for each sentence (causal) or for each token (masked)."""

    def __init__(self, encoded: Encoded, bounds: Ids, specials: Specials) -> None:
        self.ids, self.specials, self._bounds = torch.from_numpy(encoded.ids.astype(np.int64)), specials, bounds
        self._word_stop = np.repeat(encoded.word_offsets[1:], np.diff(encoded.word_offsets))  # of each token

    def whole(self, sentences: Ids) -> _Work:
        """Return a row for each sentence that has a token."""
        start, stop = self._bounds[sentences], self._bounds[sentences + 1]
        some = stop > start
        return _Work(self, start[some], stop[some], None, None)

    def masked(self, sentences: Ids, masking: Masking) -> _Work:
        """Return a row for each token of the sentences, with the tokens masked that ``masking`` selects."""
        counts = np.diff(self._bounds)[sentences]
        start = np.repeat(self._bounds[sentences], counts)
        own = start + np.arange(len(start)) - np.repeat(np.cumsum(counts) - counts, counts)
        stop = self._word_stop[own] if masking == "within-word" else own + 1
        return _Work(self, start, np.repeat(self._bounds[sentences + 1], counts), own, stop)


@dataclass(frozen=True, eq=False)
class _Work:
    """All rows, as the tokens ``start`` … ``stop`` − 1 of their sentences, [rows].

    A masked row predicts the token ``own``, and the tokens ``own`` … ``masked_stop`` − 1 are masked. The row of a
    decoder predicts all its tokens, and ``own`` and ``masked_stop`` are None.
    """

    rows: _Rows
    start: Ids
    stop: Ids
    own: Ids | None
    masked_stop: Ids | None

    @property
    def lengths(self) -> Ids:
        return self.stop - self.start + (AROUND - (self.own is None))

    def take(self, at: Ids) -> _Batch:
        """Return the rows with the indices ``at`` as tensors."""
        specials = self.rows.specials
        length = torch.from_numpy(self.stop[at] - self.start[at])[:, None]
        start = torch.from_numpy(self.start[at])[:, None]
        width = int(length.max()) + AROUND - (self.own is None)
        token = start + torch.arange(width) - 1  # index in the text, for columns 1 … length
        inside = (token >= start) & (token < start + length)
        ids = torch.where(inside, self.rows.ids[token.clamp(0, len(self.rows.ids) - 1)], specials.pad)
        ids[:, 0] = specials.bos
        if self.own is None or self.masked_stop is None:
            columns = torch.arange(width - 1).expand(len(at), -1)
            predicted = columns < length
            return _Batch(ids, torch.arange(width) <= length, columns, predicted, token[:, 1:][inside[:, 1:]].numpy())
        ids.scatter_(1, length + 1, specials.eos)
        own, stop = (torch.from_numpy(of[at])[:, None] for of in (self.own, self.masked_stop))
        ids[(token >= own) & (token < stop)] = specials.mask
        valid = torch.arange(width) <= length + 1
        return _Batch(ids, valid, own - start + 1, torch.ones_like(own, dtype=torch.bool), self.own[at])
