"""``synthlang correlate``: tables of studies, groups, blocks and cells, what is left out and what is refused."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from probes.correlation import CorrelateOptions, correlate_command, read_tables
from probes.results.views import RESULTS
from tests.refusals import refused
from tests.report_study import write_view


def study_rows(seed=0):
    """Two tasks, two objectives, six cells each, two seeds: Δ falls with alignment within an objective, not between."""
    random = np.random.default_rng(seed)
    rows = []
    for objective, base, height in (("mlm", 10, 10), ("align", 60, 90)):
        for cell in range(6):
            alignment = round(base + 3 * cell + random.normal(), 4)
            for task in ("pos", "ner"):
                for transfer_seed in range(2):
                    delta = round(height - 2 * cell + random.normal(), 4)
                    rows.append({
                        **dict.fromkeys(RESULTS), "cell": f"{objective}-{cell}", "objective": objective, "task": task,
                        "seed": transfer_seed, "delta": delta, "alignment_all": alignment,
                    })  # fmt: skip
    return rows


@pytest.fixture
def study(tmp_path):
    write_view(tmp_path, "results", RESULTS, study_rows())
    return tmp_path


def run(files, out=None, figure=None, **options):
    names = {
        "x": "alignment_all",
        "y": "delta",
        "by": None,
        "block": None,
        "cluster": None,
        "kind": "spearman",
        "level": 0.95,
    }
    return correlate_command(files, CorrelateOptions.of(**{**names, **options}), out, figure)


@pytest.mark.parametrize("name", ["results.csv", "results.parquet"])
def test_per_task_and_pooled(study, name):
    found = run([study / name], by="task", block="objective", kind="spearman,kendall,pearson")
    places = [(one.group, one.within, one.result.kind) for one in found]
    assert places[:6] == [("pos", w, k) for w in ((), ("objective",)) for k in ("spearman", "kendall", "pearson")]
    assert places[-1] == ("all", ("task", "objective"), "pearson") and len(found) == 18
    rows = [row for row in study_rows() if row["task"] == "pos"]
    cells = [[row for row in rows if row["cell"] == cell] for cell in dict.fromkeys(row["cell"] for row in rows)]
    x, y = ([np.mean([row[name] for row in of]) for of in cells] for name in ("alignment_all", "delta"))
    assert found[0].result.r == pytest.approx(stats.spearmanr(x, y).statistic)
    assert found[2].result.r == pytest.approx(stats.pearsonr(x, y).statistic)
    # between the objectives more alignment goes with more Δ, within them with less
    assert found[0].result.r > 0.3 and found[3].result.r < -0.8 and found[-3].result.r < -0.8
    assert found[-3].result.p < 0.001
    assert {one.result.clusters for one in found} == {12}


def test_files_written_repeat(study, tmp_path, capsys):
    places = [(tmp_path / f"{i}.json", tmp_path / f"{i}.svg") for i in range(2)]
    for out, figure in places:
        run([study / "results.csv"], out, figure, by="task", block="objective")
    assert places[0][0].read_bytes() == places[1][0].read_bytes()
    assert places[0][1].read_bytes() == places[1][1].read_bytes()
    saved = json.loads(places[0][0].read_text())
    assert saved["rows"] == 48 and saved["cluster"] == ["cell"] and len(saved["correlations"]) == 6
    svg = places[0][1].read_text()
    assert svg.startswith("<?xml") and "<title>Scatter of delta against alignment_all; correlation: from " in svg
    assert "rows of one cell are dependent" in capsys.readouterr().out


def test_which_rows_are_the_same_and_which_belong_together(study, tmp_path, capsys):
    table = study / "results.csv"
    (found,) = run([table], cluster="none", kind="spearman,spearman")
    assert found.result.clusters == found.result.n == 48
    assert "rows are treated as independent" in capsys.readouterr().out
    write_view(tmp_path / "other", "results", RESULTS, study_rows(seed=1))  # cells of two studies are not the same
    (found,) = run([table, tmp_path / "other" / "results.parquet"])
    assert (found.result.n, found.result.clusters) == (96, 24)
    assert run([table, study / "results.parquet"])[0].result.n == 48  # a study given twice counts once
    assert "an earlier file has the same row: 48" in capsys.readouterr().out


def test_equal_rows_are_dropped_only_where_a_column_tells_them_apart(tmp_path, capsys):
    """Two measurements may give the same numbers: in tables without cells nothing says that they are one."""
    first, second = put(tmp_path, "x,y\n1,2\n2,3\n3,5\n", "1.csv"), put(tmp_path, "x,y\n1,2\n4,4\n", "2.csv")
    assert run([first, second], x="x", y="y")[0].result.n == 5
    assert (
        "rows equal to a row of an earlier file, kept because no column cell shows whether they are the same "
        "measurement: 1" in (capsys.readouterr().out)
    )


def test_clusters_of_a_block_where_nothing_varies_are_not_counted(tmp_path):
    """Three cells in a block with one x, four in one with many: an interval needs five that tell something."""
    rows = [
        f"{cell},{1 if cell < 3 else cell},{cell * cell % 5 + seed},{cell < 3}" for cell in range(7) for seed in (0, 1)
    ]
    path = put(tmp_path, "cell,x,y,method\n" + "\n".join(rows) + "\n")
    whole, within = run([path], x="x", y="y", block="method")
    assert (whole.result.clusters, within.result.clusters) == (7, 4)
    assert whole.result.low is not None and within.result.no_interval.startswith("4 clusters")


def put(folder, text, name="t.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_rows_without_numbers_are_left_out_and_counted(tmp_path, capsys):
    rows = ["1,1", "2,3", "3,2", ",4", "5,x", "6,nan", "7,inf", "8,", "9,1_000"]
    path = put(tmp_path, "x,y\n" + "\n".join(rows) + "\n")
    out = tmp_path / "o.json"
    found = run([path], out, x="x", y="y")
    assert found[0].result.n == 3 and found[0].result.r == pytest.approx(0.5)
    assert json.loads(out.read_text())["left_out"] == {
        "x is empty": 1, "y is not a number": 2, "y is NaN or infinite": 2, "y is empty": 1,
    }  # fmt: skip
    assert "rows left out, y is NaN or infinite: 2" in capsys.readouterr().out


def test_no_number_but_a_reason(tmp_path):
    out, figure = tmp_path / "o.json", tmp_path / "f.svg"
    (found,) = run([put(tmp_path, "x,y\n1,2\n1,3\n1,4\n")], out, figure, x="x", y="y")
    assert found.result.reason == "the first variable is constant" and figure.read_text().startswith("<?xml")
    assert json.loads(out.read_text())["correlations"][0]["r"] is None


@pytest.mark.parametrize(("options", "place", "code"), [
    ({"x": "alignement"}, "--x", "unknown"),
    ({"by": "task,model"}, "--by", "unknown"),
    ({"x": "sup"}, "", "empty"),
    ({"x": "delta"}, "--y", "conflict"),
    ({"kind": "spearmen"}, "--kind", "unknown"),
    ({"kind": ","}, "--kind", "empty"),
    ({"by": "task", "block": "objective,task"}, "--block", "no_effect"),
    ({"level": 95}, "--level", "range"),
    ({"figure": Path("f.png")}, "--figure", "format"),
])  # fmt: skip
def test_refused(study, options, place, code):
    assert refused(run, [study / "results.csv"], **options) == (place, code)


@pytest.mark.parametrize(("name", "text", "line", "code"), [
    ("t.csv", "", ":1", "format"),
    ("t.csv", "x,x\n1,2\n", ":1", "format"),
    ("t.csv", "x,y\n", "", "empty"),
    ("t.csv", "x,y\n1,2\n1,2,3\n", ":3", "format"),
    ("t.csv", "x;y\n1,5;2,5\n", ":2", "format"),
    ("t.csv", "x,y\n1\n", ":2", "format"),
    ("t.csv", "x" * 200_000 + ",y\n1,2\n", ":1", "format"),
    ("t.csv", "x,y\n1,2\n" + "1" * 200_000 + ",2\n", ":3", "format"),
    ("t.parquet", "no parquet", "", "format"),
    ("t.json", "{}", "", "format"),
])  # fmt: skip
def test_tables_refused(tmp_path, name, text, line, code):
    assert refused(read_tables, [put(tmp_path, text, name)]) == (name + line, code)
    gone = "missing" if name != "t.json" else "format"
    assert refused(read_tables, [tmp_path / f"gone-{name}"]) == (f"gone-{name}", gone)


def test_columns_are_those_of_all_files(tmp_path):
    table = read_tables([put(tmp_path, "x,y,a\n1,2,3\n", "1.csv"), put(tmp_path, "y,x\n1,2\n", "2.csv")])
    assert table.columns == ("x", "y", "file") and len(table.rows) == 2
