"""What configs name outside themselves, as digests of its content; which files it is in.

A digest is kept in the store with the size and time of every file behind it, so that a start opens none that is as it
was. What has no files stands for itself: a data set or a model of the hub by its name, what is built in by its
settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.folder import CARD, EXPORT
from probes.study.cell import MODEL, SECOND, START
from probes.transfer.model_names import is_run
from synthlang.catalogue import YAML, files_behind
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json, user_path, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language, parse_language
from synthlang.order import model as order_model
from synthlang.parsing import clearnlp, engines, open_engine
from synthlang.references import Named, resolved
from synthlang.sources import conllu, hub, iob, open_source, slots, words
from synthlang.store import Store
from synthlang.tasks import choose, pairs, questions

TABLE = "digests.json"
OF_READERS = (
    *(module.READER for module in (conllu, hub, iob, slots, pairs, questions)),
    *(pairs.HUB_READER, questions.HUB_READER, words.RULES),
    *(order_model.FORMAT, clearnlp.FORMAT, engines.SPACY_FORMAT, engines.STANZA_FORMAT),
)
"""What of the code says which content a file has: with another version nothing that was noted before holds."""
HUB, BUILTIN = "hf:", "builtin:"

RECORDS = ("config.yaml", "run.json", "done.json")  # what tells one run from another
Stats = dict[str, list[int]]
"""Absolute path → [size (0 of a folder), time of change in ns]; [-1, -1] for what is not there."""


@dataclass(frozen=True)
class Found:
    """The content of something that is named, and the files it is in; the ``problem`` of what cannot be opened."""

    digest: str
    files: Stats
    problem: str = ""


class Digests:
    """The digests of a store; without a table each is worked out anew. ``items`` are read as those of a task."""

    def __init__(self, store: Store | None = None) -> None:
        self._path = None if store is None else store.root / TABLE
        self._table: dict[str, Any] = read_json(self._path) if self._path is not None and self._path.exists() else {}
        self._new: dict[str, Any] = {}
        self._known: dict[tuple[str, str, str | None], Found] = {}

    def of(self, named: Named, task: str | None = None) -> Found:
        """What is named, as it is now. What cannot be opened has a digest that no finished stage has: opening it says
        why."""
        if isinstance(named.name, Language):  # it holds what its files say
            return Found(named.name.fingerprint, stats(_files_of_transforms(named.name)))
        key = named.kind, str(named.name), task if named.kind == "items" else None
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def _look(self, kind: str, name: str, task: str | None) -> Found:
        row = " ".join((fingerprint("readers", readers=OF_READERS), str(Path.cwd()), kind, task or "-", name))
        held = self._table.get(row)
        if held is not None and stats(map(Path, held["files"])) == held["files"]:
            return Found(held["digest"], held["files"])
        try:
            files = FILES[kind](name, task)
            before = stats(files)
            found = Found(CONTENT[kind](name, task, self), before)
        except (InputError, OSError) as error:
            return Found(f"unreadable: {error}", {}, problem=str(error))
        if before and before == stats(files):
            self._new[row] = {"digest": found.digest, "files": before}
        return found

    def save(self, store: Store) -> None:
        """Add what was found to the table of the store."""
        if self._new:
            with store.lock("digests", "table"):
                path = store.root / TABLE
                write_json(path, {**(read_json(path) if path.exists() else {}), **self._new})
            self._new = {}


def stats(paths: Iterable[Path]) -> Stats:
    """Sizes and times of files and folders."""
    return {str(path.absolute()): _stat(path) for path in paths}


def _stat(path: Path) -> list[int]:
    try:
        held = path.stat()
    except OSError:
        return [-1, -1]
    return [0 if path.is_dir() else held.st_size, held.st_mtime_ns]


# --- sources, and items of tasks ---


def _plain(spec: str, task: str | None) -> str:
    """A spec without a choice of a split and the name of its task."""
    return choose(spec)[0].removeprefix(f"{task}:") if task else spec


def _opened(spec: str, task: str | None) -> Any:
    if task is None:
        return open_source(spec)
    from probes.transfer.config import TransferConfig
    from probes.transfer.tasks.base import task_of  # with the heads of all tasks, and torch

    return task_of(TransferConfig(task=task)).open(choose(spec)[0])


def _files_of_spec(spec: str, task: str | None) -> list[Path]:
    plain = _plain(spec, task)
    if plain.startswith(HUB):  # not opened: that takes seconds
        return _tree(_hub_folder(plain.removeprefix(HUB))[0])
    if plain.startswith(BUILTIN):
        return []
    opened = _opened(spec, task)
    opened = getattr(opened, "source", opened)
    places = [getattr(opened, "path", None), *getattr(opened, "files", {}).values()]
    held = [place for place in places if place is not None]
    inside = [path for place in held if place.is_dir() for path in sorted(place.iterdir()) if path.is_file()]
    return list(dict.fromkeys([*held, *inside]))


def _digest_of_spec(spec: str, task: str | None, digests: Digests) -> str:
    del digests
    plain, chosen = _plain(spec, task), choose(spec)[1] if task else None
    if plain.startswith(BUILTIN):
        content = open_source(plain).fingerprint
    elif plain.startswith(HUB):
        folder, rest = _hub_folder(plain.removeprefix(HUB))
        files = _digest_tree(folder) if folder.is_dir() else plain
        content = fingerprint("hub", files=files, of=rest, readers=OF_READERS)
    else:
        content = _opened(spec, task).fingerprint
    return content if task is None else fingerprint("items", task=task, content=content, split=chosen)


def _hub_folder(name: str) -> tuple[Path, str]:
    """The folder of ``FOLDER[:CONFIG][?language=xx]`` (of a data set of the hub one that is not there) and the rest."""
    plain, rest = name, ""
    for mark in ("?", ":"):
        if mark in plain and not user_path(plain).exists():
            plain, _, more = plain.rpartition(mark)
            rest = f"{mark}{more}{rest}"
    return user_path(plain), rest


# --- files and folders ---


def _tree(folder: Path) -> list[Path]:
    """A folder with all that is in it, but for what only people and git read; nothing if it is none."""
    if not folder.is_dir():
        return []
    inside = (path for path in sorted(folder.rglob("*")) if path.name != CARD)
    return [folder, *(p for p in inside if not any(part.startswith(".") for part in p.relative_to(folder).parts))]


def _digest_tree(folder: Path) -> str:
    paths = [path for path in _tree(folder) if path.is_file()]
    return fingerprint("files", files=[(path.relative_to(folder).as_posix(), sha256_file(path)) for path in paths])


def _files_of_file(name: str, task: str | None) -> list[Path]:
    del task
    path = user_path(name)
    if not path.exists():
        raise InputError("no such file", path)
    return _tree(path) or [path]


def _digest_of_file(name: str, task: str | None, digests: Digests) -> str:
    del task, digests
    path = user_path(name)
    return _digest_tree(path) if path.is_dir() else sha256_file(path)


# --- models ---


def _files_of_model(name: str, task: str | None) -> list[Path]:
    """Those of a local folder; of a run those that say what it is, and the texts that it was trained on, which are read
    again where its languages are."""
    del task
    folder = user_path(name)
    if name in (MODEL, SECOND, START) or not folder.is_dir():
        return []
    held = [folder / record for record in RECORDS if (folder / record).is_file()]
    if not held:
        return _model_tree(folder)
    config = _config_of_run(folder)
    return held if config is None else [*held, *_files_named(config)]


def _digest_of_model(name: str, task: str | None, digests: Digests) -> str:
    del task
    folder = user_path(name)
    if name in (MODEL, SECOND, START) or not folder.is_dir():
        return name
    if (record := folder / "run.json").is_file():
        made, config = read_json(record), _config_of_run(folder)
        if not isinstance(made, dict) or "fingerprint" not in made:
            raise InputError("is no record of a run", record)
        settings = None if config is None else resolved(config, lambda named: digests.of(named).digest)
        return fingerprint("run", run=made["fingerprint"], settings=settings)
    if (record := folder / "done.json").is_file():
        return sha256_file(record)
    files = [path for path in _model_tree(folder) if path.is_file()]
    return fingerprint("files", files=[(path.relative_to(folder).as_posix(), sha256_file(path)) for path in files])


def _model_tree(folder: Path) -> list[Path]:
    """A folder of a checkpoint, or with one in ``export``; not other checkpoints that a trainer left in it."""
    own = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != CARD]
    return [folder, *own, *_tree(folder / EXPORT)]


def _config_of_run(folder: Path) -> PretrainConfig | None:
    """The settings of a pretraining run; None for another folder, and where a text is gone: opening it says which."""
    try:
        return load(PretrainConfig, folder / RECORDS[0]) if is_run(folder) else None
    except InputError:
        return None


def _files_named(config: PretrainConfig) -> list[Path]:
    """The files of what a run names but the model it starts from: of that it has weights and tokenizer."""
    found: list[Path] = []

    def note(named: Named) -> None:
        if isinstance(named.name, Language):
            found.extend(_files_of_transforms(named.name))
        elif named.kind != "model":
            found.extend(FILES[named.kind](named.name, None))

    try:
        resolved(config, note)
    except InputError:
        return []
    return found


# --- languages and parsers ---


def _files_of_transforms(language: Language) -> list[Path]:
    return [path for transform in language.transforms for path in transform.files().values()]


def _files_of_language(name: str, task: str | None) -> list[Path]:
    del task
    try:
        language = parse_language(name)
    except InputError:  # the name of a language of the model
        return [Path(name)] if name.endswith(YAML) else []
    return [*(files_behind(Path(name)) if name.endswith(YAML) else []), *_files_of_transforms(language)]


def _digest_of_language(name: str, task: str | None, digests: Digests) -> str:
    del task, digests
    try:
        content = parse_language(name).fingerprint
    except InputError:  # the name of a language of the model
        return name
    return fingerprint("language", name=name, content=content)  # a model may have one of this name, of other content


def _files_of_parser(name: str, task: str | None) -> list[Path]:
    """A folder; of what is installed the library and the pipeline's own description, which another version replaces."""
    del task
    kind, _, rest = name.partition(":")
    library, path = find_spec(kind), getattr(open_engine(name), "path", None)
    held = [Path(library.origin)] if library is not None and library.origin else []
    described = [] if path is None else [Path(path), *sorted(Path(path).glob("*.json"))]
    return [*held, *described, *_tree(user_path(rest))]


def _digest_of_parser(name: str, task: str | None, digests: Digests) -> str:
    del task, digests
    return open_engine(name).fingerprint


FILES: dict[str, Callable[[str, str | None], list[Path]]] = {
    "source": _files_of_spec,
    "items": _files_of_spec,
    "file": _files_of_file,
    "model": _files_of_model,
    "language": _files_of_language,
    "parser": _files_of_parser,
}
CONTENT: dict[str, Callable[[str, str | None, Digests], str]] = {
    "source": _digest_of_spec,
    "items": _digest_of_spec,
    "file": _digest_of_file,
    "model": _digest_of_model,
    "language": _digest_of_language,
    "parser": _digest_of_parser,
}
