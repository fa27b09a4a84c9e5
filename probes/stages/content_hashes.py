"""Content hashes of everything a config refers to, and the files behind each.

The store keeps each hash with the size and the time of change of every file behind it, so a start opens no unchanged
file. A data set or model of the hub has no files here and is hashed by its name. A built-in source is hashed by its
settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.folder import CARD, EXPORT
from probes.models.names import CellModel, is_run
from synthlang.catalogue import YAML, files_behind
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import no_such, read_json, unreadable, user_path, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language, parse_language
from synthlang.order import model as order_model
from synthlang.parsing import clearnlp, engines, open_engine
from synthlang.plugins import installed
from synthlang.references import Named, references, resolved
from synthlang.sources import conllu, hub, iob, open_source, segmentation, slots
from synthlang.store import Store
from synthlang.tasks import choose, is_task, minimal, open_task, pairs, questions

TABLE = "digests.json"
"""File of the store with the known hashes."""
READER_FORMATS = (
    *(module.READER for module in (conllu, hub, iob, slots, pairs, questions)),
    *(pairs.HUB_READER, questions.HUB_READER, segmentation.RULES),
    *(order_model.FORMAT, clearnlp.FORMAT, engines.SPACY_FORMAT, engines.STANZA_FORMAT),
)
"""Versions of the code that reads files. A hash that was stored by another version is not used."""
HUB, BUILTIN = "hf:", "builtin:"

RECORDS = ("config.yaml", "run.json", "done.json")
"""Files that distinguish one run from another."""
FileStats = dict[str, list[int]]
"""Absolute path → [size in bytes (0 for a folder), time of change in ns], or [-1, -1] for a missing file."""


@dataclass(frozen=True)
class ContentHash:
    """The content hash of a reference.

    Attributes:
        hash: The hash. For a reference that cannot be opened, it is a text with the code of the error and the name.
        files: Size and time of change of the files with the content. It is empty if the reference cannot be opened.
        error: The error if the reference cannot be opened, else None.
    """

    hash: str
    files: FileStats
    error: InputError | None = None


class ContentHashes:
    """The content hashes of a store. Without a store, each hash is computed again.

    Raises:
        InputError: The table of hashes in the store cannot be read.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._path = None if store is None else store.root / TABLE
        self._table: dict[str, Any] = read_json(self._path) if self._path is not None and self._path.exists() else {}
        self._new: dict[str, Any] = {}
        self._known: dict[tuple[str, str, str | None], ContentHash] = {}

    def of(self, named: Named, task: str | None = None) -> ContentHash:
        """Return the current hash of a reference. An unreadable reference never matches a finished stage.

        ``task`` is the task of a reference to labelled items, or None if the reference names the task.
        """
        if isinstance(named.name, Language):  # a language contains the content of its files
            return ContentHash(named.name.fingerprint, stats(_files_of_transforms(named.name)))
        key = named.kind, str(named.name), task if named.kind == "items" else None
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def _look(self, kind: str, name: str, task: str | None) -> ContentHash:
        readers = fingerprint("readers", readers=[*READER_FORMATS, segmentation.LATER, minimal.READER, *installed()])
        key = " ".join((readers, str(Path.cwd()), kind, task or "-", name))
        entry = self._table.get(key)
        match entry:  # a damaged entry is not used
            case {"digest": str(known), "files": dict(behind)} if stats(map(Path, behind)) == behind:
                return ContentHash(known, behind)
        try:
            files, content = NAMED[kind](name, task, self)
            before = stats(files)
            found = ContentHash(content(), before)
        except (InputError, OSError) as error:
            wrong = error if isinstance(error, InputError) else unreadable(error, Path(error.filename or name))
            return ContentHash(f"unreadable: {wrong.code} {name}", {}, wrong)
        if before and before == stats(files):
            self._new[key] = {"digest": found.hash, "files": before}
        return found

    def save(self, store: Store) -> None:
        """Add the new hashes to the table of the store.

        Raises:
            InputError: The table cannot be read.
            DiskError: The table cannot be written.
        """
        if self._new:
            with store.lock("digests", "table"):
                path = store.root / TABLE
                write_json(path, {**(read_json(path) if path.exists() else {}), **self._new})
            self._new = {}


def stats(paths: Iterable[Path]) -> FileStats:
    """Return the size and the time of change of each path, in the form of ``FileStats``."""
    return {str(path.absolute()): _stat(path) for path in paths}


