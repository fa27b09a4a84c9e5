"""Classification of pairs of texts: files (NLI, RTE, SICK, XNLI), data sets of the hub (glue, xnli, snli), the grammar.

Files are tab-separated with a header, or have a JSON object on each line (MNLI, SNLI). Columns are found by their usual
names, such as ``premise``, ``sentence1`` or ``sentence_A``. Quotes have no special meaning. A text is split into words
and sentences by the rules for plain text. A pair is left out and counted if it has no gold label (``-``, or on the hub
−1 or no value), or if one of its texts has no word. Labels are in lower case, and ``contradictory`` (machine
translations of XNLI) is ``contradiction``. On the hub they are class labels, strings or numbers, which become texts. A
repeated id gets a number. A split of the hub without a labelled pair, such as the test sets of glue, is left out.
``validation_matched`` and ``test_matched`` count as dev and test. A column ``SemEval_set`` (SICK in one file) assigns
the rows to splits.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.config_errors import show_value
from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import json_value, read_lines
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import listed
from synthlang.sources.hub_data import is_spaced, names_of, rows_of
from synthlang.sources.mini_english.nli import LABELS, nli_pairs
from synthlang.sources.segmentation import RULES, split_sentences
from synthlang.sources.splits import CJK, NORMALISE, SPLITS
from synthlang.sources.splits import NAMES as SPLIT_NAMES
from synthlang.sources.text import digest_splits
from synthlang.sources.words import CLEANED, REMOVED, count_unseen
from synthlang.tasks.base import FileTask, HubTask, MiniEnglishTask, ReadTask, opener
from synthlang.tasks.batch import Item, ItemGroup
from synthlang.wording import first_few, plural

READER = 2  # part of the fingerprint: raise when the same bytes give other pairs
HUB_READER = 1  # part of the fingerprint: raise when the same rows give other pairs
NAMES = {
    "premise": ("premise", "sentence1", "sentence_a"),
    "hypothesis": ("hypothesis", "hypo", "sentence2", "sentence_b"),
    "label": ("gold_label", "label", "entailment_judgment", "entailment_label"),
    "id": ("pairid", "pair_id", "id", "index"),
    "language": ("language",),
}
SET = "semeval_set"
FIELDS = ("premise", "hypothesis")
NEEDED = (*FIELDS, "label")
KNOWN_LABELS = ("entailment", "neutral", "contradiction", "not_entailment")  # the order of the hub's data sets
SAME_LABEL = {"contradictory": "contradiction"}
RENAMED_LABEL = re.compile(rb"\tcontradictory(?:[\t\r\n]|$)", re.IGNORECASE)  # earlier a label of its own
UNLABELLED = ("", "-")  # values in place of a gold label
NO_LABEL = "pairs left out because they have no gold label"
NO_WORD = "pairs left out because a text has no word"


def order_labels(labels: set[str]) -> tuple[str, ...]:
    """Return the labels of NLI in their usual order, and then other labels alphabetically."""
    return (*(name for name in KNOWN_LABELS if name in labels), *sorted(labels.difference(KNOWN_LABELS)))


class Row(NamedTuple):
    """A pair as read.

    Attributes:
        id: Name of the pair.
        premise: The first text.
        hypothesis: The second text.
        label: The class label, or None without a gold label.
        language: Language of the row, or None if the data has no column of languages.
    """

    id: str
    premise: str
    hypothesis: str
    label: str | None
    language: str | None


class ReadPairs(ReadTask):
    """Base class of labelled pairs of texts that are read from files or from the hub."""

    kind = "classes"
    fields = FIELDS
    scheme = "nli"
    item = "labelled pair"

    @property
    def language(self) -> str | None:
        """The language whose rows are used. If it is None, rows in several languages raise an InputError."""
        return self.options.get("language")

    @abstractmethod
    def _rows(self, split: str) -> Iterator[tuple[int | None, Row]]:
        """Yield (line number or None, row) for each row of a split. Only files have line numbers."""

    def _labelled(self, split: str, counts: Counter[str]) -> Iterator[Row]:
        """Yield the labelled rows of the chosen language, and refuse several languages without a choice."""
        first: str | None = None
        for line, row in self._rows(split):
            if self.language is None and row.language is not None:
                first = row.language if first is None else first
                if first != row.language:
                    reason = f"the rows have several languages: {first!r} and {row.language!r}"
                    hint = f"choose a language, as in ?language={first or row.language}"
                    raise self._about(InputError(reason, line=line, hint=hint, code="conflict"), split)
            if self.language not in (None, row.language):
                continue
            if row.label is None:
                counts[NO_LABEL] += 1
            else:
                yield row

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        for row in self._labelled(split, counts):
            counts[REMOVED] += count_unseen(row.premise) + count_unseen(row.hypothesis)
            words = (self._words(text) for text in (row.premise, row.hypothesis))
            texts = [[{FORM: s} for s in split_sentences(w)] for w in words]
            if all(texts):
                yield ItemGroup(tuple(enumerate(texts)), (Item(row.id, (0, 1), row.label),))
            else:
                counts[NO_WORD] += 1

    def _check_usable(self) -> None:
        if self.language is not None:
            self.item = f"labelled pair in the language {self.language!r}"
        super()._check_usable()

    def _check_language(self, named: bool, where: str | Path) -> None:
        if self.language == "":
            hint = "name a language, for example ?language=de"
            raise InputError("has no value", where, keys="language", hint=hint, code="empty")
        if self.language is not None and not named:
            hint = "leave ?language= out"
            raise InputError("the data has no column 'language'", where, keys="language", hint=hint, code="missing")


def label_of(value: str) -> str | None:
    """Return a label under its usual name, or None for the mark of a missing gold label."""
    name = value.strip().lower()
    return None if name in UNLABELLED else SAME_LABEL.get(name, name)


class FilePairs(ReadPairs, FileTask):
    """Labelled pairs of files (see ``FileTask``). ``?language=`` chooses the pairs of one language.

    Raises:
        InputError: The path or an option is wrong, or a file cannot be read, lacks a column, has several languages
            without ``?language=``, or has no labelled pair.
    """

    endings = (".tsv", ".txt", ".jsonl")
    own_options = ("language", CJK)

    def _find(self) -> dict[str, Path]:
        files = super()._find()
        path = next(iter(files.values()))
        if len(files) > 1 or "split" in self.options or SET not in open_table(path)[0]:
            return files
        sets = {_set_of(row) for _, row in open_table(path)[1]}
        found = {split: path for split in SPLIT_NAMES if split in sets}
        if not found:
            hint = "write train, trial or test in this column, or remove it"
            raise InputError(f"no row has a known split in the column {SET}", path, hint=hint, code="empty")
        return found

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the bytes of each split, the language and the rules for words."""
        splits = digest_splits(self.files, rules=True, anew=(*CLEANED, RENAMED_LABEL))
        marks = {"language": self.language, **self._marks}
        return fingerprint("pairs-task", reader=READER, rules=RULES, splits=splits, **marks)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of all splits in the order of ``order_labels``.

        Raises:
            InputError: A row is malformed or cannot be read.
        """
        return order_labels({str(r.label) for split in self.splits for r in self._labelled(split, Counter())})

    def _rows(self, split: str) -> Iterator[tuple[int, Row]]:
        path = self.files[split]
        names, rows = open_table(path)
        places = {field: _place_of(field, names, path) for field in NAMES}
        self._check_language(bool(places["language"]), path)
        for number, row in rows:
            if SET in names and _set_of(row) != split:
                continue
            found = {field: row.get(name) for field, name in places.items()}
            premise, hypothesis, label = ("" if found[field] is None else str(found[field]).strip() for field in NEEDED)
            name = str(number - FIRST_ROW if found["id"] is None else found["id"])
            language = None if found["language"] is None else str(found["language"])
            yield number, Row(name, premise, hypothesis, label_of(label), language)


FIRST_ROW = 2  # the line of the first row below a header


def open_table(path: Path) -> tuple[list[str], Iterator[tuple[int, dict[str, Any]]]]:
    """Return the names of the columns in lower case, and an iterator over (line number, values by name) for the rows.

    The columns of a file of JSON objects are the keys of its first line.

    Raises:
        InputError: The file cannot be read, or its first line is malformed. Another malformed line raises the error
            when it is read.
    """
    lines = read_lines(path)
    first = next(lines, (1, ""))
    if first[1].startswith("{"):
        rows = json_rows(chain([first], lines), path)
        row = next(rows)
        return list(row[1]), chain([row], rows)
    header = [name.strip().lower() for name in first[1].split("\t")]
    return header, tab_rows(lines, header, path)


def json_rows(lines: Iterable[tuple[int, str]], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, values by lower-case name) of each line with a JSON object. Blank lines are skipped.

    Raises:
        InputError: A line is not a JSON object. The error names ``path`` and the line.
    """
    for number, line in lines:
        if line.strip():
            row = json_value(line, path, number)
            if not isinstance(row, dict):
                reason, hint = (
                    f"the line must be a JSON object, not {show_value(row)}",
                    "write an object with both texts",
                )
                raise InputError(reason, path, number, hint=hint, code="type")
            yield number, {name.lower(): value for name, value in row.items()}


