"""Words without context in a report: means over runs of the measures of each condition, and where there are none."""

import csv
import json

import pytest

from probes.figures.bars import retrieval_bars
from probes.study.report import layers
from probes.study.report.data import WITHOUT_CONTEXT
from probes.study.report.folder import write_report
from probes.study.report.join import write_joined_report
from tests.report_study import change, make_grid, write_measures

AXES = {"pair": ["en-fr", "en-zh"], "seed": ["0", "1", "2"]}
EMBEDDINGS, STATIC, BEFORE = WITHOUT_CONTEXT


def measured(folder, probes=("maps",), **more):
    """Cells whose probes found words; cell → the number of the rotated rows. The first pair has no static vectors."""
    make_grid(folder, AXES, **more)
    record = json.loads((folder / "study.json").read_text())
    rows, found = [], {}
    for number, cell in enumerate(record["cells"]):
        labels = json.dumps(cell["labels"])
        for place, probe in enumerate(probes):
            found[cell["name"], probe] = value = 40.0 + 3 * number + place
            rows.append([cell["name"], labels, number, probe, EMBEDDINGS, "", "", value])
            rows.append([cell["name"], labels, number, probe, BEFORE, "", "", 1.5])
            if cell["labels"]["pair"] == "en-zh":
                rows.append([cell["name"], labels, number, probe, STATIC, "", "", value - 20])
    change(folder, cells=record["cells"])
    write_measures(folder, rows)
    return found


def table_of(folder, probe="maps"):
    (path,) = folder.glob(f"tables/words-alone*{probe}*.csv")
    with path.open() as file:
        return list(csv.reader(file))


def test_a_condition_is_the_mean_over_its_runs(tmp_path, monkeypatch):
    found = measured(tmp_path)
    drawn = []

    def kept(name, title, bars, note):
        drawn.append(bars)
        return retrieval_bars(name, title, bars, note)

    monkeypatch.setattr(layers, "retrieval_bars", kept)
    page = write_report(tmp_path).html.read_text()
    assert "Words without context" in page
    ((*bars,),) = drawn
    runs = {pair: [v for (cell, _), v in found.items() if pair in cell] for pair in AXES["pair"]}
    assert [(bar.tag, bar.model) for bar in bars] == [
        ("en-fr", "embeddings, rotated"),
        ("en-fr", "embeddings, no map"),
        ("en-zh", "embeddings, rotated"),
        ("en-zh", "static vectors, rotated"),
        ("en-zh", "embeddings, no map"),
    ]
    for bar in bars:
        if bar.model == "embeddings, rotated":
            assert bar.accuracy.mean == pytest.approx(sum(runs[bar.tag]) / 3) and bar.accuracy.low is not None
    header, *rows = table_of(tmp_path)
    assert [row[0] for row in rows] == ["en-fr", "en-zh"]
    static = next(i for i, name in enumerate(header) if name.startswith("static vectors"))
    assert rows[0][static] == "" and float(rows[1][static]) == pytest.approx(sum(runs["en-zh"]) / 3 - 20)
    assert any((tmp_path / "figures").glob("words-alone-*.svg"))


def test_each_probe_stands_by_itself(tmp_path):
    measured(tmp_path, ("first", "second"))
    page = write_report(tmp_path).html.read_text()
    assert page.count("Words of one subword, first") > 0 < page.count("Words of one subword, second")
    numbers = [float(table_of(tmp_path, probe)[1][1]) for probe in ("first", "second")]
    assert numbers[1] == pytest.approx(numbers[0] + 1)


def test_joined_studies_keep_theirs(tmp_path):
    """Also where the first has none: each under the label of its study."""
    make_grid(tmp_path / "a", AXES, name="none")
    for name in ("b", "c"):
        measured(tmp_path / name, name=name)
    write_joined_report([tmp_path / name for name in "abc"], tmp_path / "out")
    header, *rows = table_of(tmp_path / "out")
    assert [row[0] for row in rows] == [f"{study}, {pair}" for study in "bc" for pair in AXES["pair"]]
    count = next(i for i, name in enumerate(header) if "embeddings" in name and name.endswith(" n"))
    assert [row[count] for row in rows] == ["3"] * 4


def test_more_conditions_than_bars_are_told(tmp_path, monkeypatch):
    monkeypatch.setattr(layers, "BARS", 1)
    measured(tmp_path)
    assert "1 further condition not drawn" in write_report(tmp_path).html.read_text()
    assert len(table_of(tmp_path)) == 3


def test_without_such_measures_there_is_no_section(tmp_path):
    make_grid(tmp_path, AXES)
    assert "Words without context" not in write_report(tmp_path).html.read_text()
    assert not list(tmp_path.glob("tables/words-alone*"))
