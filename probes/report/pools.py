"""Which studies of a report are judged together: those of one scale that rest on the same data and the same settings.

Results take what has the same labels but for seeds for replicates: within a study it is, of two studies it need not be.
So studies are apart that name another text, other data for a task that both have, another run under the same labels, or
other settings where both have numbers under the same labels but for seeds. Settings are those in full, or as they are
written where these are not recorded; what differs among the cells of a study keeps nothing apart but by its runs.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Any

from pretrain.adjust.config import OF_WEIGHTS as OF_ADJUSTMENT
from pretrain.config.run import OF_WEIGHTS
from probes.claims.correlation import connected_groups
from probes.claims.observed import Results, is_after
from probes.report.data import Study, as_mapping, names_of
from probes.results.labels import axes_that_set, is_seed, unseeded
from probes.results.measures import ALIGNMENT_MEASURES
from probes.results.read import distinct, is_score, labels_of, pooled
from probes.results.schema import Labels
from probes.study.settings import DIFFERS
from probes.study.stage import DATA

RUNS = ("start", "pretrain", "second")
TASK_DATA = frozenset({"train", "dev", "test", "target"})
"""The settings of a transfer that say what it is of."""
SEVERAL = 3
"""Most studies of a pool that its name names."""
MODEL = "model"
"""What every number is of."""


def pools(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Name → studies that are judged together, in order of appearance.

    Tasks that only one study has keep none apart, nor do names and files of settings; paths count as written. A study
    that goes with several pools is in the latest. A pool is called by its scale, and by its studies too where there are
    several pools of a scale, without what all names of that scale begin with.
    """
    if len(studies) == 1:  # there is nothing to keep apart, and looking at its data takes time
        return {studies[0].scale: list(studies)}
    of_scale: dict[str, list[list[Member]]] = {}
    for name, study in zip(names_of(studies), studies, strict=True):
        member = Member(study, name)
        known = of_scale.setdefault(study.scale, [])
        pool = next((pool for pool in reversed(known) if all(member.goes_with(one) for one in pool)), None)
        if pool is None:
            known.append([member])
        else:
            pool.append(member)
    found = dict[str, list[Study]]()
    for scale, of in of_scale.items():
        short = own_parts(member.name for pool in of for member in pool)
        for pool in of:
            told = _called(pool, short)
            name = scale if len(of) == 1 else f"{scale} ({told})" if scale else told
            found[name] = [member.study for member in pool]
    return found


def _called(pool: Sequence[Member], short: Mapping[str, str]) -> str:
    """The names of its studies; of many the largest study, and how many more there are."""
    if len(pool) <= SEVERAL:
        return ", ".join(short[member.name] for member in pool)
    largest = max(pool, key=lambda member: len(member.study.cells))
    return f"{short[largest.name]} and {len(pool) - 1} more"


def own_parts(names: Iterable[str]) -> dict[str, str]:
    """Name → what it does not share with all others, in whole words.

    >>> own_parts(["emerging-figure6", "emerging-table1", "emerging-table1-treebank"])
    {'emerging-figure6': 'figure6', 'emerging-table1': 'table1', 'emerging-table1-treebank': 'table1-treebank'}
    """
    words = {name: name.split("-") for name in names}
    columns = zip(*(of[:-1] for of in words.values()), strict=False)  # as long as the shortest name
    shared = len([*takewhile(lambda column: len(set(column)) == 1, columns)])
    return {name: "-".join(of[shared:]) for name, of in words.items()}


def names_of_parts(studies: Sequence[Study]) -> list[str]:
    """What each study is called in a joined report: by the names of all those of its pool that have numbers under the
    same labels but for seeds, and of those that share some with these, so that replicates are of one condition."""
    called = {id(study): name for study, name in zip(studies, names_of(studies), strict=True)}
    names = dict(called)
    for pool in pools(studies).values():
        first = connected_groups([Member(study, "").measured for study in pool])
        for study, of in zip(pool, first, strict=True):
            together = [called[id(other)] for other, its in zip(pool, first, strict=True) if its == of]
            names[id(study)] = " + ".join(together)
    return [names[id(study)] for study in studies]


def results_of(studies: Sequence[Study]) -> Results:
    """What the studies of a pool measured, by the labels of each, so that a study loses nothing by the others."""
    later = [axes_that_set(study.config, is_after) for study in studies]
    first = {axis for study, after in zip(studies, later, strict=True) for axis in {*study.axes} - after}
    return Results(pooled([study.table for study in studies]), set().union(*later) - first)


