"""The tables of a study: which numbers of a probe are rows, and that equal rows are equal bytes."""

import csv
import json
import math
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pretrain.config import PretrainConfig
from probes.results import scores, write
from probes.results.collect import Tables
from probes.results.declared import ANY, Entries, Measure, PerLayer, find, values_in
from probes.results.measures import alignment_values, measure_of, perplexities, probe_values
from probes.results.read import read_table
from probes.results.schema import MEASUREMENTS
from probes.results.scores import alignment_scores, movements
from probes.results.views import FIXED, MEASURES, RESULTS, AxisColumns, measure_row, result_rows
from probes.results.write import write_measurements
from synthlang.files import write_json
from synthlang.store import Store
from tests.report_study import write_view

# --- what a result declares ---

HITS, APART = Measure("percent", "words", (0.0, 100.0)), Measure("CKA", "sentences", (0.0, 1.0))
TREE: Any = {
    "plain": HITS,
    "free": {ANY: {"mean": HITS}},
    "layers": Entries({"auc": {"mean": APART}}, lambda entry: str(entry["distance"])),
    "steps": Entries({"all": HITS}),
    "same": {"numbers": [], "value": PerLayer("numbers", APART)},
}
LAYERS: list[dict[str, Any]] = [
    {"layer": 2, "distance": name, "auc": {"mean": value, "low": 0.1}} for name, value in (("l2", 0.5), ("cosine", 0.6))
]


@pytest.mark.parametrize(
    ("result", "found"),
    [
        ({"plain": 1}, [("plain", None, None, 1.0)]),
        *(({"plain": value}, []) for value in (None, True, "5", math.nan, math.inf, [1.0], {"plain": 1.0})),
        ({"other": 1.0, "free": {"mean": 1.0}}, []),
        ({"free": {"b": {"mean": 2.0}, "a.b": {"mean": 1.0}}, "plain": 3.0}, [
            ("free.b.mean", None, None, 2.0), ("free.a.b.mean", None, None, 1.0), ("plain", None, None, 3.0),
        ]),
        ({"free": {"run-1": {"mean": 2.0}}}, [("free.model.mean", None, None, 2.0)]),
        ({"layers": LAYERS}, [("layers.l2.auc.mean", 2, None, 0.5), ("layers.cosine.auc.mean", 2, None, 0.6)]),
        ({"steps": [{"step": 10, "all": 5.0}, {"step": 20, "all": None}]}, [("steps.all", None, 10, 5.0)]),
        ({"layers": None, "steps": []}, []),
        ({"same": {"numbers": [1, 5], "value": [0.1, None]}}, [("same.value", 1, None, 0.1)]),
        ({"same": {"numbers": [1, 5], "value": None}}, []),
    ],
    ids=str,
)  # fmt: skip
def test_the_values_that_a_tree_declares(result, found):
    values = list(values_in(result, TREE, "run-1"))
    assert [value[:4] for value in values] == found
    assert all(find(value.name, TREE) is value.measure for value in values)


@pytest.mark.parametrize("name", ["", "other", "plain.mean", "free", "free.mean", "layers.auc.mean", "same"])
def test_a_name_that_no_tree_declares(name):
    assert find(name, TREE) is None


@pytest.mark.parametrize(
    ("name", "unit", "over", "within"),
    [
        ("zs", "percent", "test items", (0.0, 100.0)),
        ("mixed question", "percent", "test items", (0.0, 100.0)),
        ("delta", "points", "test items", (-100.0, 100.0)),
        ("alignment_all", "percent", "word types", (0.0, 100.0)),
        ("alignment.scores.all.csls.mean", "percent", "word types", (0.0, 100.0)),
        ("perplexity", "perplexity", "masked tokens of the dev set", (1.0, math.inf)),
        ("pretrain.perplexity.languages.zh", "perplexity", "masked tokens of the dev set", (1.0, math.inf)),
        ("words.bands.101-.scores.all.cosine.mean", "percent", "word types", (0.0, 100.0)),
        ("distances.models.model.layers.l2.auc.mean", "share", "pairs of words", (0.0, 1.0)),
        ("maps.maps.dictionary.layers.words.csls.mean.p@1", "percent", "word types", (0.0, 100.0)),
        ("retrieval.tags.variants.types.groups.open class.average", "percent", "parts of speech", (0.0, 100.0)),
        ("cka.comparisons.languages.same_layer.debiased", "CKA", "sentences or linked words", (-1.0, 1.0)),
    ],
)
def test_a_measure_by_its_name(name, unit, over, within):
    assert (known := measure_of(name)) is not None
    assert (known.unit, known.over, known.within) == (unit, over, within)


