"""The data of a transfer: the split behind each set, and every set in the source language and in the target.

source train, dev, test     the items of the source language
target train, dev, test     the same items derived, or those of another natural language
mixed FIELD                 test items with that one text in the target language, the others in the source's; with
                            ``mixed: random`` only those of which that text was drawn
dev LANGUAGE                dev items of a further language that take part in the choice of a model (``dev_also``)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

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
from synthlang.sources.base import because, size_of
from synthlang.tasks import TaskSet, choose, derive_task, split_for
from synthlang.tasks.batch import TaskBatch, join_batches

DEV_SHARE = 10  # without a dev split, one item in ten of the training items is held out
COMMON = 0.9  # of the items of the smaller set have to be in the other one, and as many labels of these have to agree
DEV, MIXED = "dev ", "mixed "  # what the names of sets of further languages, and of texts in two languages, start with
ONE_ONLY, OTHER_LABEL = "items of one language only", "items of another label in the other language"


@dataclass(frozen=True)
class Split:
    """Items of an opened task that are not read yet."""

    task: TaskSet
    name: str

    @property
    def fingerprint(self) -> str:
        return fingerprint("task-split", task=self.task.fingerprint, split=self.name)

    def items(self, limit: int | None = None) -> TaskBatch:
        """Return the first ``limit`` items (none: all).

        Raises:
            InputError: There is no item.
        """
        batches, count = [], 0
        for batch in self.task.batches(self.name):
            batches.append(batch)
            count += len(batch)
            if limit is not None and count >= limit:
                break
        if not count:
            counts = sum((Counter(batch.counts) for batch in batches), Counter[str]())
            raise InputError(f"the split {self.name} has no item{because(counts)}", self.task.name, code="empty")
        joined = join_batches(batches)
        return joined if limit is None or count <= limit else joined.take(np.arange(limit, dtype=np.int64))


Splits = Mapping[str, Split]
"""The sets of one language: train, dev and test, or some of them. No dev: it is the last tenth of train."""


class OpenedSplits(NamedTuple):
    """The sets of the source language, the target's own sets, and the own dev sets of further languages.

    The last are called by the names of their sets (``dev_also``).
    """

    source: Splits
    target: Splits | None
    further: Splits


def open_splits(config: TransferConfig, text: str | None, length: int) -> tuple[Task, OpenedSplits]:
    """Open the task and its sets. Every name is checked and little is read.

    Args:
        config: The settings.
        text: The spec of the pretraining text, which a task without ``train`` is read from.
        length: The number of tokens that the model reads at once.
    """
    opener = _Opener(config, text, length)
    target = config.target
    own = None if target is None else opener.splits(target.train, target.dev, target.test)
    found = opener.splits(opener.train, config.dev, config.test or opener.train)
    sets, further = [splits for splits in (found, own) if splits is not None], opener.further(config)
    for trained, tested in product([*sets, further], sets):
        _check_apart(trained, tested["test"], config)
    return opener.task, OpenedSplits(found, own, further)


def open_training(config: TransferConfig, text: str | None, length: int) -> tuple[Task, Splits]:
    """Open the task and the sets that a model is fine-tuned on in the source language and chosen by."""
    opener = _Opener(config, text, length)
    return opener.task, opener.splits(opener.train, config.dev, None)


class _Opener:
    """Opens sets of a task, each source once; ``train`` is the spec of those to train on."""

    def __init__(self, config: TransferConfig, text: str | None, length: int) -> None:
        self.task = task_of(config, length)
        self.task.main_metric()  # an unknown one is an error
        train = config.train or text
        if train is None:
            reason = f"the task {config.task} needs labelled sentences, and the text of the model is not known"
            raise InputError(reason, keys="train", hint="name the source of the sentences", code="missing")
        self.train = train
        self._opened: dict[str, TaskSet] = {}

    def split(self, spec: str, name: str) -> Split:
        source, chosen = choose(spec)
        if source not in self._opened:
            self._opened[source] = self.task.open(source)
        return Split(self._opened[source], split_for(self._opened[source], name, chosen, spec))

    def splits(self, train: str | None, dev: str | None, test: str | None) -> Splits:
        found: dict[str, Split] = {}
        for name, spec in (("train", train), ("dev", dev), ("test", test)):
            if spec is not None:
                found[name] = self.split(spec, name)
            elif name == "dev" and "train" in found:
                trained = found["train"]
                if "dev" in trained.task.splits and trained.name != "dev":
                    found["dev"] = Split(trained.task, "dev")
        return found

    def further(self, config: TransferConfig) -> Splits:
        own = [(also.language, also.dev) for also in config.dev_also if also.dev is not None]
        return {f"{DEV}{language}": self.split(spec, "dev") for language, spec in own}


def _check_apart(trained: Splits, test: Split, config: TransferConfig) -> None:
    """Raise InputError if a test set, of either language, is also trained on or chosen by."""
    for name, split in trained.items():
        if name != "test" and split.fingerprint == test.fingerprint:
            where = f"{split.task.name}, {split.name}"
            if config.test is None and name == "train" and test is trained["test"]:
                hint = "name one; SOURCE#dev chooses a split"
                raise InputError(f"there is no test set beside {where}", keys="test", hint=hint, code="missing")
            reason = f"the {name} and the test set of the task {config.task} are the same items ({where})"
            hint = f"name another source in {name} or test; SOURCE#dev chooses a split"
            raise InputError(reason, keys="test", hint=hint, code="conflict")


def check_columns(language: Language, splits: Splits) -> None:
    """Raise InputError if the language reads a column that a set has not."""
    for split in splits.values():
        missing = [column for column in language.requires if column not in split.task.columns]
        if missing:
            reason = (
                f"the language {language.name} needs the column {missing[0]!r}, which {split.task.name} does not have"
            )
            raise InputError(reason, keys="language", hint="let a parser add it (parser: spacy:NAME)", code="missing")


def parsed(splits: Splits, parser: str | None, report: Report) -> Splits:
    """Return the same sets with trees from a parser, if there is one."""
    if parser is None:
        return splits
    from synthlang.parsing import ParsedSource, open_engine
    from synthlang.tasks.derive import ParsedTask

    engine = open_engine(parser)

    def with_trees(task: TaskSet) -> TaskSet:
        def count(part: str, amount: int) -> None:
            report(f"parse {task.name}", amount, size_of(task.as_source(), part) or amount, part)

        return ParsedTask(task, lambda source: ParsedSource(source, engine, report=count))

    tasks = {id(split.task): split.task for split in splits.values()}
    done = {key: with_trees(task) for key, task in tasks.items()}
    return {name: replace(split, task=done[id(split.task)]) for name, split in splits.items()}


@dataclass(frozen=True)
class ItemSet:
    """Items of one set and how each text of an item is read; ``drops``: reason → how many were left out or changed.

    What a reader left out it counts for all that was read: also of items beyond ``train_items`` and the like.
    """

    batch: TaskBatch
    readers: tuple[Reader, ...]
    drops: Mapping[str, int]


@dataclass(frozen=True)
class TransferData:
    """Every set by its name (see above); ``language`` is the target's, bound to what it needs."""

    task: Task
    sets: Mapping[str, ItemSet]
    language: Language
    fingerprints: Mapping[str, object]

    @property
    def has_one_dev(self) -> bool:
        """Whether the target's own dev set is the source's: both are one language."""
        source, target = (self.fingerprints.get(role) for role in ("source", "target"))
        if not isinstance(source, Mapping) or not isinstance(target, Mapping):
            return False
        return "dev" in source and source["dev"] == target.get("dev")

    @property
    def has_target_train(self) -> bool:
        """Whether a model can be trained on the target language, for SUP."""
        return "target train" in self.sets


