"""The measurements of a study, collected from its finished stages."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any

from pretrain.config import CheckpointConfig
from probes.results.declared import Measure, Value
from probes.results.measures import (
    ALIGNMENT,
    PRETRAIN,
    alignment_values,
    logged_perplexities,
    measure_of,
    perplexities,
    perplexity_values,
    probe_values,
    reading_values,
)
from probes.results.schema import Labels, Measurement
from probes.results.scores import DIGITS, MIXED, PERPLEXITY, SCORES, alignment_scores, transfer_scores
from probes.stages.base import DONE, PROBES, RESULT
from probes.stages.kinds import RUN_STAGES
from probes.study.cell import Cell
from synthlang.files import read_json
from synthlang.store import Store

PROBE = "probe"
"""Kind of the stages of probes, with which the names of these stages begin."""
Drops = Mapping[str, Mapping[str, int]]
"""Data → reason → number of items that were left out or changed."""


class Tables:
    """The measurements of the finished stages of a study.

    The logs of pretrainings and the results of transfers and alignments are read once. The results of probes, which may
    be large, and the files done.json of pretrainings are read each time. Each method raises InputError if the result of
    a finished stage is missing or is not JSON.

    Args:
        cells: The cells of the study.
        of_cell: Name of a cell → name of a stage → key.
        seeds: The seeds of fine-tuning.
        store: The store of the stages.
    """

    def __init__(
        self, cells: Sequence[Cell], of_cell: Mapping[str, Mapping[str, str]], seeds: Sequence[int], store: Store
    ) -> None:
        self._cells, self._of_cell, self._seeds, self._store = cells, of_cell, seeds, store
        self._read: dict[str, Any] = {}
        self._logged: dict[tuple[str, CheckpointConfig], list[Value]] = {}
        self._drops: dict[str, Drops] = {}

    def measurements(self, done: Collection[str]) -> Iterator[Measurement]:
        """Yield all measurements of the stages whose keys are in ``done``: first ``scores``, then ``measures``."""
        return chain(self.scores(done), self.measures(done))

    def scores(self, done: Collection[str], cells: Iterable[Cell] | None = None) -> Iterator[Measurement]:
        """Yield the scores of the finished transfers of some cells (default: all cells), transfer by transfer.

        The alignment and the perplexity of a model are repeated for each of its transfers. A cell whose pretraining,
        alignment or adjustment is not in ``done`` has no scores.
        """
        row = 0
        for cell in self._cells if cells is None else cells:
            stages = self._of_cell[cell.name]
            if any(stages[name] not in done for name in ("pretrain", "alignment", "adjust") if name in stages):
                continue
            alignment = _alignment(cell, stages)
            aligned = {} if alignment is None else alignment_scores(self._aligned(cell, alignment))
            perplexity = self._perplexities(cell, done).get("parent")
            for name in cell.tasks:
                for seed in self._seeds:
                    key = stages[f"transfer {name} seed {seed}"]
                    if key in done:
                        result = self._transfer(key)
                        common = _of_task(cell, stages, name, result, key, alignment or "", row)
                        yield from _scores(common, result["scores"], aligned, perplexity)
                        row += 1

    def measures(self, done: Collection[str]) -> Iterator[Measurement]:
        """Yield the measurements of the pretrainings, alignments and probes in ``done``, cell by cell."""
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            yield from _of_probe(cell, stages, PRETRAIN, self._of_pretraining(cell, done))
            if (alignment := _alignment(cell, stages)) is not None and alignment in done:
                yield from _of_probe(cell, stages, ALIGNMENT, alignment_values(self._aligned(cell, alignment)))
            for name in cell.probes:
                for step, stage in ((None, f"{PROBE} {name}"), *cell.probed_checkpoints(name).items()):
                    if (key := stages[stage]) in done:
                        values = probe_values(self._json(PROBE, key, PROBES))
                        values = values if step is None else (value._replace(step=step) for value in values)
                        yield from _of_probe(cell, stages, name, values, stage)

    def dropped(self, done: Collection[str]) -> dict[str, dict[str, dict[str, dict[str, int]]]]:
        """Return counts of sentences, pairs or words that were left out or changed: stage → data → reason → counts.

        The counts are over all stages that read such data: the smallest number of one stage (``least``), the largest
        number (``most``), the number of stages with at least one such item (``stages``), and the number of all these
        stages (``of``). A stage that several cells share counts once.
        """
        found: dict[str, dict[str, Drops]] = {}
        for cell in self._cells:
            stages = self._of_cell[cell.name]
            named = [(stage, stages[stage]) for stage in RUN_STAGES if stage in stages]
            for name in cell.tasks:
                named += [(f"transfer {name}", stages[f"transfer {name} seed {seed}"]) for seed in self._seeds]
            for stage, key in named:
                if key in done:
                    found.setdefault(stage, {})[key] = self._drops_of(stage, key)
        return {stage: _extents(list(drops.values())) for stage, drops in found.items()}

    def _json(self, kind: str, key: str, file: str) -> Any:
        return read_json(self._store.path(kind, key) / file)

    def _aligned(self, cell: Cell, key: str) -> dict[str, Any]:
        """Return the alignment of the target language of the tasks of a cell.

        If the tasks do not have one common target language in the run, the first other language of the run counts.
        """
        if key not in self._read:
            self._read[key] = self._json("alignment", key, RESULT)
        result, named = self._read[key], _named_by_tasks(cell)
        return {**result, **result.get("languages", {}).get(named.pop(), {})} if len(named) == 1 else result

    def _perplexities(self, cell: Cell, done: Collection[str]) -> dict[str, float]:
        """Return the perplexities of the pretraining of a cell, or {} if the pretraining is missing or unfinished."""
        key = self._of_cell[cell.name].get("pretrain")
        if cell.pretrain is None or key is None or key not in done:
            return {}
        if key not in self._read:
            found = perplexities(self._store.path("pretrain", key), cell.pretrain)
            self._read[key] = {name: round(value, DIGITS) for name, value in found.items()}
        known: dict[str, float] = self._read[key]
        return known

    def _of_pretraining(self, cell: Cell, done: Collection[str]) -> Iterator[Value]:
        """Yield the perplexities and the tokenizer statistics of the pretraining of a cell.

        Nothing is yielded if the pretraining is missing or unfinished.
        """
        key = self._of_cell[cell.name].get("pretrain")
        if cell.pretrain is None or key is None or key not in done:
            return
        yield from perplexity_values(self._perplexities(cell, done))
        known = (key, cell.pretrain.checkpoints)  # runs with equal keys may name other steps
        if known not in self._logged:
            self._logged[known] = list(logged_perplexities(self._store.path("pretrain", key), cell.pretrain))
        yield from self._logged[known]
        yield from reading_values(self._json("pretrain", key, DONE), cell.pretrain)

    def _transfer(self, key: str) -> dict[str, Any]:
        if key not in self._read:
            result = self._json("transfer", key, RESULT)
            self._read[key] = {name: result[name] for name in ("task", "metric", "seed", "language")}
            self._read[key]["scores"] = dict(transfer_scores(result))
            texts = {f"aligned text {name}": text["counts"] for name, text in result.get("aligned", {}).items()}
            self._drops[key] = {**result.get("drops", {}), **texts}
        known: dict[str, Any] = self._read[key]
        return known

    def _drops_of(self, stage: str, key: str) -> Drops:
        if stage.startswith("transfer "):
            self._transfer(key)
        elif key not in self._drops:
            self._drops[key] = self._json(RUN_STAGES[stage], key, DONE).get("counts", {})
        return self._drops[key]


def _of_task(
    cell: Cell, stages: Mapping[str, str], task: str, result: Mapping[str, Any], transfer: str, alignment: str, row: int
) -> Measurement:
    """Return a measurement with the columns that all scores of a transfer share, without measure and value."""
    run = cell.pretrain
    return Measurement(
        cell.name,
        Labels(dict(cell.labels)),
        row=row,
        task=task,
        task_kind=result["task"],
        metric=result["metric"],
        source="" if run is None else run.all_languages[0].source,
        language=result["language"] or "",
        objective="" if run is None else run.objective.kind,
        pretrain_seed=None if run is None else run.seed,
        seed=result["seed"],
        pretrain=stages.get("pretrain", ""),
        adjust=stages.get("adjust", ""),
        transfer=transfer,
        alignment=alignment,
    )


def _scores(
    common: Measurement,
    scores: Mapping[str, float | None],
    aligned: Mapping[str, float | None],
    perplexity: float | None,
) -> Iterator[Measurement]:
    """Yield the scores of a transfer, and the alignment and perplexity of its model."""
    model = f"{common.pretrain} {common.adjust}"
    finetuned, pretrained = f"{model} {common.transfer} {common.seed}", f"{model} {common.alignment}"
    yield from (_measured(common, finetuned, name, scores[name]) for name in SCORES)
    yield from (_measured(common, pretrained, name, value) for name, value in aligned.items() if value is not None)
    if perplexity is not None:
        yield _measured(common, finetuned, PERPLEXITY, perplexity)
    for name in (name for name in scores if name not in SCORES):
        yield _measured(common, finetuned, name, scores[name])
        if name.startswith(f"{MIXED} ") and scores[name] is not None:
            yield _measured(common, finetuned, MIXED, scores[name])


def _of_probe(
    cell: Cell, stages: Mapping[str, str], probe: str, values: Iterable[Value], stage: str = ""
) -> Iterator[Measurement]:
    """Yield the measurements of a pretraining, an alignment or a probe of a cell.

    ``stage`` is the name of the stage of a probe, or "" for a pretraining or an alignment.
    """
    run = f"{PROBE if stage else probe} {stages[stage or probe]}"
    common = Measurement(
        cell.name,
        Labels(dict(cell.labels)),
        pretrain_seed=None if cell.pretrain is None else cell.pretrain.seed,
        pretrain=stages.get("pretrain", ""),
        adjust=stages.get("adjust", ""),
        run=run,
        probe=probe,
    )
    for value in values:
        known = _declaration(value.name, value.measure)
        yield common._replace(layer=value.layer, step=value.step, value=value.value, **known)


def _measured(common: Measurement, run: str, name: str, value: float | None) -> Measurement:
    measure = measure_of(name)
    assert measure is not None, f"{name} is declared in scores.py"
    return common._replace(run=run, value=value, **_declaration(name, measure))


def _declaration(name: str, measure: Measure) -> dict[str, Any]:
    """Return the columns of a row that are declared for its measure: name, unit, range and population."""
    least, most = measure.within or (None, None)
    return {"measure": name, "unit": measure.unit, "least": least, "most": most, "over": measure.over}


def _extents(of_stages: Sequence[Drops]) -> dict[str, dict[str, dict[str, int]]]:
    """Return the counts over all stages: data → reason → counts. A count of 0 is not recorded."""
    reading = Counter(data for drops in of_stages for data in drops)
    counts: dict[str, dict[str, list[int]]] = {}
    for drops in of_stages:
        for data, reasons in drops.items():
            for reason, number in reasons.items():
                if number:
                    counts.setdefault(data, {}).setdefault(reason, []).append(number)
    return {
        data: {
            reason: {"least": min(numbers) if len(numbers) == reading[data] else 0, "most": max(numbers)}
            | {"stages": len(numbers), "of": reading[data]}
            for reason, numbers in reasons.items()
        }
        for data, reasons in counts.items()
    }


def _alignment(cell: Cell, stages: Mapping[str, str]) -> str | None:
    """Return the key of the alignment of a cell, or None for a cell without an alignment.

    An adjusted cell has no alignment, because the adjustment moves the embeddings. A cell whose tasks all target the
    source language has none either, because an alignment needs two languages.
    """
    if cell.pretrain is not None and _named_by_tasks(cell) == {cell.pretrain.all_languages[0].name}:
        return None
    return None if "adjust" in stages else stages.get("alignment")


def _named_by_tasks(cell: Cell) -> set[str]:
    """Return the names of the target languages in the tasks of a cell, or "None" for a task that names none."""
    return {str(task.language) for task in cell.tasks.values()}
