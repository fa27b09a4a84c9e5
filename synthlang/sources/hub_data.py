"""Read splits, rows and columns of data sets with the library ``datasets``, from the hub or from local folders."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from synthlang.errors import InputError
from synthlang.files import DiskError, no_such, user_path
from synthlang.fingerprint import canonical_json, fingerprint, sha256_file
from synthlang.sources.splits import SPLITS, VALUES, path_options
from synthlang.sources.text import open_bytes, version_of
from synthlang.sources.words import CLEANED
from synthlang.wording import enumerated, first_few

T = TypeVar("T")
ROWS = 1000  # rows read at a time
LINES = 1 << 20  # bytes read at a time
STRINGS = ("string", "large_string")
MAIN = "main"
REVISION, STREAMING = "revision", "streaming"
"""Options of a data set: a commit, branch or tag, and reading without a download."""
FLAGS = (STREAMING,)
"""Options without a value."""
LOCAL = "check the files of this folder, and the name of the configuration if one is given"
COMMIT = re.compile("[0-9a-f]{40}")
SPACED = "words"
"""Id of a feature of ``datasets`` that marks texts of words separated by single spaces."""


@dataclass(frozen=True)
class HubData:
    """An opened data set.

    Attributes:
        splits: Data by split, a ``Dataset`` or, from a stream, an ``IterableDataset``.
        origin: Function that returns the identity of a stream: the repository, its commit and the configuration, or
            the hash of the files of a folder and the configuration. It is None for a data set that is not streamed,
            since the fingerprint covers its values.
    """

    splits: Any
    origin: Callable[[], list[str | None]] | None = None


def open_data(name: str, revision: str | None = None, streams: bool = False) -> HubData:
    """Open the data set ``NAME[:CONFIG]`` of the hub, or a local folder of this name if it exists.

    Args:
        name: The data set.
        revision: A commit, branch or tag of the hub (default: the newest commit).
        streams: True to read the files while they are used, without a download and without a copy in the cache.

    Raises:
        InputError: The library ``datasets`` is not installed, the data set cannot be loaded, the name is that of a
            file, or a local folder does not exist, is given a revision, or cannot be read by the library.
    """
    try:
        import datasets
    except ImportError as error:
        hint = "run: pip install 'datasets>=4'"
        raise InputError("data of hf: needs the library datasets", hint=hint, code="extra") from error
    path, config = user_path(name), None
    if not path.exists() and ":" in name:
        base, _, config = name.rpartition(":")
        path = user_path(base)
    if name.startswith(("/", ".", "~")) and not path.exists():
        raise no_such(path, "folder")
    _check_place(path, name, revision)
    path = path.resolve() if path.is_dir() else path  # of a relative folder named csv the library would read this place
    options: dict[str, Any] = {}
    origin = None
    if path.is_dir():
        if not streams:  # the library's own cache compares the times of files, which a copy or an archive may preserve
            cache = Path(datasets.config.HF_DATASETS_CACHE) / f"synthlang-{_content_of(path)}"
            options = {"cache_dir": str(cache)}
        origin = partial(_origin_of_folder, path, config)
    elif streams:
        options = {"revision": _commit_of(str(path), revision)}
        origin = partial(list, [str(path), options["revision"], config])
    elif revision:
        options = {"revision": revision}
    try:
        builder = datasets.load_dataset_builder(str(path), config or None, **options)
        if hasattr(builder.config, "keep_default_na"):  # CSV, where NA and null are words: only an empty field is none
            options |= {"keep_default_na": False, "na_values": [""]}
        loaded = datasets.load_dataset(str(path), config or None, streaming=streams, **options)
    except Exception as error:  # the library, the network or a damaged file may raise anything
        raise _cannot_load(name, error, path.is_dir()) from error
    return HubData(loaded, origin if streams else None)


def load_data(name: str) -> Any:
    """Load the splits of the data set ``NAME[:CONFIG]`` of the hub, or of a local folder, as ``open_data`` does.

    Raises:
        InputError: The library ``datasets`` is not installed, or the data set cannot be loaded (see ``open_data``).
    """
    return open_data(name).splits


def _check_place(path: Path, name: str, revision: str | None) -> None:
    """Raise InputError if a local data set is no folder, cannot be read by ``datasets``, or has a revision."""
    if path.is_file():
        hint = "name its folder, or use a source or a task that reads a file, such as text:FILE"
        raise InputError("is a file, but hf: reads a folder", path, hint=hint, code="type")
    if not path.is_dir():
        from datasets.packaged_modules import _PACKAGED_DATASETS_MODULES

        if str(path) in _PACKAGED_DATASETS_MODULES:  # which the library takes for a format of files
            raise no_such(path, "folder", hint="name a folder that exists, or a data set of the hub (OWNER/NAME)")
        return
    if revision:
        reason, hint = "a local folder has no revisions", "leave out this option"
        raise InputError(reason, f"hf:{name}", keys=REVISION, hint=hint, code="no_effect")
    if found := set("[]*?") & set(str(path.resolve())):
        reason = f"the library datasets cannot read a folder whose path has {enumerated(sorted(found))}"
        hint = "rename the folder, or move it to a path without such characters"
        raise InputError(reason, path.resolve(), hint=hint, code="unsupported")
    check_json_lines(path)


def _cannot_load(name: str, error: Exception, is_local: bool) -> InputError:
    if unnamed := re.match(r"Config name is missing\.\s.*available configs: \[(.+)\]", str(error)):
        configs, name = re.findall(r"'([^']+)'", unnamed[1]), name.rstrip(":")
        reason = f"has several configurations ({first_few(configs, 8)}), and none is named"
        return InputError(reason, f"hf:{name}", hint=f"name one, as in hf:{name}:{configs[0]}", code="missing")
    hint = LOCAL if is_local else "check the name, its options and the connection"
    return InputError(f"cannot be loaded: {_reason(error)}", f"hf:{name}", hint=hint, code="failed")


def _reason(error: Exception) -> str:
    """Return the text of an error, or of its cause if the library reports only that it could not read a file."""
    from datasets.exceptions import DatasetGenerationError
    from datasets.table import CastError

    cause = error.__cause__ if isinstance(error, DatasetGenerationError) and error.__cause__ else error
    if isinstance(cause, CastError):
        more = [name for name in cause.table_column_names if name not in cause.requested_column_names]
        has = f"the column{'s' * (len(more) > 1)} {enumerated([repr(name) for name in more])}"
        return f"a file has {has}, which the other files or the declared features lack"
    return " ".join(str(cause).split()).rstrip(".") or type(cause).__name__


def _commit_of(repository: str, revision: str | None) -> str:
    """Return the commit of a revision of a repository. A whole commit is not looked up."""
    if revision and COMMIT.fullmatch(revision):
        return revision
    from huggingface_hub import HfApi

    try:
        return str(HfApi().dataset_info(repository, revision=revision or MAIN).sha)
    except Exception as error:  # the library or the network may raise anything
        raise _cannot_load(repository, error, False) from error


def _origin_of_folder(folder: Path, config: str | None) -> list[str | None]:
    return ["folder", _content_of(folder), config]


def _content_of(folder: Path) -> str:
    """Return the hash of the names and the content of all files in a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    content = [[path.relative_to(folder).as_posix(), sha256_file(path)] for path in files]
    return fingerprint("folder", files=content)


