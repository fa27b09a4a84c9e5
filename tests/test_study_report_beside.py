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
