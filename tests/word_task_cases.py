"""Small batches of word tasks, readers for them, and what must become of every word, one word at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from probes.transfer.batch import Reader
from synthlang.corpus import Column, Corpus
from synthlang.language import PARENT, Language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.tasks import TaskBatch, derive_task
from synthlang.vocabularies import OURS, LanguageTokenizer
from synthlang.vocabulary import Encoded, Subwords, Vocabulary

NOTHING = "∅"  # a word that Spelled has no token for


class Spelled:
    """Every letter is a token, whose id is its code point."""

    subwords = None

    def encode(self, corpus: Corpus) -> Encoded:
        words = [[] if word == NOTHING else [ord(letter) for letter in word] for word in corpus.form.values()]
        offsets = np.cumsum([0, *map(len, words)]).astype(np.int64)
        return Encoded(np.asarray([i for word in words for i in word], np.int64), offsets)


SPELLED = Reader(PARENT, cast(Any, Spelled()), 0, OURS, "source")


def reader_of(language: Language, vocabulary: Vocabulary) -> Reader:
    """How a model of the vocabulary reads a language."""
    subwords = Subwords(vocabulary, language.script) if language.on_tokens else None
    ids = np.arange(vocabulary.size_with(language.script))
    tokenizer = LanguageTokenizer(language.name, vocabulary.tokenizer(language.script), ids, subwords, vocabulary.size)
    return Reader(language, replace(tokenizer, moved=0), 1, OURS, "target")


def items_of(corpus: Corpus, texts: Sequence[int] | None = None, intents: Sequence[str] | None = None) -> TaskBatch:
    """An item a sentence; or ``texts`` tells the text of each sentence, and an item is a text."""
    of_sentence = np.asarray(range(len(corpus)) if texts is None else texts, np.int64)
    count = int(of_sentence.max(initial=-1)) + 1
    label = None if intents is None else Column.of(intents)
    ids = tuple(f"item{i}" for i in range(count))
    return TaskBatch(corpus, of_sentence, np.zeros(count, np.int64), np.arange(count)[:, None], ids, label)


def words_batch(*sentences: dict[str, str], intents: Sequence[str] | None = None) -> TaskBatch:
    """Sentences with their columns written as strings with spaces; ``head`` holds numbers."""
    rows = [{n: [int(v) if n == "head" else v for v in t.split()] for n, t in s.items()} for s in sentences]
    return items_of(Corpus.of(rows), intents=intents)


@dataclass
class Word:
    """A word with a gold label; ``place`` in its item, 1-based; ``head`` the place of its head, −1 for none."""

    upos: str
    deprel: str
    ner: str
    place: int
    head: int
    first: int
    last: int
    read: bool


@dataclass
class Row:
    ids: list[int]
    words: list[Word]


def derived_batch(batch: TaskBatch, language: Language) -> TaskBatch:
    """All items in the language, of which none may be dropped."""
    derived, _ = derive_task(batch, language)
    assert derived.ids == batch.ids
    return derived


def slow_rows(batch: TaskBatch, language: Language, reader: Reader, vocabulary: Vocabulary, length: int) -> list[Row]:
    """The rows of the items in the language, from the rewrite itself: nothing but ``origin`` tells what is inserted."""
    rewrite = language.rewrite(batch.corpus)
    derived = rewrite.apply(batch.corpus)
    assert len(rewrite) == len(batch.corpus)
    rows = []
    for text in batch.texts[:, 0].tolist():
        row, tokens = Row([], []), 1
        for sentence in np.flatnonzero(batch.text_of_sentence == text).tolist():
            tokens = _add_sentence(row, tokens, batch.corpus, rewrite, sentence, language, vocabulary)
        row.ids = [OURS.bos, *row.ids[: length - 2], OURS.eos]
        for word in row.words:
            word.read = word.first <= word.last < len(row.ids) - 1
        rows.append(row)
    assert derived.form.values() == rewrite.form.values()
    return rows


def _add_sentence(
    row: Row, tokens: int, corpus: Corpus, rewrite: Rewrite, sentence: int, language: Language, vocabulary: Vocabulary
) -> int:
    part = slice(*rewrite.offsets[sentence : sentence + 2].tolist())
    origin, forms = rewrite.origin[part].tolist(), rewrite.form.values()[part]
    gold, before = corpus[sentence].columns, len(row.words)
    mention = _mentions(gold["ner"])
    piece, pieces = 0, []  # which piece of a mention each word of the output belongs to
    for i, source in enumerate(origin):
        same = i > 0 and mention.get(source) == mention.get(origin[i - 1])
        piece += not same
        pieces.append(piece)
    place: dict[int, int] = {}
    last_piece = -1
    for i, (source, form) in enumerate(zip(origin, forms, strict=True)):
        ids = _ids(form, language, vocabulary)
        row.ids += ids
        first, last = tokens, tokens + len(ids) - 1
        tokens += len(ids)
        starts = not language.on_tokens or form.startswith(("Ġ", *_spaces(language)))
        if source == INSERTED or not starts:
            continue
        place.setdefault(source, len(row.words) + 1)
        kind = gold["ner"][source][2:]
        ner = "O" if not kind else f"{'I' if pieces[i] == last_piece else 'B'}-{kind}"
        last_piece = pieces[i]
        head = gold["head"][source]
        row.words.append(Word(gold["upos"][source], gold["deprel"][source], ner, source, head, first, last, False))
    for number, word in enumerate(row.words[before:], start=before + 1):
        word.place, word.head = number, 0 if word.head == 0 else place.get(word.head - 1, -1)
    return tokens


def _spaces(language: Language) -> tuple[str, ...]:
    return (language.script.space,) if language.script else ()


def _mentions(tags: Sequence[str]) -> dict[int, int]:
    """Word → the number of its mention."""
    found: dict[int, int] = {}
    number = 0
    for i, tag in enumerate(tags):
        number += tag.startswith("B-")
        if tag != "O":
            found[i] = number
    return found


def _ids(form: str, language: Language, vocabulary: Vocabulary) -> list[int]:
    if not language.on_tokens:
        return list(vocabulary.tokenizer(language.script).encode(form, add_special_tokens=False).ids)
    known = vocabulary.parent.token_to_id(form)
    if known is None:
        assert language.script is not None
        copied = vocabulary.parent.token_to_id(language.script.decode_token(form))
        assert copied is not None, form
        known = copied + vocabulary.size
    return [known]
