"""What a report says of claims and of tables of papers: in the page, as Markdown, CSV and LaTeX alike."""

from __future__ import annotations

import csv
from pathlib import Path

from probes.study.report.folder import write_report
from tests.report_study import Page, make_grid

AXES = {"objective": ["ALIGN-MLM", "MLM"], "pretrain.seed": ["0", "1", "2"]}
EVERY_TASK = """claims:
- {id: better, claim: Better in every task., source: here, compare: [{each: {task: [TASKS]}, measure: delta,
   left: {where: {objective: ALIGN-MLM}}, right: {where: {objective: MLM}}, relation: less}]}
"""
LOSSES = """paper: mine
title: T
citation: C
labels: {objective: [ALIGN-MLM, MLM], task: [pos]}
tables:
  first:
    title: Δ
    printed: here
    blocks:
      - {where: {task: pos}, measure: delta, columns: [{}],
         rows: [{where: {objective: ALIGN-MLM}, values: [VALUE]}, {where: {objective: MLM}, values: [38.5]}]}
"""


def test_a_claim_of_which_only_a_part_was_run_says_so(tmp_path: Path) -> None:
    for tasks, tally in (
        ("pos, ner", "1 of 1 hold, 1 of 2 not run"),
        ("pos, ner, nli", "1 of 1 hold, 2 of 3 not run"),
        ("pos", ""),
    ):
        claims = tmp_path / "claims.yaml"
        claims.write_text(EVERY_TASK.replace("TASKS", tasks))
        folder = make_grid(tmp_path / tasks, AXES, tasks=("pos",), jitter=0.1, config={"claims": [str(claims)]})
        paths = write_report(folder)
        [line] = Page(paths.html.read_text()).table("Claim", "Verdict", "Ours")
        with (folder / "tables/claims.csv").open() as handle:
            [row] = csv.DictReader(handle)
        said = f"{tally}; ours is pos delta, ALIGN-MLM − MLM" if tally else ""
        assert [*line["Verdict"].split("|"), ""][:2] == ["agrees in sign", said]
        assert ("not run" in row["Verdict"]) == bool(tally) and said in row["Verdict"]
        assert not tally or tally in (folder / "report.md").read_text()
        assert not tally or tally in (folder / "tables/claims.tex").read_text()


def test_a_sign_that_is_not_the_papers_and_a_tie_are_told(tmp_path: Path) -> None:
    """Of ALIGN-MLM Δ is above 0 with us, and less than that of MLM, as in either paper."""
    for value, verdict in (("-3.0", "differs"), ("3.0", "agrees in order")):
        paper = tmp_path / f"paper{value}.yaml"
        paper.write_text(LOSSES.replace("VALUE", value))
        folder = make_grid(tmp_path / value, AXES, tasks=("pos",), jitter=0.1, config={"paper": str(paper)})
        page = Page(write_report(folder).html.read_text())
        table = page.table("objective", "Paper", "Ours", "Verdict")
        assert [line["Verdict"] for line in table] == [verdict, "agrees in order"]
        text = (folder / "report.md").read_text()
        assert ("the sign is the other way round |" in text) == (verdict == "differs")
        assert "differs: one is, or the sign of" in text and "0 inside. Printed numbers no more than" in text