def check_json_lines(folder: Path) -> None:
    """Check the JSON lines in the files of a folder for a line ``null``, on which the Arrow reader would crash.

    Raises:
        InputError: A line is ``null``, or a file cannot be read.
    """
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

    Raises:
        InputError: No split has a known name, or two splits have names for the same one of our splits.
    """
    found: dict[str, str] = {}
    for theirs in data:
        if theirs in SPLITS:
            other = found.setdefault(SPLITS[theirs], theirs)
            if other != theirs:
                reason = f"{other} and {theirs} could both be the split {SPLITS[theirs]}"
                raise InputError(reason, name, hint="rename one of these splits in a local copy", code="duplicate")
    for theirs, ours in (more or {}).items():
        if theirs in data:
            found.setdefault(ours, theirs)
    if not found:
        reason = f"no split is named train, validation or test, only {first_few(list(data), 8)}"
        hint = "use a data set with such a split, or rename a split in a local copy"
        raise InputError(reason, name, hint=hint, code="missing")
    return {split: data[found[split]] for split in ("train", "dev", "test") if split in found}


def features_of(data: Any) -> Mapping[str, Any]:
    """Return the features (types) of the columns of a split by name.

    A stream of JSON lines or CSV may not declare features. They are then taken from its first rows. Without rows, the
    result is empty.

    Raises:
        DiskError: The stream broke off before its first rows.
    """
    if data.features is not None:
        return dict(data.features)
    import datasets

    first = next(_unbroken(data.with_format("arrow").iter(batch_size=ROWS)), None)
    return {} if first is None else dict(datasets.Features.from_arrow_schema(first.schema))


def rows_in(data: Any, split: str) -> int | None:
    """Return the number of rows of a split, or None for a stream whose data set does not state it."""
    if hasattr(data, "num_rows"):
        return int(data.num_rows)
    stated = (data.info.splits or {}).get(str(data.split or split))
    return (stated.num_examples or None) if stated else None


def _unbroken(tables: Iterable[T]) -> Iterator[T]:
    """Yield the tables of a stream. An error of the network or of a file becomes a DiskError, which can be resumed."""
    rest = iter(tables)
    while True:
        try:
            table = next(rest, None)
        except Exception as error:  # the library, the network or a damaged file may raise anything
            reason = f"the data set cannot be read to its end: {_reason(error)}"
            hint = "check the connection and the files of the data set, and run the same command again"
            raise DiskError(reason, hint=hint, code="failed") from error
        if table is None:
            return
        yield table


def tables(data: Any, columns: Sequence[str]) -> Iterator[dict[str, list[Any]]]:
    """Yield ROWS rows of a split at a time as {column: values}.

    Raises:
        InputError: A text is not UTF-8.
        DiskError: The data cannot be read to its end.
    """
    chosen = data.select_columns(list(columns)).with_format("arrow")
    for table in _unbroken(chosen.iter(batch_size=ROWS)):
        try:
            values = table.to_pydict()
        except UnicodeDecodeError as error:  # Arrow's JSON reader accepts such bytes
            where = "the column" if len(columns) == 1 else "one of the columns"
            reason = f"a text in {where} {', '.join(columns)} is not UTF-8"
            raise InputError(reason, hint="convert the files of the data set to UTF-8", code="format") from error
        yield values


def rows_of(data: Any, columns: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a split, with values in the order of ``columns``, in bounded memory.

    Raises:
        InputError: A text is not UTF-8.
        DiskError: The data cannot be read to its end.
    """
    for values in tables(data, columns):
        yield from zip(*(values[column] for column in columns), strict=True)


