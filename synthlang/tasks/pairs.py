"""Classification of pairs of texts: files (NLI, RTE, SICK, XNLI), data sets of the hub (glue, xnli, snli), the grammar.

Files are tab-separated with a header. Columns are found by their usual names, such as ``premise``, ``sentence1`` or
``sentence_A``. Quotes have no special meaning. A text is split into words and sentences by the rules for plain text.
A pair without a gold label (``-``, or missing or −1 on the hub) or with a text without a word is left out and counted.
Labels are in lower case. On the hub they are class labels, strings or numbers, which become texts. A repeated id gets a
number. A split of the hub without a labelled pair, such as the test sets of glue, is left out. ``validation_matched``
and ``test_matched`` count as dev and test.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import listed
from synthlang.sources.hub_data import (
    STRINGS,
    by_split,
    digest_values,
    dtype_of,
    is_spaced,
    load_data,
    names_of,
    no_columns,
    rows_of,
    tables,
)
from synthlang.sources.mini_english.nli import LABELS, nli_pairs
from synthlang.sources.segmentation import RULES, SegmentedText, split_sentences, split_words
from synthlang.sources.text import digest_splits
from synthlang.tasks.base import FileTask, HubTask, MiniEnglishTask, ReadTask, TaskSet, built_in
from synthlang.tasks.batch import Item, ItemGroup

READER = 2  # part of the fingerprint: raise when the same bytes give other pairs
HUB_READER = 1  # part of the fingerprint: raise when the same rows give other pairs
NAMES = {
    "premise": ("premise", "sentence1", "sentence_a"),
    "hypothesis": ("hypothesis", "sentence2", "sentence_b"),
    "label": ("gold_label", "label", "entailment_judgment"),
    "id": ("pairid", "pair_id", "id", "index"),
    "language": ("language",),
}
FIELDS = ("premise", "hypothesis")
NEEDED = (*FIELDS, "label")
KNOWN_LABELS = ("entailment", "neutral", "contradiction", "not_entailment")  # the order of the hub's data sets
UNLABELLED = ("", "-")  # values in place of a gold label
NO_LABEL = "pairs left out because they have no gold label"
NO_WORD = "pairs left out because a text has no word"


def open_pairs(scheme: str, rest: str) -> TaskSet:
    """Open pairs of the built-in grammar, of the hub or of tab-separated files."""
    if rest.startswith("builtin:"):
        return MiniEnglishPairs(built_in(rest))
    if not rest.startswith("hf:"):
        return FilePairs(scheme, rest)
    data = rest.removeprefix("hf:")
    name, mark, query = data.rpartition("?")
    if not mark or user_path(data).exists():
        return HubPairs(data)
    key, _, language = query.partition("=")
    if key != "language" or not language:
        hint = "the only option after ? is language=…"
        raise InputError(f"unknown option {query!r}", f"{scheme}:hf:{name}", hint=hint, code="unknown")
    return HubPairs(name, language)


def order_labels(labels: set[str]) -> tuple[str, ...]:
    """Sort the labels of NLI in their usual order, and then other labels alphabetically."""
    return (*(name for name in KNOWN_LABELS if name in labels), *sorted(labels.difference(KNOWN_LABELS)))


class Row(NamedTuple):
    """A pair as read. ``label`` is None without a gold label, and ``language`` is None without such a column."""

    id: str
    premise: str
    hypothesis: str
    label: str | None
    language: str | None


class ReadPairs(ReadTask):
    """Labelled pairs of files or the hub. ``language`` chooses the rows of one language."""

    kind = "classes"
    fields = FIELDS
    item = "labelled pair"
    spaced = False
    """True if the texts are words separated by single spaces, as in exported data sets."""

    @property
    @abstractmethod
    def language(self) -> str | None: ...

    @abstractmethod
    def _rows(self, split: str) -> Iterator[tuple[int | None, Row]]:
        """Yield the rows of a split with their line numbers in a file, else None."""

    def _labelled(self, split: str, counts: Counter[str]) -> Iterator[Row]:
        """Yield the labelled rows of the language. Several languages without a choice raise an InputError."""
        first: str | None = None
        for line, row in self._rows(split):
            if self.language is None and row.language is not None:
                first = row.language if first is None else first
                if first != row.language:
                    hint = f"choose one: ?language={min(first, row.language)}"
                    error = InputError("there are several languages", line=line, hint=hint, code="conflict")
                    raise self._about(error, split)
            if self.language not in (None, row.language):
                continue
            if row.label is None:
                counts[NO_LABEL] += 1
            else:
                yield row

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        for row in self._labelled(split, counts):
            words = [
                SegmentedText.spaced(t).words if self.spaced else split_words(t) for t in (row.premise, row.hypothesis)
            ]
            texts = [[{FORM: s} for s in split_sentences(w)] for w in words]
            if all(texts):
                yield ItemGroup(tuple(enumerate(texts)), (Item(row.id, (0, 1), row.label),))
            else:
                counts[NO_WORD] += 1

    def _check_language(self, named: bool, where: str | Path) -> None:
        if self.language == "":
            hint = "name one: ?language=de"
            raise InputError("the language is empty", where, keys="language", hint=hint, code="empty")
        if self.language is not None and not named:
            hint = "leave ?language= out"
            raise InputError("there is no column 'language'", where, keys="language", hint=hint, code="missing")


class FilePairs(ReadPairs, FileTask):
    """Labelled pairs of tab-separated files. ``?language=`` chooses one language."""

    endings = (".tsv", ".txt")
    own_options = ("language",)

    @property
    def language(self) -> str | None:
        return self.options.get("language")

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the bytes of each split, the language and the rules for words."""
        splits = digest_splits(self.files, rules=True)
        return fingerprint("pairs-task", reader=READER, rules=RULES, language=self.language, splits=splits)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The sorted labels of all splits."""
        return order_labels({str(r.label) for split in self.splits for r in self._labelled(split, Counter())})

    def _rows(self, split: str) -> Iterator[tuple[int, Row]]:
        path = self.files[split]
        lines = read_lines(path)
        header = [name.strip().lower() for name in next(lines, (0, ""))[1].split("\t")]
        places = {field: _place_of(field, header, path) for field in NAMES}
        self._check_language(places["language"] is not None, path)
        for number, line in lines:
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) != len(header):
                reason = f"the line has {len(cells)} columns, but the header has {len(header)}"
                raise InputError(reason, path, number, code="format")
            found = {field: None if at is None else cells[at] for field, at in places.items()}
            premise, hypothesis, label = (str(found[field]).strip() for field in NEEDED)
            name = str(number - 2) if found["id"] is None else found["id"]
            known = None if label in UNLABELLED else label.lower()
            yield number, Row(name, premise, hypothesis, known, found["language"])


def _place_of(field: str, header: list[str], path: Path) -> int | None:
    """Return the index of a field's column, or None if an optional field is missing."""
    found = next((header.index(name) for name in NAMES[field] if name in header), None)
    if found is None and field in NEEDED:
        has = ", ".join(header)[:200]
        names = " or ".join(NAMES[field])
        reason = f"the header has no column for the {field} ({names}), only {has!r}"
        raise InputError(reason, path, 1, code="missing")
    return found