def test_what_is_of_no_probe_alone():
    assert list(probe_values({})) == []
    both = {"probes": {}, "cka_against_retrieval": {"r": 0.5, "low": 0.1}}
    assert [value[:4] for value in probe_values(both)] == [("cka_against_retrieval.r", None, None, 0.5)]
    result = {"types": 3, "scores": {"all": {"csls": {"mean": 7.0}}}}
    assert [(value.name, value.value) for value in alignment_values(result)] == [
        ("alignment.types", 3.0),
        ("alignment.scores.all.csls.mean", 7.0),
    ]


def test_alignments_among_the_scores():
    scores = {"all": {"cosine": {"forward": 2.0, "backward": 0.46912, "mean": 1.23456}}, "in_dictionary": None}
    columns = {"alignment_all": 1.2346, "alignment_dictionary": None, "alignment_held_out": None}
    columns |= {"alignment_forward": 2.0}
    assert alignment_scores({"scores": scores}) == columns
    assert set(alignment_scores({"scores": None}).values()) == {None}


# --- how far fine-tuning moved the model ---


@pytest.mark.parametrize(
    ("fits", "means"),
    [
        ([], (None, None)),
        ([{"setting": ""}], (None, None)),
        ([{"moved": {"embeddings": 0.0, "layers": 0.2}}], (0.0, 0.2)),
        ([{"moved": {"embeddings": 0.0, "layers": 0.2}}, {"moved": {"embeddings": 0.3, "layers": 0.4}}], (0.15, 0.3)),
        ([{"moved": {"embeddings": 0.0, "layers": 0.2}}, {"setting": "of an earlier version"}], (None, None)),
    ],
)
def test_movements_of_the_settings_that_are_kept(fits, means):
    assert movements(fits) == dict(zip(scores.MOVED, means, strict=True))


# --- perplexity ---

LOG = [
    {"step": 2, "validation/parent": 9.0, "validation/trans": 20.0},
    {"step": 3, "validation/parent": 4.0, "validation/trans": 30.0},  # no checkpoint is due
    {"step": 4, "validation/parent": 5.0, "validation/trans": 40.0},
    {"step": 6, "validation/parent": 5.0, "validation/trans": 50.0},  # no better than the one before
    {"step": 7, "validation/parent": 6.0, "validation/trans": 60.0},
]


@pytest.mark.parametrize(
    ("select", "log", "found"),
    [
        ("last", LOG, {"parent": 6.0, "other": 60.0}),
        ("best", LOG, {"parent": 5.0, "other": 40.0}),
        ("best", [LOG[0], LOG[-1]], {"parent": 6.0, "other": 60.0}),  # the last is due, too
        ("last", LOG[:-1], {}),
        ("best", LOG[:-1], {}),
        ("last", [*LOG[:-1], {"step": 7, "validation/trans": 3.0}], {"other": 3.0}),
        ("best", [{"step": 7, "loss": 1.0}], {}),
        ("last", [], {}),
    ],
)
def test_the_perplexity_is_that_of_the_checkpoint_that_is_selected(select, log, found, tmp_path):
    settings = {"steps": 7, "checkpoints": {"every": 2, "select": select}, "validation": {"every": 1}}
    config = PretrainConfig.model_validate({"source": "text:a", "language": "trans", **settings})
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in log) + '{"step": 8, "vali')
    assert perplexities(tmp_path, config) == found
    (tmp_path / "metrics.jsonl").unlink()
    assert perplexities(tmp_path, config) == {}


