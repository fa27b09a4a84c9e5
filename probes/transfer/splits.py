"""The data of a transfer: all sets of items in the source and the target language.

source train, dev, test   items in the source language
target train, dev, test   the same items derived, or items of a natural target language
mixed FIELD               test items with the text FIELD in the target language and the other text in the source
                          language (with ``mixed: random`` only the items for which FIELD was drawn)
dev LANGUAGE              dev items of an additional language for model selection (``dev_also``)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from probes.models.pretrained import Pretrained, Reader, Role
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.base import Task, task_of
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, bind_language
from synthlang.progress import Report, silent
from synthlang.rng import key_of, uniform_of_keys
from synthlang.sources import open_source
from synthlang.sources.base import MORPHOLOGY, because, lacks_morphology, size_of, with_columns
from synthlang.tasks import TaskSet, choose, derive_task, split_for
from synthlang.tasks.batch import TaskBatch, join_batches
from synthlang.tasks.derive import DerivedTask
from synthlang.wording import plural

DEV_SHARE = 10  # without a dev split, one in ten training items is held out
COMMON = 0.9  # minimum share of ids of the smaller set that are in both sets, and minimum share of equal labels there
DEV, MIXED = "dev ", "mixed "  # prefixes of the names of sets
ONE_ONLY, OTHER_LABEL = "items of one language only", "items of another label in the other language"


@dataclass(frozen=True)
class Split:
    """A split of an opened task set. Its items are read when they are needed.

    Attributes:
        task: The task set.
        name: The name of the split, such as train.
        known: Fingerprint of the same items without columns that only a derived language reads, or None.
    """

    task: TaskSet
    name: str
    known: str | None = None

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the split, which covers the content of the task set and the name of the split."""
        return self.known or fingerprint("task-split", task=self.task.fingerprint, split=self.name)

    def items(self, limit: int | None = None) -> TaskBatch:
        """Return the first ``limit`` items (default: all).

        Raises:
            InputError: The items cannot be read, or there are none.
        """
        batches, count = [], 0
        for batch in self.task.batches(self.name):
            batches.append(batch)
            count += len(batch)
            if limit is not None and count >= limit:
                break
        if not count:
            counts = sum((Counter(batch.counts) for batch in batches), Counter[str]())
            reason = f"the split {self.name} has no items{because(counts)}"
            hint = "use a source with items in this split"
            raise InputError(reason, self.task.name, hint=hint, code="empty")
        joined = join_batches(batches)
        return joined if limit is None or count <= limit else joined.take(np.arange(limit, dtype=np.int64))


Splits = Mapping[str, Split]
"""The sets of one language by name: train, dev and test. If dev is missing, the last tenth of train replaces it."""


class OpenedSplits(NamedTuple):
    """The sets of a transfer that are read from data. Derived sets are not among them.

    Attributes:
        source: The sets of the source language.
        target: The sets of a natural target language, or None.
        further: The dev sets of additional languages (``dev_also``), by the name of the set.
    """

    source: Splits
    target: Splits | None
    further: Splits


def open_splits(config: TransferConfig, text: str | None, length: int) -> tuple[Task, OpenedSplits]:
    """Open the task and its sets, and check that no test set is also a training or dev set.

    Items are not read.

    Args:
        config: The settings.
        text: The pretraining text, which replaces a missing ``train``.
        length: Number of tokens that the model reads at once.

    Raises:
        InputError: A source cannot be opened or has no such split, ``train`` is missing although ``text`` is None, or a
            test set is also a training or dev set. The error is also raised if the config has an unknown metric or
            unknown rules of scoring, or a length above ``length``.
    """
    opener = _Opener(config, text, length)
    target = config.target
    own = None if target is None else opener.splits(target.train, target.dev, target.test, "target")
    found = opener.splits(opener.train, config.dev, config.test or opener.train)
    sets = {**found, **{f"target.{name}": split for name, split in (own or {}).items()}}
    further = {}
    for number, also in enumerate(config.dev_also):
        if also.dev is not None:
            split = opener.split(also.dev, "dev", "dev_also", str(number), "dev")
            further[f"{DEV}{also.language}"] = sets[f"dev_also.{number}.dev"] = split
    _check_apart(sets, config)
    return opener.task, OpenedSplits(found, own, further)


