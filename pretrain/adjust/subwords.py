"""Subwords as the units of alignment: parallel text whose words are the token ids of its words.

Impact, table 6 and appendix A.1: the aligner is applied to the tokens of the model, not to words. A token is written as
its id, so that no token can hold what separates words or sides for an aligner, and the id is read back as it is.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from synthlang.alignments.parallel import ParallelText
from synthlang.corpus import FORM, Column, Corpus
from synthlang.fingerprint import fingerprint
from synthlang.vocabulary import Encoded, encode_corpus


class Cutter(Protocol):
    """A tokenizer with a fingerprint: that of a checkpoint, or of one language of a run."""

    @property
    def tokenizer(self) -> Tokenizer:
        """What cuts a word alone as it does in a text."""

    @property
    def fingerprint(self) -> str:
        """Of the way from words to ids."""


def in_subwords(text: ParallelText, tokenizers: tuple[Cutter, Cutter]) -> ParallelText:
    """The same sentence pairs with tokens as words; a word that a tokenizer leaves nothing of is not there."""
    left, right = (
        as_tokens(held.tokenizer, side) for held, side in zip(tokenizers, (text.left, text.right), strict=True)
    )
    parents = {"text": text.fingerprint, "tokenizers": [held.fingerprint for held in tokenizers]}
    return ParallelText(left, right, fingerprint("subword-text", **parents))


def as_tokens(tokenizer: Tokenizer, corpus: Corpus) -> Corpus:
    """The tokens of a corpus as its words, each one written as its id."""
    encoded = encode_corpus(tokenizer, corpus)
    used, codes = np.unique(encoded.ids, return_inverse=True)
    form = Column(codes.astype(np.int32), tuple(str(token) for token in used.tolist()))
    return Corpus(encoded.word_offsets[corpus.offsets], {FORM: form}, corpus.ids)


def token_ids(corpus: Corpus) -> Encoded:
    """The ids of a corpus whose words are tokens: one token a word."""
    table = np.asarray([int(name) for name in corpus.form.names or ()], np.int64)
    codes = corpus.form.codes
    return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1, dtype=np.int64))