def test_languages_are_called_the_same_in_all_cells_and_several_by_name_too(tmp_path):
    line = {"step": 1, "validation/en": 2.0, "validation/es": 3.0, "validation/fr": 4.0}
    (tmp_path / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    for names, found in (
        (["en"], {"parent": 2.0}),
        (["en", "fr"], {"parent": 2.0, "other": 4.0}),
        (["fr", "en", "es"], {"parent": 4.0, "other": 2.0, "languages.en": 2.0, "languages.es": 3.0}),
    ):
        languages = [{"name": name, "source": f"text:{name}"} for name in names]
        config = PretrainConfig.model_validate({"languages": languages, "steps": 1})
        assert perplexities(tmp_path, config) == found


# --- columns of axes ---


def columns(*labels):
    cells: Any = [SimpleNamespace(name=str(i), labels=of_cell) for i, of_cell in enumerate(labels)]
    return AxisColumns(cells)


@pytest.mark.parametrize(
    ("axis", "column"),
    [
        ("pretrain.objective.alpha", "alpha"),
        ("transform", "transform"),
        ("transfer.fine_tune.epochs", "epochs"),
        ("pretrain.dictionary.path", "path"),
        ("second.seed", "second.seed"),  # seed is a column
        ("pretrain.objective.kind", "pretrain.objective.kind"),  # objective is a column
        ("objective", "axis_objective"),
        ("language", "axis_language"),
        ("layer", "axis_layer"),  # of measures.csv
    ],
)
def test_the_name_of_a_column(axis, column):
    assert list(columns({axis: "x"}).types) == [column]
    assert column not in FIXED


def test_axes_of_one_name_have_all_of_their_keys():
    found = columns({"pretrain.steps": "1", "adjust.steps": "2", "pretrain.seed": "3"})
    assert list(found.types) == ["pretrain.steps", "adjust.steps"]  # there is a column pretrain_seed


def test_a_name_that_is_taken_gets_a_number():
    found = columns({"axis_objective": "a", "axis_objective_2": "b", "objective": "c"})
    assert list(found.types) == ["axis_objective", "axis_objective_2", "axis_objective_3"]
    assert found.of({"cell": "0"})["axis_objective_3"] == "c"


@pytest.mark.parametrize(
    ("labels", "kind", "values"),
    [
        (["1.0", "10.0"], pa.float64(), [1.0, 10.0]),
        (["1", "0.25"], pa.float64(), [1.0, 0.25]),
        (["3", "-4"], pa.int64(), [3, -4]),
        (["25%", "100%"], pa.float64(), [25.0, 100.0]),
        (["MLM", "1"], pa.string(), ["MLM", "1"]),
        (["true", "false"], pa.string(), ["true", "false"]),
        (["9223372036854775808", "1"], pa.float64(), [2.0**63, 1.0]),
    ],
)
def test_numbers_stay_numbers(labels, kind, values):
    found = columns(*({"a": label} for label in labels), {"b": "x"})
    assert found.types["a"] == kind
    rows = [found.of({"cell": str(i)}) for i in range(len(labels) + 1)]
    assert [row["a"] for row in rows] == [*values, None]
    assert [row["b"] for row in rows] == [None] * len(labels) + ["x"]


# --- files ---


def rows(count):
    return [
        {"cell": f"ä, {i}", "seed": i, "sup": i / 3, "zs": None, "labels": json.dumps({"a": "1"})} for i in range(count)
    ]


@pytest.mark.parametrize("count", [0, 1, 9, 10, 11])
def test_both_files_hold_the_same(count, tmp_path, monkeypatch):
    monkeypatch.setattr(write, "GROUP", 5)
    write_view(tmp_path, "results", RESULTS, iter(rows(count)))
    table = pq.read_table(tmp_path / "results.parquet")
    assert table.column_names == list(RESULTS)
    assert [{k: v for k, v in row.items() if k in rows(1)[0]} for row in table.to_pylist()] == rows(count)
    with (tmp_path / "results.csv").open(newline="", encoding="utf-8") as handle:
        text = list(csv.DictReader(handle))
    assert [(row["cell"], row["sup"], row["zs"]) for row in text] == [
        (row["cell"], str(row["sup"]), "") for row in rows(count)
    ]
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    write_view(tmp_path, "results", RESULTS, rows(count))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_rows_are_not_held_all_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "GROUP", 10)
    alive, most = set(), 0

    class Row(dict[str, int]):
        def __del__(self):
            alive.discard(self["value"])

    def many():
        nonlocal most
        for i in range(200):
            alive.add(i)
            most = max(most, len(alive))
            yield Row(value=i)

    write_view(tmp_path, "many", {"value": MEASURES["layer"]}, many())
    assert pq.read_table(tmp_path / "many.parquet")["value"].to_pylist() == list(range(200))
    assert most < 40


