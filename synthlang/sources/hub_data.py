"""Read splits, rows and columns of data sets with the library ``datasets``, from the hub or from local folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from synthlang.errors import InputError
from synthlang.files import no_such, user_path
from synthlang.fingerprint import canonical_json, fingerprint, sha256_file
from synthlang.sources.splits import SPLITS, check_values
from synthlang.sources.text import open_bytes, version_of
from synthlang.sources.words import CLEANED

ROWS = 1000  # rows read at a time
LINES = 1 << 20  # bytes read at a time
STRINGS = ("string", "large_string")
SPACED = "words"
"""Id of a feature of ``datasets`` that marks texts of words separated by single spaces."""


def load_data(name: str) -> Any:
    """Load the data set ``NAME[:CONFIG]`` of the hub, or a local folder of this name if it exists."""
    try:
        import datasets
    except ImportError as error:
        hint = "run: pip install 'datasets>=4'"
        raise InputError("hf: sources need the library datasets", hint=hint, code="extra") from error
    path, config = user_path(name), None
    if not path.exists() and ":" in name:
        base, _, config = name.rpartition(":")
        path = user_path(base)
    if name.startswith(("/", ".", "~")) and not path.exists():
        raise no_such(path, "file or folder")
    if path.is_file():
        hint = "name its folder, or read the file as text: or conllu:"
        raise InputError("a data set is a folder, not a file", path, hint=hint, code="type")
    if not path.is_dir() and str(path) in _formats():
        raise no_such(path, "folder", hint="name a folder that exists, or a data set of the hub (OWNER/NAME)")
    if path.is_dir():
        path = path.resolve()  # of a relative folder named csv the library would read the files of this place
        if found := set("[]*?") & set(str(path)):
            reason = f"the library datasets cannot read a folder whose path has {' or '.join(sorted(found))}"
            raise InputError(reason, path, hint="rename the folder", code="unsupported")
        check_json_lines(path)
    try:
        options: dict[str, Any] = {"cache_dir": str(_cache_of(path))} if path.is_dir() else {}
        builder = datasets.load_dataset_builder(str(path), config or None, **options)
        if hasattr(builder.config, "keep_default_na"):  # CSV, where NA and null are words: only an empty field is none
            options |= {"keep_default_na": False, "na_values": [""]}
        return datasets.load_dataset(str(path), config or None, streaming=False, **options)
    except Exception as error:  # the library, the network or a damaged file may raise anything
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        hint = "check the name, the connection and the files of the data set"
        raise InputError(f"cannot be loaded: {reason}", f"hf:{name}", hint=hint, code="failed") from error


def _formats() -> Collection[str]:
    """Return the names that the library takes for formats of files, not for data sets."""
    from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

    return tuple(_PACKAGED_DATASETS_MODULES)


def _cache_of(folder: Path) -> Path:
    """Return the cache folder for a local data set, named by the content of its files.

    The library's own cache compares the times of files, which a copy or an archive may preserve.
    """
    import datasets

    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = [[path.relative_to(folder).as_posix(), sha256_file(path)] for path in files]
    return Path(datasets.config.HF_DATASETS_CACHE) / f"synthlang-{fingerprint('folder', files=content)}"


def check_json_lines(folder: Path) -> None:
    """Refuse a JSON line that is ``null``, on which the Arrow reader would crash."""
    for path in sorted(p for p in folder.rglob("*.json*") if p.suffix in (".json", ".jsonl") and p.is_file()):
        with open_bytes(path) as handle:
            starts = (line.lstrip()[:4] for line in iter(lambda: handle.readline(LINES), b""))
            first = b""
            for number, start in enumerate(starts, start=1):
                first = first or start
                if start == b"null" and not first.startswith(b"["):
                    hint = "write an object, or delete the line"
                    raise InputError("a row must be an object, not null", path, number, hint=hint, code="type")


def by_split(data: Any, name: str, more: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the splits under our names, in the order train, dev, test.

    Args:
        data: Splits by their names in the data set.
        name: The data set, for messages.
        more: Our split for each unusual name in the data set (``validation_matched``).
    """
    found: dict[str, str] = {}
    for theirs in data:
        if theirs in SPLITS:
            other = found.setdefault(SPLITS[theirs], theirs)
            if other != theirs:
                reason = f"{other} and {theirs} could both be the split {SPLITS[theirs]}"
                raise InputError(reason, name, hint="rename one of these splits", code="duplicate")
    for theirs, ours in (more or {}).items():
        if theirs in data:
            found.setdefault(ours, theirs)
    if not found:
        reason = f"no split is named train, validation or test, only {', '.join(data)}"
        raise InputError(reason, name, hint="rename a split", code="missing")
    return {split: data[found[split]] for split in ("train", "dev", "test") if split in found}


