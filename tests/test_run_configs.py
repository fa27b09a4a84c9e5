"""The configs of the papers' rows: there is one for each, at three sizes that differ in size only."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from pretrain.config import PretrainConfig
from synthlang.config import load, load_yaml, override
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint

RUNS = Path(__file__).parents[1] / "configs" / "runs"
SIZES = ("paper", "lab", "tiny")
NAMES = sorted(path.stem for path in (RUNS / "paper").glob("*.yaml"))
EVERY = [(size, name) for size in SIZES for name in NAMES]
OBJECTIVES, DERIVED = ("mlm", "xlm", "dict_mlm", "align_mlm"), ("trans", "trans+inv", "trans+syn")
PAIRS = ("fr", "ru", "zh")

# ALIGN-MLM; table 1 is part of 6, table 2 is 4, figures 1 to 3 and table 8 are of the runs of table 3
ALIGN: dict[str, dict[str, str]] = {
    "table 3": {f"{o} {t}": f"{o}-{t}" for o in OBJECTIVES for t in DERIVED},
    "table 4": {"25%": "{}-trans+inv", "50%": "{}-trans+inv-dict50"},  # columns DICT and ALIGN
    "table 5": {"25%": "{}-trans+syn", "50%": "{}-trans+syn-dict50"},
    "table 6": {"25%": "xlm-trans+inv"} | {f"{r}%": f"xlm-trans+inv-parallel{r}" for r in (1, 10, 100)},
    "table 7": {"0%": "xlm-trans+inv"} | {f"{p}%": f"xlm-trans+inv-overlap{p}" for p in (25, 50)},
    "appendix G.5": {"10": "align_mlm-trans+inv"} | {f"{a}": f"align_mlm-trans+inv-alpha{a}" for a in (1, 100)},
    "appendix G.2": {"Deshpande et al., tokens inverted": "mlm-trans+inv-tokens"},
}
# Emerging Cross-lingual Structure, table 1 (figure 3 shows it; figures 5 and 8 use Default)
ROWS = {
    "Default": "default",
    "Wiki-CC": "wiki_cc",
    "Default anchors": "default_anchors",
    "No anchors": "no_anchors",
    "Extra anchors": "extra_anchors",
    "Sep Emb": "sep_emb",
    "Sep Emb + L1-3": "sep_emb+l1-3",
    "Sep Emb + L1-6": "sep_emb+l1-6",
    "Sep L1-3": "sep_l1-3",
    "Sep L1-6": "sep_l1-6",
}
EMERGING = {f"{row} {pair}": f"emerging-{name}-{pair}" for row, name in ROWS.items() for pair in PAIRS}
# figures 2 and 4 to 7: monolingual models (en2 is en', another seed), and the bilingual ones of figure 7
FIGURES = {f"mono {x}": f"emerging-mono-{x}" for x in ("en", "en2", "fr", "de", "ru", "zh")}
FIGURES |= {"en-en'": "emerging-sep_emb-en2", "en-de": "emerging-default-de"}
OTHERS = {
    "Cross-lingual Adjustment, table 9": "e_mbert-hi"
}  # other rows of that paper start from mBERT: configs/adjust

# keys in which the sizes of a row may differ
SIZE = re.compile(
    r"steps|source|vocabulary\.size|model\..*|objective\.mask_rate|batch\.(rows|length)|validation\..*|precision|processes"
    r"|optimizer\.(?!schedule).*|checkpoints\.(?!select).*|log_every|start\.(model|extend\.size)"
)


def files_of(path: str) -> set[str]:
    """The names of the configs that a paper needs."""
    return {path.format(o) for o in ("dict_mlm", "align_mlm")} if "{}" in path else {path}


def expected_names() -> set[str]:
    """Of all papers."""
    tables = [*ALIGN.values(), EMERGING, FIGURES, OTHERS]
    return {name for table in tables for pattern in table.values() for name in files_of(pattern)}


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What a user must give: a dictionary where the config has a placeholder for it."""
    muse = tmp_path_factory.mktemp("muse") / "en-xx.txt"
    muse.write_text("house maison\n", encoding="utf-8")

    def read(size: str, name: str) -> dict[str, Any]:
        data = load_yaml(RUNS / size / f"{name}.yaml")
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


@pytest.mark.parametrize("size", SIZES)
def test_every_row_of_the_papers_has_a_config_and_no_config_is_without(size):
    assert {path.stem for path in (RUNS / size).glob("*")} == expected_names()
    assert len(expected_names()) == 63


