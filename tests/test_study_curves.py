"""A study whose probes read all checkpoints of a run: its stages, the rows of its table, and checkpoints made again."""

from __future__ import annotations

import math
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from pretrain.folder import read_metrics, steps_in
from probes.results.collect import Tables
from probes.stages.pretrain import PretrainStage
from probes.stages.probe import ProbeStage
from synthlang.files import read_json
from synthlang.store import Store
from tests.study_graphs import FULL, graph_of, of_kind, run_all
from tests.tiny import changed

STEPS = [1, 3, 6]
WORDS: dict[str, Any] = {"probes": ["words"]}
SENTENCES: dict[str, Any] = {"probes": ["sentences"], "sentences": {"most": 8}, "checkpoints": "all"}
CURVES = changed(
    {**FULL, "tasks": {}},
    pretrain__checkpoints={"every": 6, "keep": 1, "at": [1, 0.5]},
    probes={"w": {**WORDS, "checkpoints": "all"}, "t": SENTENCES},
)
PLAIN = changed(CURVES, pretrain__checkpoints={"every": 6, "keep": 1}, probes={})
WITHIN = changed(CURVES, probes={"w": WORDS})
"""The same run with the checkpoints that the probe ``words`` measures by itself."""


def test_each_checkpoint_is_probed_and_missing_ones_are_made_again(tmp_path: Path) -> None:
    store = Store(tmp_path)
    run_all(graph_of(PLAIN)[0].stages, store)
    (run,) = of_kind(graph_of(PLAIN)[0], PretrainStage)
    checkpoints = store.path("pretrain", run.key) / "checkpoints"
    assert steps_in(checkpoints) == [6]
    whole, cells = graph_of(CURVES)
    run_all(whole.stages, store)
    assert steps_in(checkpoints) == STEPS and [one.key for one in of_kind(whole, PretrainStage)] == [run.key]
    values: dict[str, dict[int | None, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for row in Tables(cells, whole.of_cell, [0], store).measures(set(whole.stages)):
        assert row.value is not None and row.pretrain == run.key
        values[row.probe][row.step][row.measure] = row.value
    assert [set(values[probe]) for probe in ("w", "t", "alignment")] == [{None, *STEPS}, {None, *STEPS}, {None}]
    for probe in ("w", "t"):
        assert values[probe][None] == values[probe][6] != values[probe][1]
    _against_the_probe_itself(store, values["w"])
    _against_the_log(store.path("pretrain", run.key), values["pretrain"])
    perplexity = "sentences.languages.target.perplexity.token.mean"
    assert len({values["t"][step][perplexity] for step in STEPS}) == len(STEPS)
    assert run_all(whole.stages, store) == [], "nothing is made again"


def _against_the_probe_itself(store: Store, found: dict[int | None, dict[str, float]]) -> None:
    """Compare the alignment with that which the probe ``words`` measures at the checkpoints of the run."""
    whole, _ = graph_of(WITHIN)
    run_all(whole.stages, store)
    (stage,) = of_kind(whole, ProbeStage)
    record = read_json(store.path("probe", stage.key) / "probes.json")["probes"]["words"]
    assert [one["step"] for one in record["checkpoints"]] == STEPS
    for one in record["checkpoints"]:
        scores = one["languages"][record["language"]]["scores"]["all"]
        for way in ("forward", "mean"):
            assert found[one["step"]][f"words.scores.all.cosine.{way}"] == pytest.approx(scores["cosine"][way])


def _against_the_log(run: Path, found: dict[int | None, dict[str, float]]) -> None:
    """The run was validated at steps 3 and 6 before it named step 1."""
    key = "validation/parent"
    logged = {row["step"]: row[key] for row in read_metrics(run / "metrics.jsonl") if key in row}
    assert set(found) == {None, 3, 6} and found[None]["pretrain.perplexity.parent"] == pytest.approx(
        logged[6], abs=1e-3
    )
    for step in (3, 6):
        assert math.isclose(found[step]["pretrain.perplexity.parent"], logged[step], abs_tol=1e-3)
