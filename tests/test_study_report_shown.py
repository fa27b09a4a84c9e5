"""What a reader sees: numbers of papers with the digits of print, labels in any script, sentences once."""

from __future__ import annotations

import csv
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from probes.figures.drawing import draw, shorten, writable
from probes.report.numbers import number
from probes.study.judged.papers import CONFIGS, read_paper
from probes.study.report.folder import write_report
from tests.report_study import Page, make_grid, read_rows, write_rows

SHORTER = {"0.5": "0.50", "0.2": "0.20", "89.0": "89.00", "40": "40.00"}
"""Numbers that a paper prints with fewer digits than the others of their table; a note or label there says so."""


def _child(node: yaml.Node | None, key: str) -> yaml.Node | None:
    assert isinstance(node, yaml.MappingNode)
    return next((value for name, value in node.value if name.value == key), None)


def _written(name: str) -> Iterator[tuple[str, list[str], float]]:
    """Table, its numbers as the file has them, character by character, and the factor of their block."""
    tables = _child(yaml.compose((CONFIGS / "papers" / f"{name}.yaml").read_text(encoding="utf-8")), "tables")
    assert isinstance(tables, yaml.MappingNode)
    for key, table in tables.value:
        for block in getattr(_child(table, "blocks"), "value", ()):
            rows = [_child(row, "values") for row in getattr(_child(block, "rows"), "value", ())]
            texts = [value.value for row in rows for value in getattr(row, "value", ()) if value.value != "null"]
            yield key.value, texts, float(getattr(_child(block, "factor"), "value", "1"))


@pytest.mark.parametrize("name", ["align_mlm", "cao2020", "emerging", "impact", "kulshreshtha2020"])
def test_numbers_of_papers_are_shown_as_printed(name: str) -> None:
    tables = read_paper(name).tables
    shown = {key: [number(cell.value, table.digits) for cell in table.cells] for key, table in tables.items()}
    printed: dict[str, list[str]] = {key: [] for key in tables}
    for key, texts, factor in _written(name):
        held = [f"{100 * float(text):.0f}" for text in texts] if factor == 100 else texts
        printed[key] += [SHORTER.get(text, text) if tables[key].digits == 2 else text for text in held]
    assert shown == {key: [text.replace("-", "−") for text in texts] for key, texts in printed.items()}
    assert sum(map(len, shown.values())) > 100


def test_two_digits_and_signs_on_the_page_in_markdown_and_in_latex(tmp_path: Path) -> None:
    axes = {"method": ["mBERT Baseline", "RotateAlign dict"], "language": ["de", "th"]}
    config = {"paper": ["kulshreshtha2020/table3", "kulshreshtha2020/figure2"]}
    paths = write_report(make_grid(tmp_path / "study", axes, tasks=("ner", "slots-fb"), config=config))
    numbers = ("67.20", "−0.35")
    page = Page(paths.html.read_text())
    entries = {entry for table in page.tables for row in table for entry in row}
    markdown = paths.markdown.read_text()
    latex = "".join(path.read_text() for path in paths.tables.glob("paper-*.tex"))
    for text in numbers:
        assert text in entries and f"| {text} |" in markdown
        assert f"& {text.replace('−', '$-$')} &" in latex
    with (paths.tables / "paper-2-kulshreshtha2020-figure2.csv").open() as handle:
        assert "-0.35" in {row["Paper"] for row in csv.DictReader(handle)}


LABELS = ["日本語の条件", "한국어", "العربية", "हिन्दी"]


def test_labels_that_the_font_cannot_write_are_text_for_the_readers_fonts(tmp_path: Path) -> None:
    axes = {"objective": [*LABELS, "MLM"], "strength": ["0", "1"], "pretrain.seed": ["0", "1"]}
    folder = make_grid(tmp_path / "study", axes, layers=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paths = write_report(folder)
    for figure in ("delta-1-pos", "alignment-1-pos"):
        svg = (paths.figures / f"{figure}.svg").read_text(encoding="utf-8")
        assert all(f">{label}</text>" in svg for label in LABELS), figure
        assert ">MLM</text>" not in svg, "what the font can write is drawn, the same everywhere"
    assert all(f">{label}</text>" in paths.html.read_text(encoding="utf-8") for label in LABELS)


def test_a_label_that_is_text_has_the_room_it_needs() -> None:
    def left(label: str) -> float:
        """Where the axes begin beside a tick label, in points."""
        places: list[float] = []

        def paint(canvas):
            axes = canvas.subplots()
            axes.barh([0], [1])
            axes.set_yticks([0], [label])
            canvas.draw_without_rendering()
            places.append(float(axes.bbox.x0))

        draw(4, 2, paint)
        return places[0]

    assert left("日本語日本語") - left("日") == pytest.approx(5 * 9.5, rel=0.1)
    assert shorten("日本語日本語", 12) == "日本語日本語" and shorten("日本語日本語", 11) == "日本語日本…"
    assert writable("naïve ß Δ") and not any(map(writable, LABELS))


def test_the_lead_says_one_sentence_once(tmp_path: Path) -> None:
    folder = make_grid(tmp_path / "study", {"transform": ["trans", "inv"]}, tasks=("pos", "ner", "nli"))
    write_rows(folder, [{**row, "alignment_all": ""} for row in read_rows(folder)])
    lead = write_report(folder).markdown.read_text().split("## Summary")[1].split("##")[0]
    assert lead.count("cannot be correlated") == 1 and "Alignment and Δ on pos, ner, nli cannot" in lead
