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
from probes.model_names import is_run
from probes.study.cell import OF_CELL
from synthlang.catalogue import YAML, files_behind
from synthlang.config import load
from synthlang.errors import InputError
from synthlang.files import read_json, user_path, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.language import Language, parse_language
from synthlang.order import model as order_model
from synthlang.parsing import clearnlp, engines, open_engine
from synthlang.plugins import installed
from synthlang.references import Named, references, resolved
from synthlang.sources import conllu, hub, iob, open_source, segmentation, slots
from synthlang.store import Store
from synthlang.tasks import choose, pairs, questions

TABLE = "digests.json"
OF_READERS = (
    *(module.READER for module in (conllu, hub, iob, slots, pairs, questions)),
    *(pairs.HUB_READER, questions.HUB_READER, segmentation.RULES),
    *(order_model.FORMAT, clearnlp.FORMAT, engines.SPACY_FORMAT, engines.STANZA_FORMAT),
)
"""What of the code says which content a file has: with another version nothing that was noted before holds."""
HUB, BUILTIN = "hf:", "builtin:"

RECORDS = ("config.yaml", "run.json", "done.json")  # what tells one run from another
Stats = dict[str, list[int]]
"""Absolute path → [size (0 of a folder), time of change in ns]; [-1, -1] for what is not there."""


@dataclass(frozen=True)
class Digested:
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
        self._known: dict[tuple[str, str, str | None], Digested] = {}

    def of(self, named: Named, task: str | None = None) -> Digested:
        """What is named, as it is now. What cannot be opened has a digest that no finished stage has: opening it says
        why."""
        if isinstance(named.name, Language):  # it holds what its files say
            return Digested(named.name.fingerprint, stats(_files_of_transforms(named.name)))
        key = named.kind, str(named.name), task if named.kind == "items" else None
        if key not in self._known:
            self._known[key] = self._look(*key)
        return self._known[key]

    def _look(self, kind: str, name: str, task: str | None) -> Digested:
        readers = fingerprint("readers", readers=[*OF_READERS, segmentation.LATER, *installed()])
        key = " ".join((readers, str(Path.cwd()), kind, task or "-", name))
        entry = self._table.get(key)
        if entry is not None and stats(map(Path, entry["files"])) == entry["files"]:
            return Digested(entry["digest"], entry["files"])
        try:
            files, content = NAMED[kind](name, task, self)
            before = stats(files)
            found = Digested(content(), before)
        except (InputError, OSError) as error:
            return Digested(f"unreadable: {error}", {}, problem=str(error))
        if before and before == stats(files):
            self._new[key] = {"digest": found.digest, "files": before}
        return found

    def save(self, store: Store) -> None:
        if self._new:
            with store.lock("digests", "table"):
                path = store.root / TABLE
                write_json(path, {**(read_json(path) if path.exists() else {}), **self._new})
            self._new = {}


def stats(paths: Iterable[Path]) -> Stats:
    return {str(path.absolute()): _stat(path) for path in paths}


def _stat(path: Path) -> list[int]:
    try:
        status = path.stat()
    except OSError:
        return [-1, -1]
    return [0 if path.is_dir() else status.st_size, status.st_mtime_ns]


Content = tuple[list[Path], Callable[[], str]]
"""The files that something is in, and what works out the digest of its content from them."""


def _spec(name: str, task: str | None, _digests: Digests) -> Content:
    """A source or, of a ``task``, items."""
    spec, split = choose(name) if task else (name, None)
    plain = spec.removeprefix(f"{task}:") if task else spec
    if plain.startswith(HUB):  # not opened: that takes seconds
        folder, rest = _hub_folder(plain.removeprefix(HUB))
        files = _tree(folder)

        def content() -> str:
            inside = _digest_of(folder, files) if files else plain
            return fingerprint("hub", files=inside, of=rest, readers=OF_READERS)

    elif plain.startswith(BUILTIN):
        files = []

        def content() -> str:
            return str(open_source(plain).fingerprint)

    else:
        files = _files_of_opened(_opened(spec, task))

        def content() -> str:
            return str(_opened(spec, task).fingerprint)

    if task is None:
        return files, content
    return files, lambda: fingerprint("items", task=task, content=content(), split=split)


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
    """The folder of ``FOLDER[:CONFIG][?language=xx]`` (of a data set of the hub one that is not there) and the rest."""
    plain, rest = name, ""
    for mark in ("?", ":"):
        if mark in plain and not user_path(plain).exists():
            plain, _, more = plain.rpartition(mark)
            rest = f"{mark}{more}{rest}"
    return user_path(plain), rest


