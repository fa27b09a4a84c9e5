"""Tables of pages as LaTeX and as CSV with every digit."""

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
    inside = tex.partition("\\endlastfoot\n")[2].partition("\n\\end{longtable}")[0]
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
    assert r"\caption{A \& B. 95 \%}" in tex and r"\label{tab:t-1}" in tex and r"\begin{longtable}{lrr}" in tex
    assert tex.count("{") == tex.count("}") and [tex.count(r"\begin{"), tex.count(r"\end{")] == [1, 1]


def test_latex_cuts_long_tables_and_wraps_long_texts():
    rows: list[list[Entry]] = [[f"a text of more than thirty characters {i}", float(i)] for i in range(9)]
    tex = latex_table(Table("Long.", ["Text", "x"], rows, name="long", limit=4))
    assert len(_body(tex)) == 4 and "The page has the first 4 of 9 rows, and tables/long.csv has all." in tex
    assert r"\begin{longtable}{>{\raggedright\arraybackslash}p{4cm}r}" in tex


def test_latex_leaves_out_the_columns_that_the_page_leaves_out():
    rows: list[list[Entry]] = [["a", 1.0, 2.0], ["b", 1.0, 3.0]]
    tex = latex_table(Table("T.", ["Text", "x", "y"], rows, name="t").without_constant())
    assert _body(tex) == [["a", "2.0"], ["b", "3.0"]] and r"\begin{longtable}{lr}" in tex


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
def test_pdflatex_has_every_sign(tmp_path):
    body = latex_table(Table("".join(CHARACTERS), ["s"], [[f"a{s}b [c]"] for s in CHARACTERS], name="signs"))
    packages = r"\usepackage{array,booktabs,longtable}"
    (tmp_path / "a.tex").write_text(f"\\documentclass{{article}}{packages}\\begin{{document}}{body}\\end{{document}}")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "a.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout[-800:]
    assert b"Missing character" not in done.stdout


def test_csv_has_all_rows_and_bounds_in_columns():
    rows: list[list[Entry]] = [
        ["a, b", Interval(1 / 3, 0.25, 1.0, 3, 0.95), 1.5],
        ["c\nd", Interval(2.0, None, None, 1, 0.95), None],
    ]
    table = Table("T.", ["Name", "Δ\nall", "x"], rows, limit=1)
    read = list(csv.reader(io.StringIO(csv_table(table))))
    assert read[0] == ["Name", "Δ all", "Δ all low", "Δ all high", "Δ all n", "x"]
    assert read[1:] == [["a, b", "0.333333", "0.25", "1", "3", "1.5"], ["c d", "2", "", "", "1", ""]]
    assert "The page has the first 1 of 2 rows." in table.shown().caption
