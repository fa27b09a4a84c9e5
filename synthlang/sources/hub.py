"""Data sets of the Hugging Face hub, or a local folder that the library ``datasets`` reads.

Words come from a column of lists of strings (``words``, ``tokens`` or ``form``), or else from a column of strings
(``text`` or ``sentence``), split by the rules for plain text. Lists of strings or of class labels become columns if
they are named ``upos`` (or ``pos_tags``), ``deprel`` or ``ner`` (or ``ner_tags``), and so do lists of numbers named
``head``. Entity tags of any usual scheme become IOB2. A word with the tag ``_`` and the head ``None`` is not a
syntactic word (``3-4`` or ``8.1`` of a treebank) and is left out. A head of −1 marks a word that a language has
inserted.

No code of the data set is executed, because ``datasets`` has no loading scripts from version 4 on.

``hf:NAME?streaming`` reads the files of the hub while they are used, without a download and without a copy on disk.
Each pass over the text reads them again. ``?revision=COMMIT`` pins a commit, branch or tag.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import DiskError
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import SPAN_COLUMNS
from synthlang.sources.base import Labelled, check_split, in_batches, nothing_in
from synthlang.sources.conllu import tree_problem
from synthlang.sources.hub_data import (
    REVISION,
    STREAMING,
    STRINGS,
    by_split,
    digest_values,
    dtype_of,
    features_of,
    items_of,
    name_and_options,
    names_of,
    no_columns,
    open_data,
    rows_in,
    rows_of,
)
from synthlang.sources.markup import without_markup
from synthlang.sources.segmentation import RULES, split_sentences, split_words
from synthlang.sources.size import Sizes
from synthlang.sources.splits import CJK, NORMALISE
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import NOW, batches_of, counted_uncut
from synthlang.sources.words import CLEANED, MARKUP, REMOVED, SPACES, count_unseen, spaced, spelled, tidied
from synthlang.wording import plural

READER = 2  # part of the fingerprint: raise when the same rows give other sentences
NO_HEAD = (None, "None", "_")
CORRECT = "correct or delete the row (of a data set of the hub, in a local copy)"
WORDS = ("words", "tokens", "form")
TEXT = ("text", "sentence")
LABELS = {"upos": ("upos", "pos_tags"), "head": ("head",), "deprel": ("deprel",), "ner": ("ner", "ner_tags")}
Candidates = Mapping[str, Sequence[str]]
Names = tuple[str, ...] | None
Row = tuple[dict[str, list[Any]], str | None, str | None]  # sentence, its label, its id


@dataclass(frozen=True)
class HubColumns:
    """The columns that a source reads from a data set.

    Attributes:
        words: The column of words or of running text.
        is_text: True if ``words`` is a column of running text.
        labels: Column of the data set for each of our columns, with the names of its class labels or None.
        item: Column and class labels of the label of a whole row, or None if rows have no label.
        id: Column with the names of the rows, or None if they are not read.
        joined: True if words and labels are strings with white space between the words, not lists.
    """

    words: str
    is_text: bool
    labels: Mapping[str, tuple[str, Names]]
    item: tuple[str, Names] | None = None
    id: str | None = None
    joined: bool = False

    @property
    def reads(self) -> list[str]:
        """The columns of the data set to read, in the order words, labels, ``item``, ``id``."""
        labels = [column for column, _ in self.labels.values()]
        return [self.words, *labels, *([] if self.item is None else [self.item[0]]), *([self.id] if self.id else [])]


def plan_columns(
    features: Mapping[str, Any], name: str, more: Candidates, item: Sequence[str] = (), ids: bool = False
) -> HubColumns:
    """Choose the columns of a data set to read: words or text, labels of words, labels and names of rows.

    Args:
        features: Type of each column, by name.
        name: Name of the data set, for the error.
        more: Further names in the data set for each of our columns (see ``HubSource``).
        item: Names of columns that may label a whole row. The first suitable column is read.
        ids: True to read the names of the rows from the column ``id``, if it is a column of strings.

    Raises:
        InputError: The data set has neither words nor text. The error lists its columns.
    """

    def strings(column: str) -> bool:
        return dtype_of(features.get(column)) in STRINGS

    def labelled(column: str, ours: str) -> bool:
        items = items_of(features.get(column))
        numbers = ours == "head" and str(dtype_of(items)).startswith(("int", "uint"))
        return dtype_of(items) in STRINGS or names_of(items) is not None or numbers

    usual = {ours: (*LABELS.get(ours, ()), *more.get(ours, ())) for ours in (*LABELS, *more)}
    lists = {ours: [c for c in columns if labelled(c, ours)] for ours, columns in usual.items()}
    labels = {ours: (found[0], names_of(items_of(features[found[0]]))) for ours, found in lists.items() if found}
    whole = next((c for c in item if names_of(features.get(c)) or strings(c)), None)
    row = None if whole is None else (whole, names_of(features[whole]))
    name_column = "id" if ids and strings("id") else None
    for words in WORDS:
        if dtype_of(items_of(features.get(words))) in STRINGS:
            return HubColumns(words, False, labels, row, name_column)
    for text in filter(strings, TEXT):
        # The labels of a task may be strings, too: ``O O B-city`` beside ``fly to rome``.
        texts = {ours: [c for c in columns if strings(c)] for ours, columns in more.items()}
        joined = {ours: (columns[0], None) for ours, columns in texts.items() if columns}
        return HubColumns(text, False, joined, row, name_column, joined=True) if joined else HubColumns(text, True, {})
    needed = f"lists of words in a column named {' or '.join(WORDS)}, or text in a column named {' or '.join(TEXT)}"
    raise no_columns(name, needed, features)


class HubSource:
    """Source of the sentences of a data set of the hub, or of a local folder.

    Args:
        name: ``NAME[:CONFIG]`` of the hub, or a local folder, with options such as ``?streaming`` after it.
        more: Further names in the data set for each of our columns, such as names for the labels of a task.
        item: Names of columns that may label a whole row, such as ``intent`` (see ``labelled``).
        ids: True to read the names of the rows from the column ``id``, if it is a column of strings.

    Raises:
        InputError: An option is wrong, the data set cannot be loaded or lacks columns, or a split has no word or a
            malformed row at its start.
        DiskError: The stream of the data set broke off.
    """

    def __init__(
        self, name: str, more: Candidates | None = None, item: Sequence[str] = (), *, ids: bool = False
    ) -> None:
        name, options = name_and_options(name, (NORMALISE, CJK, REVISION, STREAMING))
        self.name, self.normalise = f"hf:{name}", options.get(NORMALISE)
        self._cjk = options.get(CJK)
        opened = open_data(name, options.get(REVISION), STREAMING in options)
        self._data, self._origin = by_split(opened.splits, self.name), opened.origin
        self._remarks: dict[str, Counter[str]] = {}
        self._sizes, self._rows_read = Sizes(), Counter[str]()
        # datasets gives every split of a configuration the same features
        try:
            features = features_of(next(iter(self._data.values())))
        except DiskError as error:
            raise error.inside(path=self.name) from error
        self._plan = plan_columns(features, self.name, more or {}, item, ids)
        for split in self._data:
            counts: Counter[str] = Counter()
            if next(self._rows(split, counts), None) is None:
                raise nothing_in("word", self.name, counts).inside(split)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the values in the columns that are read, independent of their files.

        The fingerprint of a stream covers the commit of the repository or the files of a local folder instead, because
        the values would have to be read twice.

        Raises:
            InputError: A text of the data set is not UTF-8, or the data cannot be read to its end.
        """
        plan: dict[str, Any] = {"text": self._plan.is_text}
        plan["labels"] = {ours: names for ours, (_, names) in self._plan.labels.items()}
        plan |= {} if self._plan.item is None else {"item": self._plan.item[1]}
        plan |= {} if self._plan.id is None else {"id": True}
        plan |= {NORMALISE: self.normalise} if self.normalise else {}
        plan |= {CJK: self._cjk} if self._cjk else {}
        if self._origin is not None:
            versions = {"reader": READER, "rules": [RULES, NOW], "splits": [*self._data]}
            return fingerprint("hub stream", origin=self._origin(), plan=plan, **versions)
        splits = {split: self._digest(split) for split in self._data}
        return fingerprint("hub", reader=READER, rules=RULES, plan=plan, splits=splits)

    def _digest(self, split: str) -> str:
        try:
            return digest_values(self._data[split], self._plan.reads, self._anew)
        except InputError as error:
            raise error.inside(split, path=self.name) from error

    @property
    def _anew(self) -> tuple[re.Pattern[bytes], ...]:
        """Patterns of bytes that earlier versions read differently."""
        return (*CLEANED, *(MARKUP if self._plan.is_text else ()), *(SPACES if self._plan.joined else ()))

    @property
    def splits(self) -> tuple[str, ...]:
        return tuple(self._data)

    @property
    def columns(self) -> tuple[str, ...]:
        return (FORM, *self._plan.labels)

    @cached_property
    def intents(self) -> tuple[str, ...]:
        """The names of the labels of rows (see the argument ``item``), or () without such labels.

        Labels that the data set does not declare are found by reading all splits, and are sorted.

        Raises:
            InputError: A row is malformed, or the stream of the data set broke off.
        """
        if self._plan.item is None:
            return ()
        return self._plan.item[1] or tuple(
            sorted({str(i) for split in self._data for _, i, _ in self._rows(split, Counter())})
        )

    def size(self, split: str) -> int | None:
        """Return the number of sentences in a split, or None if it is unknown.

        A row of running text has any number of sentences. Their number is therefore an estimate from the part of the
        split that has been read.
        """
        if split not in self._data:
            return None
        known = self._sizes.get(split)
        return rows_in(self._data[split], split) if known is None and not self._plan.is_text else known

    def remarks(self, split: str) -> Mapping[str, int]:
        """Return counts of changes, omissions and suspicious words by reason, in the part of a split that was read."""
        return +self._remarks.get(split, Counter())  # without zeros

    def batches(self, split: str) -> Iterator[Corpus]:
        check_split(self, split, self.name)
        remarks = self._remarks[split] = Counter()
        if self._plan.is_text:
            batches = batches_of(sentence[FORM] for sentence, _, _ in self._rows(split, remarks))
            words = (spelled(counted_uncut(batch, remarks), remarks, self.normalise) for batch in batches)
            return self._sizes.watch(split, words, lambda: self._share_read(split))
        return self._sizes.watch(split, self._remarked(split, remarks))

    def _share_read(self, split: str) -> float | None:
        rows = rows_in(self._data[split], split)
        return self._rows_read[split] / rows if rows else None

    def _remarked(self, split: str, remarks: Counter[str]) -> Iterator[Corpus]:
        for batch in self.labelled(split):
            remarks.update(batch.counts)
            yield batch.corpus

    def labelled(self, split: str) -> Iterator[Labelled]:
        """Yield the batches of a split with the labels and ids of their rows, if the data set has them.

        Raises:
            InputError: The data set lacks the split, or a row is malformed.
            DiskError: The stream of the data set broke off.
        """
        check_split(self, split, self.name)
        spans = any(name in SPAN_COLUMNS for name in self._plan.labels)
        counts: Counter[str] = Counter()
        for first, rows in in_batches(self._rows(split, counts)):
            corpus = Corpus.of([sentence for sentence, _, _ in rows], first)
            corpus = spelled(legal_tags(corpus) if spans else corpus, counts, self.normalise)
            labels = [label for _, label, _ in rows if label is not None]
            ids = None if self._plan.id is None else [name or str(first + at) for at, (_, _, name) in enumerate(rows)]
            yield Labelled(corpus, labels, dict(+counts), ids)
            counts.clear()

    def _rows(self, split: str, counts: Counter[str]) -> Iterator[Row]:
        """Yield (columns, label of the row, id of the row) for each sentence. Empty rows are left out."""
        plan = self._plan
        lists = 1 + len(plan.labels)
        for number, row in enumerate(self._values(split), start=1):
            self._rows_read[split] = number
            if plan.is_text:
                for line in (row[0] or "").split("\n"):
                    counts[REMOVED] += count_unseen(line)
                    words = split_words(without_markup(line, counts), bool(self._cjk))
                    yield from (({FORM: sentence}, None, None) for sentence in split_sentences(words))
            elif row[0]:
                lines = [(spaced(v) if v else v) if plan.joined else v for v in row[:lists]]
                try:
                    sentence = self._sentence(lines[0], lines[1:])
                    label = None
                    if sentence[FORM] and plan.item is not None:
                        [label] = _named([None if row[lists] == "" else row[lists]], *plan.item)
                except InputError as error:
                    raise error.inside(split, f"row {number}", path=self.name) from error
                for tidy in tidied([sentence] if sentence[FORM] else [], counts):
                    yield tidy, label, None if plan.id is None else row[-1]

    def _values(self, split: str) -> Iterator[tuple[Any, ...]]:
        try:
            yield from rows_of(self._data[split], self._plan.reads)
        except InputError as error:
            raise error.inside(split, path=self.name) from error

    def _sentence(self, words: list[str], labels: Sequence[list[Any] | None]) -> dict[str, list[Any]]:
        for number, word in enumerate(words, start=1):
            if not (word and word.strip(" ")):
                raise InputError(f"word {number} is empty", hint=CORRECT, code="format")
        sentence: dict[str, list[Any]] = {FORM: words}
        for (ours, (column, names)), values in zip(self._plan.labels.items(), labels, strict=True):
            if values is None or len(values) != len(words):
                reason = (
                    f"the row has {plural(len(words), 'word')}, but {plural(len(values or ()), 'value')} in this column"
                )
                raise InputError(reason, keys=(column,), hint="give one value for each word", code="format")
            sentence[ours] = values if ours == "head" else _named(values, column, names)
            if ours in SPAN_COLUMNS:
                sentence[ours] = [iob_tag(value, keys=(column,)) for value in sentence[ours]]
        return _syntactic(sentence) if "head" in sentence else sentence


