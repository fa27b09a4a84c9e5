"""A transform in the form of a contribution. tests/test_transforms.py copies this file into synthlang/transforms/."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Literal

from pydantic import Field

from synthlang.corpus import Column, Corpus
from synthlang.rewrite import Rewrite
from synthlang.transforms.base import Transform, chosen_sentences


class Repeat(Transform):
    """Write each word of a share ``strength`` of the sentences several ``times``: ``the cat`` → ``thethe catcat``."""

    short_name: ClassVar[tuple[str, str] | None] = ("repeat", "times")

    kind: Literal["repeat"] = "repeat"
    times: int = Field(default=2, ge=2, le=9)

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        return self._write(corpus, key, lambda word: word * self.times)

    def inverse(self, corpus: Corpus, key: int) -> Rewrite:
        return self._write(corpus, key, lambda word: word[: len(word) // self.times])

    def _write(self, corpus: Corpus, key: int, change: Callable[[str], str]) -> Rewrite:
        chosen = chosen_sentences(corpus, key, self.strength)[corpus.sentence_of_word].tolist()
        words = [change(word) if c else word for word, c in zip(corpus.form.values(), chosen, strict=True)]
        identity = Rewrite.identity(corpus)
        return Rewrite(identity.offsets, identity.source_index, Column.of(words))
