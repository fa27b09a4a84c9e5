"""The papers' numbers and claims as files: what they hold, how they agree with each other, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import pytest
import yaml
from scipy import stats

from probes.claims import papers
from probes.claims.papers import read_paper
from probes.report.numbers import number
from synthlang.catalogue import folder, names, whole_file
from tests.refusals import refused

read_tables = cache(papers.read_tables)

PAPERS = ("align_mlm", "cao2020", "emerging", "impact", "kulshreshtha2020")
FIGURES = {
    "align_mlm": (1, 2, 3),
    "cao2020": (2, 3),
    "emerging": range(2, 9),
    "impact": (1, 2),
    "kulshreshtha2020": (2,),
}


def by_labels(table: str, measure: str) -> dict[frozenset[tuple[str, str]], float]:
    """Cells of a measure that are no mean over an axis."""
    cells = [c for c in read_tables(table)[0].numbers if c.quantity.measure == measure and not c.quantity.average]
    return {frozenset(cell.quantity.where.items()): cell.value for cell in cells}


@pytest.mark.parametrize("name", PAPERS)
def test_paper_file(name):
    assert set(names("papers")) == set(PAPERS)
    paper = read_paper(name)
    assert paper.paper == name and paper.title and paper.citation
    assert {f"figure{number}" for number in FIGURES[name]} <= set(paper.tables)
    assert all(table.title and table.printed and (table.numbers or table.note) for table in paper.tables.values())
    used = {item for t in paper.tables.values() for cell in t.numbers for item in cell.quantity.where.items()}
    assert used <= {(axis, label) for axis, labels in paper.labels.items() for label in labels}


def test_differences_of_align_mlm_are_sup_less_zs():
    for table in ("table3", "table6", "table7"):
        sup, zs, delta = (by_labels(f"align_mlm/{table}", measure) for measure in ("sup", "zs", "delta"))
        assert sup.keys() == zs.keys() == delta.keys()
        assert max(abs(sup[key] - zs[key] - delta[key]) for key in delta) < 0.15  # printed from unrounded scores


def test_tables_of_align_mlm_agree():
    main = by_labels("align_mlm/table3", "delta")
    first, sixth = by_labels("align_mlm/table1", "delta"), by_labels("align_mlm/table6", "delta")
    assert {k: v for k, v in first.items() if ("objective", "XLM") in k} == sixth
    for table, (axis, label) in (("table2", ("dictionary", "25%")), ("table5", ("dictionary", "25%")),
                                 ("table6", ("parallel", "25%")), ("table7", ("overlap", "0%"))):  # fmt: skip
        default = {
            k - {(axis, label)}: v for k, v in by_labels(f"align_mlm/{table}", "delta").items() if (axis, label) in k
        }
        assert default and all(main[key] == value for key, value in default.items()), table
    other = [(key, value) for key, value in by_labels("align_mlm/table8", "delta").items() if value != main[key]]
    assert [value for _, value in other] == [0.2] and ("objective", "XLM") in other[0][0]  # −0.2 in table 3


@pytest.mark.parametrize(("task", "printed"), [("nli", 0.727), ("ner", 0.781), ("pos", 0.734)])
def test_correlations_of_align_mlm_are_those_of_its_tables(task, printed):
    alignment = by_labels("align_mlm/table8", "alignment_forward")
    delta = by_labels(f"align_mlm/{'table8' if task == 'nli' else 'table3'}", "delta")
    pairs = [(value, delta[key | {("task", task)}]) for key, value in alignment.items()]
    assert len(pairs) == 12
    x, y = zip(*pairs, strict=True)
    assert stats.spearmanr(x, y).statistic == pytest.approx(-printed, abs=0.0006)


def test_printed_means():
    """A mean over languages is that of the numbers beside it, to the last printed digit."""
    checked = 0
    for name in ("emerging/table1", "cao2020/table1", "cao2020/table2", "cao2020/table3", "cao2020/table5"):
        cells = read_tables(name)[0].numbers
        for mean in (cell for cell in cells if any(len(labels) > 1 for labels in cell.quantity.average.values())):
            [(axis, labels)] = mean.quantity.average.items()
            of_row = [cell for cell in cells if mean.quantity.where.items() <= cell.quantity.where.items()]
            parts = [c.value for c in of_row if _is_part(c, mean, axis)]
            assert len(parts) == len(labels), (name, mean)
            assert abs(sum(parts) / len(parts) - mean.value) < 0.051, (name, mean, parts)
            checked += 1
    assert checked == 30 + 6 + 4 + 8 + 3


def _is_part(cell, mean, axis: str) -> bool:
    """English is the test of the language that is trained on, where the others are zero-shot."""
    labels, measure = mean.quantity.average[axis], mean.quantity.measure
    if cell.quantity.measure == "parent":
        return "en" in labels and measure == "zs"
    return cell.quantity.where.get(axis) in labels and cell.quantity.measure == measure


def test_gains_of_impact_are_differences():
    """Tables 5 to 7 print as gains what tables 2 to 4 print as scores, to the last digit."""
    scores = {key: value for n in (2, 3, 4) for key, value in by_labels(f"impact/table{n}", "zs").items()}
    same = {"size": "30K", "subword": "avg", "tokens": "all"}
    checked = 0
    for table in ("table5", "table6", "table7"):
        for cell in read_tables(f"impact/{table}")[0].numbers:
            where = cell.quantity.where
            if any(where.get(axis) == label for axis, label in same.items()):
                assert cell.against is not None
                adjusted = frozenset((k, v) for k, v in where.items() if k not in same)
                gain = scores[adjusted] - scores[frozenset(cell.against.where.items())]
                assert abs(gain - cell.value) < 0.0151, (table, where)
                checked += 1
    assert checked == 12


def test_gains_of_kulshreshtha_are_differences():
    scores = by_labels("kulshreshtha2020/table3", "zs")
    for cell in read_tables("kulshreshtha2020/figure2")[0].numbers:
        assert cell.against is not None and cell.against.where["method"] == "mBERT Baseline"
        gain = scores[frozenset(cell.quantity.where.items())] - scores[frozenset(cell.against.where.items())]
        assert cell.value == pytest.approx(gain, abs=1e-6)


def test_names():
    assert [table.name for table in read_tables("emerging")] == ["table1", *(f"figure{n}" for n in range(2, 9))]
    assert read_tables(f"{folder()}/papers/impact.yaml/table9")[0] == read_tables("impact/table9")[0]
    assert read_paper("cao2020.yaml", folder() / "papers") == read_paper("cao2020")
    assert refused(papers.read_tables, "impact/table1") == ("", "unknown")
    for name, place in (("nobody", ""), ("none.yaml", "none.yaml"), ("../x/table1", "")):
        assert refused(papers.read_tables, name)[0] == place, name


SHORTER = {"0.5": "0.50", "0.2": "0.20", "89.0": "89.00", "40": "40.00"}
"""Numbers that a paper prints with fewer digits than the others of their table; a note or label there says so."""


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    assert isinstance(node, yaml.MappingNode)
    return next((value for name, value in node.value if name.value == key), None)


def _written(name: str) -> Iterator[tuple[str, list[str], float]]:
    """Table, its numbers as the file has them, character by character, and the factor of their block."""
    tables = _child(yaml.compose(whole_file("papers", name).read_text(encoding="utf-8")), "tables")
    assert isinstance(tables, yaml.MappingNode)
    for key, table in tables.value:
        for block in getattr(_child(table, "blocks"), "value", ()):
            rows = [_child(row, "values") for row in getattr(_child(block, "rows"), "value", ())]
            texts = [value.value for row in rows for value in getattr(row, "value", ()) if value.value != "null"]
            yield key.value, texts, float(getattr(_child(block, "factor"), "value", "1"))


@pytest.mark.parametrize("name", PAPERS)
def test_numbers_of_papers_are_shown_as_printed(name):
    tables = read_paper(name).tables
    shown = {key: [number(cell.value, table.digits) for cell in table.numbers] for key, table in tables.items()}
    printed: dict[str, list[str]] = {key: [] for key in tables}
    for key, texts, factor in _written(name):
        percents = [f"{100 * float(text):.0f}" for text in texts] if factor == 100 else texts
        printed[key] += [SHORTER.get(text, text) if tables[key].digits == 2 else text for text in percents]
    assert shown == {key: [text.replace("-", "−") for text in texts] for key, texts in printed.items()}
    assert sum(map(len, shown.values())) > 100


GOOD = """
paper: mine
title: T
citation: C
labels: {method: [A, B], task: [pos]}
tables: {table1: {title: T, printed: here, blocks: [
  {measure: zs, columns: [{where: {task: pos}}],
   rows: [{where: {method: A}, values: [1]}, {where: {method: B}, values: [null]}]}]}}
