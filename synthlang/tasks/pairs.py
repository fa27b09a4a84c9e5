"""Classification of pairs of texts: files (NLI, RTE, SICK, XNLI), data sets of the hub (glue, xnli, snli), the grammar.

Files are tab-separated with a header; columns are known by their names in the field's releases, on the hub too:
``premise`` or ``sentence1`` or ``sentence_A``, and so on. A text is split into words and sentences by the rules for
plain text; quotes mean nothing. A pair without a gold label (``-``, on the hub also missing or −1) or without a word in
a text is left out and counted. Labels are in lower case; on the hub they are class labels, strings, or numbers, whose
digits then are their names. An id that comes again gets a number. A split of the hub that has no labelled pair, as the
test sets of glue, is no split of the task; ``validation_matched`` and ``test_matched`` count as dev and test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because, check_split, listed
from synthlang.sources.hub_data import (
    STRINGS,
    by_split,
    described,
    digest_values,
    dtype_of,
    is_spaced,
    load_data,
    names_of,
    rows_of,
    tables,
)
from synthlang.sources.mini_english.nli import LABELS, nli_pairs
from synthlang.sources.text import digest_splits, files_by_split
from synthlang.sources.words import RULES, Words, split_sentences, split_words
from synthlang.tasks.base import FileTask, HubTask, MiniEnglishTask, TaskSet, built_in
from synthlang.tasks.batch import Group, Item, TaskBatch, batches_of_groups, unique_ids

READER = 2  # part of the fingerprint: count up when the same bytes give other pairs
ENDINGS = (".tsv", ".txt")
NAMES = {
    "premise": ("premise", "sentence1", "sentence_a"),
    "hypothesis": ("hypothesis", "sentence2", "sentence_b"),
    "label": ("gold_label", "label", "entailment_judgment"),
}
IDS = ("pairid", "pair_id", "id", "index")
FIELDS = ("premise", "hypothesis")
KNOWN_LABELS = ("entailment", "neutral", "contradiction", "not_entailment")  # the order of the hub's data sets
UNLABELLED = ("", "-")  # what stands where there is no gold label
NO_LABEL, NO_WORD = "pairs left out, no gold label", "pairs left out, a text without a word"


def open_pairs(scheme: str, rest: str) -> TaskSet:
    """The pairs of the built-in grammar, of the hub or of tab-separated files, perhaps of one language of several."""
    if rest.startswith("builtin:"):
        return MiniEnglishPairs(built_in(rest))
    path, mark, query = rest.rpartition("?")
    language: str | None = None
    if not mark or user_path(rest.removeprefix("hf:")).exists():
        path = rest
    else:
        key, _, language = query.partition("=")
        if key != "language" or not language:
            raise InputError(f"task {f'{scheme}:{rest}'!r}: after ? there must be language=… and not {query!r}")
    return HubPairs(path.removeprefix("hf:"), language) if path.startswith("hf:") else PairTask(path, language)


class Pair(NamedTuple):
    """A line of the file."""

    id: str
    premise: str
    hypothesis: str
    label: str


class PairTask(FileTask):
    """Labelled pairs; a wrong path or header is an InputError here, a wrong line when it is reached.

    ``language`` chooses the lines whose column ``language`` says so, for a file with several.
    """

    kind = "classes"
    fields = FIELDS

    def __init__(self, path: str | Path, language: str | None = None) -> None:
        self.path, self.language = user_path(path), language
        self.name = f"nli:{path}"
        self.files = files_by_split(self.path, ENDINGS)
        for file in self.files.values():
            counts: Counter[str] = Counter()
            if next(read_pairs(file, language, counts), None) is None:
                raise InputError(f"holds no labelled pair{because(counts)}", file)

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split, the language and the rules for words."""
        splits = digest_splits(self.files)
        return fingerprint("pairs-task", reader=READER, rules=RULES, language=self.language, splits=splits)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of all splits: those of NLI in their usual order, then others sorted."""
        return order_labels({p.label for f in self.files.values() for p in read_pairs(f, self.language, Counter())})

    def batches(self, split: str) -> Iterator[TaskBatch]:
        check_split(self.as_source(), split, self.name)
        counts: Counter[str] = Counter()
        return batches_of_pairs(read_pairs(self.files[split], self.language, counts), self.labels, counts)


def batches_of_pairs(
    pairs: Iterator[Pair],
    labels: tuple[str, ...],
    counts: Counter[str],
    words: Callable[[str], list[str]] = split_words,
) -> Iterator[TaskBatch]:
    """Pairs as batches, each id once; ``counts`` takes what ``pairs`` leaves out, and pairs without a word."""
    return batches_of_groups(unique_ids(_groups(pairs, counts, words), counts), labels, counts)


def _groups(pairs: Iterator[Pair], counts: Counter[str], words: Callable[[str], list[str]]) -> Iterator[Group]:
    for pair in pairs:
        texts = [[{FORM: s} for s in split_sentences(words(t))] for t in (pair.premise, pair.hypothesis)]
        if all(texts):
            yield Group(tuple(enumerate(texts)), (Item(pair.id, (0, 1), pair.label),))
        else:
            counts[NO_WORD] += 1


def order_labels(labels: set[str]) -> tuple[str, ...]:
    """The usual order of the labels of NLI, then the others sorted."""
    return (*(name for name in KNOWN_LABELS if name in labels), *sorted(labels.difference(KNOWN_LABELS)))


def read_pairs(path: Path, language: str | None, counts: Counter[str]) -> Iterator[Pair]:
    """The labelled pairs of a file; ``counts`` takes those left out.

    Raises InputError with the line for a line that has not as many columns as the header.
    """
    lines = read_lines(path)
    header = [name.strip().lower() for name in next(lines, (0, ""))[1].split("\t")]
    places = {field: _column(header, names, field, path) for field, names in NAMES.items()}
    name = next((header.index(n) for n in IDS if n in header), None)
    tongue = header.index("language") if "language" in header else None
    if language is not None and tongue is None:
        raise InputError("has no column 'language' to choose from; leave ?language= out", path)
    seen: set[str] = set()
    for number, line in lines:
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != len(header):
            raise InputError(f"here are {len(fields)} columns, the header names {len(header)}", path, number)
        if tongue is not None:
            seen.add(fields[tongue])
            if language is None and len(seen) > 1:
                raise InputError(f"holds several languages; choose one as in ?language={min(seen)}", path, number)
            if language not in (None, fields[tongue]):
                continue
        premise, hypothesis, label = (fields[places[field]].strip() for field in NAMES)
        if label in UNLABELLED:
            counts[NO_LABEL] += 1
            continue
        yield Pair(str(number - 2) if name is None else fields[name], premise, hypothesis, label.lower())


def _column(header: list[str], names: tuple[str, ...], field: str, path: Path) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    found = ", ".join(header)[:200]
    raise InputError(f"the header names no column for the {field} ({' or '.join(names)}); it has {found!r}", path, 1)


class MiniEnglishPairs(MiniEnglishTask):
    """Inference: premise and hypothesis."""

    kind = "classes"
    fields = FIELDS
    name = "nli:builtin:mini-english"
    labels = LABELS
    version = ("mini-english-pairs", 1)

    def _groups(self, split: str) -> Iterator[Group]:
        for number, pair in enumerate(nli_pairs(self.source, split, self.source.size(split))):
            texts = tuple((i, [dict(s.columns)]) for i, s in enumerate((pair.premise, pair.hypothesis)))
            yield Group(texts, (Item(str(number), (0, 1), pair.label),))


HUB_READER = 1  # part of the fingerprint: count up when the same rows give other pairs
MATCHED = {"validation_matched": "dev", "test_matched": "test"}
LANGUAGE = "language"


class Plan(NamedTuple):
    """The columns to read.

    names    of the class labels, None if they are strings or numbers
    spaced   whether the texts are words with one space between each two, as exported ones are
    """

    premise: str
    hypothesis: str
    label: str
    names: tuple[str, ...] | None
    id: str | None
    language: str | None
    spaced: bool

    @property
    def reads(self) -> list[str]:
        """The columns in the order of the fields."""
        return [c for c in (self.premise, self.hypothesis, self.label, self.id, self.language) if c is not None]


class HubPairs(HubTask):
    """Labelled pairs of a data set; what cannot be reached or understood is an InputError here.

    ``language`` chooses the rows whose column ``language`` says so, for a data set with several.
    """

    kind = "classes"
    fields = FIELDS

    def __init__(self, name: str, language: str | None = None) -> None:
        self.name, self.language = f"nli:hf:{name}", language
        data = by_split(load_data(name), f"hf:{name}", MATCHED)
        self._plan = plan_pairs(next(iter(data.values())).features, self.name)
        if language is not None and self._plan.language is None:
            raise InputError(f"{self.name}: has no column {LANGUAGE!r} to choose from; leave ?language= out")
        self._data = {}
        left_out: dict[str, str] = {}
        for split, rows in data.items():
            counts: Counter[str] = Counter()
            if next(self._pairs(rows, split, counts), None) is not None:
                self._data[split] = rows
            elif set(counts) == {NO_LABEL}:
                left_out[split] = listed(counts)
            else:
                raise InputError(f"{self.name}: the split {split} holds no labelled pair{because(counts)}")
        self.left_out = left_out
        if not self._data:
            raise InputError(f"{self.name}: no split holds a labelled pair ({'; '.join(left_out.values())})")

    @cached_property
    def fingerprint(self) -> str:
        """Of the values in the columns that are read, the language and the rules for words."""
        splits = {split: digest_values(data, self._plan.reads) for split, data in self._data.items()}
        named: dict[str, Any] = {"names": self._plan.names, "language": self.language, "spaced": self._plan.spaced}
        named["id"] = self._plan.id is not None
        return fingerprint("hub-pairs", reader=HUB_READER, rules=RULES, splits=splits, **named)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The class labels that are declared, else those of all splits; those of NLI in their usual order."""
        if self._plan.names is not None:
            return order_labels({name.lower() for name in self._plan.names})
        column = self._plan.label
        values = {v for data in self._data.values() for part in tables(data, [column]) for v in set(part[column])}
        return order_labels({name for name in map(self._label, values) if name is not None})

    def batches(self, split: str) -> Iterator[TaskBatch]:
        self.check(split)
        counts: Counter[str] = Counter()
        words = (lambda text: Words.spaced(text).words) if self._plan.spaced else split_words
        return batches_of_pairs(self._pairs(self._data[split], split, counts), self.labels, counts, words)

    def _label(self, value: Any) -> str | None:
        """The name of a label; None for a row without a gold label."""
        if self._plan.names is not None:
            known = value is not None and 0 <= value < len(self._plan.names)
            return self._plan.names[value].lower() if known else None
        text = "" if value is None or value == -1 else str(value).strip().lower()
        return None if text in UNLABELLED else text

    def _pairs(self, data: Any, split: str, counts: Counter[str]) -> Iterator[Pair]:
        plan, seen = self._plan, set[str]()
        for number, (premise, hypothesis, value, *rest) in enumerate(rows_of(data, plan.reads)):
            if plan.language is not None:
                tongue = str(rest[-1])
                seen.add(tongue)
                if self.language is None and len(seen) > 1:
                    choice = f"choose one as in ?language={min(seen)}"
                    raise InputError(f"{self.name}: the split {split} holds several languages; {choice}")
                if self.language not in (None, tongue):
                    continue
            label = self._label(value)
            if label is None:
                counts[NO_LABEL] += 1
                continue
            name = number if plan.id is None or rest[0] is None else rest[0]
            yield Pair(str(name), premise or "", hypothesis or "", label)


def plan_pairs(features: Mapping[str, Any], name: str) -> Plan:
    """Choose the columns to read, or raise InputError that names the columns there are."""
    places = {column.strip().lower(): column for column in reversed(list(features))}

    def find(field: str, names: tuple[str, ...], kinds: tuple[str, ...], need: bool) -> str | None:
        for known in names:
            column = places.get(known, "")
            kind = dtype_of(features.get(column)) or ""
            if kind in STRINGS or kind.startswith(kinds):
                return column
        if not need:
            return None
        raise InputError(f"{name}: no column for the {field} ({' or '.join(names)}); it has {described(features)}")

    premise, hypothesis = (find(field, NAMES[field], STRINGS, need=True) for field in FIELDS)
    label = find("label", NAMES["label"], ("int", "uint"), need=True)
    assert premise is not None and hypothesis is not None and label is not None
    row = find("id", (*IDS, "idx"), ("int", "uint"), need=False)
    language = find(LANGUAGE, (LANGUAGE,), STRINGS, need=False)
    spaced = is_spaced(features[premise]) and is_spaced(features[hypothesis])
    return Plan(premise, hypothesis, label, names_of(features[label]), row, language, spaced)
