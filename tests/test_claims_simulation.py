"""Size and power of the whole procedure, at a small size, and the table that the document keeps."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.claims.simulation import CLAIMS, EFFECTS, PROCEDURES, rates

PAPERS = 60
NULL = PAPERS * CLAIMS // 2
"""Claims without an effect."""
FEW = 100 * (0.05 + 3 * (0.05 * 0.95 / NULL) ** 0.5)


@pytest.mark.parametrize("comparisons", [1, 3])
def test_a_planned_look_errs_rarely_and_a_look_until_decided_does_not(comparisons):
    planned = rates(2.0, comparisons, [8], planned=True, papers=PAPERS)
    once = rates(2.0, comparisons, [8], planned=False, papers=PAPERS)
    often = rates(2.0, comparisons, [3, 5, 8], planned=False, papers=PAPERS)
    assert planned.false_share <= FEW and planned.error <= once.error <= FEW + 2
    assert often.error > once.error
    assert often.error > FEW or comparisons > 1
    assert 0 < planned.power < once.power


def test_more_planned_models_find_more():
    few, many = (rates(1.0, 3, [models], planned=True, papers=20).power for models in (8, 24))
    assert few < 20 < many


def test_the_table_of_the_document_has_a_row_for_each_effect():
    text = (Path(__file__).parents[1] / "docs" / "claims.md").read_text(encoding="utf-8")
    header = f"| comparisons | effect | {' | '.join(name for name, *_ in PROCEDURES)} |"
    rows = re.findall(r"^\| (\d) \| ([\d.]+) \|.*", text.split(header)[1], re.MULTILINE)
    assert [(int(k), float(effect)) for k, effect in rows] == [(k, effect) for k in (1, 3) for effect in EFFECTS]