def open_training(config: TransferConfig, text: str | None, length: int) -> tuple[Task, Splits]:
    """Open the task, and the training and dev sets of the source language.

    `open_splits` explains the arguments. If no dev set is named and the training source has none, the result has only
    ``train``.

    Raises:
        InputError: A source cannot be opened or has no such split, or ``train`` is missing although ``text`` is None.
            The error is also raised if the config has an unknown metric or unknown rules of scoring, or a length above
            ``length``.
    """
    opener = _Opener(config, text, length)
    return opener.task, opener.splits(opener.train, config.dev, None)


class _Opener:
    """Opener of the item sets of a transfer, which opens each source once."""

    def __init__(self, config: TransferConfig, text: str | None, length: int) -> None:
        self.task = task_of(config, length)
        self.task.main_metric()  # raises InputError for an unknown metric
        train = config.train or text
        if train is None:
            reason = f"is required for the task {config.task}, because the pretraining text of the model is not known"
            raise InputError(reason, keys="train", hint="set this key to labelled training items", code="missing")
        self.train = train
        self._opened: dict[str, TaskSet] = {}

    def split(self, spec: str, name: str, *keys: str, train: str | None = None) -> Split:
        """Open a split of a source. ``keys`` are its keys in the config, and ``train`` is the training source."""
        source, chosen = choose(spec)
        if source not in self._opened:
            self._opened[source] = self.task.open(source)
        try:
            return Split(self._opened[source], split_for(self._opened[source], name, chosen, spec))
        except InputError as error:
            if name == "test" and train is not None and choose(train)[0] == source:
                error.hint = "set this key to test items, as in SOURCE#test"
            raise error.inside(*keys) from error

    def splits(self, train: str | None, dev: str | None, test: str | None, *keys: str) -> Splits:
        found: dict[str, Split] = {}
        for name, spec in (("train", train), ("dev", dev), ("test", test)):
            if spec is not None:
                found[name] = self.split(spec, name, *keys, name, train=train)
            elif name == "dev" and "train" in found:
                trained = found["train"]
                if "dev" in trained.task.splits and trained.name != "dev":
                    found["dev"] = Split(trained.task, "dev")
        return found


def _check_apart(sets: Splits, config: TransferConfig) -> None:
    """Raise InputError if a test set is also a training or dev set. ``sets`` has the sets by their keys."""
    tests = [key for key in sets if key.endswith("test")]
    for test, (key, split) in product(tests, sets.items()):
        if key in tests or split.fingerprint != sets[test].fingerprint:
            continue
        where, is_default = f"{split.task.name}, {split.name}", test == "test" and config.test is None
        if is_default and key == "train":
            reason = f"is missing, so the training items ({where}) would also be the test items"
            hint = "set this key to another source, or to another split, as in SOURCE#test"
            raise InputError(reason, keys="test", hint=hint, code="missing")
        place, other = (key, test) if is_default else (test, key)
        reason, hint = f"has the same items as {other} ({where})", "change one of the two to another source or split"
        raise InputError(reason, keys=place, hint=hint, code="conflict")


def check_columns(language: Language, splits: Splits, key: str = "language") -> None:
    """Raise InputError if one of the sets lacks a column that the transforms of the language need, and cannot add it.

    ``key`` is the key of the language in the config.
    """
    for split in splits.values():
        columns = with_columns(split.task, language.requires).columns
        missing = [column for column in language.requires if column not in columns]
        if missing:
            reason = (
                f"the language {language.name} needs the column {missing[0]!r}, which {split.task.name} does not have"
            )
            pipeline = "a pipeline with a lemmatizer" if missing[0] in MORPHOLOGY else "a pipeline with a parser"
            hint = "use items with this column"
            if split.task.tags != "deprel":  # a parser would replace the trees that are labels
                hint = f"set parser to spacy:NAME, {pipeline}, or {hint}"
            raise InputError(reason, keys=key, hint=hint, code="missing")


