"""Settings from YAML files and from the catalogue of configs that come with the package.

A file or an entry of the catalogue may be based on other files or entries (``base:``). An entry has a kind and a name.
A file of the catalogue maps kinds to entries and defines words, which are the variables of its entries::

    words: {size: {lab: {rows: 256}, tiny: {rows: 80}}}
    runs:
      "mlm/trans/{size}": {about: MLM on one language., base: [rows/mlm, "sizes/{size}"], batch: {rows: "{rows}"}}

- A key with ``{size}`` is repeated for each item of the word, which is a list or a mapping. The example defines the
  entries mlm/trans/lab and mlm/trans/tiny. ``{size in natural}`` takes the items of the word ``natural``.
- In the value of such a key, ``{size}`` is the item, and the words that belong to the item (``rows``) are defined.
- A text that consists of ``{rows}`` alone becomes the value of the word. Inside a list, a word that is a list adds all
  its values, and an item ``{"{size}": VALUE}`` becomes one item for each size.
- If two keys give the same name, the later entry is merged over the earlier entry.
- ``about`` describes an entry and is not a setting. The words of words.yaml are defined in every file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Any

from synthlang.errors import InputError, did_you_mean
from synthlang.files import no_such, user_path
from synthlang.strict_yaml import read_yaml

BASE, ABOUT, WORDS = "base", "about", "words"
TINY = "tiny"
"""Name of the smallest size. A study with several sizes needs no data files at this size."""
SIZES = ("paper", "lab", TINY)  # the last part of the name of an entry with a size
YAML = (".yaml", ".yml")
WORD, KEY_WORD = re.compile(r"\{(\w+)\}"), re.compile(r"\{(\w+)(?: in (\w+))?\}")
BASES = "name existing YAML files, or KIND/NAME of the catalogue"
FILES = {  # kind → file, or folder in which each file has the entries that begin with its name
    "runs": "runs.yaml",
    "studies": "studies",
    "adjust": "adjust.yaml",
    "transfer": "transfer.yaml",
    "probes": "probes.yaml",
    "derived": "derived.yaml",
    "data": "data.yaml",
    "rows": "runs.yaml",
    "languages": "runs.yaml",
    "sizes": "runs.yaml",
    "parts": "studies",
}
COMMANDS = {"runs": "pretrain", "studies": "study"}
"""Command that runs an entry by its name, for each kind of entry that can run."""
WHOLE = ("papers", "claims")  # kinds where each file is one entry
Words = Mapping[str, Any]


@dataclass(frozen=True)
class Entry:
    """An entry of the catalogue.

    Attributes:
        kind: Kind of the entry, a key of FILES.
        name: Name of the entry, which no other entry of the kind has.
        about: Descriptions of the entry and then of its bases. If the entry has its own description, the descriptions
            of bases of the same kind are marked as changed.
        data: Settings of the entry, merged over the settings of its bases.
        is_described: True if the entry itself has a description.
    """

    kind: str
    name: str
    about: tuple[str, ...]
    data: dict[str, Any]
    is_described: bool

    @property
    def summary(self) -> str:
        """One-line description of the entry."""
        return str(self.data.get("title") or (self.about or ("",))[0])


def folder() -> Path:
    """Return the folder of the catalogue.

    An installed package contains this folder. In a checkout it is beside the package.
    """
    package = Path(__file__).resolve().parent
    inside = package / "configs"
    return inside if inside.is_dir() else package.parent / "configs"


def run_folder(config: Path) -> Path:
    """Return the default folder for the results of a config: ``runs/NAME``.

    >>> run_folder(Path("mlm/trans/tiny")).as_posix(), run_folder(Path("studies/my-study.yaml")).as_posix()
    ('runs/mlm-trans-tiny', 'runs/my-study')
    """
    if config.suffix in YAML:
        return Path("runs", config.stem)
    return Path("runs", "-".join(part for part in config.parts if part != config.anchor))


def load_yaml(path: str | PathLike[str], kind: str | None = None) -> dict[str, Any]:
    """Read the mapping in a YAML file or in an entry of the catalogue.

    ``path`` is the name of an entry only if ``kind`` is given and no file has this path.

    ``base: NAME`` or ``base: [NAME, …]`` names settings to start from: paths relative to this file, or KIND/NAME of
    the catalogue. Mappings are merged key by key. Any other value replaces the value of an earlier base. The settings
    of this file replace the settings of all bases.

    Raises:
        InputError: A file cannot be read or is not a mapping, ``base`` is neither a name nor a list of names, a base or
            the entry does not exist, or the bases form a cycle.
    """
    name, file = str(path), user_path(path)
    if kind is None or name.endswith(YAML) or file.is_file() or (file.exists() and name not in names(kind)):
        return _with_bases(file, ())
    return dict(find(kind, name).data)


def load_bases(names: Any, place: Path, below: tuple[Path, ...] = ()) -> dict[str, Any]:
    """Return the merged settings of the bases that a config in the folder ``place`` names.

    ``names`` is the value of the key ``base``: a name or a list of names. ``below`` holds the files that are being
    read, so that a cycle is detected.

    Raises:
        InputError: A name is neither a file nor an entry, ``names`` is neither a text nor a list of texts, a file
            cannot be read or is not a mapping, or the bases form a cycle.
    """
    listed = names if isinstance(names, list) else [names]
    if not all(isinstance(name, str) and name for name in listed):
        reason = f"must be a name or a list of names, not {json.dumps(names, ensure_ascii=False)}"
        raise InputError(reason, keys=BASE, hint=BASES, code="type")
    result = dict[str, Any]()
    try:
        bases = [_base(name, place) for name in listed]
    except InputError as error:
        raise error.inside(BASE) from error
    for path_or_name in bases:
        if isinstance(path_or_name, str):
            result = merged(result, find(*path_or_name.split("/", 1)).data)
        elif path_or_name.resolve() in below:
            reason = f"{path_or_name} is itself based on this file"
            raise InputError(reason, keys=BASE, hint="remove a base key of this cycle", code="conflict")
        else:
            result = merged(result, _with_bases(path_or_name, below))
    return result


def files_behind(path: Path) -> list[Path]:
    """Return a YAML file and the files that it is based on, without files of the catalogue.

    ``load_yaml`` must have read the file before, since a cycle of bases is not detected here.

    Raises:
        InputError: A file cannot be read, or a base is neither a file nor an entry.
    """
    data = read_yaml(path)
    names = data.get(BASE, []) if isinstance(data, dict) else []
    bases = [_base(name, path.parent) for name in (names if isinstance(names, list) else [names])]
    return [path, *(file for base in bases if isinstance(base, Path) for file in files_behind(base))]


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``changes`` over ``base``, and return the result.

    Mappings are merged key by key. Any other value of ``changes`` replaces the value of ``base``.

    >>> merged({"a": {"b": 1, "c": 2}, "d": [1]}, {"a": {"b": 5}, "d": []})
    {'a': {'b': 5, 'c': 2}, 'd': []}
    """
    result = dict(base)
    for key, value in changes.items():
        before = result.get(key)
        result[key] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return result


