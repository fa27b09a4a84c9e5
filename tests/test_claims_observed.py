"""Results of studies as numbers: layers, steps, axes, models; from rows and from the files of a folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from probes.claims.papers import read_claims
from probes.claims.spec import Quantity
from probes.claims.verdicts import judge
from synthlang.errors import InputError
from tests.claims import claim, delta_rows, interval, less, measured, observed, result


def test_alignment_is_of_models_not_of_their_fine_tunings():
    rows = [result({"objective": o}, 0, seed, task=t, alignment_all=v) for o, v in (("A", 9.0), ("B", 1.0))
            for seed in range(3) for t in ("pos", "ner")]  # fmt: skip
    found = judge(less(measure="alignment_all"), observed(rows))
    assert found.n == 1 and found.verdict == "inconclusive" and interval(found).mean == -8.0
    name = "alignment.scores.all.cosine.mean"  # cells without a task have it in measures.parquet only
    only = [measured({"objective": o}, m, name, v + m / 5) for o, v in (("A", 9.0), ("B", 1.0)) for m in range(2)]
    assert judge(less(measure="alignment_all"), observed([], only)).n == 2


def test_plain_axes_have_the_names_of_the_papers():
    plain = {"pretrain.language": "trans+inv", "pretrain.seed": "0"}
    rows = [result({**plain, "pretrain.objective.kind": kind}, m, delta=d + m, zs=50.0 - d)
            for kind, d in (("mlm", 40), ("align_mlm", 5)) for m in range(3)]  # fmt: skip
    verdicts = {c.id: judge(c, observed(rows)) for c in read_claims("align_mlm")}
    assert interval(verdicts["align-beats-mlm"]).mean == -35.0
    assert verdicts["align-beats-xlm"].verdict == "not run"


@pytest.mark.parametrize(
    ("plain", "named"), [("pretrain.language", "transform"), ("pretrain.objective.kind", "objective")]
)
def test_a_plain_axis_beside_a_named_one_keeps_its_key(plain, named):
    rows = [result({plain: f"p{p}", named: f"n{n}"}, 0, delta=10.0 * p + n) for p in range(2) for n in range(2)]
    found = observed(rows).series(Quantity({}, "delta"))
    assert {condition: next(iter(parts[()].values())) for condition, parts in found.items()} == {
        tuple(sorted({plain: f"p{p}", named: f"n{n}", "task": "pos"}.items())): 10.0 * p + n
        for p in range(2)
        for n in range(2)
    }


def test_probes_of_one_cell_that_measure_the_same_are_conditions_not_one_number():
    """As of two languages of a multilingual model; labels without a second probe stay as they are."""
    rows = [{**measured({"objective": "A"}, m, "cka", v + m), "probe": probe}
            for probe, v in (("es", 10.0), ("de", 90.0)) for m in range(2)]  # fmt: skip
    found = observed([], rows).series(Quantity({"objective": "A"}, "probe:cka"))
    assert {c: sorted(parts[()].values()) for c, parts in found.items()} == {
        (("probe", "es"),): [10.0, 11.0],
        (("probe", "de"),): [90.0, 91.0],
    }
    alone = observed([], rows[:2]).series(Quantity({"objective": "A"}, "probe:cka"))
    assert list(alone) == [()]


def test_a_named_axis_of_adjustment_seeds_is_of_one_pretraining():
    rows = [result({"method": m, "adjust_seed": str(s)}, 0, zs=v + s) for m, v in (("A", 1.0), ("B", 30.0))
            for s in range(3)]  # fmt: skip
    more = less(measure="zs", relation="greater", left={"where": {"method": "B"}}, right={"where": {"method": "A"}})
    told = {later: judge(more, observed(rows, later=later)) for later in ((), ("adjust_seed",))}
    units = [(found.unit, found.n, found.one_model) for found in told.values()]
    assert units == [("models", 3, False), ("adjustments", 3, True)]


LAYERS: dict[Any, float | None] = {
    None: 8.0,
    "last": 8.0,
    "first": 3.0,
    2: 2.0,
    "lower": 2.0,
    "upper": 6.5,
    "middle": 2.0,
}
LAYERS |= {"mean": 4.4, "best": 9.0, 7: None}


@pytest.mark.parametrize("layer", LAYERS, ids=str)
def test_layers(layer):
    values, expected = {0: 3.0, 1: 1.0, 2: 2.0, 3: 5.0, 4: 8.0}, LAYERS[layer]
    if layer in ("mean", "best"):
        values |= {1: 4.0, 4: 9.0, 3: 4.0}
    rows = [measured({}, 0, "m", value, layer=number) for number, value in reversed(values.items())]
    asked = claim(compare=[{"measure": "probe:m", "left": {"layer": layer}, "value": 0, "relation": "greater"}])
    found = judge(asked, observed([], rows))
    if expected is None:
        assert found.ours is None
    else:
        assert interval(found).mean == pytest.approx(expected)


def test_the_last_step_counts_and_what_has_no_step_first():
    asked = claim(compare=[{"measure": "probe:m", "left": {}, "value": 0, "relation": "greater"}])
    steps = [measured({}, 0, "m", float(step), step=step) for step in (5, 20, 10)]
    assert interval(judge(asked, observed([], steps))).mean == 20
    assert interval(judge(asked, observed([], [*steps, measured({}, 0, "m", 1.0)]))).mean == 1


def test_measures_whose_names_begin_alike_are_told_apart():
    more = [
        measured({"objective": name}, model, measure, value + model * (1 + value / 20), layer=layer)
        for name, value in (("A", 1.0), ("B", 5.0))
        for model in range(3)
        for layer in (1, 2)
        for measure in ("x.y", "x", "z")
    ]
    results = observed(delta_rows([9.0, 8.0, 9.0], [1.0, 2.0, 2.0]), more)
    assert judge(less(), results).verdict == "replicates"
    assert judge(less(measure="probe:x"), results).verdict == "does not replicate"
    assert judge(less(measure="probe:x.y"), results).n == 3
    assert judge(less(measure="probe:nothing"), results).verdict == "not run"


def test_labels_that_are_no_object():
    with pytest.raises(InputError, match="must be a JSON object"):
        observed([result({}, 0, delta=1.0) | {"labels": json.dumps(["A"])}])