def with_morphology(splits: Splits, languages: Iterable[Language]) -> Splits:
    """Add the features and lemmas that the languages read, if the sources have them. The items stay the same.

    Raises:
        InputError: A file of a source cannot be read.
    """
    names = [name for language in languages for name in language.requires]
    read = _with_tasks(splits, lambda task: with_columns(task, names))
    kept = ((name, split, read[name]) for name, split in splits.items())
    return {
        name: split if new.task is split.task else replace(new, known=split.fingerprint) for name, split, new in kept
    }


def _with_tasks(splits: Splits, change: Callable[[TaskSet], TaskSet]) -> Splits:
    """Return the splits with changed tasks. A task of several splits is changed once."""
    tasks = {id(split.task): split.task for split in splits.values()}
    changed = {key: change(task) for key, task in tasks.items()}
    return {name: Split(changed[id(split.task)], split.name) for name, split in splits.items()}


def annotated(splits: Splits, parser: str | None, languages: Sequence[Language], report: Report) -> Splits:
    """Add the columns that the languages read: from the sources, and from the parser if it is not None.

    Args:
        splits: The sets.
        parser: The parser (``spacy:NAME`` or ``stanza:NAME``), or None.
        languages: The languages in which items are derived.
        report: Receives the progress of the parser.

    Raises:
        InputError: A file of a source cannot be read, or the parser cannot be opened (see `open_engine`), as without a
            lemmatizer that a language needs. Parsing itself starts when items are read.
    """
    splits = with_morphology(splits, languages)
    if parser is None:
        return splits
    from synthlang.parsing import ParsedSource, open_engine
    from synthlang.tasks.derive import ParsedTask

    names = [name for language in languages for name in language.requires]

    def with_trees(task: TaskSet) -> TaskSet:
        def count(part: str, amount: int) -> None:
            report(f"parse {task.name}", amount, size_of(task.as_source(), part) or amount, part)

        engine = open_engine(parser, morphology=lacks_morphology(task, names))
        return ParsedTask(task, lambda source: ParsedSource(source, engine, report=count))

    return _with_tasks(splits, with_trees)


def _derived_languages(config: TransferConfig, pretrained: Pretrained) -> list[Language]:
    """Return the languages in which items of the source language are derived."""
    found = [] if config.train_language is None else [config.train_language]
    if not pretrained.natural:
        found.append(pretrained.target.language)
    for also in config.dev_also:
        if also.dev is None:
            with suppress(InputError):  # raised where the set is read
                found.append(pretrained.reader_of(also.language, natural=False).language)
    return found


def trained_in(config: TransferConfig, pretrained: Pretrained, splits: Splits) -> Splits:
    """Derive the training and dev sets in ``config.train_language``, if it is given. The test set does not change.

    Raises:
        InputError: A set lacks a column that the language needs, or the language cannot be bound to the word counts of
            a text (see `bind_language`).
    """
    if config.train_language is None:
        return splits
    own = {name: split for name, split in splits.items() if name != "test"}
    language = _bound(config.train_language, pretrained, splits["train"].task)
    check_columns(language, own, "train_language")
    return {**splits, **_with_tasks(own, lambda task: DerivedTask(task, language))}


@dataclass(frozen=True)
class ItemSet:
    """The items of one set, with a reader for each text of an item.

    Attributes:
        batch: The items.
        readers: The reader of each text of an item.
        drops: Number of items left out or changed, by reason. Items beyond limits like ``train_items`` may be included.
    """

    batch: TaskBatch
    readers: tuple[Reader, ...]
    drops: Mapping[str, int]


