"""Data sets of the Hugging Face hub, or a local folder that the library ``datasets`` reads.

Words come from a column of lists of strings (``words``, ``tokens`` or ``form``), else from a
column of strings (``text`` or ``sentence``) by the rules for plain text. Beside lists of words
these become columns where they are lists of strings or of class labels: ``upos`` (or
``pos_tags``), ``deprel``, ``ner`` (or ``ner_tags``), and ``head`` as a list of numbers. Tags of
entities may be of any usual scheme and become IOB2.
Nothing of the data set is ever executed: ``datasets`` from version 4 on has no loading scripts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from synthlang.corpus import FORM, Corpus
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import canonical_json, fingerprint
from synthlang.sources.base import check_split
from synthlang.sources.conllu import annotated_batches, one_word, tree_problem
from synthlang.sources.hub_columns import plan_columns
from synthlang.sources.hub_files import check_json_lines
from synthlang.sources.tags import iob_tag, legal_tags
from synthlang.sources.text import SPLITS, batches_of
from synthlang.sources.words import RULES, split_sentences, split_words

READER = 2  # part of the fingerprint: count up when the same rows give other sentences
ROWS = 1000  # read at a time


class HubSource:
    """Sentences of a data set; what cannot be reached or understood is an InputError here."""

    def __init__(self, name: str) -> None:
        self.name = f"hf:{name}"
        self._data = _by_split(_load(name), self.name)
        # datasets gives every split of a configuration the same features
        self._plan = plan_columns(next(iter(self._data.values())).features, self.name)
        for split in self._data:
            if next(self._rows(split), None) is None:
                raise InputError(f"{self.name}: the split {split} holds no word")

    @cached_property
    def fingerprint(self) -> str:
        """Of the values in the columns that are read; not of their files, cache or chunks."""
        plan = {"text": self._plan.is_text, "labels": {k: names for k, (_, names) in self._plan.labels.items()}}
        splits = {}
        for split in self._data:
            digest = hashlib.sha256()
            for values in self._tables(split):
                digest.update(canonical_json([values[column] for column in self._plan.reads]).encode())
            splits[split] = digest.hexdigest()
        return fingerprint("hub", reader=READER, rules=RULES, plan=plan, splits=splits)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that map to train, dev or test."""
        return tuple(self._data)

    @property
    def columns(self) -> tuple[str, ...]:
        """``form`` and the annotations there are."""
        return (FORM, *self._plan.labels)

    def batches(self, split: str) -> Iterator[Corpus]:
        """The sentences of a split in order."""
        check_split(self, split, self.name)
        if self._plan.is_text:
            return batches_of(row[FORM] for row in self._rows(split))
        batches = annotated_batches(self._rows(split))
        return map(legal_tags, batches) if "ner" in self._plan.labels else batches

    def _tables(self, split: str) -> Iterator[dict[str, list[Any]]]:
        """ROWS rows at a time as {column of the data set: values}."""
        data = self._data[split].select_columns(self._plan.reads).with_format("arrow")
        return (table.to_pydict() for table in data.iter(batch_size=ROWS))

    def _rows(self, split: str) -> Iterator[dict[str, list[Any]]]:
        """Sentences as {our column: values}; rows without a word are left out."""
        number = 0
        for values in self._tables(split):
            for row in zip(*(values[column] for column in self._plan.reads), strict=True):
                number += 1
                if self._plan.is_text:
                    for line in (row[0] or "").split("\n"):
                        yield from ({FORM: words} for words in split_sentences(split_words(line)))
                elif row[0]:
                    yield self._annotated(row, f"{self.name}: row {number} of the split {split}")

    def _annotated(self, row: Sequence[list[Any] | None], where: str) -> dict[str, list[Any]]:
        words = row[0] or []
        if not all(word and word.strip() for word in words):
            raise InputError(f"{where}: word {[bool(w and w.strip()) for w in words].index(False) + 1} is empty")
        sentence: dict[str, list[Any]] = {FORM: [one_word(word) for word in words]}
        for (ours, (column, names)), values in zip(self._plan.labels.items(), row[1:], strict=True):
            if values is None or len(values) != len(words):
                count = 0 if values is None else len(values)
                raise InputError(f"{where}: {len(words)} words but {count} values in {column!r}")
            if ours == "head":
                sentence[ours] = _heads(values, where)
                continue
            sentence[ours] = _labels(values, names, f"{where}: {column!r}")
            if ours == "ner":
                sentence[ours] = _tags(sentence[ours], f"{where}: {column!r}")
        return sentence


def _heads(values: list[Any], where: str) -> list[int]:
    try:
        heads = [int(value) for value in values]
    except (TypeError, ValueError) as error:
        raise InputError(f"{where}: a head must be an integer") from error
    problem = tree_problem(heads)
    if problem:
        raise InputError(f"{where}: {problem[1]}")
    return heads


def _labels(values: list[Any], names: tuple[str, ...] | None, where: str) -> list[str]:
    if any(value is None or (names is not None and not 0 <= value < len(names)) for value in values):
        raise InputError(f"{where} has a word without a label")
    return values if names is None else [names[value] for value in values]


def _tags(values: list[str], where: str) -> list[str]:
    tags = [iob_tag(value) for value in values]
    if None in tags:
        wrong = values[tags.index(None)]
        raise InputError(f"{where}: the tag {wrong[:40]!r} must be O, or B- or I- and a kind of entity")
    return [tag for tag in tags if tag]


def _load(name: str) -> Any:
    """The data set of ``NAME[:CONFIG]``; a name that exists as a folder is that folder."""
    try:
        import datasets
    except ImportError as error:
        raise InputError("hf: sources need the library datasets: pip install 'datasets>=4'") from error
    path, config = user_path(name), None
    if not path.exists() and ":" in name:
        base, _, config = name.rpartition(":")
        path = user_path(base)
    if name.startswith(("/", ".", "~")) and not path.exists():
        raise InputError("no such file or folder", path)
    if path.is_file():
        raise InputError("is a file; name the folder it is in, or read it as text: or conllu:", path)
    if path.is_dir():
        check_json_lines(path)
    try:
        return datasets.load_dataset(str(path), config or None, streaming=False)
    except Exception as error:  # anything the library, the network or a damaged file may raise
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise InputError(f"hf:{name}: cannot load the data set: {reason}") from error


def _by_split(data: Any, name: str) -> dict[str, Any]:
    """The splits under our names, in the order train, dev, test."""
    found: dict[str, list[str]] = {}
    for theirs in data:
        if theirs in SPLITS:
            found.setdefault(SPLITS[theirs], []).append(theirs)
    for split, names in found.items():
        if len(names) > 1:
            raise InputError(f"{name}: several splits stand for {split}: {', '.join(names)}")
    if not found:
        raise InputError(f"{name}: no split is named train, validation or test; it has {', '.join(data)}")
    return {split: data[found[split][0]] for split in ("train", "dev", "test") if split in found}
