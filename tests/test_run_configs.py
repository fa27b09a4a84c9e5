"""The configs of the papers' rows: one for each, at three sizes that differ in size only; the tiny ones train.

What their settings are is pinned in test_study_configs_golden.py."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from synthlang.catalogue import load_yaml, names
from synthlang.config import load, override
from synthlang.store import Store
from tests.refusals import refusal

SIZES = ("paper", "lab", "tiny")
NAMES = sorted(name.removesuffix("/paper") for name in names("runs") if name.endswith("/paper"))
EVERY = [(size, name) for size in SIZES for name in NAMES]
# keys in which the sizes of a row may differ
SIZE = re.compile(
    r"steps|source|vocabulary\.size|model\..*|objective\.mask_rate|batch\.(rows|length)|validation\..*|precision|processes"
    r"|optimizer\.(?!schedule).*|checkpoints\.(?!select).*|log_every|start\.(model|extend\.size)"
    r"|sampling\.batches|batch\.packing|dictionary\.order"  # the latter two of small models only, see below
)


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """Return the settings that a user must give: a dictionary where the config has a placeholder for it."""
    muse = tmp_path_factory.mktemp("muse") / "en-xx.txt"
    muse.write_text("house maison\n", encoding="utf-8")

    def read(size: str, name: str) -> dict[str, Any]:
        data = load_yaml(f"{name}/{size}", "runs")
        if "extra_anchors" not in name or size == "tiny":
            return data
        return override(data, [f"languages.{i}.language.transforms.0.dictionary={muse}" for i in (0, 1)])

    return read


@pytest.fixture(scope="module")
def configs(given):
    return {(s, n): PretrainConfig.model_validate(given(s, n)) for s, n in EVERY}


def flat(data: Any, prefix: str = "") -> dict[str, Any]:
    """Values under dotted keys; a list is a value."""
    if not isinstance(data, dict):
        return {prefix.strip("."): data}
    return {k: v for name, value in data.items() for k, v in flat(value, f"{prefix}.{name}").items()}


@pytest.mark.parametrize("size", ["paper", "lab"])
def test_a_dictionary_that_was_not_given_is_one_line_that_says_how(size):
    error = refusal(load, PretrainConfig, f"emerging-extra_anchors/en-fr/{size}", kind="runs")
    assert error.code == "missing" and error.keys[2:] == ("language", "transforms", "0", "dictionary")
    assert "NAME-THE-MUSE-FILE-FROM-ENGLISH-WITH--set-languages.0.language.transforms.0.dictionary=FILE" in str(error)


@pytest.mark.parametrize("name", NAMES)
def test_the_sizes_of_a_row_differ_in_size_only(name, configs):
    paper, *others = [configs[size, name] for size in SIZES]
    for other in others:
        a, b = flat(paper.model_dump(mode="json")), flat(other.model_dump(mode="json"))
        # a natural pair becomes a derived one at tiny size; names and number stay
        differ = {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)} - {"languages"}
        assert not [key for key in differ if not SIZE.fullmatch(key)]
        assert other is others[-1] or "dictionary.order" not in differ
        assert other.batch.packing in {paper.batch.packing, "sentence"}
        assert [m.name for m in paper.all_languages] == [m.name for m in other.all_languages]
    texts = [repr(configs[size, name].languages).replace("weighted", "uniform") for size in ("paper", "lab")]
    assert texts[0] == texts[1], "but for how translations are drawn, as printed"


@pytest.mark.parametrize("name", NAMES)
def test_tiny_runs_need_nothing_but_the_built_in_source(name, configs):
    config = configs["tiny", name]
    assert all(member.source.startswith("builtin:mini-english") for member in config.all_languages)
    assert config.steps * config.batch.rows * config.batch.length <= 8.2e6  # tokens: two or three minutes
    assert config.dictionary.path is None and not config.parallel and not config.trackers
    assert config.precision == "float32" and config.processes is None


TRAINED = ["xlm/trans+inv-overlap25", "dict_mlm/trans+syn", "mlm/trans+inv-tokens"]
TRAINED += ["emerging-extra_anchors/en-zh", "emerging-wiki_cc/en-fr"]
TRAINED += ["emerging-sep_emb+l1-3/en-fr", "emerging-sep_emb/en-en2"]
LESS = ["steps=2", "optimizer.warmup_steps=1", "validation={every: 2, rows: 64}", "checkpoints.every=2"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def train(name: str, folder: Path, *assignments: str) -> Path:
    """Two steps of a tiny config on little text; returns the run folder."""
    data = load_yaml(f"{name}/tiny", "runs")
    data = json.loads(json.dumps(data).replace("types=500&sentences=10000", "types=500&sentences=300&dev=60&test=0"))
    smaller = ["vocabulary.size=500"] if "vocabulary" in data else []
    config = PretrainConfig.model_validate(override(data, [*LESS, *smaller, *assignments]))
    run = folder / name
    pretrain(config, run, Store(folder / "store"))
    row = json.loads((run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    names = {member.name for member in config.all_languages}
    assert row["step"] == 2
    assert row["loss"] < 20
    assert set(config.objective.terms) <= row.keys()
    assert {key.removeprefix("validation/") for key in row if key.startswith("validation/")} == names
    assert {path.name for path in (run / "export").iterdir()} == names
    return run


@pytest.mark.parametrize("name", TRAINED)
def test_it_trains(name, folder):
    train(name, folder)


def test_e_mbert_goes_on_from_a_model_of_its_size(folder):
    start = train("emerging-mono/en", folder) / "export" / "en"
    train("e_mbert/hi", folder, f"start.model={start}", "start.extend.size=40")
