"""Minimal pairs: a grammatical sentence and an ungrammatical sentence that differ in one place.

minimal:PATH               a file, or a folder whose files are read together (such as the folder ``data`` of BLiMP)
minimal:hf:NAME[:CONFIG]   a data set of the hub, or a local folder
minimal:builtin:mini-english[?…]   pairs of the grammar

A file has a JSON object on each line (BLiMP), or tab-separated columns with a header (MultiBLiMP), or just two columns
without a header: the grammatical sentence and the ungrammatical one. Columns are found by their usual names, such as
``sentence_good`` or ``sen``. The label of a pair is its phenomenon, which is read from a column. Without this column,
the label is the name of the file if a folder has several files. A sentence is split into words by the rules for plain
text, or at spaces only with ``?words=spaces``. Each side is one sentence. A pair with an empty side or with equal sides
is left out and counted. The column ``place`` marks a word of each side by its index from 0, and the mark moves with
the word.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from synthlang.config_errors import show_value
from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.hub_data import is_spaced, names_of
from synthlang.sources.mini_english.minimal import PHENOMENA, minimal_pairs
from synthlang.sources.segmentation import RULES
from synthlang.sources.splits import CJK, NORMALISE, is_file, path_options, texts_in
from synthlang.sources.text import digest_splits
from synthlang.sources.words import REMOVED, count_unseen
from synthlang.tasks.base import GroupTask, HubTask, MiniEnglishTask, ReadTask, opener
from synthlang.tasks.batch import Item, ItemGroup, Sentences
from synthlang.tasks.pairs import FIRST_ROW, json_rows, tab_rows
from synthlang.wording import first_few

READER = 1  # part of the fingerprint: raise when the same data gives other pairs
FIELDS = ("good", "bad")
NAMES = {
    "good": ("good", "sentence_good", "good_sentence", "sen"),
    "bad": ("bad", "sentence_bad", "bad_sentence", "wrong_sen"),
    "phenomenon": ("phenomenon", "linguistics_term"),
    "paradigm": ("paradigm", "uid"),
    "id": ("id", "pair_id", "pairid", "index"),
    "place": ("place",),
}
PARADIGM = "paradigm"
MARK = "mark"
"""The column of the corpus that is 1 for a marked word."""
WORDS, SPACES = "words", "spaces"
ENDINGS = (".jsonl", ".tsv", ".txt")
RENAME = {
    "column": "name the columns in a header, or write two columns separated by a tab",
    "key": "rename a key in every line",
}
"""Hints of the error for a missing side, by what holds a value in the file."""
NO_WORD = "pairs left out because a side has no word"
EQUAL = "pairs left out because both sides are equal"


class Row(NamedTuple):
    """A pair as read. An attribute whose column the data lacks is "".

    Attributes:
        good: The grammatical sentence.
        bad: The ungrammatical sentence.
        phenomenon: The phenomenon, which is the class label.
        paradigm: A subdivision of the phenomenon.
        id: Name of the pair.
        place: Index of the marked word of both sides, from 0.
        file: The file and the line of the pair, if it is in a file.
    """

    good: str
    bad: str
    phenomenon: str = ""
    paradigm: str = ""
    id: str = ""
    place: str = ""
    file: tuple[Path | None, int | None] = (None, None)


class MinimalTask(GroupTask):
    """Minimal pairs, with their phenomenon as class label and their paradigm, a subdivision, as a further string."""

    kind = "classes"
    fields = FIELDS
    label_name = "phenomenon"
    paired = True


class ReadMinimal(MinimalTask, ReadTask):
    """Minimal pairs of files or the hub."""

    scheme = "minimal"
    item = "minimal pair"

    @abstractmethod
    def _rows(self, split: str) -> Iterator[Row]:
        """Yield the rows of a split. Their ids are unique unless the data repeats an id."""

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:
        for row in self._rows(split):
            counts[REMOVED] += count_unseen(row.good) + count_unseen(row.bad)
            good, bad = self._words(row.good), self._words(row.bad)
            if not (good and bad):
                counts[NO_WORD] += 1
            elif good == bad:
                counts[EQUAL] += 1
            else:
                item = Item(row.id, (0, 1), row.phenomenon, extra={PARADIGM: row.paradigm})
                try:
                    sides: list[Sentences] = [[{FORM: words, MARK: _marks(words, row)}] for words in (good, bad)]
                except InputError as error:
                    raise self._about(error, split) from error
                yield ItemGroup(tuple(enumerate(sides)), (item,))

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The sorted phenomena, with "" for pairs without a phenomenon, or () if no pair has a phenomenon.

        Raises:
            InputError: A row is malformed or cannot be read.
        """
        found = {row.phenomenon for split in self.splits for row in self._rows(split)}
        return () if found == {""} else tuple(sorted(found))