# --- from stages to rows ---


def cell(name="c", pretrain=None, tasks=(), probes=(), language=None, **labels):
    named = dict.fromkeys(tasks, SimpleNamespace(language=language))
    own = {"tasks": named, "probes": probes, "probed_checkpoints": lambda _: {}}
    return SimpleNamespace(name=name, labels=labels, pretrain=pretrain, **own)


RUN = PretrainConfig.model_validate(
    {"source": "text:a", "language": "trans", "seed": 7, "steps": 9, "objective": {"kind": "mlm"}}
)
SCORES = {"task": "pos", "metric": "accuracy", "parent": 9.0, "sup": 8.0, "zs": 5.0, "delta": 3.0, "language": "es"}

MORE: dict[str, Any] = {"scores": {"zs": {"accuracy": 5.0}, "mixed question": {"accuracy": 4.0, "f1": 1.0}}}
MORE["majority"] = {"parent": 2.0, "sup": 3.5, "zs": 3.0}

FITS = {
    "source": [{"moved": {"embeddings": 0.1, "layers": 0.3}}, {"moved": {"embeddings": 0.0, "layers": 0.30006}}],
    "target": [{"moved": {"embeddings": 9.0, "layers": 9.0}}],
}
"""Of a search that keeps two settings."""


@pytest.fixture
def store(tmp_path):
    made = Store(tmp_path / "store")
    for task, seed in (("pos", 0), ("pos", 3), ("ner", 0), ("ner", 3)):
        path = made.path("transfer", f"{task}{seed}") / "result.json"
        more = {"fits": FITS} if (task, seed) == ("pos", 3) else {}
        write_json(
            path, {**SCORES, **MORE, **more, "task": task, "seed": seed, "drops": {"test": {"too long": seed + 1}}}
        )
    for kind, name, counts in (
        ("pretrain", "pp", {"trans train": {}}),
        ("pretrain", "p2", {"trans train": {"too long": 3}, "inv train": {"too long": 9}}),
        ("pretrain", "p3", {"trans train": {"too long": 7, "torn": 2}}),
        ("adjust", "aa", {"es": {"links not one to one": 5}}),
    ):
        write_json(made.path(kind, name) / "done.json", {"counts": counts})
    line = {"step": 9, "loss": 2.0, "validation/parent": 6.50001, "validation/trans": 8.0}
    (made.path("pretrain", "pp") / "metrics.jsonl").write_text(json.dumps(line) + "\n")
    write_json(made.path("alignment", "al") / "result.json", {"types": 1, "scores": None})
    write_json(made.path("probe", "pr") / "probes.json", {"model": "m", "probes": {"words": {"types": 1.0}}})
    return made


def rows_of(made, done):
    """The rows of results.csv."""
    return list(result_rows(made.scores(done)))


def measures_of(made, done):
    """The rows of measures.csv."""
    return [measure_row(one) for one in made.measures(done)]


WHOLE = {
    **{"pretrain": "pp", "adjust": "aa", "alignment": "al", "probe mine": "pr"},
    **{f"transfer {task} seed {seed}": f"{task}{seed}" for task in ("pos", "ner") for seed in (0, 3)},
}
MADE = {*WHOLE.values()}


