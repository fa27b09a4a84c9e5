"""Tables of pages: LaTeX that fits a page, CSV with every digit."""

import csv
import io
import re
import shutil
import subprocess

import pytest

from probes.report.latex import CHARACTERS, csv_table, latex_table
from probes.report.numbers import Badge, Entry
from probes.report.page import Table
from probes.statistics import Interval


def _body(tex: str) -> list[list[str]]:
    inside = tex.partition("\\midrule\n")[2].partition("\n\\bottomrule")[0]
    return [re.split(r"(?<!\\) & ", line.removesuffix(r" \\")) for line in inside.splitlines()]


def test_latex_has_every_cell_escaped():
    rows: list[list[Entry]] = [
        ["50% & $x_i$", Interval(1.25, -0.5, 3.0, 3, 0.95), 7],
        ["[a]\\{b}~^#", None, Badge("differs", "bad")],
    ]
    tex = latex_table(Table("A & B. 95 %", ["Name", "Δ\nall types", "n_1"], rows, name="t-1", digits=2))
    assert _body(tex) == [
        [r"50\% \& \$x\_i\$", r"1.25 {\footnotesize ($-$0.50 to 3.00)}", "7"],
        [r"{[}a{]}\textbackslash{}\{b\}\textasciitilde{}\textasciicircum{}\#", "--", "differs"],
    ]
    assert r"Name & $\Delta$ {\footnotesize (all types)} & n\_1 \\" in tex
    assert r"\caption{A \& B. 95 \%}" in tex and r"\label{tab:t-1}" in tex and r"\begin{tabular}{lrr}" in tex
    assert tex.count("{") == tex.count("}") and [tex.count(r"\begin{"), tex.count(r"\end{")] == [2, 2]


def test_latex_cuts_long_tables_and_wraps_long_texts():
    rows: list[list[Entry]] = [[f"a text of more than thirty characters {i}", float(i)] for i in range(9)]
    tex = latex_table(Table("Long.", ["Text", "x"], rows, name="long", limit=4))
    assert len(_body(tex)) == 4 and "The first 4 of 9 rows; all are in tables/long.csv." in tex
    assert re.search(r"\\begin\{tabular\}\{>\{\\raggedright\\arraybackslash\}p\{\d+pt\}r\}", tex)


def _wide(rows: int, columns: int, long: int) -> Table:
    """Rows of intervals behind two columns of text, and as many columns of long text."""
    key = "transfer.fine_tune.learning_rate=0.0125, 0123456789abcdef"
    body = [
        [f"MLM, trans+inv {i}", "agrees in order", *[key] * long]
        + [Interval(-12.34 * i, -99.0, 12.0, 3, 0.95) for _ in range(columns)]
        for i in range(rows)
    ]
    header = ["Condition", "Verdict", *["Settings of the cell"] * long, *["Alignment\nheld out"] * columns]
    return Table("A caption. " * 9, header, body, 2 + long, f"t-{rows}-{columns}-{long}")


SHAPES = [(3, 1, 0), (90, 2, 0), (5, 4, 0), (5, 6, 1), (40, 14, 0), (30, 1, 2), (12, 0, 9)]


def test_latex_tables_are_set_to_fit():
    short, tall, _, _, many, _, texts = (latex_table(_wide(*shape)) for shape in SHAPES)
    assert r"\begin{table}" in short and "landscape" not in short and "longtable}{" not in short
    assert r"\begin{longtable}" in tall and r"\endhead" in tall and r"\begin{table}" not in tall
    assert many.count(r"\begin{landscape}") == many.count("Condition &") / 2 == many.count(r"\label{tab:t-40-14-0") > 1
    assert many.count("MLM, trans+inv 39 & agrees in order &") == many.count(r"\begin{landscape}")
    assert many.count("A caption.") == 9 * many.count(r"\begin{landscape}") and "Part 2 of" in many
    assert many.count(r"{\scriptsize ($-$99.0 to 12.0)}") == 40 * 14, "no number is lost"
    assert texts.count(r"0123456789abcdef") == 0 and texts.count(r"01234567\allowbreak{}89abcdef") == 12 * 9


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize("what", ["fits", "signs"])
def test_pdflatex_sets_it(what, tmp_path):
    """Nothing is too wide or too tall, and every sign that is escaped is in the fonts."""
    signs = latex_table(Table("".join(CHARACTERS), ["s"], [[f"a{s}b [c]"] for s in CHARACTERS], name="signs"))
    body = "\n\\clearpage\n".join(latex_table(_wide(*shape)) for shape in SHAPES) if what == "fits" else signs
    packages = r"\usepackage{array,booktabs,longtable,pdflscape}"
    (tmp_path / "a.tex").write_text(f"\\documentclass{{article}}{packages}\\begin{{document}}{body}\\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-800:]
    wrong = rb"Overfull .hbox[^\n]*|[^\n]*too large[^\n]*" if what == "fits" else b"Missing character"
    assert not re.findall(wrong, done.stdout)


def test_csv_has_all_rows_and_bounds_in_columns():
    rows: list[list[Entry]] = [
        ["a, b", Interval(1 / 3, 0.25, 1.0, 3, 0.95), 1.5],
        ["c\nd", Interval(2.0, None, None, 1, 0.95), None],
    ]
    table = Table("T.", ["Name", "Δ\nall", "x"], rows, limit=1)
    read = list(csv.reader(io.StringIO(csv_table(table))))
    assert read[0] == ["Name", "Δ all", "Δ all low", "Δ all high", "Δ all n", "x"]
    assert read[1:] == [["a, b", "0.333333", "0.25", "1", "3", "1.5"], ["c d", "2", "", "", "1", ""]]
    assert "The first 1 of 2 rows." in table.shown().caption
