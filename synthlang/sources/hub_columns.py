"""Which columns of a hub data set hold words and annotations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from synthlang.errors import InputError

WORDS = ("words", "tokens", "form")
TEXT = ("text", "sentence")
LABELS = {"upos": ("upos", "pos_tags"), "head": ("head",), "deprel": ("deprel",), "ner": ("ner", "ner_tags")}
STRINGS = ("string", "large_string")
Label = tuple[str, tuple[str, ...] | None]


@dataclass(frozen=True)
class Plan:
    """Which columns of a data set to read.

    words    the column of words, or of text if ``is_text``
    labels   our column → (its column, names of its class labels or None)
    """

    words: str
    is_text: bool
    labels: Mapping[str, Label]

    @property
    def reads(self) -> list[str]:
        """The columns of the data set that are read."""
        return [self.words, *(column for column, _ in self.labels.values())]


def plan_columns(features: Mapping[str, Any], name: str) -> Plan:
    """Choose the columns to read, or raise InputError that names the columns there are."""
    for words in WORDS:
        if _item(features.get(words)) in STRINGS:
            return Plan(words, is_text=False, labels=_labels(features))
    for text in TEXT:
        if _dtype(features.get(text)) in STRINGS:
            return Plan(text, is_text=True, labels={})
    have = ", ".join(f"{column} ({_describe(feature)})" for column, feature in features.items())
    raise InputError(
        f"{name}: needs lists of words in a column {', '.join(WORDS)}, or text in {' or '.join(TEXT)}; it has {have}"
    )


def _labels(features: Mapping[str, Any]) -> dict[str, Label]:
    """For each of our columns the first candidate of a usable type."""
    labels: dict[str, Label] = {}
    for ours, candidates in LABELS.items():
        for column in candidates:
            item, names = _item(features.get(column)), _class_names(features.get(column))
            numbers = ours == "head" and item is not None and item.startswith(("int", "uint"))
            if ours not in labels and (item in STRINGS or names or numbers):
                labels[ours] = (column, names)
    return labels


def _dtype(feature: Any) -> str | None:
    return getattr(feature, "dtype", None)


def _item(feature: Any) -> str | None:
    """The type of the items of a list feature, None for any other feature."""
    return _dtype(getattr(feature, "feature", None))


def _class_names(feature: Any) -> tuple[str, ...] | None:
    """The names of a list of class labels."""
    names = getattr(getattr(feature, "feature", None), "names", None)
    return tuple(names) if names else None


def _describe(feature: Any) -> str:
    item = _item(feature)
    return f"list of {item}" if item else _dtype(feature) or "nested"