@cache
def find(kind: str, name: str) -> Entry:
    """Return an entry of the catalogue, with its settings merged over the settings of its bases.

    ``kind`` is a key of FILES.

    Raises:
        InputError: The entry does not exist. The hint has the sizes under this name, the command for this name, similar
            names, or the command that lists all entries.
    """
    stem = _stem(kind, name)
    written = _entries(kind, stem).get(name) if stem else None
    if written is None:
        reason = f"{name!r} is neither a file nor an entry of the kind {kind}"
        raise InputError(reason, hint=_where(kind, name), code="unknown")
    value = dict[str, Any]()
    for raw, words in written:
        value = merged(value, filled(raw, words))
    own = {key: setting for key, setting in value.items() if key not in (ABOUT, BASE)}
    listed = value.get(BASE, [])
    bases = [find(*base.split("/", 1)) for base in (listed if isinstance(listed, list) else [listed])]
    data = dict[str, Any]()
    for layer in (*(base.data for base in bases), own):
        data = merged(data, layer)
    about = [value[ABOUT]] if ABOUT in value else []
    for base in bases:
        changed = ABOUT in value and base.is_described and base.kind == kind  # the description may not hold here
        about += [f"Changed from {base.kind}/{base.name}: {base.about[0]}", *base.about[1:]] if changed else base.about
    return Entry(kind, name, tuple(dict.fromkeys(about)), data, ABOUT in value)


def _where(kind: str, name: str) -> str:
    """Return a hint for an unknown name of a kind."""
    sizes = [size for size in SIZES if f"{name}/{size}" in names(kind)]
    if sizes:
        return f"add a size: {' or '.join(f'{name}/{size}' for size in sizes)}"
    for other, command in COMMANDS.items():
        if other != kind and any(known == name or known.startswith(f"{name}/") for known in names(other)):
            return f"this name is one of the {other}, which synthlang {command} runs"
    near = get_close_matches(name, names(kind))
    return f"did you mean {' or '.join(near)}?" if near else f"list them with: synthlang configs {kind}"


def names(kind: str) -> list[str]:
    """Return the names of all entries of a kind, in the order of the catalogue."""
    return [name for stem in _stems(kind) for name in ([stem] if kind in WHOLE else _entries(kind, stem))]


def whole_file(kind: str, name: str, place: Path | None = None) -> Path:
    """Return the file of a paper or of claims, given by its name or as a YAML file relative to ``place``.

    ``kind`` is ``papers`` or ``claims``. Without ``place``, the path is relative to the working folder.

    Raises:
        InputError: The file or the name does not exist.
    """
    if name.endswith(YAML):
        path = (place or Path()) / user_path(name)
        if not path.is_file():
            raise no_such(path)
        return path
    if name not in _stems(kind):
        known = ", ".join(_stems(kind)) or "none"
        hint = f"name a YAML file or one of: {known}"
        raise InputError(f"{name!r} is not one of the {kind}", hint=hint, code="unknown")
    return folder() / kind / f"{name}.yaml"


