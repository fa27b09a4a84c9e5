"""Where the sets of a transfer come from: tasks by their specs, and which split of each."""

from __future__ import annotations

from dataclasses import dataclass, replace

from probes.transfer.config import TransferConfig
from probes.transfer.tasks import Task, main_metric, task_of
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.progress import Report
from synthlang.sources.base import size_of
from synthlang.tasks import TaskSet, choose, split_for


@dataclass(frozen=True)
class Place:
    """Where the items of a set come from: a split of an opened task."""

    task: TaskSet
    split: str

    @property
    def fingerprint(self) -> str:
        """Of the items."""
        return fingerprint("task-split", task=self.task.fingerprint, split=self.split)


@dataclass(frozen=True)
class Places:
    """Where the sets of one language come from; no ``dev``: the last tenth of ``train``. Nothing is read yet.

    No ``test``: a model is fine-tuned, and nothing is tested.
    """

    train: Place | None
    dev: Place | None
    test: Place | None

    @property
    def fingerprints(self) -> dict[str, str]:
        """Of the items of each set."""
        held = {"train": self.train, "dev": self.dev, "test": self.test}
        return {name: place.fingerprint for name, place in held.items() if place is not None}


def open_places(config: TransferConfig, text: str | None, length: int) -> tuple[Task, Places, Places | None]:
    """The task and where its sets come from, the target's own ones too; every name is checked and little is read.

    text     the spec of the pretraining text, which a task without ``train`` is read from
    length   how many tokens the model reads at once
    """
    opener, train = _opener(config, text, length)
    target = config.target
    own = None if target is None else opener.places(target.train, target.dev, target.test)
    found = opener.places(train, config.dev, config.test or train)
    for mine in (found,) if own is None else (found, own):
        for other in (found,) if own is None else (found, own):
            assert other.test is not None, "it was named"
            _check_apart(mine, other.test, config)
    return opener.task, found, own


def open_training(config: TransferConfig, text: str | None, length: int) -> tuple[Task, Places]:
    """The task and where the sets come from that a model is fine-tuned on in the source language, and chosen by."""
    opener, train = _opener(config, text, length)
    return opener.task, opener.places(train, config.dev, None)


def _opener(config: TransferConfig, text: str | None, length: int) -> tuple[_Opener, str]:
    """What opens the task's sets, and the spec of those to train on."""
    task = task_of(config)
    main_metric(task)  # an unknown one is an error
    if config.length > length:
        raise InputError(f"length {config.length} is longer than the {length} tokens that the model reads")
    train = config.train or text
    if train is None:
        raise InputError(f"the task {config.task} needs labelled sentences: name them with --train")
    return _Opener(task), train


class _Opener:
    """Opens sets of a task, each source once."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self._opened: dict[str, TaskSet] = {}

    def place(self, spec: str, split: str) -> Place:
        name, chosen = choose(spec)
        if name not in self._opened:
            self._opened[name] = self.task.open(name)
        return Place(self._opened[name], split_for(self._opened[name], split, chosen, spec))

    def places(self, train: str | None, dev: str | None, test: str | None) -> Places:
        first = None if train is None else self.place(train, "train")
        held: Place | None
        if dev is not None:
            held = self.place(dev, "dev")
        else:
            held = Place(first.task, "dev") if first and "dev" in first.task.splits and first.split != "dev" else None
        return Places(first, held, None if test is None else self.place(test, "test"))


def _check_apart(places: Places, test: Place, config: TransferConfig) -> None:
    """Raise InputError if a test set, of either language, is also trained on or chosen by."""
    for name, place in (("train", places.train), ("dev", places.dev)):
        if place is not None and place.fingerprint == test.fingerprint:
            where = f"{place.task.name}, {place.split}"
            if config.test is None and name == "train" and test is places.test:
                raise InputError(
                    f"there is no test set beside {where}: name one with --test (SOURCE#dev chooses a split)"
                )
            raise InputError(
                f"the {name} and the test set of the task {config.task} are the same items ({where}); name another "
                f"one with --{name} or --test (SOURCE#dev chooses a split)"
            )


def check_columns(language: Language, places: Places) -> None:
    """Raise InputError if the language reads a column that a set has not."""
    for place in (places.train, places.dev, places.test):
        missing = [] if place is None else [c for c in language.requires if c not in place.task.columns]
        if missing and place is not None:
            raise InputError(
                f"the language {language.name} needs the column {missing[0]!r}, which {place.task.name} has not; let a "
                "parser add it: --set parser=spacy:NAME"
            )


def parsed(places: Places, parser: str, report: Report) -> Places:
    """The same sets with the trees that a parser gives their sentences."""
    from synthlang.parsing import ParsedSource, open_engine
    from synthlang.tasks.derive import ParsedTask

    engine = open_engine(parser)
    done: dict[int, TaskSet] = {}

    def with_trees(place: Place | None) -> Place | None:
        if place is None:
            return None
        if id(place.task) not in done:
            task = place.task

            def count(part: str, amount: int, task: TaskSet = task) -> None:
                report(f"parse {task.name}", amount, size_of(task.as_source(), part) or amount, part)

            done[id(task)] = ParsedTask(task, lambda source: ParsedSource(source, engine, report=count))
        return replace(place, task=done[id(place.task)])

    return Places(with_trees(places.train), with_trees(places.dev), with_trees(places.test))
