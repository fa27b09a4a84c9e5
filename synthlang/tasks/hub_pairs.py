"""Classification of pairs of texts in data sets of the hub or a local folder: glue, xnli, snli, exported ones.

Columns are known by the names that tab-separated files have, too (see pairs.py), and labels are
class labels, strings in any case, or numbers, whose digits then are their names. A pair whose
label is missing, −1 or ``-`` is left out and counted; a split that has no other pair, as the
test sets of glue, is no split of the task. ``validation_matched`` and ``test_matched`` count as dev and test.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because, listed
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
from synthlang.sources.words import RULES, Words, split_words
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.hub import HubTask
from synthlang.tasks.pairs import FIELDS, IDS, NAMES, NO_LABEL, UNLABELLED, Pair, batches_of_pairs, order_labels

READER = 1  # part of the fingerprint: count up when the same rows give other pairs
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
        return fingerprint("hub-pairs", reader=READER, rules=RULES, splits=splits, **named)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The class labels that are declared, else those of all splits; those of NLI in their usual order."""
        if self._plan.names is not None:
            return order_labels({name.lower() for name in self._plan.names})
        column = self._plan.label
        values = {v for data in self._data.values() for part in tables(data, [column]) for v in set(part[column])}
        return order_labels({name for name in map(self._label, values) if name is not None})

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The pairs of a split in order."""
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
