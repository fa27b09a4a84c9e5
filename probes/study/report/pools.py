"""Which studies of a report are judged together: those of one scale that rest on the same data and the same settings.

Results take what has the same labels but for seeds for replicates: within a study it is, of two studies it need not be.
So studies are apart that name another text, other data for a task that both have, another run under the same labels, or
other settings where both have numbers under the same labels but for seeds. Settings are compared in full where both
studies have recorded them, else as they are written, in what both say.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from pretrain.adjust.config import OF_WEIGHTS as OF_ADJUSTMENT
from pretrain.config.run import OF_WEIGHTS
from probes.study.judged.correlated import connected_groups
from probes.study.judged.observed import Results, is_after
from probes.study.labels import axes_that_set, is_seed, unseeded
from probes.study.report.data import Study, names_of
from probes.study.settings import DIFFERS
from probes.study.stage import DATA
from probes.study.table import ALIGNMENTS, distinct, is_score, labels_of, pooled

RUNS = ("start", "pretrain", "second")
TASK_DATA = ("train", "dev", "test", "target")
"""The settings of a transfer that say what it is of."""
MODEL = "model"
"""What every number is of."""


def pools(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Name → studies that are judged together, in order of appearance.

    Tasks that only one study has keep none apart, nor do names and files of settings; paths count as written. A pool is
    called by its scale, and by its studies too where there are several of a scale.
    """
    if len(studies) == 1:  # there is nothing to keep apart, and looking at its data takes time
        return {studies[0].scale: list(studies)}
    of_scale: dict[str, list[list[Member]]] = {}
    for name, study in zip(names_of(studies), studies, strict=True):
        member = Member(study, name)
        known = of_scale.setdefault(study.scale, [])
        pool = next((pool for pool in known if all(member.goes_with(one) for one in pool)), None)
        if pool is None:
            known.append([member])
        else:
            pool.append(member)
    found = dict[str, list[Study]]()
    for scale, of in of_scale.items():
        for pool in of:
            told = ", ".join(member.name for member in pool)
            name = scale if len(of) == 1 else f"{scale} ({told})" if scale else told
            found[name] = [member.study for member in pool]
    return found


def names_of_parts(studies: Sequence[Study]) -> list[str]:
    """What each study is called in a joined report: by the names of all those of its pool that have numbers under the
    same labels but for seeds, and of those that share some with these, so that replicates are of one condition."""
    names = names_of(studies)
    place = {id(study): number for number, study in enumerate(studies)}
    called = list(names)
    for pool in pools(studies).values():
        first = connected_groups([Member(study, "").measured for study in pool])
        for number, study in enumerate(pool):
            together = [names[place[id(other)]] for other, its in zip(pool, first, strict=True) if its == first[number]]
            called[place[id(study)]] = " + ".join(together)
    return called


def results_of(studies: Sequence[Study]) -> Results:
    """What the studies of a pool measured, by the labels of each, so that a study loses nothing by the others."""
    later = [axes_that_set(study.config, is_after) for study in studies]
    first = {axis for study, own in zip(studies, later, strict=True) for axis in {*study.axes} - own}
    return Results(pooled([study.table for study in studies]), set().union(*later) - first)