def tab_rows(lines: Iterable[tuple[int, str]], header: list[str], path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, values by name) of lines with the tab-separated columns of ``header``.

    Blank lines are skipped. If two columns have the same name, the first column counts.

    Raises:
        InputError: A line has another number of columns. The error names ``path`` and the line.
    """
    for number, line in lines:
        if line.strip():
            cells = line.split("\t")
            if len(cells) != len(header):
                reason = f"the line has {plural(len(cells), 'column')}, but the first line has {len(header)}"
                hint = f"separate {plural(len(header), 'column')} by tabs"
                raise InputError(reason, path, number, hint=hint, code="format")
            yield number, dict(zip(reversed(header), reversed(cells), strict=True))  # the first of equal names


def _set_of(row: dict[str, Any]) -> str | None:
    return SPLITS.get(str(row.get(SET)).strip().lower())


def _place_of(field: str, names: list[str], path: Path) -> str:
    """Return the name of a field's column, or "" for a missing optional field."""
    found = next((name for name in NAMES[field] if name in names), "")
    if not found and field in NEEDED:
        has = f"has only {first_few(names, 8)}" if any(names) else "is empty"
        reason = f"the first line must name the {field} ({' or '.join(NAMES[field])}), but it {has}"
        hint = "give a header with such a column, or JSON objects with such a key"
        raise InputError(reason, path, 1, hint=hint, code="missing")
    return found


