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
    tokens = np.full(len(encoded.ids), np.nan)
    mask = None if body.causal else masking
    work = _Work.of(encoded, bounds, np.flatnonzero(~too_long), reader.specials, mask)
    device = body.norm.weight.device
    batches = bounded_batches(work.lengths)
    for done, at in enumerate(batches, 1):
        ids, valid, columns, predicted, own = work.take(at)
        text = Text.of(ids, reader.number, valid).to(device)
        states = body.read(text, columns.to(device))[0][predicted.to(device)]
        found = _log_probs(body, states, work.ids[own], reader.number)
        if not np.isfinite(found).all():
            reason = f"the log probabilities of {name} contain NaN or infinity"
            raise InputError(reason, hint="use an earlier checkpoint, or another model", code="damaged")
        tokens[own] = found
        report(f"scores of {name}", done, len(batches), "")
    return Scored(corpus, encoded, tokens, too_long)


def _log_probs(body: LanguageModel, states: Tensor, labels: Tensor, language: int) -> Floats:
    """Return the log probabilities of ``labels`` [n] from states [n, d], with at most LOGITS logits at a time."""
    size = max(1, LOGITS // body.embeddings.size)
    parts = zip(torch.split(states, size), torch.split(labels.to(states.device), size), strict=True)
    losses = [body.token_losses(of_states, own, language) for of_states, own in parts]
    return -torch.cat(losses).double().cpu().numpy() if losses else np.zeros(0)


@dataclass(frozen=True, eq=False)
class _Work:
    """The rows that score a text, as the tokens ``start`` … ``stop`` − 1 of their sentences, [rows].

    A masked row predicts the token ``own``, and the tokens ``own`` … ``masked_stop`` − 1 are masked. The row of a
    decoder predicts all its tokens, and ``own`` and ``masked_stop`` are None. ``ids`` are the tokens of the text.
    """

    ids: Tensor
    specials: Specials
    start: Ids
    stop: Ids
    own: Ids | None = None
    masked_stop: Ids | None = None

    @staticmethod
    def of(encoded: Encoded, bounds: Ids, sentences: Ids, specials: Specials, masking: Masking | None) -> _Work:
        """Return a row for each token of the sentences, or without ``masking`` for each sentence that has a token."""
        ids = torch.from_numpy(encoded.ids.astype(np.int64))
        start, stop = bounds[sentences], bounds[sentences + 1]
        counts = stop - start
        if masking is None:
            return _Work(ids, specials, start[counts > 0], stop[counts > 0])
        of_row = np.repeat(start, counts)
        own = of_row + np.arange(len(of_row)) - np.repeat(np.cumsum(counts) - counts, counts)
        word_stop = np.repeat(encoded.word_offsets[1:], np.diff(encoded.word_offsets))  # of each token
        masked_stop = word_stop[own] if masking == "within-word" else own + 1
        return _Work(ids, specials, of_row, np.repeat(stop, counts), own, masked_stop)

    @property
    def lengths(self) -> Ids:
        return self.stop - self.start + (AROUND - (self.own is None))

    def take(self, at: Ids) -> tuple[Tensor, Tensor, Tensor, Tensor, Ids]:
        """Return the r rows with the indices ``at`` for a model, with up to k predictions a row.

        Returns:
            The token ids [r, w], the mask of columns that are not padding [r, w], the columns of the predictions
            [r, k], the mask of columns that do not only fill a row up to k [r, k], and the indices in the text of the
            predicted tokens [n], row by row.
        """
        length = torch.from_numpy(self.stop[at] - self.start[at])[:, None]
        start = torch.from_numpy(self.start[at])[:, None]
        width = int(length.max()) + AROUND - (self.own is None)
        token = start + torch.arange(width) - 1  # index in the text, for columns 1 … length
        inside = (token >= start) & (token < start + length)
        ids = torch.where(inside, self.ids[token.clamp(0, len(self.ids) - 1)], self.specials.pad)
        ids[:, 0] = self.specials.bos
        if self.own is None or self.masked_stop is None:
            columns = torch.arange(width - 1).expand(len(at), -1)
            return ids, torch.arange(width) <= length, columns, columns < length, token[:, 1:][inside[:, 1:]].numpy()
        ids.scatter_(1, length + 1, self.specials.eos)
        own, stop = (torch.from_numpy(of[at])[:, None] for of in (self.own, self.masked_stop))
        ids[(token >= own) & (token < stop)] = self.specials.mask
        valid = torch.arange(width) <= length + 1
        return ids, valid, own - start + 1, torch.ones_like(own, dtype=torch.bool), self.own[at]
