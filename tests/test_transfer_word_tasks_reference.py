"""Word tasks against a reference that goes word by word, in many languages; and on real data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import pytest

from probes.models.pretrained import Reader
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.base import NO_LABEL
from probes.transfer.tasks.ner import Ner
from probes.transfer.tasks.parsing import Parsing
from probes.transfer.tasks.pos import Pos
from synthlang.config import parse
from synthlang.corpus import Column, Corpus
from synthlang.language import PARENT, Language, bind_language, parse_language
from synthlang.rewrite import INSERTED, Rewrite
from synthlang.sources.mini_english import MiniEnglish
from synthlang.tasks import TaskBatch, derive_task
from synthlang.vocabularies import OURS, LanguageTokenizer
from synthlang.vocabulary import Encoded, Subwords, Vocabulary, train_vocabulary

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
    """Return the reader of a language for a model with the vocabulary."""
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
    origin, forms = rewrite.source_index[part].tolist(), rewrite.form.values()[part]
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


MARK = {"kind": "mark", "case": {"nsubj": "ka", "obj": "o"}, "as_words": True, "drop": ["articles", "pronouns"]}
AFTER = {"kind": "mark", "after_verb": {"word": "zu", "distance": 2}}
TOKENS = {"kind": "permute", "unit": "token"}
LANGUAGES = {
    "parent": [],
    "trans+inv": [{"kind": "transliterate"}, {"kind": "invert"}],
    "half": [{"kind": "transliterate", "strength": 0.5}, {"kind": "permute"}],
    "mark": [MARK],
    "mark+trans+perm": [AFTER, {"kind": "transliterate"}, {"kind": "permute"}],
    "typology": [{"kind": "typology", "order": "SOV", "adposition": "postposition", "article": "after"}, MARK],
    "tokens": [TOKENS],
    "mark+tokens": [AFTER, {"kind": "transliterate"}, {"kind": "invert", "unit": "token"}],
}


@pytest.fixture(scope="module")
def source():
    return MiniEnglish(types=500, sentences=300, dev=60, test=0)


@pytest.fixture(scope="module")
def vocabulary(source):
    return train_vocabulary(source.batches("train"), 330)


def random_items(source, seed: int) -> TaskBatch:
    """Texts of one to three sentences, items in any order; some share a text."""
    rng, corpus = np.random.default_rng(seed), next(source.batches("dev"))
    text = np.cumsum(np.append(0, rng.random(len(corpus) - 1) < 0.6)).astype(np.int64)
    count = int(text[-1]) + 1
    order = rng.permutation(np.append(np.arange(count), rng.integers(0, count, 5)))
    ids = tuple(f"item{i}" for i in range(len(order)))
    return TaskBatch(corpus, text, np.zeros(count, np.int64), order[:, None], ids)


def language_of(name, source, vocabulary):
    steps = LANGUAGES[name]
    return bind_language(parse_language({"name": "x", "transforms": steps}), source, vocabulary) if steps else PARENT


def checked_rows(examples, rows, seed):
    """Batches of random rows against the reference: ids, columns, and for the rest (row of the batch, reference)."""
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(rows))[: int(rng.integers(1, len(rows) + 1))]
    batch = examples.batch(chosen)
    assert examples.lengths.tolist() == [len(row.ids) for row in rows]
    width = batch.text.input_ids.shape[1]
    assert width % 8 == 0 and 0 <= width - max(len(rows[i].ids) for i in chosen) < 8
    for place, row in enumerate(rows[i] for i in chosen):
        valid = batch.text.valid[place].tolist()
        assert valid == [True] * len(row.ids) + [False] * (width - len(row.ids))
        assert batch.text.input_ids[place].tolist() == row.ids + [1] * (width - len(row.ids))
        read = [word for word in row.words if word.read]
        assert batch.mask[place].tolist() == [i < len(read) for i in range(batch.mask.shape[1])]
        assert batch.words[place, : len(read)].tolist() == [[word.first, word.last] for word in read]
        yield {name: values[place].tolist() for name, values in batch.targets.items()}, read


@pytest.mark.parametrize("length", [400, 24, 12])
@pytest.mark.parametrize("name", LANGUAGES)
def test_tags_equal_the_reference(source, vocabulary, name, length):
    seed = length + len(name)
    batch, language = random_items(source, seed), language_of(name, source, vocabulary)
    reader = reader_of(language, vocabulary)
    rows = slow_rows(batch, language, reader, vocabulary, length)
    derived = derived_batch(batch, language)
    for kind, unread in ((Pos, ""), (Ner, "O")):
        task = kind(parse(TransferConfig, {"task": kind.name, "length": length}))
        tags = task.labels(batch)["tags"][1:]  # one that training does not have
        examples = task.encode(derived, [reader], {"tags": tags})
        column = "upos" if kind is Pos else "ner"
        gold = [[getattr(word, column) for word in row.words] for row in rows]
        assert examples.gold == gold
        for targets, read in checked_rows(examples, rows, seed):
            expected = [tags.index(v) if (v := getattr(w, column)) in tags else NO_LABEL for w in read]
            assert targets["tags"][: len(read)] == expected
            assert set(targets["tags"][len(read) :]) <= {NO_LABEL}
        said = examples.predictions([[i % len(tags) for i in range(sum(w.read for w in row.words))] for row in rows])
        for row, item in zip(rows, said, strict=True):
            numbers = iter(range(len(item)))
            assert item == [tags[next(numbers) % len(tags)] if word.read else unread for word in row.words]
        cut = sum(not word.read for row in rows for word in row.words)
        assert examples.counts.get("words beyond the length", 0) == cut
        assert (cut > 0) == (length < 400)
        strange = sum(value not in tags for item in gold for value in item)
        assert examples.counts["words with a label that training does not have"] == strange


@pytest.mark.parametrize("length", [400, 24, 12])
@pytest.mark.parametrize("name", [name for name in LANGUAGES if "tokens" not in name])
def test_trees_equal_the_reference(source, vocabulary, name, length):
    seed = length + len(name)
    batch, language = random_items(source, seed), language_of(name, source, vocabulary)
    reader = reader_of(language, vocabulary)
    rows = slow_rows(batch, language, reader, vocabulary, length)
    task = Parsing(TransferConfig(task="parsing", length=length))
    labels = task.labels(batch)
    relations = labels["relations"]
    examples = task.encode(derived_batch(batch, language), [reader], labels)
    assert examples.gold == [[[word.head, word.deprel, word.upos] for word in row.words] for row in rows]
    learned = 0
    for targets, read in checked_rows(examples, rows, seed):
        number = {0: 0} | {word.place: i for i, word in enumerate(read, start=1)}
        heads = [number.get(word.head, NO_LABEL) for word in read]
        right = [NO_LABEL if h == NO_LABEL else relations.index(w.deprel) for h, w in zip(heads, read, strict=True)]
        assert targets["heads"][: len(read)] == heads and targets["relations"][: len(read)] == right
        learned += sum(head != NO_LABEL for head in heads)
    assert learned
    outputs = [_tree(row, relations) for row in rows]
    for row, item in zip(rows, examples.predictions(outputs), strict=True):
        read = [word.place for word in row.words if word.read]
        expected = [[-1, ""] for _ in row.words]
        for i, place in enumerate(read):
            head = [0, *read][(i * 7) % (len(read) + 1)]
            expected[place - 1] = [head, relations[i % len(relations)]]
        assert item == expected


def _tree(row, relations):
    read = sum(word.read for word in row.words)
    return [((i * 7) % (read + 1), i % len(relations)) for i in range(read)]
