"""Which columns of a hub data set hold words and annotations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from synthlang.errors import InputError

WORDS = ("words", "tokens", "form")
TEXT = ("text", "sentence")
LABELS = {"upos": ("upos", "pos_tags"), "head": ("head",), "deprel": ("deprel",), "ner": ("ner", "ner_tags")}
STRINGS = ("string", "large_string")
SPACED = "words"  # the id of a feature of ``datasets`` whose texts are words with one space between each two
Label = tuple[str, tuple[str, ...] | None]
Candidates = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Plan:
    """Which columns of a data set to read.

    words    the column of words, or of text if ``is_text``
    labels   our column → (its column, names of its class labels or None)
    item     the same for the label of a whole row, None if there is none
    id       the column of the names of the rows, None if they are not asked for or there are none
    joined   whether words and labels are strings with white space between each two, not lists
    """

    words: str
    is_text: bool
    labels: Mapping[str, Label]
    item: Label | None = None
    id: str | None = None
    joined: bool = False

    @property
    def reads(self) -> list[str]:
        """The columns of the data set that are read: words, labels, then those of ``item`` and ``id``."""
        labels = [column for column, _ in self.labels.values()]
        return [self.words, *labels, *([] if self.item is None else [self.item[0]]), *([self.id] if self.id else [])]


def plan_columns(
    features: Mapping[str, Any], name: str, more: Candidates | None = None, item: Sequence[str] = (), ids: bool = False
) -> Plan:
    """Choose the columns to read, or raise InputError that names the columns there are.

    more   our column → names of columns that hold it, too, where no usual one does
    item   names of columns that label a whole row
    ids    whether a column ``id`` of strings names the rows
    """
    name_column = "id" if ids and dtype_of(features.get("id")) in STRINGS else None
    for words in WORDS:
        if _item(features.get(words)) in STRINGS:
            return Plan(words, False, _labels(features, more or {}), _of_rows(features, item), name_column)
    for text in TEXT:
        if dtype_of(features.get(text)) in STRINGS:
            joined = _joined(features, more or {})
            if joined:
                return Plan(text, False, joined, _of_rows(features, item), name_column, joined=True)
            return Plan(text, is_text=True, labels={})
    raise InputError(
        f"{name}: needs lists of words in a column {', '.join(WORDS)}, or text in {' or '.join(TEXT)};"
        f" it has {described(features)}"
    )


def _labels(features: Mapping[str, Any], more: Candidates) -> dict[str, Label]:
    """For each of our columns the first candidate of a usable type."""
    labels: dict[str, Label] = {}
    for ours in dict.fromkeys([*LABELS, *more]):
        for column in (*LABELS.get(ours, ()), *more.get(ours, ())):
            item, names = _item(features.get(column)), _class_names(features.get(column))
            numbers = ours == "head" and item is not None and item.startswith(("int", "uint"))
            if ours not in labels and (item in STRINGS or names or numbers):
                labels[ours] = (column, names)
    return labels


def _joined(features: Mapping[str, Any], more: Candidates) -> dict[str, Label]:
    """What a task takes for its labels, in columns of strings: ``O O B-city`` beside ``fly to rome``."""
    found = {ours: [c for c in names if dtype_of(features.get(c)) in STRINGS] for ours, names in more.items()}
    return {ours: (columns[0], None) for ours, columns in found.items() if columns}


def _of_rows(features: Mapping[str, Any], candidates: Sequence[str]) -> Label | None:
    for column in candidates:
        names = names_of(features.get(column))
        if names or dtype_of(features.get(column)) in STRINGS:
            return column, names
    return None


def described(features: Mapping[str, Any]) -> str:
    """The columns and what they hold, for messages."""
    return ", ".join(f"{column} ({_describe(feature)})" for column, feature in features.items())


def dtype_of(feature: Any) -> str | None:
    """The type of a feature of one value, None for a list or a struct."""
    return getattr(feature, "dtype", None)


def is_spaced(feature: Any) -> bool:
    """Whether a column of texts says that its words have one space between each two: see ``SPACED``."""
    return getattr(feature, "id", None) == SPACED


def names_of(feature: Any) -> tuple[str, ...] | None:
    """The names of class labels, None for any other feature."""
    names = getattr(feature, "names", None)
    return tuple(names) if names else None


def _item(feature: Any) -> str | None:
    """The type of the items of a list feature, None for any other feature."""
    return dtype_of(getattr(feature, "feature", None))


def _class_names(feature: Any) -> tuple[str, ...] | None:
    """The names of a list of class labels."""
    return names_of(getattr(feature, "feature", None))


def _describe(feature: Any) -> str:
    item = _item(feature)
    return f"list of {item}" if item else dtype_of(feature) or "nested"