def filled(value: Any, words: Words) -> Any:
    """Substitute each ``{word}``, and expand each key whose word has several items.

    Raises:
        KeyError: A word is not defined in ``words``.

    >>> filled({"{x}-en": "data/{x}", "k": "{n}"}, {"x": ["de", "fr"], "n": 5})
    {'de-en': 'data/de', 'fr-en': 'data/fr', 'k': 5}
    """
    if isinstance(value, str):
        whole = WORD.fullmatch(value)
        return filled(words[whole[1]], words) if whole else WORD.sub(lambda m: str(filled(words[m[1]], words)), value)
    if isinstance(value, list):
        return [one for item in value for one in _items(item, words)]
    if not isinstance(value, dict):
        return value
    result = dict[str, Any]()
    for key, item in value.items():
        for name, known in _spelled(key, words):
            result = merged(result, {name: filled(item, known)})
    return result


def _items(item: Any, words: Words) -> list[Any]:
    key = next(iter(item)) if isinstance(item, dict) and len(item) == 1 else ""
    if KEY_WORD.fullmatch(key):
        return [filled(item[key], known) for _, known in _spelled(key, words)]
    value = filled(item, words)
    return value if isinstance(item, str) and isinstance(value, list) else [value]


def _spelled(key: str, words: Words) -> Iterator[tuple[str, Words]]:
    """Expand the words in a key. Yield each resulting name with the words that are defined in its value."""
    several = next((m for m in KEY_WORD.finditer(key) if m[2] or isinstance(words[m[1]], list | dict)), None)
    if several is None:
        yield WORD.sub(lambda m: str(words[m[1]]), key), words
        return
    word, table = several[1], words.get(several[1])
    for item in words[several[2] or word]:
        own = (table.get(item) or {}) if isinstance(table, dict) else {}
        yield from _spelled(key.replace(several[0], str(item)), {**words, **own, word: item})


def _with_bases(path: Path, below: tuple[Path, ...]) -> dict[str, Any]:
    """Return the mapping in a file, merged over its bases."""
    data = read_yaml(path)
    if not isinstance(data, dict):
        found = "a list" if isinstance(data, list) else "a single value"
        reason = "is empty" if data is None else f"must be a mapping of keys to values, not {found}"
        hint = "write KEY: VALUE lines at the top level"
        raise InputError(reason, path, hint=hint, code="empty" if data is None else "type")
    if BASE not in data:
        return data
    bases = data.pop(BASE)
    try:
        return merged(load_bases(bases, path.parent, (*below, path.resolve())), data)
    except InputError as error:
        raise error.inside(path=path) from error


def _base(name: str, place: Path) -> Path | str:
    """Return the file that a base names, or the name of an entry of the catalogue."""
    path = place / user_path(name)
    kind, _, rest = name.partition("/")
    if path.is_file() or (path.exists() and kind not in FILES):
        return path
    if kind not in FILES or not rest or name.endswith(YAML):
        known = [] if name.endswith(YAML) else [f"{kind}/{entry}" for kind in FILES for entry in names(kind)]
        near = did_you_mean(name, [entry for entry in known if entry.endswith(f"/{name}")] or known)
        hint = f"{near}{BASES}"
        raise InputError(f"the file {path} does not exist", hint=hint, code="missing")
    find(kind, rest)
    return name


def _stems(kind: str) -> list[str]:
    """Return the stems of the files that hold entries of a kind."""
    where = folder() / FILES.get(kind, kind)
    return [where.stem] if where.suffix else sorted(path.stem for path in where.glob("*.yaml"))


def _stem(kind: str, name: str) -> str | None:
    """Return the stem of the file that may hold an entry, or None if no file can."""
    stems = _stems(kind)
    if FILES[kind] == "studies":
        stems = [stem for stem in stems if re.match(rf"{re.escape(stem)}(?![\w.])", name)]
    return stems[0] if stems else None


@cache
def _read(path: Path) -> dict[str, Any]:
    data = read_yaml(path)
    assert isinstance(data, dict), path
    return data


@cache
def _entries(kind: str, stem: str) -> dict[str, list[tuple[Any, Words]]]:
    """Map each name to its values, each with the words that are defined in it. Later values take precedence."""
    where = folder() / FILES[kind]
    data = _read(where if where.suffix else where / f"{stem}.yaml")
    words = merged(_read(folder() / "words.yaml"), data.get(WORDS, {}))
    first = f"{stem}/" if kind == "parts" else ""
    found: dict[str, list[tuple[Any, Words]]] = {}
    for key, raw in data.get(kind, {}).items():
        for name, known in _spelled(key, words):
            found.setdefault(f"{first}{name}", []).append((raw, known))
    return found