def _marks(words: Sequence[str], row: Row) -> list[int]:
    """Return 1 for the marked word of a side and 0 for each other word, [words]."""
    digits = (row.place.lstrip("0") or "0") if row.place else ""
    marks = [int(digits == str(index)) for index in range(len(words))]
    if row.place and not any(marks):
        reason = f"the place {show_value(row.place)} of the pair {row.id!r} is not the index of a word of each sentence"
        hint = "count words from 0, or leave the place empty"
        raise InputError(reason, *row.file, hint=hint, code="range")
    return marks


class FileMinimal(ReadMinimal):
    """Minimal pairs of a file, or of all files of a folder, as the split ``test``.

    Args:
        spec: ``PATH[?option&…]``.

    Raises:
        InputError: The path or an option is wrong, or the files cannot be read, lack a column or have no usable pair.
    """

    splits = ("test",)

    def __init__(self, spec: str) -> None:
        path, self.options = path_options(spec, (NORMALISE, CJK, WORDS))
        self.normalise, self.cjk = self.options.get(NORMALISE), self.options.get(CJK)
        self.spaced = _is_spaced(self.options, path)
        self.name, self.path = f"{self.scheme}:{path}", user_path(path)
        found = [self.path] if is_file(self.path) else texts_in(self.path, ENDINGS)
        self.files = {file.name: file for file in found}
        self._check_usable()

    def _about(self, error: InputError, split: str) -> InputError:  # noqa: ARG002
        return error.inside(path=self.path)

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the names and bytes of the files, and the rules for words."""
        files = digest_splits(self.files, rules=not self.spaced)
        return fingerprint("minimal", reader=READER, rules=RULES, files=files, spaced=self.spaced, **self._marks)

    def _rows(self, split: str) -> Iterator[Row]:
        self.check(split)
        for path in self.files.values():
            for row in _read(path):
                name = "" if len(self.files) == 1 else path.stem
                number = f"{row.paradigm or name}-{row.id}" if row.paradigm or name else row.id
                yield row._replace(phenomenon=row.phenomenon or name, id=number)


def _is_spaced(options: Mapping[str, str], path: str) -> bool:
    if options.get(WORDS, SPACES) != SPACES:
        hint = f"use ?{WORDS}={SPACES}, or leave the option out"
        raise InputError(f"must be {SPACES}, not {options[WORDS]!r}", path, keys=WORDS, hint=hint, code="unknown")
    if WORDS in options and CJK in options:
        hint = f"leave ?{CJK}= out"
        raise InputError("has no effect on words between spaces", path, keys=CJK, hint=hint, code="conflict")
    return WORDS in options


def _read(path: Path) -> Iterator[Row]:
    """Yield the pairs of a file. If the file has no ids, the ids count from 0.

    Raises:
        InputError: The file cannot be read, a column is missing, a line is malformed, or a value is no text.
    """
    lines = read_lines(path)
    number, first = next(lines, (0, ""))
    if not number:
        return
    if first.startswith("{"):
        rows = json_rows(chain([(number, first)], lines), path)
        start = number
    else:
        header = [name.strip().lower() for name in first.split("\t")]
        plain = len(header) == 2 and not _is_header(header)
        start = number if plain else FIRST_ROW
        rows = tab_rows(chain([(number, first)], lines) if plain else lines, list(FIELDS) if plain else header, path)
        _places(FIELDS if plain else header, path)
    for line, values in rows:
        places = _places(list(values), path, line, "key" if first.startswith("{") else "column")
        found = {field: _text(values[name], name, path, line) for field, name in places.items()}
        yield Row(**{"id": str(line - start), **found}, file=(path, line))


def _is_header(names: Sequence[str]) -> bool:
    """Return whether ``names`` has a column of either side. A header without the other side is refused later."""
    return any(name in names for field in FIELDS for name in NAMES[field])


def _places(names: Sequence[str], path: Path, line: int = 1, kind: str = "column") -> dict[str, str]:
    """Return the name of the column, or of the key of a JSON object, of each field that the data has."""
    places = {field: next((name for name in known if name in names), "") for field, known in NAMES.items()}
    for field in FIELDS:
        if not places[field]:
            has = f", only {first_few(names, 8)}" if any(names) else ""
            reason = f"there is no {kind} for the {field} sentence ({' or '.join(NAMES[field])}){has}"
            raise InputError(reason, path, line, hint=RENAME[kind], code="missing")
    return {field: name for field, name in places.items() if name}


def _text(value: Any, name: str, path: Path, line: int) -> str:
    if value is None or isinstance(value, str | int):
        return "" if value is None else str(value).strip()
    reason = f"must be a text, not {show_value(value)}"
    raise InputError(reason, path, line, keys=name, hint="write a text in quotation marks", code="type")


class HubMinimal(ReadMinimal, HubTask):
    """Minimal pairs of a data set of the hub or of a local folder (see ``HubTask``). ``?words=spaces`` is an option."""

    known_options = (NORMALISE, CJK, WORDS)

    def __init__(self, name: str) -> None:
        super().__init__(name)
        needed = {field: f"{field} sentence" for field in FIELDS}
        self._columns = self._find_columns(NAMES, needed, NAMES.keys() - needed)
        marked = all(is_spaced(self._features[self._columns[field]]) for field in FIELDS)
        self.spaced = _is_spaced(self.options, self.name) or marked
        column = self._columns.get("phenomenon")
        self._phenomena = None if column is None else names_of(self._features[column])
        self._check_usable()

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the values in the columns that are read, and the rules for words."""
        parts = {"columns": sorted(self._columns), "names": self._phenomena, "spaced": self.spaced}
        return fingerprint("hub-minimal", reader=READER, rules=RULES, splits=self._digests(), **parts, **self._marks)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The phenomena that the data set declares, with "" if a pair has no phenomenon.

        If the data set declares no phenomena, they are found as in ``ReadMinimal``.

        Raises:
            InputError: A row is malformed or cannot be read.
        """
        if self._phenomena is None:
            return super().labels
        lacking = any(not row.phenomenon for split in self.splits for row in self._rows(split))
        return (*self._phenomena, "") if lacking else self._phenomena

    def _rows(self, split: str) -> Iterator[Row]:
        for number, row in self._parts(split):
            if self._phenomena is not None:
                code = row["phenomenon"]  # −1 or None without a label
                row["phenomenon"] = None if code is None or code < 0 else self._phenomena[code]
            texts = {field: "" if value is None else str(value).strip() for field, value in row.items()}
            yield Row(**{"id": str(number), **texts}, file=(None, None))


class MiniEnglishMinimal(MinimalTask, MiniEnglishTask):
    """Minimal pairs of the mini-English grammar."""

    name = "minimal:builtin:mini-english"
    labels = PHENOMENA
    version = ("mini-english-minimal", 1)

    def _groups(self, split: str, counts: Counter[str]) -> Iterator[ItemGroup]:  # noqa: ARG002
        for number, pair in enumerate(minimal_pairs(self.source, split, self.source.size(split))):
            texts = ((0, [dict(pair.good)]), (1, [dict(pair.bad)]))
            item = Item(str(number), (0, 1), pair.phenomenon, extra={PARADIGM: pair.paradigm})
            yield ItemGroup(texts, (item,))


open_minimal = opener(FileMinimal, HubMinimal, MiniEnglishMinimal)
