"""The section with sentences for a paper, and what a phone shows of a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.report.folder import write_report
from probes.report.for_paper import TITLE
from tests.report_study import make_grid

AXES = {"objective": ["MLM", "ALIGN-MLM"], "pretrain.seed": ["0", "1", "2"]}
DATA = {"source": "conllu:corpus?feats", "test": "ner:hf:wikiann:fr#test", "claims": ["align_mlm"]}
ENVIRONMENT = {"synthlang": "0.1", "torch": "2.11", "transformers": "5.1", "tokenizers": "0.22", "cpu": "x"}


def page(folder: Path) -> str:
    return write_report(folder).markdown.read_text(encoding="utf-8")


def section(text: str, title: str = TITLE) -> str:
    return text.partition(f"## {title}\n")[2].partition("\n## ")[0]


def test_a_paper_gets_scores_with_n_intervals_tests_versions_and_references(tmp_path: Path) -> None:
    text = section(page(make_grid(tmp_path, AXES, jitter=1.0, config=DATA, environment=ENVIRONMENT)))
    [mlm] = [line for line in text.splitlines() if line.startswith("- MLM, pos (f1, %)")]
    assert re.search(r"Δ 1\d\.\d \\\[\S+, \S+\\\]; n = 3 models × 2 seeds\.$", mlm), mlm
    assert re.search(r"- ALIGN-MLM − MLM \(pos\): Δ \S+ \\\[.*\\\] points; n = 3 pairs of models; p = \.\d+\.", text)
    assert "95 % t intervals" in text and "paired t-tests" in text and "Holm" not in text
    assert "- Software: synthlang 0.1, torch 2.11, transformers 5.1, tokenizers 0.22." in text
    assert "- Paper: ALIGN-MLM: Word Embedding Alignment" in text and "Henry Tang" in text
    assert "- Data: conllu:corpus (cite what the README" in text and "hf:wikiann:fr (cite" in text


def test_one_seed_has_no_interval_and_no_word_of_one(tmp_path: Path) -> None:
    axes = {"transform": ["trans:0.1", "trans:0.5", "trans:1"]}
    text = page(make_grid(tmp_path, axes, seeds=1, layers=2, steps=(10, 20)))
    assert "There are no intervals" in section(text)
    told = re.findall(r"[^\n]*(?:95 %|[Bb]ands|[Bb]rackets)[^\n]*", text)
    assert not [line for line in told if "ρ" not in line], (
        "only a correlation has an interval, which is over conditions"
    )


@pytest.mark.usefixtures("painted")
def test_nothing_on_a_page_is_wider_than_a_phone(tmp_path: Path) -> None:
    html = write_report(make_grid(tmp_path, AXES, tasks=("pos", "ner"), layers=2)).html.read_text(encoding="utf-8")
    assert '<meta name="viewport" content="width=device-width, initial-scale=1">' in html
    assert html.count("<table>") == len(re.findall(r'<div class="scroll"[^>]*><table>', html)) > 2
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert "nav { display: flex; flex-wrap: wrap" in style and "nowrap; overflow" not in style
    assert "figure svg { width: 100%; height: auto" in style and ".scroll { overflow-x: auto" in style
    rem, phone = 16, 360
    fixed = re.findall(r"(?<![a-z-])(?:min-)?width: ([\d.]+)(rem|px)", re.sub(r"@media[^{]*", "", style))
    assert all(float(value) * (rem if unit == "rem" else 1) <= phone for value, unit in fixed)
    columns = re.findall(r"grid-template-columns: ([^;]+);", style)
    assert columns and all("minmax(0" in one or "min(100%" in one or one == "1fr 1fr" for one in columns)
    assert not re.findall(r'style="[^"]*(?<!max-)width: ?\d+(?:px|rem)', html)