@dataclass(frozen=True)
class TransferData:
    """All sets of items of a transfer, read or derived.

    Attributes:
        task: The downstream task.
        sets: The sets by name, as listed at the top of this file.
        fingerprints: The fingerprints of all data that the sets depend on, for the fingerprint of the transfer.
    """

    task: Task
    sets: Mapping[str, ItemSet]
    fingerprints: Mapping[str, Any]

    @property
    def has_one_dev(self) -> bool:
        """True if source and target have the same dev set, because they are one language."""
        source, target = (self.fingerprints.get(role, {}).get("dev") for role in ("source", "target"))
        return source is not None and source == target

    @property
    def has_target_train(self) -> bool:
        """True if there is a training set in the target language, which SUP needs."""
        return "target train" in self.sets


def load_data(config: TransferConfig, pretrained: Pretrained, report: Report = silent) -> TransferData:
    """Read all sets, and derive the sets of a derived target language.

    Raises:
        InputError: The sets cannot be opened (see `open_splits`), or a set cannot be read, has too few items or lacks a
            column that a language needs. The error is also raised if the parser cannot be used (see `annotated`), a
            language cannot be derived (see `bind_language` and `derive_task`), the model lacks a language of
            ``dev_also``, or the test sets of ``mixed`` are not translations of each other.
    """
    task, (splits, own, also) = open_splits(config, pretrained.text, pretrained.length)
    languages = _derived_languages(config, pretrained)
    splits = trained_in(config, pretrained, annotated(splits, config.parser, languages, report))
    language = pretrained.target.language
    if not pretrained.natural:
        language = _bound(language, pretrained, splits["train"].task)
        check_columns(language, splits)
    source, target = pretrained.source, replace(pretrained.target, language=language)
    sets = _natural("source", splits, source, config)
    fields = list(enumerate(splits["train"].task.fields))
    sets |= _of_target(own, sets, source, target, config)
    mixed: dict[str, ItemSet] = {}
    if config.mixed and own is not None:
        # the limit applies to shared items, because the two sets may have different orders
        batches = mixed_batches(splits["test"].items(), own["test"].items(), config.test_items)
        for (number, field), batch in zip(fields, batches, strict=True):
            mixed[f"{MIXED}{field}"] = ItemSet(batch, _readers(source, target, batch, number), batch.counts)
    elif config.mixed:
        for number, field in fields:
            mixed[f"{MIXED}{field}"] = _derived(sets["source test"].batch, language, source, target, number)
    sets |= _drawn(mixed) if config.mixed == "random" else mixed
    known = {one["dev"].fingerprint for one in (splits, own or {}) if "dev" in one}
    further = _further(config, pretrained, also, known, splits["train"].task, sets["source dev"])
    sets |= {name: items for name, (items, _) in further.items()}
    _check_left(sets, config)
    prints: dict[str, Any] = {"source": _fingerprints(splits), "language": language.fingerprint}
    prints |= {name: of_set for name, (_, of_set) in further.items()}
    if own is not None:
        prints["target"] = _fingerprints(own)
    return TransferData(task, sets, prints)


def _of_target(
    own: Splits | None, sets: Mapping[str, ItemSet], source: Reader, target: Reader, config: TransferConfig
) -> dict[str, ItemSet]:
    """Return the ``own`` sets of a natural target language, or derive them from ``sets``.

    The training set is left out if ``config.sup`` is off.
    """
    names = ("train", "dev", "test") if config.sup else ("dev", "test")
    if own is not None:
        found = _natural("target", own, target, config)
        return {f"target {name}": found[f"target {name}"] for name in names if f"target {name}" in found}
    given = {name: sets[f"source {name}"].batch for name in names}
    return {f"target {name}": _derived(of, target.language, source, target, None) for name, of in given.items()}


def _drawn(mixed: Mapping[str, ItemSet]) -> dict[str, ItemSet]:
    """Keep each item in one of the sets. The set depends only on the id of the item."""
    found = {}
    for number, (name, items) in enumerate(mixed.items()):
        draws = uniform_of_keys([key_of("mixed", item) for item in items.batch.ids])
        chosen = np.flatnonzero((draws * len(mixed)).astype(np.int64) == number).astype(np.int64)
        if len(chosen):
            found[name] = replace(items, batch=items.batch.take(chosen))
    return found