def load_data(config: TransferConfig, pretrained: Pretrained, report: Report = silent) -> TransferData:
    """Read every set, and derive those of the target language."""
    task, (splits, own, also) = open_splits(config, pretrained.text, pretrained.length)
    splits = parsed(splits, config.parser, report)
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
        # the first items of one set need not be the first of the other
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
    prints: dict[str, object] = {"source": _fingerprints(splits), "language": language.fingerprint}
    prints |= {name: of_set for name, (_, of_set) in further.items()}
    if own is not None:
        prints["target"] = _fingerprints(own)
    return TransferData(task, sets, language, prints)


def _of_target(
    own: Splits | None, sets: Mapping[str, ItemSet], source: Reader, target: Reader, config: TransferConfig
) -> dict[str, ItemSet]:
    """Return the target's ``own`` sets, or the source's ``sets`` derived.

    Sets that only SUP needs stay out without it.
    """
    names = ("train", "dev", "test") if config.sup else ("dev", "test")
    if own is not None:
        found = _natural("target", own, target, config)
        return {f"target {name}": found[f"target {name}"] for name in names if f"target {name}" in found}
    given = {name: sets[f"source {name}"].batch for name in names}
    return {f"target {name}": _derived(of, target.language, source, target, None) for name, of in given.items()}


def _drawn(mixed: Mapping[str, ItemSet]) -> dict[str, ItemSet]:
    """Each item in one of the sets, drawn by its id, so that it is the same for all models; no set is empty."""
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
    """Return the dev sets of further languages, each with its fingerprint.

    A set is one of ``own`` or derived from the source's ``dev``, and is read by the model that reads the target. Own
    sets
    that are ``known`` as the source's or the target's are left out.
    """
    found = {}
    for also in config.dev_also:
        name = f"{DEV}{also.language}"
        if name in own and own[name].fingerprint in known:
            continue
        try:
            reader = pretrained.reader_of(also.language, natural=name in own)
        except InputError as error:
            lacks = "" if name in own else f"{also.language} has no dev set of its own (dev: SOURCE), and "
            reason = f"{lacks}{error.reason}"
            raise InputError(reason, error.path, keys="dev_also", hint=error.hint, code=error.code) from error
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
    """Load the sets that a model is fine-tuned on in the source language and chosen by.

    Nothing is derived or tested.
    """
    task, splits = open_training(config, pretrained.text, pretrained.length)
    splits = parsed(splits, config.parser, report)
    sets = _natural("source", splits, pretrained.source, config)
    _check_left(sets, config)
    return TransferData(task, sets, pretrained.target.language, {"source": _fingerprints(splits)})