class MiniEnglishPairs(MiniEnglishTask):
    """Inference pairs of the grammar: premise and hypothesis."""

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
    """Labelled pairs of a data set. Opening it raises an InputError if it cannot be loaded or lacks columns."""

    language: str | None = None

    def __init__(self, name: str, language: str | None = None) -> None:
        self.name, self.language = f"nli:hf:{name}", language
        self._data = by_split(load_data(name), f"hf:{name}", MATCHED)
        features = next(iter(self._data.values())).features
        self._columns = columns_of(features, self.name)
        self._names = names_of(features[self._columns["label"]])
        self.spaced = all(is_spaced(features[self._columns[field]]) for field in FIELDS)
        self._check_language("language" in self._columns, self.name)
        unusable = {split: self._unusable(split) or Counter[str]() for split in self._data}
        self.left_out = {split: listed(why) for split, why in unusable.items() if set(why) == {NO_LABEL}}
        self._data = {split: rows for split, rows in self._data.items() if split not in self.left_out}
        if not self._data:
            reason = f"no split has a labelled pair ({'; '.join(self.left_out.values())})"
            raise InputError(reason, self.name, code="empty")
        self.splits = tuple(self._data)
        self._check_usable()

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the values in the columns that are read, the language and the rules for words."""
        splits = {
            split: digest_values(data, list(self._columns.values()), rules=True) for split, data in self._data.items()
        }
        named: dict[str, Any] = {"names": self._names, "language": self.language, "spaced": self.spaced}
        named["id"] = "id" in self._columns
        return fingerprint("hub-pairs", reader=HUB_READER, rules=RULES, splits=splits, **named)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The sorted class labels that the data set declares, or else all that occur."""
        if self._names is not None:
            return order_labels({name.lower() for name in self._names})
        column = self._columns["label"]
        values = {v for data in self._data.values() for part in tables(data, [column]) for v in set(part[column])}
        return order_labels({name for name in map(self._label, values) if name is not None})

    def _label(self, value: Any) -> str | None:
        """Return the name of a label, or None for a row without a gold label."""
        if self._names is not None:
            known = value is not None and 0 <= value < len(self._names)
            return self._names[value].lower() if known else None
        text = "" if value is None or value == -1 else str(value).strip().lower()
        return None if text in UNLABELLED else text

    def _rows(self, split: str) -> Iterator[tuple[None, Row]]:
        for number, values in enumerate(rows_of(self._data[split], list(self._columns.values()))):
            row = dict(zip(self._columns, values, strict=True))
            name = number if row.get("id") is None else row["id"]
            language = str(row["language"]) if "language" in row else None
            label = self._label(row["label"])
            yield None, Row(str(name), row["premise"] or "", row["hypothesis"] or "", label, language)


def columns_of(features: Mapping[str, Any], name: str) -> dict[str, str]:
    """Return the column of each part of a pair, in the order of NAMES.

    Raises:
        InputError: A required column is missing. The error lists the columns.
    """
    places = {column.strip().lower(): column for column in reversed(list(features))}
    found = {}
    for field, names in NAMES.items():
        kinds = (*STRINGS, "int", "uint") if field in ("label", "id") else STRINGS
        known = (places.get(n, "") for n in (*names, *(("idx",) if field == "id" else ())))
        column = next((c for c in known if (dtype_of(features.get(c)) or "").startswith(kinds)), None)
        if column is not None:
            found[field] = column
        elif field in NEEDED:
            raise no_columns(name, f"a column for the {field} ({' or '.join(names)})", features)
    return found