def tables(data: Any, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """Yield ROWS rows of a split at a time as {column: values}."""
    chosen = data.select_columns(list(columns)).with_format("arrow")
    for table in chosen.iter(batch_size=ROWS):
        try:
            values = table.to_pydict()
        except UnicodeDecodeError as error:  # Arrow's JSON reader accepts such bytes
            reason = f"the data set has text that is not UTF-8 in {' or '.join(columns)}"
            raise InputError(reason, hint="convert its files to UTF-8", code="format") from error
        yield values


def rows_of(data: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a split, with values in the order of ``columns``, in bounded memory."""
    for values in tables(data, columns):
        yield from zip(*(values[column] for column in columns), strict=True)


def digest_values(data: Any, columns: Sequence[str], anew: Sequence[re.Pattern[bytes]] = CLEANED) -> str:
    """Return the SHA-256 of the values of a split, independent of their names and files.

    See ``digest_splits`` for ``anew``.
    """
    digest, version = hashlib.sha256(), 0
    for values in tables(data, columns):
        block = canonical_json([values[column] for column in columns]).encode()
        digest.update(block)
        version = max(version, version_of(block, rules=False, anew=anew))
    return digest.hexdigest() + (f" rules {version}" if version else "")


def name_and_options(spec: str, known: Sequence[str], scheme: str = "hf") -> tuple[str, dict[str, str]]:
    """Return the name of a data set and the options of ``NAME?key=value``.

    If a folder with this whole name exists, there are no options. Messages show the name after ``scheme``.

    Raises:
        InputError: An option is unknown or empty, or its value is wrong.
    """
    name, mark, query = spec.rpartition("?")
    if not mark or user_path(spec).exists():
        return spec, {}
    options = dict(part.partition("=")[::2] for part in query.split("&"))
    for key, value in options.items():
        if key not in known or not value:
            hint = f"the options after ? are {' and '.join(f'{one}=…' for one in known)}"
            raise InputError(f"unknown option {query!r}", f"{scheme}:{name}", hint=hint, code="unknown")
    check_values(options, f"{scheme}:{name}")
    return name, options


def described(features: Mapping[str, Any]) -> str:
    """Return the columns and their types, for messages."""
    lists = {column: dtype_of(items_of(feature)) for column, feature in features.items()}
    kinds = {c: f"list of {lists[c]}" if lists[c] else dtype_of(features[c]) or "nested" for c in features}
    return ", ".join(f"{column} ({kind})" for column, kind in kinds.items())


def no_columns(name: str, needed: str, features: Mapping[str, Any]) -> InputError:
    """Return the error for a data set that lacks the columns ``needed``."""
    reason = f"needs {needed}, but the columns are {described(features)}"
    return InputError(reason, name, hint="rename the columns, or use another data set", code="missing")


def dtype_of(feature: Any) -> str | None:
    """Return the type of a single-valued feature, or None for a list or a struct."""
    return getattr(feature, "dtype", None)


def items_of(feature: Any) -> Any:
    """Return the feature of the items of a list, or None for any other feature."""
    return getattr(feature, "feature", None)


def names_of(feature: Any) -> tuple[str, ...] | None:
    """Return the names of class labels, or None for any other feature."""
    return tuple(getattr(feature, "names", None) or ()) or None


def is_spaced(feature: Any) -> bool:
    """Return whether a text column is marked as words separated by single spaces (see ``SPACED``)."""
    return getattr(feature, "id", None) == SPACED