def _fingerprints(splits: Splits) -> dict[str, str]:
    return {name: split.fingerprint for name, split in splits.items()}


def _check_left(sets: Mapping[str, ItemSet], config: TransferConfig) -> None:
    for name, items in sets.items():
        if not len(items.batch):
            reason = f"no item of the task {config.task} is left in {name}{because(items.drops)}"
            raise InputError(reason, code="empty")


def _bound(language: Language, pretrained: Pretrained, task: TaskSet) -> Language:
    """Bind the language to the word counts that it needs: those of the pretraining text, or of the training items."""
    if not language.needs_counts:
        return language
    return bind_language(language, task.as_source() if pretrained.text is None else open_source(pretrained.text))


def _natural(role: Role, splits: Splits, reader: Reader, config: TransferConfig) -> dict[str, ItemSet]:
    """Return the sets of one language as they are.

    Items of dev are held out of train where it has no split of its own.
    """
    limits = {"train": config.train_items, "dev": config.dev_items, "test": config.test_items}
    items = {name: split.items(limits[name]) for name, split in splits.items()}
    if "train" in items and "dev" not in items:
        every = np.arange(len(items["train"]), dtype=np.int64)
        count = len(every) - max(1, len(every) // DEV_SHARE)
        if not count:
            reason = "one item is too few to train on and to choose by"
            raise InputError(reason, splits["train"].task.name, code="range")
        # what the reader left out of all of them is told of the training items
        items["dev"] = replace(items["train"].take(every[count:]), counts={})
        items["train"] = items["train"].take(every[:count])
    return {
        f"{role} {name}": ItemSet(items[name], _readers(reader, reader, items[name], None), items[name].counts)
        for name in limits
        if name in items
    }


def _derived(batch: TaskBatch, language: Language, source: Reader, target: Reader, field: int | None) -> ItemSet:
    """Return the items in the target language, or with only the text ``field`` in it."""
    derived, counts = derive_task(batch, language, None if field is None else (field,))
    return ItemSet(derived, _readers(source, target, batch, field), {**batch.counts, **counts})


def _readers(source: Reader, target: Reader, batch: TaskBatch, field: int | None) -> tuple[Reader, ...]:
    """Of each text of an item: the target's for ``field`` (None: for all)."""
    return tuple(target if field in (None, number) else source for number in range(batch.texts.shape[1]))


def mixed_batches(source: TaskBatch, target: TaskBatch, limit: int | None = None) -> list[TaskBatch]:
    """For each field the items with that text from the target's set and the others from the source's.

    The two test sets are translations: items are the same where their ids are, those of the files or, in files without
    ids, the numbers of the lines. So XNLI, XQuAD and MLQA are put together, whose items in one language are some of
    those in another. The first ``limit`` items (none: all) that both sets have, in the order of the source's; answers
    are those of the text that they are in. InputError where the sets are no translations: ids or labels differ.
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
    """Return the rows of each item that both sets have with one label, and the number of items left out by reason."""
    place = {name: row for row, name in enumerate(target.ids)}
    shared = [(row, place[name]) for row, name in enumerate(source.ids) if name in place]
    smaller, unlike = min(len(source), len(target)), "the test sets of the two languages are no translations"
    if len(shared) < COMMON * smaller:
        reason = f"{unlike} of each other: {len(shared):,} of {smaller:,} items have an id that both sets have"
        raise InputError(reason, keys="mixed", code="conflict")
    labels = [None if one.label is None else one.label.values() for one in (source, target)]
    kept = shared
    if labels[0] is not None and labels[1] is not None:
        kept = [(i, j) for i, j in shared if labels[0][i] == labels[1][j]]
    other = len(shared) - len(kept)
    if len(kept) < COMMON * len(shared):
        reason = f"{unlike} of each other: {other:,} of {len(shared):,} items with the same id have different labels"
        raise InputError(reason, keys="mixed", code="conflict")
    counts = {ONE_ONLY: len(source) + len(target) - 2 * len(shared), OTHER_LABEL: other}
    return kept, {why: count for why, count in counts.items() if count}


def _bare(batch: TaskBatch, other: Corpus) -> TaskBatch:
    """Without labels and extra texts, and without the columns that ``other`` lacks: a parser reads one set only."""
    columns = {name: column for name, column in batch.corpus.columns.items() if name in other.columns}
    return replace(batch, corpus=replace(batch.corpus, columns=columns), label=None, extra={}, counts={})
