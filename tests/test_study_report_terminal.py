"""Scores of a study in a terminal: a line for each cell, and a table of conditions beside the paper."""

import io
import json
from itertools import dropwhile

import pyarrow as pa
import pytest
from rich.console import Console

from probes.report.data import Study
from probes.report.printed import Printed
from probes.report.scores import scores_of
from probes.report.terminal import cell_line, score_table
from probes.results.read import measurements
from probes.results.views import RESULTS

# objective → Δ of three pretrainings, two seeds of fine-tuning each
DELTAS = {"MLM": [(40.0, 42.0), (38.0, 38.0), (30.0, 34.0)], "ALIGN-MLM": [(3.0, 5.0), (2.0, 2.0), (6.0, 6.0)]}


def row(objective, seed, delta, task="pos", **more):
    labels = {"objective": objective, "transform": "trans+inv", "pretrain.seed": str(seed)}
    scores = {"parent": 97.0, "sup": 96.0, "zs": 96.0 - delta, "delta": delta, "alignment_all": 50.0 + seed}
    scores["alignment_forward"] = 60.0 + seed
    named = {"cell": f"{objective}, seed={seed}", "labels": json.dumps(labels), "task": task, "task_name": task}
    return {**named, **scores, "pretrain": f"{objective}{seed}", "perplexity": 9.5, **more}


ROWS = [row(o, seed, delta) for o, models in DELTAS.items() for seed, of in enumerate(models) for delta in of]


def shown(rows, papers=("align_mlm",), width=160):
    """The lines of the table, from its header."""
    out = io.StringIO()
    table = measurements(pa.Table.from_pylist(rows, pa.schema(list(RESULTS.items()))))
    study = Study("study", measured=table.assign(failed=""))
    Console(file=out, width=width).print(score_table(scores_of(study), Printed(papers)))
    return list(dropwhile(lambda line: not line.startswith("condition"), out.getvalue().splitlines()))


def test_conditions_stand_beside_the_paper():
    heading, _, mlm, align, *_ = (" ".join(line.split()) for line in shown(ROWS) if line.strip())
    assert heading == "condition SUP Δ 95 % paper aligned paper perpl."
    assert mlm == "MLM, trans+inv 96.0 37.0 25.6 to 48.4 38.5 61.0 0.3 9.5", "a line a condition: the mean over seeds"
    assert align == "ALIGN-MLM, trans+inv 96.0 4.0 −1.0 to 9.0 3.0 61.0 95.2 9.5"


def test_a_table_beside_a_paper_fits_into_a_narrow_terminal():
    lines = shown(ROWS, width=80)
    assert max(map(len, lines)) <= 80 and "…" not in "".join(lines)
    assert any(line.rstrip().endswith("9.5") and "38.5" in line and "MLM," in line for line in lines)


@pytest.mark.parametrize("papers", [(), ("no such paper",)])
def test_without_a_paper_no_column_is_empty(papers):
    heading, _, mlm, *_ = (" ".join(line.split()) for line in shown(ROWS, papers) if line.strip())
    assert heading == "condition SUP Δ 95 % aligned perpl."
    assert mlm == "MLM, trans+inv 96.0 37.0 25.6 to 48.4 51.0 9.5"


def test_one_model_and_missing_scores():
    rows = [row("MLM", 0, 40.0, perplexity=None), row("MLM", 0, 30.0, "ner", perplexity=None, sup=None)]
    heading, _, *lines = (" ".join(line.split()) for line in shown(rows, ()) if line.strip())
    assert heading == "condition task SUP Δ aligned"
    assert lines[:2] == ["MLM, trans+inv pos 96.0 40.0 50.0", "MLM, trans+inv ner – 30.0 50.0"]


def test_where_nothing_was_trained_on_the_target_of_one_the_zero_shot_scores_of_all_stand():
    rows = [row("MLM", seed, 40.0) | {"sup": None, "delta": None} for seed in (0, 1)] + [row("XLM", 0, 10.0)]
    heading, _, *lines = (" ".join(line.split()) for line in shown(rows, ()) if line.strip())
    assert heading == "condition SUP ZS 95 % aligned perpl."
    assert lines[:2] == ["MLM, trans+inv – 56.0 56.0 to 56.0 50.5 9.5", "XLM, trans+inv 96.0 86.0 50.0 9.5"]


def test_a_paper_of_zero_shot_scores_has_them_beside_ours_but_not_its_mean_over_languages():
    def of(language, seed, gap):
        labels = json.dumps({"language": language, "method": "Base BERT"})
        return row("MLM", seed, gap, "nli", cell=f"{language}, {seed}", labels=labels)

    rows = [of(language, seed, gap + seed) for language, gap in (("bg", 30.0), ("en", 20.0)) for seed in (0, 1)]
    heading, _, *lines = (" ".join(line.split()) for line in shown(rows, ["cao2020"]) if line.strip())
    assert heading == "condition SUP ZS 95 % paper aligned perpl."
    assert lines[0] == "bg, Base BERT 96.0 65.5 59.1 to 71.9 68.7 50.5 9.5"
    assert lines[1] == "en, Base BERT 96.0 75.5 69.1 to 81.9 50.5 9.5"


def test_a_cell_is_a_line():
    rows = [row("MLM", 0, 40.0), row("MLM", 0, 42.0), row("MLM", 0, 10.0, "ner")]
    assert cell_line(rows) == (
        "MLM, seed=0: alignment 50.0; pos: SUP 96.0, ZS 55.0, Δ 41.0; ner: SUP 96.0, ZS 86.0, Δ 10.0"
    )


def test_a_cell_on_a_finished_model_has_no_alignment():
    rows = [row("MLM", 0, 40.0, alignment_all=None, pretrain=None, perplexity=None)]
    assert cell_line(rows) == "MLM, seed=0: pos: SUP 96.0, ZS 56.0, Δ 40.0"
    heading, *_ = (" ".join(line.split()) for line in shown(rows, ()) if line.strip())
    assert heading == "condition SUP Δ"