def test_rows_of_a_cell(store):
    made = Tables([cell(pretrain=RUN, tasks=["pos", "ner"], probes=["mine"], b="x")], {"c": WHOLE}, [3, 0], store)
    first, *rest = rows_of(made, MADE)
    assert first == {
        **SCORES,
        **{"cell": "c", "labels": '{"b": "x"}', "source": "text:a", "objective": "mlm", "pretrain_seed": 7, "seed": 3},
        # the alignment is that of the run, before it was adjusted
        **{"pretrain": "pp", "adjust": "aa", "probe": None, "transfer": "pos3", "task_name": "pos"},
        **dict.fromkeys(scores.ALIGNMENTS),
        "mixed": '{"question": 4.0}',
        "perplexity": 6.5,
        **{"moved_embeddings": 0.05, "moved_layers": 0.3, "majority": 3.5},
    }
    assert [(row["moved_embeddings"], row["moved_layers"]) for row in rest] == [(None, None)] * 3  # of earlier versions
    assert [(row["task_name"], row["seed"]) for row in rest] == [("pos", 0), ("ner", 3), ("ner", 0)]
    assert all(row.keys() == RESULTS.keys() for row in rest)
    plain = {name: key for name, key in WHOLE.items() if name != "adjust"}
    found = rows_of(Tables([cell(pretrain=RUN, tasks=["pos"])], {"c": plain}, [3], store), MADE)
    assert [(row["adjust"], row["probe"]) for row in found] == [(None, "al")]
    extent = {"least": 1, "most": 4, "stages": 2, "of": 2}
    assert made.dropped(MADE) == {
        "pretrain": {},
        "adjust": {"es": {"links not one to one": {"least": 5, "most": 5, "stages": 1, "of": 1}}},
        **{f"transfer {task}": {"test": {"too long": extent}} for task in ("pos", "ner")},
    }
    measured = [(row["probe"], row["measure"], row["value"]) for row in measures_of(made, MADE)]
    assert measured == [
        ("pretrain", "pretrain.perplexity.parent", 6.5),
        ("pretrain", "pretrain.perplexity.other", 8.0),
        ("mine", "words.types", 1.0),
    ]
    plain_rows = measures_of(Tables([cell(pretrain=RUN)], {"c": plain}, [3], store), MADE)
    assert ("alignment.types", 1.0) in [(row["measure"], row["value"]) for row in plain_rows]
    common = {"cell": "c", "labels": '{"b": "x"}', "pretrain_seed": 7, "layer": None, "step": None}
    assert all(row.items() >= common.items() for row in measures_of(made, MADE))


def aligned(percent):
    return {"scores": {"all": {"cosine": {"forward": percent, "mean": percent}}}}


@pytest.mark.parametrize(("language", "expected"), [("hi", 20.0), ("es", 60.0), (None, 60.0), ("inv", 60.0)])
def test_the_alignment_is_that_of_the_language_that_is_tested(language, expected, store):
    result = {**aligned(60.0), "languages": {"es": aligned(60.0), "hi": aligned(20.0)}}
    write_json(store.path("alignment", "several") / "result.json", result)
    stages = {name: key for name, key in WHOLE.items() if name != "adjust"} | {"alignment": "several"}
    of_one = cell(pretrain=RUN, tasks=["pos", "ner"], language=language)
    made, done = Tables([of_one], {"c": stages}, [0], store), {*stages.values()}
    assert {row["alignment_all"] for row in rows_of(made, done)} == {expected}
    measured = {row["measure"]: row["value"] for row in measures_of(made, done)}
    assert measured["alignment.scores.all.cosine.mean"] == expected


def test_a_cell_that_is_tested_on_the_parent_has_no_alignment(store):
    write_json(
        store.path("alignment", "several") / "result.json", {**aligned(60.0), "languages": {"es": aligned(60.0)}}
    )
    stages = {name: key for name, key in WHOLE.items() if name != "adjust"} | {"alignment": "several"}
    of_parent = cell(pretrain=RUN, tasks=["pos", "ner"], language=RUN.all_languages[0].name)
    made, done = Tables([of_parent], {"c": stages}, [0], store), {*stages.values()}
    assert {(row["alignment_all"], row["probe"]) for row in rows_of(made, done)} == {(None, None)}
    assert {row["probe"] for row in measures_of(made, done)} == {"pretrain"}


