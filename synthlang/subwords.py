"""Tokens as the words of a corpus, for transforms with ``unit: token``.

    words   the cats .        tokens   Ġthe Ġcat s Ġ.        origin  0 1 1 2

A token is written as the tokenizer writes it, a transliterated one in the letters of the
script; either way its id is known, so what such a language derives is ids first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.rewrite import Rewrite
from synthlang.scripts import SPACE, SPECIAL_TOKENS, Script
from synthlang.vocabulary import Encoded, Vocabulary, encode_corpus


@dataclass(frozen=True)
class Subwords:
    """Words to tokens, tokens to ids and back to words, in the id space of a vocabulary and a script."""

    vocabulary: Vocabulary
    script: Script | None

    def split(self, corpus: Corpus) -> Rewrite:
        """Each word becomes its tokens; InputError for a word the vocabulary has no tokens for."""
        encoded = encode_corpus(self.vocabulary.tokenizer(self.script), corpus)
        pieces = np.diff(encoded.word_offsets)
        if (pieces == 0).any():
            word = corpus.form.values()[int(np.argmax(pieces == 0))]
            raise InputError(f"the word {word!r} has no token")
        used, codes = np.unique(encoded.ids, return_inverse=True)
        form = Column(codes.astype(np.int32), tuple(self._token(i) for i in used.tolist()))
        origin = np.repeat(corpus.position, pieces).astype(np.int32)
        return Rewrite(encoded.word_offsets[corpus.offsets], origin, form)

    def encode(self, corpus: Corpus) -> Encoded:
        """The ids of a corpus whose words are tokens."""
        table = np.asarray([self._id(name) for name in corpus.form.names or ()], np.int64)
        codes = corpus.form.codes
        return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1))

    def join(self, corpus: Corpus) -> Corpus:
        """Each run of tokens, from one that starts a word to before the next, as that word again."""
        first = starts_word(corpus.form, self.script)
        first[corpus.offsets[:-1][corpus.lengths > 0]] = True
        rows = np.flatnonzero(first)
        ids = self.encode(corpus).ids
        parts = np.split(ids, rows[1:])
        tokenizer = self.vocabulary.tokenizer(self.script)
        texts = tokenizer.decode_batch([p.tolist() for p in parts], skip_special_tokens=False) if len(ids) else []
        offsets = np.concatenate([[0], np.cumsum(first)]).astype(np.int64)[corpus.offsets]
        joined = Rewrite(offsets, corpus.position[rows].astype(np.int32), Column.of(texts))
        return joined.apply(_heads_to_first(corpus, rows, first))

    def token_counts(self, words: Mapping[str, int]) -> Counter[str]:
        """How often each token of the parent occurs in text of these word counts."""
        counts: Counter[str] = Counter()
        encodings = self.vocabulary.parent.encode_batch(list(words), add_special_tokens=False)
        for encoding, count in zip(encodings, words.values(), strict=True):
            for token in encoding.tokens:
                counts[token] += count
        return counts

    def _token(self, index: int) -> str:
        V = self.vocabulary.size
        token = str(self.vocabulary.parent.id_to_token(index % V))
        return token if index < V or self.script is None else self.script.encode_token(token)

    def _id(self, token: str) -> int:
        parent = self.vocabulary.parent
        index = parent.token_to_id(token)
        if index is None and self.script is not None:
            index = parent.token_to_id(self.script.decode_token(token))
            index = None if index is None else index + self.vocabulary.size
        assert index is not None, f"{token!r} is no token"
        return index


def _heads_to_first(corpus: Corpus, rows: NDArray[np.int64], first: NDArray[np.bool_]) -> Corpus:
    """The same, with every head the first token of its word: only those are left when tokens are joined."""
    if "head" not in corpus.columns:
        return corpus
    head = corpus.columns["head"].codes
    starts = corpus.offsets[:-1][corpus.sentence_of_word]
    word_of_token = np.cumsum(first) - 1
    target = rows[word_of_token[np.where(head > 0, starts + head - 1, 0)]] if len(head) else starts
    moved = np.where(head > 0, target - starts + 1, head).astype(np.int32)
    return replace(corpus, columns={**corpus.columns, "head": Column(moved)})


def starts_word(form: Column, script: Script | None) -> NDArray[np.bool_]:
    """[tokens] whether each token is the first of its word; a special token is a word."""
    heads = (SPACE, script.space) if script else (SPACE,)
    names = form.names or ()
    table = np.asarray([n.startswith(heads) or n in SPECIAL_TOKENS for n in names] or [False])
    return np.asarray(table[form.codes], dtype=bool)