def _tree(folder: Path) -> list[Path]:
    """A folder with all that is in it, but for what only people and git read; nothing if it is none."""
    if not folder.is_dir():
        return []
    inside = (path for path in sorted(folder.rglob("*")) if path.name != CARD)
    return [folder, *(p for p in inside if not any(part.startswith(".") for part in p.relative_to(folder).parts))]


def _digest_of(folder: Path, paths: Iterable[Path]) -> str:
    files = [(path.relative_to(folder).as_posix(), sha256_file(path)) for path in paths if path.is_file()]
    return fingerprint("files", files=files)


def _file(name: str, _task: str | None, _digests: Digests) -> Content:
    path = user_path(name)
    if not path.exists():
        raise InputError("no such file", path)
    if path.is_dir():
        return (files := _tree(path)), lambda: _digest_of(path, files)
    return [path], lambda: sha256_file(path)


def _model(name: str, _task: str | None, digests: Digests) -> Content:
    """A local folder; of a run what says what it is, and the texts that it was trained on, which are read again where
    its languages are."""
    folder = user_path(name)
    if name in OF_CELL or not folder.is_dir():
        return [], lambda: name
    # of a checkpoint, or with one in ``export``; not other checkpoints that a trainer left there
    top_files = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name != CARD]
    tree = [folder, *top_files, *_tree(folder / EXPORT)]
    records = [folder / record for record in RECORDS if (folder / record).is_file()]
    config = _config_of_run(folder)
    files = [*records, *(() if config is None else _files_named(config, digests))] or tree

    def content() -> str:
        if (record := folder / "run.json").is_file():
            made = read_json(record)
            if not isinstance(made, dict) or "fingerprint" not in made:
                raise InputError("is no record of a run", record)
            settings = None if config is None else resolved(config, lambda named: digests.of(named).digest)
            return fingerprint("run", run=made["fingerprint"], settings=settings)
        done = folder / "done.json"
        return sha256_file(done) if done.is_file() else _digest_of(folder, tree)

    return files, content


def _config_of_run(folder: Path) -> PretrainConfig | None:
    """The settings of a pretraining run; None for another folder, and where a text is gone: opening it says which."""
    try:
        return load(PretrainConfig, folder / RECORDS[0]) if is_run(folder) else None
    except InputError:
        return None


def _files_named(config: PretrainConfig, digests: Digests) -> list[Path]:
    """The files of what a run names but the model it starts from: of that it has weights and tokenizer."""
    found: list[Path] = []
    try:
        for named in references(config):
            if isinstance(named.name, Language):
                found += _files_of_transforms(named.name)
            elif named.kind != "model":
                found += NAMED[named.kind](named.name, None, digests)[0]
    except InputError:
        return []
    return found


def _files_of_transforms(language: Language) -> list[Path]:
    return [path for transform in language.transforms for path in transform.files().values()]


def _language(name: str, _task: str | None, _digests: Digests) -> Content:
    is_file = name.endswith(YAML)
    try:
        language = parse_language(name)
    except InputError:  # the name of a language of the model
        return [user_path(name)] if is_file else [], lambda: name
    files = [*(files_behind(user_path(name)) if is_file else []), *_files_of_transforms(language)]
    # with the name, since a model may have a language of this name and of other content
    return files, lambda: fingerprint("language", name=name, content=parse_language(name).fingerprint)


def _parser(name: str, _task: str | None, _digests: Digests) -> Content:
    """A folder; of what is installed the library and the pipeline's own description, which another version replaces."""
    kind, _, rest = name.partition(":")
    library, path = find_spec(kind), getattr(open_engine(name), "path", None)
    installed = [Path(library.origin)] if library is not None and library.origin else []
    described = [] if path is None else [Path(path), *sorted(Path(path).glob("*.json"))]
    return [*installed, *described, *_tree(user_path(rest))], lambda: str(open_engine(name).fingerprint)


NAMED: dict[str, Callable[[str, str | None, Digests], Content]] = {
    "source": _spec,
    "items": _spec,
    "file": _file,
    "model": _model,
    "language": _language,
    "parser": _parser,
}