def test_rows_of_what_is_done_so_far(store):
    made = Tables([cell(pretrain=RUN, tasks=["pos", "ner"], probes=["mine"])], {"c": WHOLE}, [0, 3], store)
    assert list(rows_of(made, set())) == list(measures_of(made, set())) == []
    for missing in ("pp", "aa", "al"):
        assert list(rows_of(made, MADE - {missing})) == []
    assert [(row["task_name"], row["seed"]) for row in rows_of(made, MADE - {"pos0"})] == [
        ("pos", 3),
        ("ner", 0),
        ("ner", 3),
    ]


def test_the_table_and_its_views_are_read_alike(store, tmp_path):
    """An archive has the views alone; its table is the same, with what follows from the names of measures."""
    write_json(store.path("alignment", "al") / "result.json", {"types": 1, **aligned(60.0)})
    plain = {name: key for name, key in WHOLE.items() if name != "adjust"}
    cells = [
        cell(pretrain=RUN, tasks=["pos", "ner"], probes=["mine"], b="x"),
        cell("d", pretrain=RUN, tasks=["pos"], b="y"),
    ]
    stages = {"c": WHOLE, "d": plain}
    rows = list(Tables(cells, stages, [3, 0], store).measurements(MADE))
    write_measurements(tmp_path, rows, AxisColumns(cells))
    whole = read_table(tmp_path, stages)
    assert len(whole) == sum(row.value is not None for row in rows) and set(whole["probe"]) > {"", "mine", "alignment"}
    assert {of.mapping["b"] for of in whole["labels"]} == {"x", "y"}
    assert not set(whole["unit"]) & {""} and whole["least"].notna().all()
    before = {path.name: path.read_bytes() for path in tmp_path.glob("*.*")}
    write_measurements(tmp_path, rows, AxisColumns(cells))
    assert {path.name: path.read_bytes() for path in tmp_path.glob("*.*")} == before
    (tmp_path / MEASUREMENTS).unlink()
    archived = read_table(tmp_path, stages)
    for table in (whole, archived):
        for name in table.select_dtypes("category"):
            table[name] = table[name].astype(object)
    pd.testing.assert_frame_equal(whole, archived)


def test_what_pretrainings_dropped_is_counted_once_for_each(store):
    """Cells 1 and 4 share a run; nothing of a run that is not done is said."""
    of_cell = {f"c{i}": {"pretrain": key} for i, key in enumerate(("p2", "pp", "p3", "p4", "p2"))}
    made = Tables([cell(name) for name in of_cell], of_cell, [0], store)
    assert made.dropped({"p2", "pp", "p3"}) == {
        "pretrain": {
            "trans train": {
                "too long": {"least": 0, "most": 7, "stages": 2, "of": 3},
                "torn": {"least": 0, "most": 2, "stages": 1, "of": 3},
            },
            "inv train": {"too long": {"least": 9, "most": 9, "stages": 1, "of": 1}},
        }
    }
    assert made.dropped(set()) == {}


def test_what_a_text_to_align_lost_in_a_transfer_is_told(store):
    aligned = {"es": {"fingerprint": "x", "counts": {"links not one to one": 2}}}
    record = {**SCORES, **MORE, "seed": 0, "drops": {}, "aligned": aligned}
    write_json(store.path("transfer", "t") / "result.json", record)
    found = Tables([cell(tasks=["pos"])], {"c": {"transfer pos seed 0": "t"}}, [0], store).dropped({"t"})
    extent = {"least": 2, "most": 2, "stages": 1, "of": 1}
    assert found == {"transfer pos": {"aligned text es": {"links not one to one": extent}}}


def test_rows_of_a_model_that_was_not_pretrained_here(store):
    plain = {"transfer pos seed 0": "pos0"}
    (row,) = rows_of(Tables([cell(tasks=["pos"])], {"c": plain}, [0], store), MADE)
    names = ("source", "objective", "pretrain_seed", "pretrain", "adjust", "probe", "perplexity")
    assert [row.get(name) for name in names] == [None] * 7
    assert row["sup"] == 8.0 and row["alignment_all"] is None
