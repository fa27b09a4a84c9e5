"""The meaning of the config of a run, and contradictions that are refused before any work."""

from typing import Any

import pytest

from pretrain.config import ObjectiveConfig, PretrainConfig
from pretrain.run import effective_batch
from synthlang.config import dump_yaml, parse
from synthlang.smoke import smaller
from synthlang.strict_yaml import parse_yaml
from tests.refusals import place_and_code, refusal, refused
from tests.tiny import PRETRAIN, changed

NATURAL: dict[str, Any] = {
    "languages": [{"name": "en", "source": "lines:a.en"}, {"name": "fr", "source": "lines:a.fr"}],
    "vocabulary": {"kind": "joint", "size": 300},
    "objective": {"kind": "mlm"},
}
LINES = ["lines:a", "lines:b"]


def config_of(**values):
    return parse(PretrainConfig, changed(PRETRAIN, **values))


def natural(**values):
    data = {k: v for k, v in PRETRAIN.items() if k not in ("source", "language")}
    return parse(PretrainConfig, changed(data | NATURAL, **values))


@pytest.mark.parametrize(
    ("values", "place", "code"),
    [
        ({"language": "inv"}, "objective", "missing"),
        ({"objective__kind": "dict_mlm", "language": "inv"}, "objective", "missing"),
        ({"vocabulary": {"kind": "joint", "size": 300}}, "objective", "missing"),
        ({"vocabulary": {"size": 2_000_000_000}}, "vocabulary.size", "range"),
        ({"model__heads": 3}, "model.hidden", "conflict"),
        ({"model": {"heads": 3}}, "model.heads", "conflict"),
        ({"model": {"hidden": 64, "output": "linear"}}, "model.output", "conflict"),
        ({"model__positions": 32}, "model.positions", "conflict"),
        ({"objective": {"kind": "sum"}}, "objective.weights", "missing"),
        ({"objective": {"kind": "sum", "weights": {"align": 1}}}, "objective.weights", "missing"),
        ({"objective": {"kind": "mlm", "weights": {"mlm": -1.0}}}, "objective.weights.mlm", "range"),
        ({"objective": {"kind": "align_mlm", "weights": {"align": 1.0}}}, "objective.weights.align", "conflict"),
        ({"objective__kind": "xlm", "batch__length": 49}, "batch.length", "conflict"),
        ({"objective__kind": "xlm", "language": "parent"}, "objective", "missing"),
        ({"sharing": {"layers": [2]}}, "sharing.layers", "range"),
        ({"sharing": {"layers": [0]}}, "sharing.layers", "range"),
        ({"sharing": {"layers": [1, 1]}}, "sharing.layers", "duplicate"),
        ({"sharing": {"embeddings": "separate", "softmax": "shared"}}, "sharing.softmax", "conflict"),
        ({"sharing": {"embeddings": "separate"}, "objective__kind": "dict_mlm"}, "sharing.embeddings", "conflict"),
        ({"sharing": {"softmax": "language"}, "objective__kind": "dict_mlm"}, "sharing.softmax", "conflict"),
        ({"objective__kind": "clm"}, "objective", "conflict"),
        ({"model__kind": "gpt2"}, "model.kind", "conflict"),
        ({"sharing": {"layers": [1]}, "language": "parent", "objective__kind": "mlm"}, "sharing", "no_effect"),
        ({"dictionary__coverage": 0.0}, "dictionary.coverage", "conflict"),
        ({"languages": ["trans"]}, "languages", "conflict"),
        ({"language": None}, "language", "missing"),
        ({"source": ""}, "source", "missing"),
        ({"language": None, "languages": ["trans", "trans"]}, "languages", "duplicate"),
        ({"language": None, "languages": [{"name": "a/b"}]}, "languages.0.name", "format"),
        ({"checkpoints": {"every": 4, "archive": 6}}, "checkpoints.archive", "conflict"),
        ({"checkpoints": {"at": [2, 7]}}, "checkpoints.at.1", "range"),
        ({"checkpoints": {"at": [1.5]}}, "checkpoints.at.0", "range"),
        ({"checkpoints": {"at": [0]}}, "checkpoints.at.0", "range"),
        ({"checkpoints": {"at": []}}, "checkpoints.at", "empty"),
        ({"checkpoints": {"at": {"log": 1}}}, "checkpoints.at.log", "range"),
        ({"checkpoints": {"at": {"log": 3, "first": 7}}}, "checkpoints.at.first", "range"),
        ({"checkpoints": {"select": "best"}, "validation__every": 0}, "checkpoints.select", "missing"),
        ({"start": {"model": "x"}}, "vocabulary", "no_effect"),
    ],
)
def test_contradictions(values, place, code):
    assert refused(config_of, **values) == (place, code)


