"""Assign files to splits, by their names or by the spec.

PATH                          a file is the split in its name, else train, and a folder has one file per split
FILE?split=test               a single file as the split test
FOLDER?train=FILE&test=FILE   files of a folder as train and test
PATH?normalise=NFC            words in Unicode's form NFC, where each has one spelling
PATH?cjk=characters           each Chinese character and each kana of running text as a word
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

from synthlang.errors import InputError, did_you_mean
from synthlang.files import no_such, user_path
from synthlang.sources.words import NFC
from synthlang.wording import first_few

NAMES = ("train", "dev", "test")
SPLITS = {"train": "train", "test": "test"}
SPLITS |= dict.fromkeys(("dev", "valid", "val", "validation", "trial", "eval"), "dev")
NORMALISE = "normalise"
CJK = "cjk"  # an option of readers of running text
CHARACTERS = "characters"
VALUES = {NORMALISE: NFC, CJK: CHARACTERS}
"""The only allowed value of each option that changes how words are read."""
OPTIONS = ("split", *NAMES, NORMALISE)
ONCE = "write the option once"
# Names of files about the data, and endings of files that are not data.
ABOUT = re.compile(r"(readme|licen[cs]e|copying|notice|changelog|citation|authors|contributing)", re.IGNORECASE)
BESIDE = (".md", ".html", ".pdf", ".json", ".yaml", ".yml", ".log", ".xml", ".py", ".sh", ".txt")


def path_options(spec: str, known: Sequence[str], scheme: str = "") -> tuple[str, dict[str, str]]:
    """Return the path and the options of ``PATH?name=value&name``, where a missing value is "".

    If a path with this whole name exists, there are no options.

    Args:
        spec: The path with its options.
        known: Names of the allowed options.
        scheme: Text before the path in messages, such as ``hf:``.

    Raises:
        InputError: An option is unknown or occurs twice, its value is not allowed, or the user in a path ``~USER`` does
            not exist.
    """
    plain, mark, query = spec.rpartition("?")
    place = f"{scheme}{plain}"
    if not mark or user_path(spec).exists():
        return spec, {}
    options = dict[str, str]()
    for name, _, value in (part.partition("=") for part in query.split("&")):
        if name not in known:
            raise unknown_option(name, place, known)
        if name in options:
            raise InputError("the option occurs more than once", place, keys=name, hint=ONCE, code="duplicate")
        options[name] = value
    if options.get("split", "train") not in NAMES:
        reason = f"must be train, dev or test, not {options['split']!r}"
        raise InputError(reason, place, keys="split", hint="write for example split=train", code="unknown")
    for name, value in VALUES.items():
        if options.get(name, value) != value:
            hint = f"write {name}={value}, or leave the option out"
            raise InputError(f"must be {value}, not {options[name]!r}", place, keys=name, hint=hint, code="unknown")
    return plain, options


class UnknownOptionError(InputError):
    """Error for an option after ``?`` that is not one of the options ``known``."""

    known: tuple[str, ...] = ()


def unknown_option(name: str, place: str, known: Iterable[str]) -> UnknownOptionError:
    """Return the error for an option that is not in ``known``. The path of the error is ``place``."""
    known = tuple(known)
    hint = f"{did_you_mean(name, known)}use one of {', '.join(known)}"
    reason = "unknown option" if name else "an option after ? is empty"
    error = UnknownOptionError(reason, place, keys=(name,) if name else (), hint=hint, code="unknown")
    error.known = known
    return error


def is_file(path: Path) -> bool:
    """Return True for a file and False for a folder.

    Raises:
        InputError: The path does not exist, or is a device or a pipe.
    """
    if not path.exists():
        raise no_such(path, "file or folder")
    if not (path.is_file() or path.is_dir()):
        reason = "is a device or a pipe, which cannot be read twice"
        raise InputError(reason, path, hint="save its content as a file", code="unsupported")
    return path.is_file()


def files_by_split(
    path: Path, endings: tuple[str, ...], options: Mapping[str, str] | None = None, *, labelled: bool = True
) -> dict[str, Path]:
    """Return the file of each split of a source, which is a file or a folder.

    A single file is the split that ``options`` or else its name gives, and ``train`` without either. The files of a
    folder are found by ``options`` or else by their names.

    Args:
        path: The file or folder.
        endings: Endings of the names of data files in a folder.
        options: Options of the source: ``split`` for a single file, or a file name for each split of a folder.
        labelled: True if every data file of a folder must belong to a split.

    Raises:
        InputError: A path does not exist, an option does not fit a file or a folder, or the splits of a folder cannot
            be found (see ``find_splits``).
    """
    options = options or {}
    named = {split: options[split] for split in NAMES if split in options}
    if is_file(path):
        if named:
            first = next(iter(named))
            hint = f"for a single file, write ?split={first}"
            raise InputError("the path is a file, not a folder", path, keys=(first,), hint=hint, code="type")
        return {options.get("split") or split_of(path.name) or "train": path}
    if "split" in options:
        hint = f"name a file of the folder: ?{options['split']}=FILE"
        raise InputError("the path is a folder, not a file", path, keys="split", hint=hint, code="type")
    if not named:
        return find_splits(path, endings, labelled=labelled)
    files = {split: path / name for split, name in named.items()}
    for split, file in files.items():
        if not is_file(file):
            hint = f"name a file of the folder: ?{split}=FILE"
            raise InputError("the path is a folder, not a file", file, keys=(split,), hint=hint, code="type")
    return files


def find_splits(
    folder: Path, endings: tuple[str, ...], *, folders: bool = False, labelled: bool = True
) -> dict[str, Path]:
    """Return the file (or folder) of each split in ``folder``, in the order train, dev, test.

    A file belongs to a split if a part of its name is a name of the split (``en_ewt-ud-dev.conllu``).

    Args:
        folder: The folder.
        endings: Endings of the names of data files. The ending "" accepts the bare name of a split.
        folders: True to find folders, not files.
        labelled: True if every data file must belong to a split.

    Raises:
        InputError: A split has two files, no file belongs to a split, or with ``labelled`` a data file belongs to none.
    """
    found: dict[str, list[Path]] = {}
    inside = [path for path in sorted(folder.iterdir()) if path.is_dir() == folders and not path.name.startswith(".")]
    for path in inside:
        split = split_of(path.name, endings)
        if split is not None:
            found.setdefault(split, []).append(path)
    options = "&".join(f"{split}=FILE" for split in NAMES if split in (found or NAMES))
    name_files = f"name the file of each split: ?{options}"
    for split, paths in found.items():
        if len(paths) > 1:
            reason = f"several {'folders' if folders else 'files'} could be the split {split}: {some_names(paths)}"
            hint = "keep one of these folders, and move the others elsewhere" if folders else name_files
            raise InputError(reason, folder, hint=hint, code="duplicate")
    mine = tuple(ending for ending in endings if ending)
    unread = unread_files(inside, endings, {path for paths in found.values() for path in paths})
    rest = [p for p in unread if p.name.endswith(mine) or (split_of(p.name) or "") not in {"", *found}]
    if labelled and not folders and rest:
        reason = f"the split of {some_names(rest)} is unknown"
        raise InputError(reason, folder, hint=f"{name_files}, or move other files elsewhere", code="unknown")
    if not found:
        reason = f"no file with train, dev or test in its name ends in {' or '.join(mine)}"
        hint = "name another folder, or a file of this folder with ?train=FILE"
        raise InputError(reason, folder, hint=hint, code="missing")
    return {split: found[split][0] for split in NAMES if split in found}


def texts_in(folder: Path, endings: tuple[str, ...]) -> list[Path]:
    """Return the text files of a folder in the order of their names, without files such as README.txt (see ABOUT).

    ``endings`` are the endings of the names of text files.

    Raises:
        InputError: The folder has no text file.
    """
    found = [p for p in sorted(folder.iterdir()) if p.is_file() and p.name.endswith(endings) and p.name[0] != "."]
    if texts := [path for path in found if not ABOUT.match(path.name)]:
        return texts
    reason = f"no file in the folder ends in {' or '.join(endings)}"
    if found:
        reason = f"the folder has no text, only {found[0].name}"
    raise InputError(reason, folder, hint="name a folder with text files, or a file", code="missing")


def some_names(files: Sequence[Path]) -> str:
    """Return the first few file names, for a message."""
    return first_few([path.name for path in files], 5)


def files_read(path: Path, files: Mapping[str, Path], endings: tuple[str, ...]) -> str:
    """Return a message that lists the file of each split, and the data files of a folder that were not read.

    Args:
        path: The folder, or a single file.
        files: The file of each split.
        endings: Endings of the names of data files.
    """
    read = ", ".join(f"{split} is {file.name}" for split, file in files.items())
    taken = {*files.values()}
    whole = path.is_file() or path in taken  # a folder that is one split is read completely
    inside = [] if whole else sorted(file for file in path.iterdir() if file.is_file())
    beside = unread_files(inside, endings, taken)
    return read + (f"; not read: {some_names(beside)}" if beside else "")


def unread_files(inside: Iterable[Path], endings: tuple[str, ...], taken: Container[Path]) -> list[Path]:
    """Return the files of a folder that are not ``taken`` and may be data by their names.

    Args:
        inside: All files of the folder.
        endings: Endings of the names of data files.
        taken: The files that are read.
    """
    mine = tuple(ending for ending in endings if ending)
    data = (p for p in inside if p not in taken and not p.name.startswith(".") and not ABOUT.match(p.name))
    return [p for p in data if p.name.endswith(mine) or not p.name.endswith(BESIDE)]


def split_of(name: str, endings: tuple[str, ...] | None = None) -> str | None:
    """Return the split that a file name contains, or None.

    The file name is cut into parts of letters, and the last part that names a split counts. With ``endings``, the file
    name must have one of these endings. The ending "" accepts the bare name of a split.

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
