"""Which studies of a report are judged together: those of one scale that rest on the same data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from probes.study.judged.in_common import first_in_common
from probes.study.report.alike import Replicated, mapping, plain_place
from probes.study.report.data import Study, names_of
from probes.study.report.pooled import runs_of
from probes.study.resolved import DIFFERS

TASK_DATA = ("train", "dev", "test", "target")
"""The settings of a transfer that say what it is of."""


@dataclass(frozen=True)
class _Data:
    """text: the model or source that the settings name; sources: those of the rows; data of tasks and pairs, in full
    where the study has recorded that, and as they are written; runs: what numbers are of, by their labels; replicated:
    the settings of what others may have replicates of."""

    text: tuple[str, str]
    sources: frozenset[str]
    resolved: Mapping[str, Any]
    written: Mapping[str, Any]
    runs: Mapping[tuple[str, ...], str]
    replicated: Replicated

    def is_of(self, other: _Data) -> bool:
        """Whether both name the same text, and the same data for every task that both have, and what both have numbers
        of under the same labels is the same run, under the same but for seeds one with the same settings."""
        apart = bool(self.sources and other.sources) and self.sources.isdisjoint(other.sources)
        alike = self.text == other.text and not apart and all(one == two for one, two in self._shared(other))
        same = all(other.runs.get(key, name) == name for key, name in self.runs.items())
        return alike and same and self.replicated.agrees(other.replicated)

    def _shared(self, other: _Data) -> Iterator[tuple[Any, Any]]:
        """What each says of a part that both have: in full, or as written where one does not know that."""
        for part in self.resolved.keys() | self.written.keys():
            for one, two in ((self.resolved, other.resolved), (self.written, other.written)):
                if part in one and part in two:
                    yield one[part], two[part]
                    break


def pools(studies: Sequence[Study]) -> dict[str, list[Study]]:
    """Name → studies that are judged together, in order of appearance.

    The data of a study is what its settings say of it: the text (``model``, ``source``, or the source of its first
    language) and what its tasks, its adjustment and its fine-tuning for probes read, base files counted in where the
    study has recorded its settings in full; what its cells do not have in common there is compared as it is written.
    Tasks that only one study has keep none apart. Where both have results, these are of one source at least. Names and
    files of settings do not matter; paths count as written. Studies that have numbers of different runs under the same
    labels (of other models, say, or with other settings of a task) are apart, and so are those that have numbers under
    the same labels but for seeds with other settings, since labels are all that results are told by. A pool is called
    by its scale, and by its studies too where there are several of a scale.
    """
    if len(studies) == 1:  # there is nothing to keep apart, and looking at its data takes time
        return {studies[0].scale: list(studies)}
    held: dict[str, list[list[int]]] = {}
    data = [_data(study) for study in studies]
    for number, study in enumerate(studies):
        of_scale = held.setdefault(study.scale, [])
        pool = next((pool for pool in of_scale if all(data[number].is_of(data[one]) for one in pool)), None)
        if pool is None:
            of_scale.append([number])
        else:
            pool.append(number)
    names, found = names_of(studies), dict[str, list[Study]]()
    for scale, of_scale in held.items():
        for pool in of_scale:
            told = ", ".join(names[number] for number in pool)
            name = scale if len(of_scale) == 1 else f"{scale} ({told})" if scale else told
            found[name] = [studies[number] for number in pool]
    return found


def names_of_parts(studies: Sequence[Study]) -> list[str]:
    """What each study is called in a joined report: by the names of all those of its pool that have numbers under the
    same labels but for seeds, and of those that share some with these, so that replicates are of one condition."""
    names = names_of(studies)
    place = {id(study): number for number, study in enumerate(studies)}
    called = list(names)
    for pool in pools(studies).values():
        first = first_in_common([Replicated(study).measured for study in pool])
        for number, study in enumerate(pool):
            together = [names[place[id(other)]] for other, its in zip(pool, first, strict=True) if its == first[number]]
            called[place[id(study)]] = " + ".join(together)
    return called


def _data(study: Study) -> _Data:
    config = study.config
    pretrain = mapping(config.get("pretrain"))
    languages = pretrain.get("languages")
    parent = mapping(languages[0]) if isinstance(languages, list) and languages else {}
    source = parent.get("source") or pretrain.get("source") or config.get("source")
    sources = frozenset(plain_place(row.source) for row in study.rows if row.source)
    full = _parts({"tasks": {}, **study.settings})
    resolved = {name: part for name, part in full.items() if DIFFERS not in str(part)}
    text = plain_place(config.get("model")) or "", plain_place(source) or ""
    return _Data(text, sources, resolved, _parts(config), runs_of(study), Replicated(study))


def _parts(config: Mapping[str, Any]) -> dict[str, Any]:
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
        parts["tuned"] = {
            key: plain_place(value) for key in ("train", "dev") if (value := {**transfer, **tuned}.get(key))
        }
    if pairs := mapping(config.get("adjust")).get("pairs"):
        parts["pairs"] = plain_place(pairs)
    return parts
