"""Natural languages of a study: tasks and probes find the language of a run themselves, as on the command line."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from probes.study.cells import expand
from probes.study.config import StudyConfig
from synthlang.config import parse
from tests.refusals import refusal

EN, FR, DE = ({"name": name, "source": f"lines:{name}"} for name in ("en", "fr", "de"))
MIXED = {"name": "hi", "source": "lines:en", "language": "trans"}
PAIRS = {"x": {"kind": "text", "joint": "pairs.txt"}}
TARGET = {"test": "conllu:fr"}
CKA, WORDS = {"probes": ["cka"], "pairs": PAIRS}, {"probes": ["words"]}


def cell_of(languages, **parts: Any):
    study = {"name": "n", "tasks": {}, "pretrain": {"languages": languages, "vocabulary": {"kind": "joint"}}, **parts}
    (cell,) = expand(parse(StudyConfig, study))
    return cell


@pytest.mark.parametrize(
    ("languages", "probe", "found"),
    [
        ([EN, FR], CKA, ("fr", True)),
        ([EN, FR], WORDS, ("fr", True)),
        ([EN, FR], {**CKA, "language": "fr"}, ("fr", True)),
        ([EN, FR], {**CKA, "natural": True}, ("fr", True)),
        ([EN, FR, DE], {**CKA, "language": "de"}, ("de", True)),
        ([EN, FR], {**CKA, "language": "trans"}, ("trans", False)),
        ([EN, FR, MIXED], CKA, (None, False)),
        ([EN, FR, MIXED], {**CKA, "language": "fr"}, ("fr", True)),
        ([EN, FR], {**CKA, "model2": "other"}, (None, False)),
    ],
)
def test_a_probe_finds_the_natural_language_of_its_run(languages, probe, found):
    config = cell_of(languages, probes={"p": probe}).probes["p"]
    assert (config.language, config.natural) == found


@pytest.mark.parametrize(
    ("languages", "task", "found"),
    [
        ([EN, FR], {"target": TARGET}, "fr"),
        ([EN, FR, DE], {"target": TARGET, "language": "de"}, "de"),
        ([EN, FR], {"language": "trans"}, "trans"),
        ([EN, FR, MIXED], {}, None),
    ],
)
def test_a_task_finds_the_natural_language_of_its_run(languages, task, found):
    assert cell_of(languages, tasks={"pos": task}).tasks["pos"].language == found


@pytest.mark.parametrize(
    ("languages", "parts", "place", "named"),
    [
        ([EN, FR], {"probes": {"p": {"probes": ["cka"]}}}, "probes.p.pairs", "fr is not derived"),
        ([EN, FR, DE], {"probes": {"p": CKA}}, "probes.p.language", "set this key to one of fr, de"),
        ([EN, FR, DE], {"tasks": {"pos": {"target": TARGET}}}, "tasks.pos.language", "set this key to one of fr, de"),
        (
            [EN, FR],
            {"tasks": {"pos": {}}},
            "tasks.pos.target",
            "set target.test, for SUP also target.train, and set train",
        ),
    ],
)
def test_one_refusal_names_all_that_is_missing(languages, parts, place, named):
    error = refusal(cell_of, languages, **parts)
    assert (".".join(error.keys), error.code) == (place, "missing") and named in str(error)


def test_the_example_of_the_document():
    document = (Path(__file__).parents[1] / "docs" / "studies.md").read_text(encoding="utf-8")
    found = re.search(r"```yaml natural\n(.*?)```", document, re.DOTALL)
    assert found
    (cell,) = expand(parse(StudyConfig, yaml.safe_load(found[1])))
    assert (cell.tasks["pos"].language, cell.probes["cka"].language, cell.probes["cka"].natural) == ("fr", "fr", True)