class Member:
    """A study as far as it matters to others: which texts, data, runs and settings its numbers are of."""

    def __init__(self, study: Study, name: str) -> None:
        self.study, self.name = study, name

    def goes_with(self, other: Member) -> bool:
        """Whether their numbers may be compared and averaged."""
        one, two = self.study, other.study
        settings = (one.settings, two.settings) if one.settings and two.settings else (one.config, two.config)
        apart = self._sources and other._sources and self._sources.isdisjoint(other._sources)
        return (
            not apart
            and self._same_data(other)
            and all(other._runs.get(key, name) == name for key, name in self._runs.items())
            and self._same_settings(other, *settings)
        )

    @cached_property
    def measured(self) -> frozenset[tuple[str, str]]:
        """Labels but for seeds, and a part of the settings that numbers under them are of."""
        found = set()
        for text, task, probe in distinct(self.study.table, "labels", "task", "probe"):
            labels = unseeded(labels_of(text))
            found |= {(labels, f"task {task}" if task else f"probe {probe}"), (labels, MODEL)}
        return frozenset(found)

    @cached_property
    def _data(self) -> list[dict[str, Any]]:
        """What is read, in full where that is recorded, and as written; there also the model, and the text of the first
        language."""
        config = self.study.config
        pretrain = as_mapping(config.get("pretrain"))
        languages = pretrain.get("languages")
        parent = as_mapping(languages[0]) if isinstance(languages, list) and languages else {}
        text = parent.get("source") or pretrain.get("source") or config.get("source")
        written = {**_data_of(config), "model": config.get("model") or None, "text": text or None}
        return [_data_of({"tasks": {}, **self.study.settings}), written]

    def _same_data(self, other: Member) -> bool:
        """Whether both read the same for each part that both have."""
        for part in {part for data in self._data for part in data}:
            pairs = [
                (one[part], two[part])
                for one, two in zip(self._data, other._data, strict=True)
                if part in one.keys() & two.keys()
            ]
            if pairs and not _same(*pairs):
                return False
        return True

    @cached_property
    def _sources(self) -> set[Any]:
        """The texts that the rows name."""
        return {plain_place(source) for source in self.study.table["source"].unique() if source}

    @cached_property
    def _runs(self) -> dict[tuple[Any, ...], str]:
        """Labels, and the model or what was measured (a task and its seed, the alignment, a probe) → what names it."""
        table = self.study.table
        found: dict[tuple[Any, ...], str] = {}
        for name in ("pretrain", "adjust"):
            rows = table[is_score(table) & (table[name] != "")]
            found |= {(_sorted(labels), name): key for labels, key in distinct(rows, "labels", name)}
        rows = table[table["run"] != ""]
        aligned = rows["measure"].isin(list(ALIGNMENT_MEASURES))  # which is of no task and no fine-tuning
        task, seed = rows["task"].astype(str).where(~aligned, ""), rows["seed"].where(~aligned)
        rows = rows.assign(aligned=aligned, task=task, seed=seed)
        for labels, *what, run in distinct(rows, "labels", "task", "seed", "probe", "aligned", "run"):
            found[_sorted(labels), *what] = run
        return found

    def _same_settings(self, other: Member, one: Mapping[str, Any], two: Mapping[str, Any]) -> bool:
        """Whether what both have numbers of under the same labels but for seeds has the same settings in both."""
        shared = self.measured & other.measured
        same = all(_agree(_settings_of(one, part), _settings_of(two, part)) for part in {part for _, part in shared})
        return same and all(_agree(self._changes[labels], other._changes[labels]) for labels in dict(shared))

    @cached_property
    def _changes(self) -> dict[str, Mapping[str, Any]]:
        return {unseeded(cell.labels): cell.overrides for cell in reversed(self.study.cells)}


def _sorted(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels_of(labels).items()))


def _same(resolved: tuple[Any, Any], *written: tuple[Any, Any]) -> bool:
    """Whether two say the same, key by key; what differs among the cells is compared as ``written``, if it is."""
    if all(value is None or isinstance(value, Mapping) for value in resolved):
        keys = {key for value in resolved for key in as_mapping(value)}
        return all(_same(*(_at(pair, key) for pair in (resolved, *written))) for key in keys)
    if DIFFERS in str(resolved):
        return not written or _same(*written)
    return bool(plain_place(resolved[0]) == plain_place(resolved[1]))


def _at(pair: tuple[Any, Any], key: str) -> tuple[Any, Any]:
    return as_mapping(pair[0]).get(key) or None, as_mapping(pair[1]).get(key) or None


def _data_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The data of tasks and of fine-tuning for probes, and the sentence pairs."""
    transfer, tasks = as_mapping(settings.get("transfer")), settings.get("tasks")
    if tasks is None:
        tasks = {str(transfer.get("task") or "pos"): {}}
    found = {
        f"task {name}": _only({**transfer, **task}, TASK_DATA)
        for name, task in as_mapping(tasks).items()
        if isinstance(task, Mapping)
    }
    if tuned := as_mapping(settings.get("tuned")):
        found["tuned"] = _only({**transfer, **tuned}, frozenset({"train", "dev"}))
    if pairs := as_mapping(settings.get("adjust")).get("pairs"):
        found["pairs"] = pairs
    return found


def _settings_of(settings: Mapping[str, Any], part: str) -> Any:
    """What says which model it is, or how a task or a probe was done."""
    kind, _, name = part.partition(" ")
    if kind == "task":
        tasks, common = settings.get("tasks"), as_mapping(settings.get("transfer"))
        return {**common, **as_mapping(as_mapping(tasks).get(name))} if tasks is None or name in tasks else DIFFERS
    if kind == "probe":
        return [as_mapping(settings.get("probes")).get(name), settings.get("tuned")]
    runs = [_only(settings.get(run), OF_WEIGHTS | DATA) for run in RUNS]
    return [settings.get("model"), _only(settings.get("adjust"), frozenset(OF_ADJUSTMENT)), *runs]


def _only(settings: Any, keys: frozenset[str]) -> Any:
    return {key: value for key, value in settings.items() if key in keys} if isinstance(settings, Mapping) else settings


def _agree(one: Any, other: Any) -> bool:
    """Whether two settings are the same in all that both have; seeds do not count, nor what differs among the cells."""
    if DIFFERS in (one, other):
        return True
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return all(_agree(one[key], other[key]) for key in one.keys() & other.keys() if not is_seed(key))
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(_agree(*pair) for pair in zip(one, other, strict=True))
    return bool(plain_place(one) == plain_place(other))


def plain_place(value: Any) -> Any:
    """A source or path with no superfluous signs; in mappings and lists, too."""
    if isinstance(value, Mapping):
        return {key: plain_place(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [plain_place(inner) for inner in value]
    if not isinstance(value, str) or not value:
        return value
    kind, colon, path = value.rpartition(":")
    return f"{kind}{colon}{posixpath.normpath(path)}"