@pytest.mark.parametrize(
    ("values", "place", "code"),
    [
        ({"objective": {"kind": "xlm"}}, "objective", "missing"),
        ({"objective": {"kind": "align_mlm"}}, "objective", "missing"),
        ({"sharing": {"softmax": "language"}}, "sharing.softmax", "no_effect"),
        ({"languages": [{"name": "en"}]}, "languages.0.source", "missing"),
        ({"parallel": [{"languages": ["en", "de"], "sources": LINES}]}, "parallel.0.languages", "unknown"),
        ({"parallel": [{"languages": ["en", "en"], "sources": LINES}]}, "parallel.0.languages", "duplicate"),
        (
            {"parallel": [{"languages": ["en", "fr"], "sources": ["text:a", "lines:b"]}]},
            "parallel.0.sources.0",
            "conflict",
        ),
    ],
)
def test_contradictions_of_natural_languages(values, place, code):
    assert refused(natural, **values) == (place, code)


def scheduled(*stages, **sampling):
    """Settings with stages (start, share of parent, share of trans+inv)."""
    schedule = [{"start": start, "shares": {"parent": one, "trans+inv": two}} for start, one, two in stages]
    return {"sampling": {"schedule": schedule} | sampling}


@pytest.mark.parametrize(
    ("values", "place", "code", "text"),
    [
        (scheduled((0, 1, 1), (3, 1, 2), (3, 1, 3)), "2.start", "conflict", "at step 3, which is not after"),
        (scheduled((0, 1, 1), (0.5, 1, 2), (2, 1, 3)), "2.start", "conflict", "at step 2, which is not after"),
        (scheduled((0, 1, 1), (0.1, 2, 1)), "1.start", "conflict", "at step 0, which is not after"),
        (scheduled((0, 1, 1), (6, 2, 1)), "1.start", "range", "at step 6, but the run has only 6 steps"),
        (scheduled((0, 1, 1), (2.5, 2, 1)), "1.start", "range", "2.5 is neither a whole number of steps nor a share"),
        (scheduled((0, 1, 1), (-1, 2, 1)), "1.start", "range", "must be greater than or equal to 0"),
        (scheduled((1, 1, 1)), "0.start", "range", "the first stage starts at 1, not at 0"),
        (scheduled((0, 1, 1), (3, 0, 0)), "1.shares", "range", "all shares are 0"),
        (scheduled((0, 1, -1)), "0.shares.trans+inv", "range", "must be greater than or equal to 0"),
        ({"sampling": {"schedule": [{"start": 0, "shares": {}}]}}, "0.shares", "empty", "the stage has no shares"),
        (
            {"sampling": {"schedule": [{"start": 0, "shares": {"parent": 1}}]}},
            "0.shares",
            "conflict",
            "name exactly the languages of the run: parent, trans+inv",
        ),
        (
            {"sampling": {"schedule": [{"start": 0, "shares": {"parent": 1, "trans+inv": 1, "en": 1}}]}},
            "0.shares",
            "conflict",
            "'en' is not a language of the run; name exactly the languages of the run: parent, trans+inv",
        ),
        (scheduled((0, 1, 1), shares={"parent": 1, "trans+inv": 1}), "", "conflict", "both shares and schedule"),
    ],
)
def test_schedules_that_cannot_be(values, place, code, text):
    error = refusal(config_of, **values)
    assert place_and_code(error) == (".".join(["sampling.schedule", *filter(None, [place])]), code)
    assert text in str(error) and "\n" not in str(error)


def test_stages_start_at_steps_or_shares_of_the_run():
    config = config_of(steps=1000, **scheduled((0, 1, 0), (0.29, 1, 1), (500, 0, 1), (0.9999, 1, 2)))
    assert [stage.first_step(1000) for stage in config.sampling.schedule] == [0, 290, 500, 999]
    assert [stage.first_step(18_265) for stage in config.sampling.schedule] == [0, 5296, 500, 18_263]
    assert config_of(sampling={"schedule": []}) == config_of()


