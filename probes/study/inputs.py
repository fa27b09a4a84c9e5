"""What a config reads from outside: sources, tasks, files, models; the user's files behind each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import pydantic

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.measures import ProbeConfig
from probes.measures.maps import MapsConfig
from probes.static.settings import LoadedVectors
from probes.study.cell import MODEL, SECOND, START
from probes.transfer.config import TaskName, TransferConfig
from synthlang.config import BASE, load
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.language import Language, parse_language
from synthlang.parallel.pairs import DerivedPair, FileLinks, TextPair
from synthlang.sources import open_source
from synthlang.strict_yaml import read_yaml
from synthlang.tasks import choose

Kind = Literal["source", "task", "file", "model", "language", "parser"]
HUB = "hf:"
YAML = (".yaml", ".yml")
RECORDS = ("config.yaml", "run.json", "done.json")  # what tells one run from another


@dataclass(frozen=True)
class Named:
    """Something that a config names: ``place`` are its keys, ``name`` the value there, or a language."""

    place: tuple[str, ...]
    kind: Kind
    name: str | Language


def named_in(config: pydantic.BaseModel) -> list[Named]:
    """All that a config of a stage names; nothing is opened."""
    finders = {
        PretrainConfig: _of_pretraining,
        AdjustConfig: _of_adjustment,
        TransferConfig: _of_transfer,
        ProbeConfig: _of_probes,
    }
    return list(finders[type(config)](config))  # type: ignore[operator]


def files_of(config: pydantic.BaseModel) -> list[Path]:
    """The user's files and folders that what a config says depends on; none for what is built in or on the hub."""
    found: list[Path] = []
    task = config.task if isinstance(config, TransferConfig) else None
    for named in named_in(config):
        if named.kind == "task":
            assert task is not None and isinstance(named.name, str), "a transfer names tasks"
            found += _of_spec(named.name, task)
        elif named.kind == "language":
            found += _of_language(named.name)
        else:
            assert isinstance(named.name, str), "a name is a text"
            # what a run starts from gives its weights and its tokenizer only
            texts = not isinstance(config, PretrainConfig)
            found += files_of_model(named.name, texts) if named.kind == "model" else _files(named.kind, named.name)
    return list(dict.fromkeys(found))


def files_of_model(name: str, texts: bool = True) -> list[Path]:
    """The files of a model that is a local folder; of a run those that say what it is.

    ``texts``: also those that a pretraining run was trained on, which are read again where its languages are.
    """
    folder = user_path(name)
    if name in (MODEL, SECOND, START) or not folder.is_dir():
        return []
    held = [folder / record for record in RECORDS if (folder / record).is_file()]
    if held:
        config = folder / RECORDS[0]
        return held + (_of_run(folder, config.stat().st_mtime_ns, Path.cwd()) if texts and config in held else [])
    return [folder, *(path for path in sorted(folder.iterdir()) if path.is_file())]


@lru_cache(maxsize=1024)
def _of_run(folder: Path, changed: int, here: Path) -> list[Path]:
    """The texts of a pretraining run whose config.yaml was ``changed`` then, as paths from ``here`` name them."""
    del changed, here
    from probes.transfer.model_names import is_run  # with torch

    if not is_run(folder):
        return []
    try:
        return files_of(load(PretrainConfig, folder / RECORDS[0]))
    except InputError:  # a text is gone: opening the run says which
        return []


def _files(kind: Kind, name: str) -> list[Path]:
    if kind == "source":
        return _of_spec(name, None)
    if kind == "parser":  # a folder; the environment is not the user's file
        return _tree(user_path(name.partition(":")[2]))
    path = user_path(name)
    return _tree(path) if path.is_dir() else [path]


def _of_spec(spec: str, task: TaskName | None) -> list[Path]:
    """The files of a source, or of the items of a task."""
    return _of_spec_from(Path.cwd(), spec, task)


@lru_cache(maxsize=1024)
def _of_spec_from(here: Path, spec: str, task: TaskName | None) -> list[Path]:
    """The same; what a relative path names depends on the folder ``here``."""
    del here
    spec = choose(spec)[0] if task else spec
    hub = spec.removeprefix(f"{task}:") if task else spec
    if hub.startswith(HUB):  # not opened: that takes seconds
        return _tree(_hub_folder(hub.removeprefix(HUB)))
    opened: Any = _task(task).open(spec) if task else open_source(spec)
    opened = getattr(opened, "source", opened)
    places = [getattr(opened, "path", None), *getattr(opened, "files", {}).values()]
    return _with_content([place for place in places if place is not None])


def _hub_folder(name: str) -> Path:
    """The folder of ``FOLDER[:CONFIG][?language=xx]``; for a data set of the hub one that is not there."""
    mark = name.rfind("?")
    if mark > 0 and not user_path(name).exists():
        name = name[:mark]
    if ":" in name and not user_path(name).exists():
        name = name.rpartition(":")[0]
    return user_path(name)


def _tree(folder: Path) -> list[Path]:
    """A folder with all that is in it; nothing if it is none."""
    return [folder, *sorted(folder.rglob("*"))] if folder.is_dir() else []