"""
BLOCK = "tables.table1.blocks.0"
REFUSED = [
    ("method: A}, values", "method: a}, values", BLOCK, "unknown"),
    ("values: [1]", "values: [1, 2]", f"{BLOCK}.rows.0.values", "range"),
    ("values: [1]", "values: [1], marked: [true]", f"{BLOCK}.rows.0.tested_against", "missing"),
    ("measure: zs", "measure: accuracy", f"{BLOCK}.measure", "unknown"),
    ("values: [1]", "values: [.nan]", f"{BLOCK}.rows.0.values.0", "range"),
    ("{where: {task: pos}}", "{where: {task: pos}, average: {pair: [x]}}", BLOCK, "unknown"),
    ("measure: zs, ", "measure: zs, against: {method: C}, ", BLOCK, "unknown"),
    ("method: B}, values: [null]", "method: A}, values: [2]", "tables.table1", "duplicate"),
    ("labels: {method: [A, B], task: [pos]}", "labels: {}", "labels", "range"),
]
"""What is replaced in GOOD, by what, and the place and kind of the fault."""


@pytest.mark.parametrize(("old", "new", "place", "code"), REFUSED)
def test_refused(old, new, place, code, tmp_path):
    assert GOOD.count(old) == 1, "the case must change something"
    path = tmp_path / "mine.yaml"
    path.write_text(GOOD)
    assert len(read_paper(path).tables["table1"].numbers) == 1
    path.write_text(GOOD.replace(old, new))
    assert refused(read_paper, path) == (f"mine.yaml {place}", code)