def digest_values(data: Any, columns: Sequence[str], anew: Sequence[re.Pattern[bytes]] = CLEANED) -> str:
    """Return the SHA-256 of the values in some columns of a split, independent of the names and files of the data.

    The text `` rules N`` follows the digest if version N of the readers was the first to read the values as they are
    read now (see ``version_of``). Other data therefore keeps its fingerprint.

    Args:
        data: The split, a ``Dataset`` or an ``IterableDataset``.
        columns: Names of the columns, in the order in which their values count.
        anew: Patterns of bytes that earlier versions of the readers read in another way.

    Raises:
        InputError: A text is not UTF-8.
        DiskError: The data cannot be read to its end.
    """
    digest, version = hashlib.sha256(), 0
    for values in tables(data, columns):
        block = canonical_json([values[column] for column in columns]).encode()
        digest.update(block)
        version = max(version, version_of(block, rules=False, anew=anew))
    return digest.hexdigest() + (f" rules {version}" if version else "")


def name_and_options(spec: str, known: Sequence[str], scheme: str = "hf") -> tuple[str, dict[str, str]]:
    """Return the name of a data set and the options of ``NAME?key=value``.

    If a folder with this whole name exists, there are no options.

    Args:
        spec: The name with its options.
        known: Names of the allowed options.
        scheme: Text before the name in messages.

    Raises:
        InputError: An option is unknown, its value is missing or not allowed, or the user in a path ``~USER`` does not
            exist.
    """
    name, options = path_options(spec, known, f"{scheme}:")
    for key, value in options.items():
        if bool(value) == (key in FLAGS):
            reason = f"takes no value, but has {value!r}" if value else "has no value"
            hint = f"write {key}, or leave the option out" if value else f"write {key}={VALUES.get(key, 'VALUE')}"
            raise InputError(reason, f"{scheme}:{name}", keys=(key,), hint=hint, code="type")
    return name, options


def no_columns(name: str, needed: str, features: Mapping[str, Any]) -> InputError:
    """Return the error for a data set without the columns that the phrase ``needed`` describes."""
    lists = {column: dtype_of(items_of(feature)) for column, feature in features.items()}
    kinds = {c: f"list of {lists[c]}" if lists[c] else dtype_of(features[c]) or "nested" for c in features}
    columns = ", ".join(f"{column} ({kind})" for column, kind in kinds.items())
    reason = f"needs {needed}, but {f'has only {columns}' if columns else 'has no columns'}"
    hint = "rename a column (of a data set of the hub, in a local copy), or use another data set"
    return InputError(reason, name, hint=hint, code="missing")


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
