"""Which file is which split: told by its name, or by the spec.

PATH                          a file is the split that its name says, else train; a folder has a file for each split
FILE?split=test               a file by itself as that split
FOLDER?train=FILE&test=FILE   the files of a folder by their names
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from synthlang.errors import InputError
from synthlang.files import user_path

NAMES = ("train", "dev", "test")
SPLITS = {"train": "train", "test": "test"}
SPLITS |= dict.fromkeys(("dev", "valid", "val", "validation", "trial", "eval"), "dev")
OPTIONS = ("split", *NAMES)
# files about the data; and endings of such files and of what else lies beside data
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|changelog|citation|authors|contributing)", re.IGNORECASE)
BESIDE = (".md", ".html", ".pdf", ".json", ".yaml", ".yml", ".log", ".xml", ".py", ".sh", ".txt")


def path_options(spec: str, known: Sequence[str]) -> tuple[str, dict[str, str]]:
    """The path, as it is written, and the options of ``PATH?name=value&name``; one without a value is ``""``.

    InputError for another name. A path that exists as it stands has no options.
    """
    plain, mark, query = spec.rpartition("?")
    if not mark or user_path(spec).exists():
        return spec, {}
    options = {part.partition("=")[0]: part.partition("=")[2] for part in query.split("&")}
    if wrong := [name for name in options if name not in known]:
        raise InputError(f"{spec}: after ? there may be {', '.join(known)}, not {wrong[0]!r}")
    if options.get("split", "train") not in NAMES:
        raise InputError(f"{spec}: split must be train, dev or test, not {options['split']!r}")
    return plain, options


def is_file(path: Path) -> bool:
    """True for a file, False for a folder, else InputError."""
    if not path.exists():
        raise InputError("no such file or folder", path)
    if not (path.is_file() or path.is_dir()):
        raise InputError("is no file: a device or a pipe cannot be read twice; save it as a file", path)
    return path.is_file()


def files_by_split(
    path: Path, endings: tuple[str, ...], options: Mapping[str, str] | None = None, *, labelled: bool = True
) -> dict[str, Path]:
    """The file of each split: a file by itself is the split its name says, else ``train``; or those of a folder."""
    options = options or {}
    named = {split: options[split] for split in NAMES if split in options}
    if is_file(path):
        if named:
            raise InputError(
                "is a file; ?train=, ?dev= and ?test= name files of a folder, ?split= says what it is", path
            )
        return {options.get("split") or split_of(path.name) or "train": path}
    if "split" in options:
        raise InputError("is a folder; ?split= says what a file is, ?train=FILE names one of a folder", path)
    if not named:
        return find_splits(path, endings, labelled=labelled)
    files = {split: path / name for split, name in named.items()}
    for file in files.values():
        if not is_file(file):
            raise InputError("is a folder, not a file", file)
    return files


def find_splits(
    folder: Path, endings: tuple[str, ...], *, folders: bool = False, labelled: bool = True
) -> dict[str, Path]:
    """The file (or folder) of each split in ``folder``, in the order train, dev, test.

    A file belongs to a split if a part of its name does (``en_ewt-ud-dev.conllu``). Two files for one split, or none
    at all, is an InputError; so is a file with ``labelled`` data that no name tells the split of.
    """
    found: dict[str, list[Path]] = {}
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() == folders and not path.name.startswith(".")]
    for path in inside:
        split = split_of(path.name, endings)
        if split is not None:
            found.setdefault(split, []).append(path)
    for split, paths in found.items():
        if len(paths) > 1:
            names = ", ".join(path.name for path in paths)
            raise InputError(f"several files for the split {split}: {names}; name one, as in ?{split}=FILE", folder)
    if labelled and not folders and (rest := left_over(inside, endings, found)):
        names = some_names(rest)
        options = "&".join(f"{split}=FILE" for split in NAMES if split in (found or NAMES))
        raise InputError(f"{names}: the name tells no split of this reader; say which file is what: ?{options}", folder)
    if not found:
        names = " or ".join(ending for ending in endings if ending)
        raise InputError(
            f"holds no file whose name says train, dev or test and ends in {names}; name them: ?train=FILE", folder
        )
    return {split: found[split][0] for split in NAMES if split in found}


def left_over(inside: Sequence[Path], endings: tuple[str, ...], found: Mapping[str, Sequence[Path]]) -> list[Path]:
    """The unread files that look like splits: with an ending of the reader, or a missing split in the name."""
    mine = tuple(ending for ending in endings if ending)
    unread = unread_files(inside, endings, {path for paths in found.values() for path in paths})
    return [p for p in unread if p.name.endswith(mine) or (split_of(p.name) or "") not in {"", *found}]


def some_names(files: Sequence[Path]) -> str:
    """The first names of files, for a message."""
    return ", ".join(path.name for path in files[:5]) + (" …" if len(files) > 5 else "")


def files_read(path: Path, files: Mapping[str, Path], endings: tuple[str, ...]) -> str:
    """Which file was read as which split, and which others of the folder ``path`` were not read."""
    said = ", ".join(f"{split} is {file.name}" for split, file in files.items())
    taken = {*files.values()}
    whole = path.is_file() or path in taken  # a folder that is one split has parts, all read
    inside = [] if whole else sorted(file for file in path.iterdir() if file.is_file())
    beside = unread_files(inside, endings, taken)
    return said + (f"; not read: {some_names(beside)}" if beside else "")


def unread_files(inside: Iterable[Path], endings: tuple[str, ...], taken: Container[Path]) -> list[Path]:
    """The files that may be data and are not ``taken``: none about the data, with an ending of the reader or no
    other usual one."""
    mine = tuple(ending for ending in endings if ending)
    data = (p for p in inside if p not in taken and not p.name.startswith(".") and not ABOUT.match(p.name))
    return [p for p in data if p.name.endswith(mine) or not p.name.endswith(BESIDE)]


def split_of(name: str, endings: tuple[str, ...] | None = None) -> str | None:
    """The split that a file name tells: the last of its parts that is one. Parts are between anything but letters.

    With ``endings`` only a name with one of them tells a split; the ending "" is of names that are a split.

    >>> split_of("wiki-valid.txt.gz", (".txt", ".txt.gz")), split_of("Valid", ("",)), split_of("valid.md", ("",))
    ('dev', 'dev', None)
    >>> split_of("abc17train.conll"), split_of("abc.test.annotated"), split_of("contest.txt")
    ('train', 'test', None)
    """
    if endings is None:
        stem = name
    elif "" in endings and name.lower() in SPLITS:
        return SPLITS[name.lower()]
    else:
        stem = next((name.removesuffix(ending) for ending in endings if ending and name.endswith(ending)), "")
    parts = [SPLITS[part] for part in re.split(r"[\W\d_]+", stem.lower()) if part in SPLITS]
    return parts[-1] if parts else None
