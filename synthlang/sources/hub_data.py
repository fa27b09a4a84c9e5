"""Opening a data set of the hub or a local folder with the library ``datasets``: its splits, rows and columns."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import canonical_json
from synthlang.sources.text import SPLITS, open_bytes

ROWS = 1000  # read at a time


def load_data(name: str) -> Any:
    """The data set of ``NAME[:CONFIG]``; a name that exists as a folder is that folder."""
    try:
        import datasets
    except ImportError as error:
        raise InputError("hf: sources need the library datasets: pip install 'datasets>=4'") from error
    path, config = user_path(name), None
    if not path.exists() and ":" in name:
        base, _, config = name.rpartition(":")
        path = user_path(base)
    if name.startswith(("/", ".", "~")) and not path.exists():
        raise InputError("no such file or folder", path)
    if path.is_file():
        raise InputError("is a file; name the folder it is in, or read it as text: or conllu:", path)
    if path.is_dir():
        check_json_lines(path)
    try:
        return datasets.load_dataset(str(path), config or None, streaming=False)
    except Exception as error:  # anything the library, the network or a damaged file may raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"hf:{name}: cannot load the data set: {reason}") from error


def by_split(data: Any, name: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The splits under our names, in the order train, dev, test.

    ``more``: name there → split of ours, for a split that no usual name stands for (``validation_matched``).
    """
    found: dict[str, list[str]] = {}
    for theirs in data:
        if theirs in SPLITS:
            found.setdefault(SPLITS[theirs], []).append(theirs)
    for split, names in found.items():
        if len(names) > 1:
            raise InputError(f"{name}: several splits stand for {split}: {', '.join(names)}")
    for theirs, ours in (more or {}).items():
        if theirs in data:
            found.setdefault(ours, [theirs])
    if not found:
        raise InputError(f"{name}: no split is named train, validation or test; it has {', '.join(data)}")
    return {split: data[found[split][0]] for split in ("train", "dev", "test") if split in found}


def tables(data: Any, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """ROWS rows of a split at a time as {column: values}."""
    chosen = data.select_columns(list(columns)).with_format("arrow")
    return (table.to_pydict() for table in chosen.iter(batch_size=ROWS))


def rows_of(data: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a split, the values in the order of ``columns``; few are in memory at a time."""
    for values in tables(data, columns):
        yield from zip(*(values[column] for column in columns), strict=True)


def digest_values(data: Any, columns: Sequence[str]) -> str:
    """SHA-256 of the values of a split; not of their names, files, cache or chunks."""
    digest = hashlib.sha256()
    for values in tables(data, columns):
        digest.update(canonical_json([values[column] for column in columns]).encode())
    return digest.hexdigest()


LINES = 1 << 20  # bytes read at a time


def check_json_lines(folder: Path) -> None:
    """Raise InputError for a line of JSON that is ``null``: the Arrow reader does not survive one."""
    for path in sorted(folder.rglob("*.json*")):
        if path.suffix not in (".json", ".jsonl") or not path.is_file():
            continue
        with open_bytes(path) as handle:
            number, is_array = 0, None
            while line := handle.readline(LINES):
                number += 1
                start = line.lstrip()[:4]
                is_array = start[:1] == b"[" if is_array is None and start else is_array
                if start == b"null" and not is_array:
                    raise InputError("a row must be an object, not null", path, number)


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