class Member:
    """A study as far as it matters to others: which texts, data, runs and settings its numbers are of."""

    def __init__(self, study: Study, name: str) -> None:
        self.study, self.name = study, name

    def goes_with(self, other: Member) -> bool:
        """Whether their numbers may be compared and averaged."""
        apart = self._sources and other._sources and self._sources.isdisjoint(other._sources)
        same_data = self._text == other._text and not apart and all(a == b for a, b in self._shared_data(other))
        return same_data and self._same_runs(other) and self._same_settings(other)

    @cached_property
    def measured(self) -> frozenset[tuple[str, str]]:
        """Labels but for seeds, and a part of the settings that numbers under them are of."""
        found = set()
        for text, task, probe in distinct(self.study.table, "labels", "task", "probe"):
            labels = unseeded(labels_of(text))
            found |= {(labels, f"task {task}" if task else f"probe {probe}"), (labels, MODEL)}
        return frozenset(found)

    @cached_property
    def _text(self) -> tuple[Any, Any]:
        """The model, and the text of the first language, that the settings name."""
        config = self.study.config
        pretrain = mapping(config.get("pretrain"))
        languages = pretrain.get("languages")
        parent = mapping(languages[0]) if isinstance(languages, list) and languages else {}
        source = parent.get("source") or pretrain.get("source") or config.get("source")
        return plain_place(config.get("model")) or "", plain_place(source) or ""

    @cached_property
    def _sources(self) -> set[Any]:
        """The texts that the rows name."""
        return {plain_place(source) for source in self.study.table["source"].unique() if source}

    @cached_property
    def _data(self) -> tuple[dict[str, Any], dict[str, Any]]:
        """The data of tasks and pairs, in full where that is recorded and the same in all cells, and as written."""
        full = _data_of({"tasks": {}, **self.study.settings})
        return {part: held for part, held in full.items() if DIFFERS not in str(held)}, _data_of(self.study.config)

    def _shared_data(self, other: Member) -> Iterator[tuple[Any, Any]]:
        """What each says of a part that both have."""
        for part in self._data[0].keys() | self._data[1].keys():
            for one, two in zip(self._data, other._data, strict=True):
                if part in one and part in two:
                    yield one[part], two[part]
                    break

    @cached_property
    def _runs(self) -> dict[tuple[Any, ...], str]:
        """Labels, and the model or what was measured (a task and its seed, the alignment, a probe) → what names it."""
        table = self.study.table
        found: dict[tuple[Any, ...], str] = {}
        for name in ("pretrain", "adjust"):
            rows = table[is_score(table) & (table[name] != "")]
            found |= {(_sorted(labels), name): key for labels, key in distinct(rows, "labels", name)}
        rows = table[table["run"] != ""]
        aligned = rows["measure"].isin(list(ALIGNMENTS))  # which is of no task and no fine-tuning
        task, seed = rows["task"].astype(str).where(~aligned, ""), rows["seed"].where(~aligned)
        rows = rows.assign(aligned=aligned, task=task, seed=seed)
        for labels, *what, run in distinct(rows, "labels", "task", "seed", "probe", "aligned", "run"):
            found[_sorted(labels), *what] = run
        return found

    def _same_runs(self, other: Member) -> bool:
        return all(other._runs.get(key, name) == name for key, name in self._runs.items())

    def _same_settings(self, other: Member) -> bool:
        """Whether what both have numbers of under the same labels but for seeds has the same settings in both."""
        shared = self.measured & other.measured
        one, two = self.study, other.study
        settings = (one.settings, two.settings) if one.settings and two.settings else (one.config, two.config)
        same = all(_agree(*(_settings_of(held, part) for held in settings)) for part in {part for _, part in shared})
        return same and all(_agree(self._changes[labels], other._changes[labels]) for labels in dict(shared))

    @cached_property
    def _changes(self) -> dict[str, Mapping[str, Any]]:
        return {unseeded(cell.labels): cell.overrides for cell in reversed(self.study.cells)}


def _sorted(labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels_of(labels).items()))


def _data_of(config: Mapping[str, Any]) -> dict[str, Any]:
    """Name → the data of a task, of fine-tuning for probes, and of the sentence pairs."""
    transfer = mapping(config.get("transfer"))
    tasks = config.get("tasks")
    if tasks is None:
        tasks = {str(transfer.get("task") or "pos"): {}}
    parts: dict[str, Any] = {
        f"task {name}": {key: plain_place(value) for key in TASK_DATA if (value := {**transfer, **task}.get(key))}
        for name, task in mapping(tasks).items()
        if isinstance(task, Mapping)
    }
    if isinstance(tuned := config.get("tuned"), Mapping):
        own = {**transfer, **tuned}
        parts["tuned"] = {key: plain_place(own[key]) for key in ("train", "dev") if own.get(key)}
    if pairs := mapping(config.get("adjust")).get("pairs"):
        parts["pairs"] = plain_place(pairs)
    return parts


def _settings_of(settings: Mapping[str, Any], part: str) -> Any:
    """What says which model it is, or how a task or a probe was done."""
    kind, _, name = part.partition(" ")
    if kind == "task":
        tasks, common = settings.get("tasks"), mapping(settings.get("transfer"))
        return {**common, **mapping(mapping(tasks).get(name))} if tasks is None or name in tasks else DIFFERS
    if kind == "probe":
        return [mapping(settings.get("probes")).get(name), settings.get("tuned")]
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


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


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
