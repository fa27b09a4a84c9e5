"""Classification of pairs of texts: NLI, RTE, SICK, XNLI as tab-separated files with a header.

Columns are known by their names in the field's releases: ``premise`` or ``sentence1`` or
``sentence_A``, and so on. A text is split into words and sentences by the rules for plain text;
quotes mean nothing. A pair without a gold label (``-``) or without a word in a text is left
out and counted. Labels are in lower case. An id that comes again gets a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from synthlang.corpus import FORM
from synthlang.errors import InputError
from synthlang.files import read_lines, user_path
from synthlang.fingerprint import fingerprint
from synthlang.sources.base import because, check_split
from synthlang.sources.text import digest_splits, files_by_split
from synthlang.sources.words import RULES, split_sentences, split_words
from synthlang.tasks.base import TaskSet
from synthlang.tasks.batch import TaskBatch
from synthlang.tasks.build import Group, Item, batches_of_groups, unique_ids

READER = 2  # part of the fingerprint: count up when the same bytes give other pairs
ENDINGS = (".tsv", ".txt")
NAMES = {
    "premise": ("premise", "sentence1", "sentence_a"),
    "hypothesis": ("hypothesis", "sentence2", "sentence_b"),
    "label": ("gold_label", "label", "entailment_judgment"),
}
IDS = ("pairid", "pair_id", "id", "index")
FIELDS = ("premise", "hypothesis")
KNOWN_LABELS = ("entailment", "neutral", "contradiction", "not_entailment")  # the order of the hub's data sets
UNLABELLED = ("", "-")  # what stands where there is no gold label
NO_LABEL, NO_WORD = "pairs left out, no gold label", "pairs left out, a text without a word"


class Pair(NamedTuple):
    """A line of the file."""

    id: str
    premise: str
    hypothesis: str
    label: str


class PairTask(TaskSet):
    """Labelled pairs; a wrong path or header is an InputError here, a wrong line when it is reached.

    ``language`` chooses the lines whose column ``language`` says so, for a file with several.
    """

    kind = "classes"
    fields = FIELDS

    def __init__(self, path: str | Path, language: str | None = None) -> None:
        self.path, self.language = user_path(path), language
        self.name = f"nli:{path}"
        self.files = files_by_split(self.path, ENDINGS)
        for file in self.files.values():
            counts: Counter[str] = Counter()
            if next(read_pairs(file, language, counts), None) is None:
                raise InputError(f"holds no labelled pair{because(counts)}", file)

    @cached_property
    def fingerprint(self) -> str:
        """Of the bytes of each split, the language and the rules for words."""
        splits = digest_splits(self.files)
        return fingerprint("pairs-task", reader=READER, rules=RULES, language=self.language, splits=splits)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits there is a file for."""
        return tuple(self.files)

    @property
    def columns(self) -> tuple[str, ...]:
        """Words only."""
        return (FORM,)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """The labels of all splits: those of NLI in their usual order, then others sorted."""
        return order_labels({p.label for f in self.files.values() for p in read_pairs(f, self.language, Counter())})

    def batches(self, split: str) -> Iterator[TaskBatch]:
        """The pairs of a split in order."""
        check_split(self.as_source(), split, self.name)
        counts: Counter[str] = Counter()
        return batches_of_pairs(read_pairs(self.files[split], self.language, counts), self.labels, counts)


def batches_of_pairs(
    pairs: Iterator[Pair],
    labels: tuple[str, ...],
    counts: Counter[str],
    words: Callable[[str], list[str]] = split_words,
) -> Iterator[TaskBatch]:
    """Pairs as batches, each id once; ``counts`` takes what ``pairs`` leaves out, and pairs without a word."""
    return batches_of_groups(unique_ids(_groups(pairs, counts, words), counts), labels, counts)


def _groups(pairs: Iterator[Pair], counts: Counter[str], words: Callable[[str], list[str]]) -> Iterator[Group]:
    for pair in pairs:
        texts = [[{FORM: s} for s in split_sentences(words(t))] for t in (pair.premise, pair.hypothesis)]
        if all(texts):
            yield Group(tuple(enumerate(texts)), (Item(pair.id, (0, 1), pair.label),))
        else:
            counts[NO_WORD] += 1


def order_labels(labels: set[str]) -> tuple[str, ...]:
    """The usual order of the labels of NLI, then the others sorted."""
    return (*(name for name in KNOWN_LABELS if name in labels), *sorted(labels.difference(KNOWN_LABELS)))


def read_pairs(path: Path, language: str | None, counts: Counter[str]) -> Iterator[Pair]:
    """The labelled pairs of a file; ``counts`` takes those left out.

    Raises InputError with the line for a line that has not as many columns as the header.
    """
    lines = read_lines(path)
    header = [name.strip().lower() for name in next(lines, (0, ""))[1].split("\t")]
    places = {field: _column(header, names, field, path) for field, names in NAMES.items()}
    name = next((header.index(n) for n in IDS if n in header), None)
    tongue = header.index("language") if "language" in header else None
    if language is not None and tongue is None:
        raise InputError("has no column 'language' to choose from; leave ?language= out", path)
    seen: set[str] = set()
    for number, line in lines:
        if not line.strip():
            continue
        fields = line.split("\t")
        if len(fields) != len(header):
            raise InputError(f"here are {len(fields)} columns, the header names {len(header)}", path, number)
        if tongue is not None:
            seen.add(fields[tongue])
            if language is None and len(seen) > 1:
                raise InputError(f"holds several languages; choose one as in ?language={min(seen)}", path, number)
            if language not in (None, fields[tongue]):
                continue
        premise, hypothesis, label = (fields[places[field]].strip() for field in NAMES)
        if label in UNLABELLED:
            counts[NO_LABEL] += 1
            continue
        yield Pair(str(number - 2) if name is None else fields[name], premise, hypothesis, label.lower())


def _column(header: list[str], names: tuple[str, ...], field: str, path: Path) -> int:
    for name in names:
        if name in header:
            return header.index(name)
    found = ", ".join(header)[:200]
    raise InputError(f"the header names no column for the {field} ({' or '.join(names)}); it has {found!r}", path, 1)