def _stat(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return [-1, -1]
    return [0 if path.is_dir() else status.st_size, status.st_mtime_ns]


Content = tuple[list[Path], Callable[[], str]]
"""The files behind a reference, and the function that computes the hash of their content."""


def _spec(name: str, task: str | None, _hashes: ContentHashes) -> Content:
    """Return the files and the hash of a source or, with a ``task``, of labelled items."""
    named = name.partition(":")[0] if task is None and is_task(name) else None  # items of a probe name their task
    scheme = task or named
    spec, split = choose(name) if scheme else (name, None)
    plain = spec.removeprefix(f"{scheme}:") if scheme else spec
    if plain.startswith(HUB):  # not opened, because this takes seconds
        folder, rest = _hub_folder(plain.removeprefix(HUB))
        files = _tree(folder)

        def content() -> str:
            inside = _hash_of_files(folder, files) if files else plain
            return fingerprint("hub", files=inside, of=rest, readers=READER_FORMATS)

    elif plain.startswith(BUILTIN):
        files = []

        def content() -> str:
            return str(open_source(plain).fingerprint)

    else:
        opened = partial(open_task, spec) if named else partial(_opened, spec, task)
        files = _files_of_opened(opened())

        def content() -> str:
            return str(opened().fingerprint)

    if scheme is None:
        return files, content
    reader = {"reader": minimal.READER} if named else {}
    return files, lambda: fingerprint("items", task=scheme, content=content(), split=split, **reader)


def _opened(spec: str, task: str | None) -> Any:
    if task is None:
        return open_source(spec)
    from probes.transfer.config import TransferConfig
    from probes.transfer.tasks.base import task_of  # with the heads of all tasks, and torch

    return task_of(TransferConfig(task=task)).open(spec)


def _files_of_opened(opened: Any) -> list[Path]:
    source = getattr(opened, "source", opened)
    places = [place for place in (getattr(source, "path", None), *getattr(source, "files", {}).values()) if place]
    inside = [path for place in places if place.is_dir() for path in sorted(place.iterdir()) if path.is_file()]
    return list(dict.fromkeys([*places, *inside]))


def _hub_folder(name: str) -> tuple[Path, str]:
    """Split ``FOLDER[:CONFIG][?language=xx]`` into the folder, which need not exist, and the rest."""
    plain, rest = name, ""
    for mark in ("?", ":"):
        if mark in plain and not user_path(plain).exists():
            plain, _, more = plain.rpartition(mark)
            rest = f"{mark}{more}{rest}"
    return user_path(plain), rest


def _tree(folder: Path) -> list[Path]:
    """Return a folder and its files, except model cards and hidden files, or [] if the folder does not exist."""
    if not folder.is_dir():
        return []
    inside = (path for path in sorted(folder.rglob("*")) if path.name != CARD)
    return [folder, *(p for p in inside if not any(part.startswith(".") for part in p.relative_to(folder).parts))]


def _hash_of_files(folder: Path, paths: Iterable[Path]) -> str:
    files = [(path.relative_to(folder).as_posix(), sha256_file(path)) for path in paths if path.is_file()]
    return fingerprint("files", files=files)


def _file(name: str, _task: str | None, _hashes: ContentHashes) -> Content:
    path = user_path(name)
    if not path.exists():
        raise no_such(path)
    if path.is_dir():
        return (files := _tree(path)), lambda: _hash_of_files(path, files)
    return [path], lambda: sha256_file(path)


def _model(name: str, _task: str | None, hashes: ContentHashes) -> Content:
    """Return the files and the hash of a local model.

    The hash of a run covers its records, and its training texts, which measurements read again.
    """
    folder = user_path(name)
    if CellModel.of(name) is not None or not folder.is_dir():
        return [], lambda: name
    # a checkpoint here or in ``export``; other folders may be checkpoints that a trainer left
    top_files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != CARD]
    tree = [folder, *top_files, *_tree(folder / EXPORT)]
    records = [folder / record for record in RECORDS if (folder / record).is_file()]
    config, named_files = _of_run(folder, hashes)
    files = [*records, *named_files] or tree

    def content() -> str:
        if (record := folder / "run.json").is_file():
            made = read_json(record)
            if not isinstance(made, dict) or "fingerprint" not in made:
                hint = "name the folder of a run or a model"
                raise InputError("is not a record of a run", record, hint=hint, code="format")
            settings = None if config is None else resolved(config, lambda named: hashes.of(named).hash)
            return fingerprint("run", run=made["fingerprint"], settings=settings)
        done = folder / "done.json"
        return sha256_file(done) if done.is_file() else _hash_of_files(folder, tree)

    return files, content


def _of_run(folder: Path, hashes: ContentHashes) -> tuple[PretrainConfig | None, list[Path]]:
    """Return the settings of a pretraining run, and the files behind its references except its initial model.

    The run has its own weights and tokenizer, so the initial model is not read. Other folders, and unreadable settings,
    give None. Errors are raised when the run is opened.
    """
    config, found = None, list[Path]()
    with suppress(InputError):
        config = load(PretrainConfig, folder / RECORDS[0]) if is_run(folder) else None
        for named in () if config is None else references(config):
            if isinstance(named.name, Language):
                found += _files_of_transforms(named.name)
            elif named.kind != "model":
                found += NAMED[named.kind](named.name, None, hashes)[0]
    return config, found


def _files_of_transforms(language: Language) -> list[Path]:
    return [path for transform in language.transforms for path in transform.files().values()]


def _language(name: str, _task: str | None, _hashes: ContentHashes) -> Content:
    is_file = name.endswith(YAML)
    try:
        language = parse_language(name)
    except InputError:  # the name of a language of the model
        return [user_path(name)] if is_file else [], lambda: name
    files = [*(files_behind(user_path(name)) if is_file else []), *_files_of_transforms(language)]
    # the hash covers the name, because a model may have another language with this name
    return files, lambda: fingerprint("language", name=name, content=parse_language(name).fingerprint)


def _parser(name: str, _task: str | None, _hashes: ContentHashes) -> Content:
    """Return the files and the hash of a parser.

    The files include the description of a pipeline, because another version of the library changes it.
    """
    kind, _, rest = name.partition(":")
    library, path = find_spec(kind), getattr(open_engine(name), "path", None)
    installed = [Path(library.origin)] if library is not None and library.origin else []
    described = [] if path is None else [Path(path), *sorted(Path(path).glob("*.json"))]
    return [*installed, *described, *_tree(user_path(rest))], lambda: str(open_engine(name).fingerprint)


NAMED: dict[str, Callable[[str, str | None, ContentHashes], Content]] = {
    "source": _spec,
    "items": _spec,
    "file": _file,
    "model": _model,
    "language": _language,
    "parser": _parser,
}