def test_parts_are_used_and_say_what_they_are():
    """A part that nothing is based on is a mistake; every part begins with a comment."""
    used = set()
    files = list(RUNS.rglob("*.yaml"))
    for path in files:
        bases = re.match(r"(?:#.*\n)*base: (.*)", path.read_text(encoding="utf-8"))
        if bases:
            used |= {(path.parent / b.strip()).resolve() for b in bases[1].strip("[]").split(",")}
    studies = (RUNS.parent / "studies" / "sizes").glob("*.yaml")
    named = (name for path in studies for name in re.findall(r"runs/sizes/[\w.-]+", path.read_text(encoding="utf-8")))
    used |= {(RUNS.parent / name).resolve() for name in named}
    parts = [path for path in files if path.parent.name not in SIZES]
    parts += [path for path in files if path.parent == RUNS / "languages" / "tiny"]
    assert {p.resolve() for p in parts} <= used
    assert all(p.read_text(encoding="utf-8").startswith("# ") for p in parts)


@pytest.mark.parametrize(("size", "name"), EVERY)
def test_it_parses_strictly(size, name, given, tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(json.dumps(given(size, name)), encoding="utf-8")
    config = load(PretrainConfig, path)
    assert config.all_languages[0].name
    assert ("mini-english" in config.all_languages[0].source) == (size == "tiny")


@pytest.mark.parametrize("size", ["paper", "lab"])
def test_a_dictionary_that_was_not_given_is_one_line_that_says_how(size):
    with pytest.raises(
        InputError, match=r"NAME-THE-MUSE-FILE-FROM-ENGLISH-WITH--set-languages\.0\.\S+=FILE: no such file"
    ):
        load(PretrainConfig, RUNS / size / "emerging-extra_anchors-fr.yaml")


@pytest.mark.parametrize("name", NAMES)
def test_the_sizes_of_a_row_differ_in_size_only(name, configs):
    paper, *others = [configs[size, name] for size in SIZES]
    for other in others:
        a, b = flat(paper.model_dump(mode="json")), flat(other.model_dump(mode="json"))
        # a natural pair becomes a derived one at tiny size; names and number stay
        differ = {key for key in a.keys() | b.keys() if a.get(key) != b.get(key)} - {"languages"}
        assert not [key for key in differ if not SIZE.fullmatch(key)]
        assert [m.name for m in paper.all_languages] == [m.name for m in other.all_languages]
    assert configs["paper", name].languages == configs["lab", name].languages


def identity(config: PretrainConfig) -> str:
    """What the weights depend on, with the data artifacts named by what they are made from."""
    members = {
        f"member {i}": fingerprint("m", s=m.source, l=m.language.fingerprint)
        for i, m in enumerate(config.all_languages)
    }
    data = [config.vocabulary.model_dump(), config.start and config.start.model_dump()]
    if config.objective.needing("dictionary"):
        data.append(config.dictionary.model_dump(mode="json"))
    return config.fingerprint(members | {"data": json.dumps(data)})


@pytest.mark.parametrize("size", SIZES)
def test_no_two_rows_are_the_same_run(size, configs):
    found: dict[str, list[str]] = {}
    for name in NAMES:
        found.setdefault(identity(configs[size, name]), []).append(name)
    assert [names for names in found.values() if len(names) > 1] == []


def test_what_identity_and_size_mean(configs):
    """They would see a copy of a row, and a row that changes with its size."""
    one, two = configs["lab", "emerging-mono-en"], configs["lab", "emerging-mono-en2"]
    assert identity(one) == identity(two.model_copy(update={"seed": 0}))
    assert identity(one) == identity(one.model_copy(update={"log_every": 7}))
    kept = [
        "language",
        "seed",
        "objective.alpha",
        "objective.kind",
        "batch.packing",
        "optimizer.schedule",
        "sharing.layers",
    ]
    kept += [
        "vocabulary.kind",
        "checkpoints.select",
        "dictionary.coverage",
        "sampling.exponent",
        "start.extend.initialise",
    ]
    assert not [key for key in kept if SIZE.fullmatch(key)]


@pytest.mark.parametrize("name", NAMES)
def test_tiny_runs_need_nothing_but_the_built_in_source(name, configs):
    config = configs["tiny", name]
    assert all(member.source.startswith("builtin:mini-english") for member in config.all_languages)
    assert config.steps * config.batch.rows * config.batch.length <= 6e6  # tokens: two minutes
    assert config.dictionary.path is None and not config.parallel and not config.trackers
    assert config.precision == "float32" and config.processes is None


def test_what_the_papers_print(configs):
    """ALIGN-MLM, table 10; Emerging Cross-lingual Structure, section 3.1 and table 1."""
    align = configs["paper", "align_mlm-trans+inv"]
    assert (align.model.heads, align.model.layers, align.model.hidden, align.steps) == (8, 8, 512, 500_000)
    assert (align.batch.rows, align.batch.length) == (128, 512)
    assert (align.optimizer.learning_rate, align.optimizer.warmup_steps) == (1e-4, 10_000)
    assert align.vocabulary.size == 40_000 and align.objective.alpha == 10
    for name in (n for n in NAMES if n.startswith("emerging-")):
        config = configs["paper", name]
        shape = config.model
        assert (shape.layers, shape.heads, shape.hidden, shape.feed_forward) == (8, 12, 768, 3072)
        assert (config.batch.rows, config.processes, config.batch.length) == (8 * 96, 8, 256)
        assert config.optimizer.schedule == "inverse_sqrt" and config.optimizer.warmup_steps == 30_000
        assert config.sampling.exponent == 0.7 and config.checkpoints.select == "best"
        assert config.vocabulary.size - 261 == (80_000 if config.vocabulary.kind == "joint" else 40_000)


# of the columns of table 1: BPE merges and anchor points, shared parameters, softmax ("-" is as Default)
TABLE_1: dict[str, tuple[str, str, list[int], str]] = {
    "default": ("joint", "shared", [], "shared"),
    "wiki_cc": ("joint", "shared", [], "shared"),
    "default_anchors": ("joined", "shared", [], "shared"),
    "no_anchors": ("prefixed", "shared", [], "shared"),
    "extra_anchors": ("joint", "shared", [], "shared"),
    "sep_emb": ("joined", "separate", [], "language"),
    "sep_emb+l1-3": ("joined", "separate", [1, 2, 3], "language"),
    "sep_emb+l1-6": ("joined", "separate", [1, 2, 3, 4, 5, 6], "language"),
    "sep_l1-3": ("joined", "shared", [1, 2, 3], "shared"),
    "sep_l1-6": ("joined", "shared", [1, 2, 3, 4, 5, 6], "shared"),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("row", TABLE_1)
def test_the_columns_of_table_1(size, row, configs):
    assert set(TABLE_1) == set(ROWS.values())
    joint = configs[size, "emerging-default-fr"].vocabulary.size
    for pair in PAIRS:
        config = configs[size, f"emerging-{row}-{pair}"]
        sharing, size_ = config.sharing, config.vocabulary.size
        assert (config.vocabulary.kind, sharing.embeddings, [*sharing.layers], sharing.softmax) == TABLE_1[row]
        # 80k merges for both, or 40k for each: 261 tokens are no merges
        assert size_ == (joint if TABLE_1[row][0] == "joint" else joint // 2 + (131 if size == "paper" else 0))
        assert config.objective.random_words == ("same-language" if row.startswith("sep_") else "all")
        switched = [any(t.kind == "code_switch" for t in m.language.transforms) for m in config.all_languages]
        assert switched == [row == "extra_anchors"] * 2
        assert [
            m.source != configs[size, f"emerging-default-{pair}"].all_languages[i].source
            for i, m in enumerate(config.all_languages)
        ] == [False, row == "wiki_cc"]


def training_flops(config: PretrainConfig) -> float:
    """3 × those of the forward pass: layers, attention, output at the slots; a multiplication and an addition are 2."""
    shape, length = config.model, config.batch.length
    d, scripts = shape.hidden, 1 if config.vocabulary.kind == "joint" else len(config.all_languages)
    layers = shape.layers * (2 * (4 * d * d + 2 * d * shape.feed_forward) + 4 * length * d)
    output = config.objective.mask_rate * 2 * (d * d + d * config.vocabulary.size * scripts)
    return 3 * (layers + output) * config.steps * config.batch.rows * length


@pytest.mark.parametrize("name", NAMES)
def test_lab_runs_fit_into_eight_minutes_of_an_h200(name, configs):
    config = configs["lab", name]
    if config.start is not None:  # mBERT: 86 million parameters in its layers
        flops = 3 * (2 * 86e6 + 0.15 * 2 * 768 * 130_000) * config.steps * config.batch.rows * config.batch.length
    else:
        flops = training_flops(config)
    assert flops / (0.4 * 989e12) < 300  # seconds; the rest is for reading, vocabulary, shards and compilation