def _task(name: TaskName) -> Any:
    from probes.transfer.tasks.base import task_of  # with the heads of all tasks, and torch

    return task_of(TransferConfig(task=name))


def _with_content(places: Iterable[Path]) -> list[Path]:
    """Files, and folders with the files in them."""
    found: list[Path] = []
    for place in places:
        found.append(place)
        if place.is_dir():
            found += sorted(path for path in place.iterdir() if path.is_file())
    return list(dict.fromkeys(found))


def _of_language(language: str | Language) -> list[Path]:
    found: list[Path] = []
    if isinstance(language, str):
        name = language
        try:
            language = parse_language(name)
        except InputError:  # the name of a language of the model
            return [Path(name)] if name.endswith(YAML) else []
        if name.endswith(YAML):
            found += _with_bases(Path(name))
    for transform in language.transforms:
        found += transform.files().values()
    return found


def _with_bases(path: Path) -> list[Path]:
    """A YAML file, which could be read, and those that it is based on."""
    data = read_yaml(path)
    names = data.get(BASE, []) if isinstance(data, dict) else []
    bases = [path.parent / user_path(name) for name in (names if isinstance(names, list) else [names])]
    return [path, *(file for base in bases for file in _with_bases(base))]


def _of_pretraining(config: PretrainConfig) -> Iterator[Named]:
    for number, member in enumerate(config.all_languages):
        yield Named(("languages", str(number), "source"), "source", member.source)
        yield Named(("languages", str(number), "language"), "language", member.language)
    for number, pair in enumerate(config.parallel):
        for side, source in enumerate(pair.sources):
            yield Named(("parallel", str(number), "sources", str(side)), "source", source)
    path = config.dictionary.path
    for name, file in path.items() if isinstance(path, dict) else (("", path),):
        if file is not None:
            yield Named(("dictionary", "path", *filter(None, (name,))), "file", file)
    if config.start is not None:
        yield Named(("start", "model"), "model", config.start.model)


def _of_adjustment(config: AdjustConfig) -> Iterator[Named]:
    yield Named(("model",), "model", config.model)
    yield from _of_pairs(config.pairs, ("pairs",))


def _of_pairs(pairs: Mapping[str, TextPair | DerivedPair | None], place: tuple[str, ...]) -> Iterator[Named]:
    for name, pair in pairs.items():
        here = (*place, name)
        if isinstance(pair, DerivedPair):
            yield Named((*here, "source"), "source", pair.source)
            yield Named((*here, "left"), "language", pair.left)
            yield Named((*here, "right"), "language", pair.right)
        elif pair is not None:
            yield from _fields(pair, ("left", "right", "joint"), here)
            if isinstance(pair.links, FileLinks):
                yield from _fields(pair.links, ("path", "reverse"), (*here, "links"))


def _fields(model: pydantic.BaseModel, names: Iterable[str], place: tuple[str, ...]) -> Iterator[Named]:
    """The files that fields of a model name, where they do."""
    for name in names:
        if getattr(model, name) is not None:
            yield Named((*place, name), "file", getattr(model, name))


def _of_transfer(config: TransferConfig) -> Iterator[Named]:
    for place, held in (((), config), (("target",), config.target)):
        for split in ("train", "dev", "test"):
            if held is not None and getattr(held, split) is not None:
                yield Named((*place, split), "task", getattr(held, split))
    if config.language is not None:
        yield Named(("language",), "language", config.language)
    if config.parser is not None:
        yield Named(("parser",), "parser", config.parser)
    if config.target_model is not None:
        yield Named(("target_model",), "model", config.target_model)
    if config.continual is not None:
        yield from _of_pairs(config.continual.pairs, ("continual", "pairs"))
    if config.rotation is not None:
        yield from _of_pairs(config.rotation.pairs, ("rotation", "pairs"))
        yield from _fields(config.rotation, ("map", "dictionary"), ("rotation",))


def _of_probes(config: ProbeConfig) -> Iterator[Named]:
    if config.language is not None:
        yield Named(("language",), "language", config.language)
    models: dict[tuple[str, ...], str | None] = {("model2",): config.model2}
    models[("cka", "paraphrase")] = config.cka.paraphrase
    for name, model in config.distances.before.items():
        models["distances", "before", name] = model
    yield from (Named(place, "model", model) for place, model in models.items() if model is not None)
    yield from _of_pairs(config.pairs, ("pairs",))
    yield from _fields(config.words, ("dictionary",), ("words",))
    if config.retrieval.parser is not None:
        yield Named(("retrieval", "parser"), "parser", config.retrieval.parser)
    yield from _of_maps(config.maps)
    for probe, static in (("maps", config.maps.static), ("retrieval", config.retrieval.static)):
        if isinstance(static, LoadedVectors):
            yield from _fields(static, ("left", "right"), (probe, "static"))


def _of_maps(config: MapsConfig) -> Iterator[Named]:
    yield from _fields(config, ("dictionary", "test_dictionary"), ("maps",))
    if config.sentences is not None:
        yield from _fields(config.sentences, ("left", "right"), ("maps", "sentences"))
