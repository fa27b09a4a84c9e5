"""Data sets of the Hugging Face hub, or a local folder that the library ``datasets`` reads.

Words come from a column of lists of strings (``words``, ``tokens`` or ``form``), else from a
column of strings (``text`` or ``sentence``) by the rules for plain text. Beside lists of words
these become columns where they are lists of strings or of class labels: ``upos`` (or
``pos_tags``), ``deprel``, ``ner`` (or ``ner_tags``), and ``head`` as a list of numbers. Tags of
entities may be of any usual scheme and become IOB2. A word whose tag is ``_`` and whose head is
``None`` is no syntactic word (``3-4`` or ``8.1`` of a treebank) and is left out; a head of −1 is
that of a word which a language has inserted.
Nothing of the data set is ever executed: ``datasets`` from version 4 on has no loading scripts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import SPAN_COLUMNS
from synthlang.sources.base import BATCH_SENTENCES, Labelled, check_split
from synthlang.sources.conllu import one_word, tree_problem
from synthlang.sources.hub_data import Candidates, by_split, digest_values, load_data, plan_columns, rows_of
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import batches_of
from synthlang.sources.words import RULES, split_sentences, split_words

READER = 2  # part of the fingerprint: count up when the same rows give other sentences
NO_HEAD = (None, "None", "_")
Row = tuple[dict[str, list[Any]], str | None, str | None]  # sentence, its label, its id


class HubSource:
    """Sentences of a data set; what cannot be reached or understood is an InputError here.

    more   our column → further names of columns that hold it: what a task takes for its labels
    item   names of columns that may label a whole row, such as ``intent``; see ``labelled``
    ids    whether the column ``id`` names the rows
    """

    def __init__(
        self, name: str, more: Candidates | None = None, item: Sequence[str] = (), *, ids: bool = False
    ) -> None:
        self.name = f"hf:{name}"
        self._data = by_split(load_data(name), self.name)
        # datasets gives every split of a configuration the same features
        self._plan = plan_columns(next(iter(self._data.values())).features, self.name, more, item, ids)
        for split in self._data:
            if next(self._rows(split), None) is None:
                raise InputError(f"{self.name}: the split {split} holds no word")

    @cached_property
    def fingerprint(self) -> str:
        """Of the values in the columns that are read; not of their files, cache or chunks."""
        plan: dict[str, Any] = {"text": self._plan.is_text}
        plan["labels"] = {ours: names for ours, (_, names) in self._plan.labels.items()}
        plan |= {} if self._plan.item is None else {"item": self._plan.item[1]}
        plan |= {} if self._plan.id is None else {"id": True}
        splits = {split: digest_values(data, self._plan.reads) for split, data in self._data.items()}
        return fingerprint("hub", reader=READER, rules=RULES, plan=plan, splits=splits)

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._data)

    @property
    def columns(self) -> tuple[str, ...]:
        return (FORM, *self._plan.labels)

    @cached_property
    def intents(self) -> tuple[str, ...]:
        """The names of the labels of rows: the class labels, or the strings of all splits, sorted; () without."""
        if self._plan.item is None:
            return ()
        return self._plan.item[1] or tuple(sorted({str(i) for split in self._data for _, i, _ in self._rows(split)}))

    def size(self, split: str) -> int | None:
        return None if self._plan.is_text or split not in self._data else len(self._data[split])

    def batches(self, split: str) -> Iterator[Corpus]:
        if self._plan.is_text:
            check_split(self, split, self.name)
            return batches_of(sentence[FORM] for sentence, _, _ in self._rows(split))
        return (batch.corpus for batch in self.labelled(split))

    def labelled(self, split: str) -> Iterator[Labelled]:
        """The batches with the labels and the ids of their rows, where there are any; nothing is mended."""
        check_split(self, split, self.name)
        rest, first, spans = self._rows(split), 0, any(name in SPAN_COLUMNS for name in self._plan.labels)
        while rows := list(islice(rest, BATCH_SENTENCES)):
            corpus = Corpus.of([sentence for sentence, _, _ in rows], first)
            labels = [label for _, label, _ in rows if label is not None]
            ids = None if self._plan.id is None else [name or str(first + at) for at, (_, _, name) in enumerate(rows)]
            yield Labelled(legal_tags(corpus) if spans else corpus, labels, {}, ids)
            first += len(rows)

    def _rows(self, split: str) -> Iterator[Row]:
        """Sentences as {our column: values} with label and id of the row; rows without a word are left out."""
        rows = rows_of(self._data[split], self._plan.reads)
        if self._plan.joined:
            lists = 1 + len(self._plan.labels)
            rows = ((*(v.split() if v else v for v in row[:lists]), *row[lists:]) for row in rows)
        for number, row in enumerate(rows, start=1):
            if self._plan.is_text:
                for line in (row[0] or "").split("\n"):
                    yield from (({FORM: words}, None, None) for words in split_sentences(split_words(line)))
            elif row[0]:
                where = f"{self.name}: row {number} of the split {split}"
                sentence = self._annotated(row, where)
                if sentence[FORM]:
                    yield sentence, self._item(row, where), None if self._plan.id is None else row[-1]

    def _item(self, row: Sequence[Any], where: str) -> str | None:
        if self._plan.item is None:
            return None
        column, names = self._plan.item
        value = row[1 + len(self._plan.labels)]
        if value is None or value == "" or (names is not None and not 0 <= value < len(names)):
            raise InputError(f"{where} has no label in {column!r}")
        return str(value) if names is None else names[value]

    def _annotated(self, row: Sequence[list[Any] | None], where: str) -> dict[str, list[Any]]:
        words = row[0] or []
        if not all(word and word.strip() for word in words):
            raise InputError(f"{where}: word {[bool(w and w.strip()) for w in words].index(False) + 1} is empty")
        columns: dict[str, list[Any]] = {}
        for (ours, (column, _)), values in zip(self._plan.labels.items(), row[1:], strict=False):
            if values is None or len(values) != len(words):
                count = 0 if values is None else len(values)
                raise InputError(f"{where}: {len(words)} words but {count} values in {column!r}")
            columns[ours] = (
                values if ours == "head" else _labels(values, self._plan.labels[ours][1], f"{where}: {column!r}")
            )
        sentence = {FORM: [one_word(word) for word in words], **columns}
        if "head" in sentence:
            sentence = _syntactic(sentence)
            sentence["head"] = _heads(sentence["head"], where)
        for ours in SPAN_COLUMNS:
            if ours in sentence:
                sentence[ours] = _tags(sentence[ours], f"{where}: {self._plan.labels[ours][0]!r}")
        return sentence


def _syntactic(sentence: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """The words that have a place in the tree: a treebank numbers heads without ranges and empty nodes."""
    tags = sentence.get("upos", ["_"] * len(sentence["head"]))
    kept = [head not in NO_HEAD or tag != "_" for head, tag in zip(sentence["head"], tags, strict=True)]
    if all(kept):
        return sentence
    return {
        name: [value for value, keep in zip(values, kept, strict=True) if keep] for name, values in sentence.items()
    }


def _heads(values: list[Any], where: str) -> list[int]:
    """Heads that are one tree; inserted words (−1) hang nowhere."""
    try:
        heads = [int(value) for value in values]
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: a head must be an integer") from error
    if heads and -1 in heads:
        # as if they hung on the root; where a language deleted it, on the first of them
        root = heads.index(0 if 0 in heads else -1)
        whole = [0 if at == root else root + 1 if head == -1 else head for at, head in enumerate(heads)]
    else:
        whole = heads
    problem = tree_problem(whole) if heads else None
    if problem:
        raise InputError(f"{where}: {problem[1]}")
    return heads


def _labels(values: list[Any], names: tuple[str, ...] | None, where: str) -> list[str]:
    if any(value is None or (names is not None and not 0 <= value < len(names)) for value in values):
        raise InputError(f"{where} has a word without a label")
    return values if names is None else [names[value] for value in values]


def _tags(values: list[str], where: str) -> list[str]:
    tags = [iob_tag(value) for value in values]
    if None in tags:
        wrong = values[tags.index(None)]
        raise InputError(f"{where}: the tag {wrong[:40]!r} must be O, or B- or I- and a name")
    return [tag for tag in tags if tag]
