"""What a terminal says of the scores of a study: a line a cell, and a table of conditions beside the paper."""

import io
import json

import pytest
from rich.console import Console

from probes.study.report.terminal import cell_line, printed_numbers, score_table

# objective → Δ of three pretrainings, two seeds of fine-tuning each
DELTAS = {"MLM": [(40.0, 42.0), (38.0, 38.0), (30.0, 34.0)], "ALIGN-MLM": [(3.0, 5.0), (2.0, 2.0), (6.0, 6.0)]}


def row(objective, seed, delta, task="pos", **more):
    labels = {"objective": objective, "transform": "trans+inv", "pretrain.seed": str(seed)}
    scores = {"parent": 97.0, "sup": 96.0, "zs": 96.0 - delta, "delta": delta, "alignment_all": 50.0 + seed}
    named = {"cell": f"{objective}, seed={seed}", "labels": json.dumps(labels), "task": task, "task_name": task}
    return {**named, **scores, "pretrain": f"{objective}{seed}", "perplexity": 9.5, **more}


ROWS = [row(o, seed, delta) for o, models in DELTAS.items() for seed, of in enumerate(models) for delta in of]


def shown(rows, papers=("align_mlm",)):
    out = io.StringIO()
    Console(file=out, width=160).print(score_table(rows, printed_numbers(papers)))
    return [[part.strip() for part in line.split("│")] for line in out.getvalue().splitlines() if "│" in line]


def test_conditions_stand_beside_the_paper_with_every_model():
    mlm, align = shown(ROWS)
    assert mlm[1:-1] == [
        "MLM, trans+inv", "96.0", "41.0 38.0 32.0", "37.0", "25.6 to 48.4", "38.5", "51.0", "0.3", "9.5",
    ]  # fmt: skip
    assert align[4] == "4.0" and align[6] == "3.0"  # table 3


@pytest.mark.parametrize("papers", [(), ("no such paper",)])
def test_without_a_paper_no_column_is_empty(papers):
    mlm, _ = shown(ROWS, papers)
    assert mlm[1:-1] == ["MLM, trans+inv", "96.0", "41.0 38.0 32.0", "37.0", "25.6 to 48.4", "51.0", "9.5"]


def test_one_model_and_missing_scores():
    lines = shown([row("MLM", 0, 40.0, perplexity=None), row("MLM", 0, 30.0, "ner", perplexity=None, sup=None)], ())
    assert [line[1:-1] for line in lines] == [
        ["MLM, trans+inv", "pos", "96.0", "40.0", "50.0"],
        ["MLM, trans+inv", "ner", "–", "30.0", "50.0"],
    ]


def test_a_cell_is_a_line():
    rows = [row("MLM", 0, 40.0), row("MLM", 0, 42.0), row("MLM", 0, 10.0, "ner")]
    assert cell_line(rows) == (
        "MLM, seed=0: alignment 50.0; pos: SUP 96.0, ZS 55.0, Δ 41.0; ner: SUP 96.0, ZS 86.0, Δ 10.0"
    )
