"""Probes of all checkpoints of a run: the measures at each step as a table, figures and a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pretrain.checkpoints import is_sound
from pretrain.folder import present_steps
from probes.figures.drawing import Drawing, slug
from probes.figures.lines import STEP, Series, lines_over
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.models.opening import open_pretrained
from probes.report.page import Block, Figures, Paragraph, Section, Table
from probes.results.declared import Value, values_in
from synthlang.files import atomic_file

RunAll = Callable[[ProbeInput], Mapping[str, ProbeResult]]
FILE = "checkpoints.csv"
COLUMNS = 4
"""Largest number of measures of a probe in its table. The CSV file has all measures."""
LEFT_OUT = frozenset({"languages", "scores", "mean"})
"""Parts of the names of measures that the titles of columns leave out."""


@dataclass(frozen=True)
class AtStep:
    """The results of the probes at a checkpoint.

    Attributes:
        step: The training step of the checkpoint.
        results: The values of each probe for JSON, by the name of the probe.
        measures: The declared measures of each probe, by the name of the probe.
    """

    step: int
    results: Mapping[str, Mapping[str, Any]]
    measures: Mapping[str, Sequence[Value]]


@dataclass(frozen=True)
class OverSteps:
    """The results of the probes at all checkpoints of a run.

    Attributes:
        steps: The results at each checkpoint, in the order of the steps.
        notes: Notes on damaged checkpoints, which have no results.
    """

    steps: Sequence[AtStep]
    notes: Sequence[str] = ()

    def to_json(self) -> list[dict[str, Any]]:
        """Return an entry ``{"step": STEP, "probes": {PROBE: values}}`` for each checkpoint."""
        return [{"step": one.step, "probes": dict(one.results)} for one in self.steps]

    def rows(self) -> Iterator[tuple[int, str, str, int | None, float]]:
        """Yield (step, probe, measure, layer, value) for each declared measure. The layer may be None."""
        for one in self.steps:
            for probe, values in one.measures.items():
                yield from ((one.step, probe, value.name, value.layer, value.value) for value in values)

    def write(self, path: Path) -> None:
        """Write `rows` as a CSV file with a header.

        Raises:
            DiskError: The file cannot be written.
        """
        with atomic_file(path, "w") as handle:
            lines = csv.writer(handle, lineterminator="\n")
            lines.writerow(["step", "probe", "measure", "layer", "value"])
            lines.writerows(self.rows())

    def tables(self) -> list[Table]:
        """Return a table for each probe with its first COLUMNS main measures, and a row for each step."""
        tables = []
        for probe, columns in self._main().items():
            chosen = dict(list(columns.items())[:COLUMNS])
            body = [[f"{one.step:,}", *(values.get(one.step) for values in chosen.values())] for one in self.steps]
            has_layers = any(value.layer is not None for value in self.steps[0].measures[probe] if value.name in chosen)
            caption = f"{probe}: main measures by step" + (", at the last layer." if has_layers else ".")
            tables.append(Table(caption, ["step", *map(_title, chosen)], body, digits=3))
        return tables

    def section(self) -> Section:
        """Return the section of the page, with the notes, the tables and the figures."""
        blocks: list[Block] = [Paragraph(f"Each row is a checkpoint of the run. {FILE} has all measures.")]
        blocks += [Paragraph(note, "note") for note in self.notes]
        blocks += self.tables()
        if figures := [drawing.figure() for drawing in self.drawings()]:
            blocks.append(Figures(figures))
        return Section("Checkpoints", blocks)

    def drawings(self) -> Iterator[Drawing]:
        """Yield a figure for each probe and unit, with a line for each measure of `tables` that has several steps."""
        for probe, columns in self._main().items():
            lines: dict[str, list[Series]] = {}
            for measure, values in list(columns.items())[:COLUMNS]:
                if len(values) > 1:
                    unit = self._unit(probe, measure)
                    lines.setdefault(unit, []).append(Series(_title(measure), list(values), list(values.values())))
            for number, (unit, series) in enumerate(lines.items(), 1):
                name, title = f"steps-{slug(f'{probe} {unit}', number)}", f"{probe} over pretraining, {unit}"
                yield lines_over(name, title, series, (STEP, unit), "Each point is a checkpoint.")

    def _main(self) -> dict[str, dict[str, dict[int, float]]]:
        """Return the value of each main measure by probe, name of the measure, and step.

        A measure with a value for each layer has the value of the last layer.
        """
        found: dict[str, dict[str, dict[int, float]]] = {}
        for one in self.steps:
            for probe, values in one.measures.items():
                for value in sorted(values, key=lambda value: -1 if value.layer is None else value.layer):
                    if value.measure.main:
                        found.setdefault(probe, {}).setdefault(value.name, {})[one.step] = value.value
        return found

    def _unit(self, probe: str, name: str) -> str:
        return next(value.measure.unit for value in self.steps[0].measures[probe] if value.name == name)


def _title(name: str) -> str:
    """Return the name of a measure without its probe, for the head of a column.

    >>> _title("sentences.languages.source.bits_per_byte.mean")
    'source bits per byte'
    """
    return " ".join(part.replace("_", " ") for part in name.split(".")[1:] if part not in LEFT_OUT)


def over_steps(given: ProbeInput, selected: Mapping[str, ProbeResult], run_all: RunAll) -> OverSteps:
    """Run the probes at each checkpoint that a run keeps. Damaged checkpoints are skipped with a note.

    Args:
        given: The input with the model at the selected checkpoint.
        selected: The results of the probes at this checkpoint.
        run_all: Function that runs the probes of an input.

    Raises:
        InputError: A probe fails, or a checkpoint or the sentence pairs cannot be read.
        DiskError: A probe cannot write a file.
    """
    assert given.run is not None and given.pretrained.run is not None, "only runs have checkpoints"
    config, folder = given.pretrained.run[0], given.run / "checkpoints"
    text = given.aligned if any(settings.needs_links for settings in given.config.chosen().values()) else None
    found, notes = list[AtStep](), list[str]()
    kept = present_steps(folder, config.checkpoints, config.steps)
    for done, step in enumerate(kept, 1):
        if step == config.steps and config.checkpoints.select == "last":
            found.append(_at_step(given, step, selected))
        elif is_sound(folder / f"step-{step}"):
            opened = open_pretrained(str(given.run), given.config.language, given.config.natural, step=step)
            at = replace(given, pretrained=replace(opened, name=given.pretrained.name), text=text)
            found.append(_at_step(at, step, run_all(at)))
        else:
            notes.append(f"The checkpoint step-{step} is damaged and was skipped.")
        given.report("checkpoints", done, len(kept), "")
    return OverSteps(found, notes)


def _at_step(given: ProbeInput, step: int, results: Mapping[str, ProbeResult]) -> AtStep:
    table, name = given.config.table(), given.pretrained.name
    measures = {
        probe: list(values_in({probe: result.values}, {probe: table[probe].measures}, name))
        for probe, result in results.items()
    }
    return AtStep(step, {probe: result.values for probe, result in results.items()}, measures)
