"""Opening a data set of the hub or a local folder with the library ``datasets``: its splits, rows and columns."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import canonical_json
from synthlang.sources.segmentation import reads_alike
from synthlang.sources.splits import SPLITS
from synthlang.sources.text import open_bytes

ROWS = 1000  # read at a time
ESCAPED = re.compile(r"(?<!\\)(?:\\\\)*\\(?:u00[01]|b)")
LINES = 1 << 20  # bytes read at a time
STRINGS = ("string", "large_string")
SPACED = "words"  # the id of a feature of ``datasets`` whose texts are words with one space between each two


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


def check_json_lines(folder: Path) -> None:
    """Raise InputError for a line of JSON that is ``null``: the Arrow reader does not survive one."""
    for path in sorted(p for p in folder.rglob("*.json*") if p.suffix in (".json", ".jsonl") and p.is_file()):
        with open_bytes(path) as handle:
            starts = (line.lstrip()[:4] for line in iter(lambda: handle.readline(LINES), b""))
            first = b""
            for number, start in enumerate(starts, start=1):
                first = first or start
                if start == b"null" and not first.startswith(b"["):
                    raise InputError("a row must be an object, not null", path, number)


def by_split(data: Any, name: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """The splits under our names, in the order train, dev, test.

    ``more``: name there → split of ours, for a split that no usual name stands for (``validation_matched``).
    """
    found: dict[str, str] = {}
    for theirs in data:
        if theirs in SPLITS:
            other = found.setdefault(SPLITS[theirs], theirs)
            if other != theirs:
                raise InputError(f"{name}: several splits stand for {SPLITS[theirs]}: {other}, {theirs}")
    for theirs, ours in (more or {}).items():
        if theirs in data:
            found.setdefault(ours, theirs)
    if not found:
        raise InputError(f"{name}: no split is named train, validation or test; it has {', '.join(data)}")
    return {split: data[found[split]] for split in ("train", "dev", "test") if split in found}


def tables(data: Any, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """ROWS rows of a split at a time as {column: values}."""
    chosen = data.select_columns(list(columns)).with_format("arrow")
    for table in chosen.iter(batch_size=ROWS):
        try:
            values = table.to_pydict()
        except UnicodeDecodeError as error:  # the Arrow reader of JSON lets such bytes through
            raise InputError(f"the data set holds a text that is not UTF-8, in {' or '.join(columns)}") from error
        yield values


def rows_of(data: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """The rows of a split, the values in the order of ``columns``; few are in memory at a time."""
    for values in tables(data, columns):
        yield from zip(*(values[column] for column in columns), strict=True)


def digest_values(data: Any, columns: Sequence[str], rules: bool = False) -> str:
    """SHA-256 of the values of a split, not of names, files, cache or chunks; ``rules`` as in ``digest_splits``."""
    digest, alike = hashlib.sha256(), True
    for values in tables(data, columns):
        block = canonical_json([values[column] for column in columns])
        digest.update(block.encode())
        alike = alike and (not rules or _reads_alike(block))
    return digest.hexdigest()


def _reads_alike(json: str) -> bool:
    """``reads_alike`` of the strings in a JSON text, where control characters are escaped."""
    return reads_alike(json.encode()) and not ESCAPED.search(json)


def described(features: Mapping[str, Any]) -> str:
    """The columns and what they hold, for messages."""
    lists = {column: dtype_of(items_of(feature)) for column, feature in features.items()}
    kinds = {c: f"list of {lists[c]}" if lists[c] else dtype_of(features[c]) or "nested" for c in features}
    return ", ".join(f"{column} ({kind})" for column, kind in kinds.items())


def dtype_of(feature: Any) -> str | None:
    """The type of a feature of one value, None for a list or a struct."""
    return getattr(feature, "dtype", None)


def items_of(feature: Any) -> Any:
    """The feature of the items of a list, None for any other feature."""
    return getattr(feature, "feature", None)


def names_of(feature: Any) -> tuple[str, ...] | None:
    """The names of class labels, None for any other feature."""
    return tuple(getattr(feature, "names", None) or ()) or None


def is_spaced(feature: Any) -> bool:
    """Whether a column of texts says that its words have one space between each two: see ``SPACED``."""
    return getattr(feature, "id", None) == SPACED