class MiniEnglishPairs(MiniEnglishTask):
    """Natural language inference: pairs of premise and hypothesis from the mini-English grammar."""

    kind = "classes"
    fields = FIELDS
    name = "nli:builtin:mini-english"
    labels = LABELS
    version = ("mini-english-pairs", 2)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:  # noqa: ARG002
        for number, pair in enumerate(nli_pairs(self.source, split, self.source.size(split))):
            texts = tuple((i, [dict(s.columns)]) for i, s in enumerate((pair.premise, pair.hypothesis)))
            yield ItemGroup(texts, (Item(str(number), (0, 1), pair.label),))


MATCHED = {"validation_matched": "dev", "test_matched": "test"}


class HubPairs(ReadPairs, HubTask):
    """Labelled pairs of a data set (see ``HubTask``). ``?language=`` chooses the pairs of one language.

    Raises:
        InputError: An option is wrong, or the data set cannot be loaded, lacks columns, has several languages without
            ``?language=``, or has no labelled pair.
    """

    known_options = ("language", NORMALISE, CJK)
    other_splits = MATCHED

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self._columns = self._find_columns(NAMES, {field: field for field in NEEDED}, ("label", "id"))
        self._names = names_of(self._features[self._columns["label"]])
        self.spaced = all(is_spaced(self._features[self._columns[field]]) for field in FIELDS)
        self._check_language("language" in self._columns, self.name)
        unusable = {split: self._unusable(split) or Counter[str]() for split in self._data}
        self.left_out = {split: listed(why) for split, why in unusable.items() if set(why) == {NO_LABEL}}
        self._data = {split: rows for split, rows in self._data.items() if split not in self.left_out}
        if not self._data:
            reason = "no pair of any split has a gold label"
            raise InputError(reason, self.name, hint="use a data set with labels", code="empty")
        self.splits = tuple(self._data)
        self._check_usable()

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the values in the columns that are read, the language and the rules for words."""
        named: dict[str, Any] = {"names": self._names, "language": self.language, "spaced": self.spaced}
        named["id"] = "id" in self._columns
        return fingerprint("hub-pairs", reader=HUB_READER, rules=RULES, splits=self._digests(), **named, **self._marks)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The class labels that the data set declares, or else the labels of its rows, sorted by ``order_labels``.

        Raises:
            InputError: A label is not UTF-8, or the data cannot be read.
        """
        if self._names is not None:
            return order_labels({name.lower() for name in self._names})
        values = set[Any]()
        for split, data in self._data.items():
            with self._placed(split):
                values.update(value for (value,) in rows_of(data, [self._columns["label"]]))
        return order_labels({name for name in map(self._label, values) if name is not None})

    def _label(self, value: Any) -> str | None:
        """Return the name of a label, or None for a row without a gold label."""
        if self._names is not None:
            known = value is not None and 0 <= value < len(self._names)
            return self._names[value].lower() if known else None
        return None if value is None or value == -1 else label_of(str(value))

    def _rows(self, split: str) -> Iterator[tuple[None, Row]]:
        for number, row in self._parts(split):
            name = number if row.get("id") is None else row["id"]
            language = str(row["language"]) if "language" in row else None
            label = self._label(row["label"])
            yield None, Row(str(name), row["premise"] or "", row["hypothesis"] or "", label, language)


open_pairs = opener(FilePairs, HubPairs, MiniEnglishPairs)