def _further(
    config: TransferConfig, pretrained: Pretrained, own: Splits, known: Set[str], train: TaskSet, dev: ItemSet
) -> dict[str, tuple[ItemSet, str]]:
    """Return the dev sets of the languages in ``dev_also`` with their fingerprints, by name.

    Sets read from data are in ``own``. They are left out if their fingerprint is ``known``, because they count once.
    For the other languages, the dev set ``dev`` of the source language is derived.
    """
    found = {}
    for number, also in enumerate(config.dev_also):
        name = f"{DEV}{also.language}"
        if name in own and own[name].fingerprint in known:
            continue
        try:
            remedy = "give a natural language the key dev, with labelled items of its own"
            reader = pretrained.reader_of(also.language, natural=name in own, remedy=remedy)
        except InputError as error:
            raise error.inside("dev_also", str(number)) from error
        if name in own:
            batch = own[name].items(config.dev_items)
            items = ItemSet(batch, _readers(reader, reader, batch, None), batch.counts)
            found[name] = items, own[name].fingerprint
        else:
            language = _bound(reader.language, pretrained, train)
            items = _derived(dev.batch, language, pretrained.source, replace(reader, language=language), None)
            found[name] = items, language.fingerprint
    return found


def load_training(config: TransferConfig, pretrained: Pretrained, report: Report = silent) -> TransferData:
    """Load the training and dev sets of the source language only.

    Raises:
        InputError: The sets cannot be opened (see `open_training`), the parser cannot be used (see `annotated`), a set
            cannot be read or has too few items, or the sets cannot be derived (see `trained_in`).
    """
    task, splits = open_training(config, pretrained.text, pretrained.length)
    languages = [] if config.train_language is None else [config.train_language]
    splits = trained_in(config, pretrained, annotated(splits, config.parser, languages, report))
    sets = _natural("source", splits, pretrained.source, config)
    _check_left(sets, config)
    return TransferData(task, sets, {"source": _fingerprints(splits)})


def _fingerprints(splits: Splits) -> dict[str, str]:
    return {name: split.fingerprint for name, split in splits.items()}


def _check_left(sets: Mapping[str, ItemSet], config: TransferConfig) -> None:
    for name, items in sets.items():
        if not len(items.batch):
            reason = f"no item of the task {config.task} is left{because(items.drops)}"
            raise InputError(reason, name, hint="use more or other items for this set", code="empty")


def _bound(language: Language, pretrained: Pretrained, task: TaskSet) -> Language:
    """Bind a language to the word counts of the pretraining text, or of the training items if the text is unknown.

    A language that needs no counts is returned unchanged.
    """
    if not language.needs_counts:
        return language
    if pretrained.text is None:
        return bind_language(language, task.as_source(), name=task.name)
    return bind_language(language, open_source(pretrained.text), name=pretrained.text)


