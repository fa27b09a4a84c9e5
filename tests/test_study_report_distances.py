"""The histograms of a report: the stages' own counts, a panel for each condition, and what is not at hand is told."""

import itertools
import json
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.axes import Axes

from probes.figures.histograms import Panel, histogram_panels
from probes.measures.distances import DISTANCES
from probes.measures.distances.pairs import Linked
from probes.measures.distances.probe import model_values
from probes.measures.distances.separation import Separation
from probes.measures.distances.show import Measured
from probes.report import distances
from probes.report.data import read_study
from synthlang.files import write_json
from tests.report_study import (
    change,
    make_grid,
    report,
    write_measures,
)
from tests.separations import separations

NO_DIMENSIONS: Any = [SimpleNamespace(tops=())]
AXES = {"language": ["hi", "es"], "method": ["Original", "Adjusted"], "tuning": ["none", "NLI"]}


def separated(seed: int, apart: float = 1.0) -> list[Separation]:
    """Return separations of one layer for both distances."""
    random = torch.Generator().manual_seed(seed)
    base = torch.randn(1, 200, 8, generator=random)
    left, right = (base + apart * torch.randn(1, 200, 8, generator=random) for _ in range(2))
    return separations([Linked(left, right, torch.arange(200) // 4)], 0)


def probe_study(folder: Path, axes: dict[str, list[str]] = AXES) -> dict[str, list[Separation]]:
    """A study whose cells have probed distances, with the stages; cell → what was measured."""
    make_grid(folder, axes)
    record = json.loads((folder / "study.json").read_text())
    found, rows = {}, []
    for number, cell in enumerate(record["cells"]):
        separations = found[cell["name"]] = separated(number, 0.2 + 0.2 * number)
        cell["stages"]["probe d"] = name = f"{number:016x}"
        measured = [Measured("base", separated(99), NO_DIMENSIONS, 0), Measured("mine", separations, NO_DIMENSIONS, 0)]
        models = model_values(measured, 10)
        values = {"probes": {"distances": {"model": "mine", "models": models}}, "model": "mine"}
        (folder / "stages" / f"probe-{name}").mkdir(parents=True)
        write_json(folder / "stages" / f"probe-{name}" / "probes.json", values)
        for one in separations:
            measure = f"distances.models.model.layers.{one.distance}.auc.mean"
            labels = json.dumps(cell["labels"])
            rows.append([cell["name"], labels, 0, "d", measure, 0, "", one.auc.mean])
    change(folder, cells=record["cells"])
    write_measures(folder, rows)
    return found


def drawn(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Any]]:
    """(title, rows of panels) of each figure, as they are drawn."""
    panels: list[tuple[str, Any]] = []

    def kept(name: str, title: str, distance: Any, rows: Any) -> Any:
        panels.append((title, rows))
        return histogram_panels(name, title, distance, rows)

    monkeypatch.setattr(distances, "histogram_panels", kept)
    return panels


def test_every_condition_has_the_counts_medians_and_auc_of_its_probe(tmp_path, monkeypatch):
    found, figures = probe_study(tmp_path), drawn(monkeypatch)
    made = report(tmp_path)
    assert [title for title, _ in figures] == [
        f"{what} distance of related and unrelated words, {language}"
        for language, what in itertools.product(("hi", "es"), ("L2", "Cosine"))
    ]
    for (_, rows), (language, distance) in zip(figures, itertools.product(("hi", "es"), DISTANCES), strict=True):
        labels = [[panel.label for panel in row] for row in rows]
        assert labels == [["Original, none", "Adjusted, none"], ["Original, NLI", "Adjusted, NLI"]]
        for panel in itertools.chain(*rows):
            separation = next(one for one in found[f"{language}, {panel.label}"] if one.distance == distance)
            edges = np.asarray(panel.edges)
            assert len(edges) == 11 and np.histogram(separation.related, edges)[0].tolist() == pytest.approx(
                panel.related, abs=1
            )
            assert sum(panel.unrelated) == len(separation.unrelated)
            assert panel.medians == pytest.approx(
                (np.median(separation.related), np.median(separation.unrelated)), rel=1e-5
            )
            assert panel.auc == separation.auc
    assert "<h2>Distances of words</h2>" in made.html and "; AUC" in made.text
    names = {f"histograms-{n}-{lang}" for n, lang in ((1, "hi"), (2, "hi"), (3, "es"), (4, "es"))}
    assert {name for name in made.figures if name.startswith("histograms-")} == names


def test_the_first_run_at_hand_is_drawn(tmp_path, monkeypatch):
    found = probe_study(tmp_path, {"method": ["Original", "Adjusted"], "pretrain.seed": ["0", "1", "2"]})
    (tmp_path / "stages" / f"probe-{0:016x}" / "probes.json").unlink()
    (tmp_path / "stages" / f"probe-{0:016x}").rmdir()
    figures = drawn(monkeypatch)
    text = report(tmp_path).text
    (first, second) = (panel for (panel,) in figures[0][1])
    assert (first.label, second.label) == ("Original", "Adjusted"), "without further axes one under another"
    assert first.auc == found["Original, 1"][0].auc and second.auc == found["Adjusted, 0"][0].auc
    assert distances.FIRST in text
    assert "There is no histogram where the stage of the probe is missing or cannot be read: Original, 0." in text


@pytest.mark.parametrize(
    "broken",
    [
        "{",
        "[]",
        '{"probes": {}}',
        '{"probes": {"distances": {"model": "mine", "models": {}}}}',
        '{"probes": {"distances": {"model": "m", "models": {"m": {"layer": 0, "layers": [{"distance": "l2"}]}}}}}',
    ],
)
def test_results_that_cannot_be_read_are_named(tmp_path, broken):
    probe_study(tmp_path, {"method": ["Original", "Adjusted"]})
    (tmp_path / "stages" / f"probe-{1:016x}" / "probes.json").write_text(broken)
    made = report(tmp_path)
    assert "where the stage of the probe is missing or cannot be read: Adjusted." in made.text
    assert sum(name.startswith("histograms-") for name in made.figures) == 2, "the others are drawn"


def test_a_study_without_distances_has_no_section_and_paths_stay_in_the_store(tmp_path):
    assert "Distances of words" not in report(make_grid(tmp_path / "a", AXES, layers=2)).text
    probe_study(tmp_path / "b", {"method": ["Original", "Adjusted"]})
    (tmp_path / "b" / "probe-x").mkdir()
    record = json.loads((tmp_path / "b" / "study.json").read_text())
    record["cells"][0]["stages"]["probe d"] = "x/../../probe-x"
    change(tmp_path / "b", cells=record["cells"])
    first, second = read_study(tmp_path / "b").cells
    assert first.stage("probe d") is None and first.stage("probe e") is None
    assert second.stage("probe d") == (tmp_path / "b" / "stages" / f"probe-{1:016x}").resolve()


def test_conditions_that_are_not_read_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(distances, "READ", 3)
    monkeypatch.setattr(distances, "ROWS", 2)
    methods = [f"m{number}" for number in range(5)]
    probe_study(tmp_path, {"language": ["hi", "es"], "method": methods, "pretrain.seed": ["0", "1"]})
    text = report(tmp_path).text
    assert "1 further row left out" in text, "of the three that were read two are drawn"
    assert "7 further conditions not drawn, because there are too many." in text


@pytest.mark.usefixtures("painted")
def test_densities_have_area_one_whatever_the_bins(monkeypatch):
    one, areas = separated(0)[0], []
    monkeypatch.setattr(Axes, "stairs", lambda _, heights, edges, **kw: areas.append(float(heights @ np.diff(edges))))
    panels = []
    for edges in (np.linspace(0, 20, 11), np.geomspace(1, 21, 41) - 1):
        counts = [np.histogram(values, edges)[0].tolist() for values in (one.related, one.unrelated)]
        panels.append(Panel("m", edges.tolist(), counts[0], counts[1], (1.0, 2.0), one.auc))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # there is nothing for the legend
        drawing = histogram_panels("h", "H", "l2", [[panels[0], None], panels])
        drawing.figure()
    assert areas == pytest.approx([1.0] * 12)