def test_a_smoke_run_has_the_stages_that_its_steps_can_hold():
    config = config_of(steps=1000, **scheduled((0, 1, 0), (10, 0, 1), (500, 1, 1), (0.9, 1, 2)))
    small = smaller(config)
    assert [(stage.start, stage.shares["trans+inv"]) for stage in small.sampling.schedule] == [(0, 1), (10, 1), (18, 2)]
    assert parse(PretrainConfig, parse_yaml(dump_yaml(small), "the config")) == small


def test_members():
    assert [(m.name, m.source) for m in config_of().all_languages] == [
        ("parent", PRETRAIN["source"]),
        ("trans+inv", PRETRAIN["source"]),
    ]
    assert [m.name for m in config_of(language="parent", objective__kind="mlm").all_languages] == ["parent"]
    three = config_of(language=None, languages=["parent", "trans", {"name": "x", "language": "inv"}])
    assert [m.name for m in three.all_languages] == ["parent", "trans", "x"]
    assert three.derived_pairs == ((0, 1), (0, 2))
    assert natural().derived_pairs == ()
    second = [*NATURAL["languages"], {"name": "fr-inv", "source": "lines:a.fr", "language": "inv"}]
    assert natural(languages=second, objective={"kind": "xlm"}).derived_pairs == ((1, 2),)


def test_terms():
    def terms(**values):
        return parse(ObjectiveConfig, values).terms

    assert terms(kind="mlm") == {"mlm": 1.0}
    assert terms(kind="xlm", weights={"tlm": 0.5}) == {"mlm": 1.0, "tlm": 0.5}
    assert terms(kind="align_mlm", alpha=3.0) == {"mlm": 1.0, "align": 3.0}
    assert terms(kind="xlm", weights={"align": 10.0}) == {"mlm": 1.0, "tlm": 1.0, "align": 10.0}
    assert terms(kind="sum", weights={"dict": 1.0}) == {"dict": 1.0}
    on = {kind: parse(ObjectiveConfig, {"kind": kind}).uses_language_ids for kind in ("mlm", "xlm", "dict_mlm")}
    assert on == {"mlm": False, "xlm": True, "dict_mlm": True}
    assert parse(ObjectiveConfig, {"kind": "mlm", "language_ids": True}).uses_language_ids


def test_the_fingerprint_covers_what_matters_and_nothing_else():
    def name(**values):
        return config_of(**values).fingerprint({"parent": "x"})

    plain = name()
    for same in (
        {"log_every": 1},
        {"checkpoints": {"every": 3}},
        {"trackers": ["wandb"]},
        {"processes": 2},
        {"objective__tlm_rate": 0.5},
        {"objective__dict_target": "switched"},
        {"objective__mean_over": "positions"},
        {"compile": "off"},
    ):
        assert name(**same) == plain, same
    changes = (
        {"seed": 1},
        {"objective__alpha": 1.0},
        {"objective__mask_rate": 0.2},
        {"objective__mean_over": "corpora"},
        {"batch__packing": "sentences"},
        {"optimizer__schedule": "cosine"},
        {"sharing": {"layers": [1]}},
        {"sampling": {"exponent": 0.7}},
        {"sampling": {"shares": {"parent": 2, "trans+inv": 1}}},
        {"sampling": {"batches": "one-language"}},
        scheduled((0, 1, 1)),
        scheduled((0, 1, 1), (3, 1, 2)),
        scheduled((0, 1, 1), (4, 1, 2)),
        {"objective__language_ids": True},
        {"objective__random_words": "same-language"},
        {"precision": "bfloat16"},
        {"checkpoints": {"every": 3, "select": "best"}},
    )
    assert len({plain, *(name(**change) for change in changes)}) == len(changes) + 1


def test_a_language_softmax_has_random_words_of_the_same_language():
    parents = {"parent": "x"}
    separate = {"sharing": {"embeddings": "separate"}}
    first, second = (config_of(objective__random_words=w, **separate) for w in ("all", "same-language"))
    assert first.fingerprint(parents) == second.fingerprint(parents)


def test_the_launch_must_fit():
    config = config_of(batch__accumulation=2, processes=2)
    assert config.micro_batches(2) == 4
    assert effective_batch(config, 2) == "a step is 8 rows × 48 = 384 tokens: 2 processes × 2 micro-batches × 2 rows"
    assert refused(config.micro_batches, 1) == ("processes", "conflict")
    assert refused(config_of().micro_batches, 3) == ("batch.rows", "range")
    assert "accumulation" not in refusal(config_of().micro_batches, 3).hint  # no accumulation makes 8 rows a multiple
