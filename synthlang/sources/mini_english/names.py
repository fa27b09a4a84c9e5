"""Short sentences with named entities. Dev and test have names that do not occur in training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from synthlang.corpus import Sentence
from synthlang.sources.mini_english.draw import sentence
from synthlang.sources.mini_english.realise import Columns, realise
from synthlang.sources.mini_english.source import MiniEnglish
from synthlang.sources.mini_english.world import Context

LONGEST = 16  # words


def named_sentences(source: MiniEnglish, split: str, count: int) -> Iterator[Sentence]:
    """Yield ``count`` annotated sentences with a name. Sentence i is a function of (types, seed, zipf, split, i).

    A sentence of dev or test has a word of ``World.held_out`` in a name, and a sentence of train has none. A model must
    therefore recognise a name by its context.

    Raises:
        InputError: The source has no such split.
    """
    return (Sentence(index, _named(c, split, source.morphology)) for index, c in source.contexts(split, count, "names"))


def _named(c: Context, split: str, more: Sequence[str]) -> Columns:
    while True:  # this ends, because one sentence in a few is short and has a suitable name
        columns = realise(sentence(c), more)
        names = [word for word, tag in zip(columns["form"], columns["ner"], strict=True) if tag != "O"]
        if names and len(columns["form"]) <= LONGEST and c.world.suits(split, names):
            return columns