def _named(values: Sequence[Any], column: str, names: Names) -> list[str]:
    """Return labels as strings. Numbers of class labels become their names."""
    for value in values:
        if value is None:
            raise InputError("the row lacks a label in this column", keys=(column,), hint=CORRECT, code="missing")
        if names and not 0 <= value < len(names):
            reason = f"the label {value} has no name in this column"
            raise InputError(reason, keys=(column,), hint=CORRECT, code="range")
    return list(values) if names is None else [names[value] for value in values]


def _head(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError) as error:
        raise InputError(f"a head must be an integer, not {value!r}", keys="head", hint=CORRECT, code="type") from error


def _syntactic(sentence: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Drop multiword ranges and empty nodes, which heads do not count, and check that the heads form one tree.

    Inserted words (head −1) are outside the tree.
    """
    tags = sentence.get("upos", ["_"] * len(sentence["head"]))
    kept = [head not in NO_HEAD or tag != "_" for head, tag in zip(sentence["head"], tags, strict=True)]
    sentence = {name: [v for v, keep in zip(values, kept, strict=True) if keep] for name, values in sentence.items()}
    heads = whole = sentence["head"] = [_head(value) for value in sentence["head"]]
    if -1 in heads:  # for the check, attach inserted words to the root, or to the first one if the root was deleted
        root = heads.index(0 if 0 in heads else -1)
        whole = [0 if at == root else root + 1 if head == -1 else head for at, head in enumerate(heads)]
    problem = tree_problem(whole) if heads else None
    if problem:
        raise InputError(problem[1], keys="head", hint=CORRECT, code="format")
    return sentence