def _natural(role: Role, splits: Splits, reader: Reader, config: TransferConfig) -> dict[str, ItemSet]:
    """Read the sets of one language. If there is no dev set, a part of the training set is held out for it."""
    limits = {"train": config.train_items, "dev": config.dev_items, "test": config.test_items}
    items = {name: split.items(limits[name]) for name, split in splits.items()}
    if "train" in items and "dev" not in items:
        every = np.arange(len(items["train"]), dtype=np.int64)
        count = len(every) - max(1, len(every) // DEV_SHARE)
        if not count:
            reason = "only one item is read, but training and model selection need at least two"
            hint = "give more items, or a dev set"
            if limits["train"] == 1:
                hint = "increase train_items, or give a dev set"
            raise InputError(reason, splits["train"].task.name, hint=hint, code="range")
        # counts of left-out items stay with the training items
        items["dev"] = replace(items["train"].take(every[count:]), counts={})
        items["train"] = items["train"].take(every[:count])
    return {
        f"{role} {name}": ItemSet(items[name], _readers(reader, reader, items[name], None), items[name].counts)
        for name in limits
        if name in items
    }


def _derived(batch: TaskBatch, language: Language, source: Reader, target: Reader, field: int | None) -> ItemSet:
    """Return the items with all texts, or only the text ``field``, in the target language."""
    derived, counts = derive_task(batch, language, None if field is None else (field,))
    return ItemSet(derived, _readers(source, target, batch, field), {**batch.counts, **counts})


def _readers(source: Reader, target: Reader, batch: TaskBatch, field: int | None) -> tuple[Reader, ...]:
    """Return the reader of each text: the target reader for ``field`` (None: all), else the source."""
    return tuple(target if field in (None, number) else source for number in range(batch.texts.shape[1]))


def mixed_batches(source: TaskBatch, target: TaskBatch, limit: int | None = None) -> list[TaskBatch]:
    """Return, for each field, the items with this field from the target set and the other field from the source set.

    The two test sets must be translations of each other. Items are matched by id, or by line number in files without
    ids. Either set may lack some items of the other, as in XNLI, XQuAD and MLQA. Answers follow the text that contains
    them.

    Args:
        source: The test set of the source language.
        target: The test set of the target language.
        limit: Maximum number of shared items, in the order of the source set (default: all).

    Raises:
        InputError: Fewer than the share COMMON of the items of the smaller set have an id in both sets, or fewer than
            this share of the items with a common id have equal labels.
    """
    pairs, counts = _same_items(source, target)
    rows, others = np.array(pairs[:limit], np.int64).reshape(-1, 2).T
    order = np.argsort(others)
    items, translations = source.take(rows), target.take(others[order])
    both = join_batches([_bare(items, target.corpus), _bare(translations, source.corpus)])
    item_of_row = np.concatenate([np.arange(len(rows)), order])
    text_of_answer = np.searchsorted(both.word_offsets, both.answers.start, side="right") - 1
    found = []
    for field in range(both.texts.shape[1]):
        texts = both.texts[: len(rows)].copy()
        texts[order, field] = both.texts[len(rows) :, field]
        item = item_of_row[both.answers.item]
        mine = np.flatnonzero((texts[item] == text_of_answer[:, None]).any(axis=1))
        mine = mine[np.argsort(item[mine], kind="stable")]
        answers = replace(both.answers.take(mine), item=item[mine])
        mixed = replace(both, texts=texts, ids=items.ids, label=items.label, extra=items.extra)
        found.append(replace(mixed, answers=answers, counts=counts))
    return found


def _same_items(source: TaskBatch, target: TaskBatch) -> tuple[list[tuple[int, int]], dict[str, int]]:
    """Match the items of both sets by id and label, and count the other items by reason."""
    place = {name: row for row, name in enumerate(target.ids)}
    shared = [(row, place[name]) for row, name in enumerate(source.ids) if name in place]
    smaller, unlike = min(len(source), len(target)), "needs test sets that are translations of each other"
    hint = "set this key to false, or use parallel test sets"
    if len(shared) < COMMON * smaller:
        reason = (
            f"{unlike}, but the two sets have only {plural(len(shared), 'common id')} for {plural(smaller, 'item')}"
        )
        raise InputError(reason, keys="mixed", hint=hint, code="conflict")
    labels = [None if one.label is None else one.label.values() for one in (source, target)]
    kept = shared
    if labels[0] is not None and labels[1] is not None:
        kept = [(i, j) for i, j in shared if labels[0][i] == labels[1][j]]
    other = len(shared) - len(kept)
    if len(kept) < COMMON * len(shared):
        reason = f"{unlike}, but the labels of {other:,} of {plural(len(shared), 'common id')} differ"
        raise InputError(reason, keys="mixed", hint=hint, code="conflict")
    counts = {ONE_ONLY: len(source) + len(target) - 2 * len(shared), OTHER_LABEL: other}
    return kept, {why: count for why, count in counts.items() if count}


def _bare(batch: TaskBatch, other: Corpus) -> TaskBatch:
    """Return the items without labels, extra texts and counts, and without columns that ``other`` lacks."""
    columns = {name: column for name, column in batch.corpus.columns.items() if name in other.columns}
    return replace(batch, corpus=replace(batch.corpus, columns=columns), label=None, extra={}, counts={})
