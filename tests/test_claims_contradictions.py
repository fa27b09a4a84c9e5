"""What the settings of a study, or a config.json at hand, rule out is one line that names the key, before it runs."""

from typing import Any

import pytest

from probes.study.builder import in_study
from probes.study.checks import check_cells
from probes.transfer.config import TransferConfig
from synthlang.errors import InputError
from tests.test_study_cells import one
from tests.test_study_refused import DERIVED, MONOLINGUAL, bert
from tests.tiny import STUDY

ITEMS = "qa:builtin:mini-english?sentences=50"
ADJUST: dict[str, Any] = {"pairs": {"x": DERIVED}}
PPMI = {"kind": "train", "vectors": {"kind": "ppmi"}}
WORDS = {"probes": ["words"]}
FROZEN = {"tune": "none", "layers": [9]}
NO_LAYER = r"the model has no layer 9; it has 0 \(embeddings\) to 1"


def refused(message, cell):
    with pytest.raises(InputError, match=message) as caught:
        check_cells([cell])
    assert "\n" not in str(caught.value)


def transfer(**values):
    return {"transfer": {"length": 20, **values}}


def probe(**values):
    return {"probes": {"p": values}}


def adjust(**values):
    return {"adjust": {**ADJUST, **values}}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            {"pretrain__batch": {"rows": 3, "accumulation": 2, "length": 48}},
            r"pretrain\.batch\.rows 3 must be a multiple of processes × pretrain.batch.accumulation = 2",
        ),
        ({"pretrain__processes": 4}, "pretrain: processes is 4, the launch has 1"),
        (transfer(task="qa", length=32), "transfer.stride 64 leaves no room|transfer: stride 64 leaves"),
        (transfer(features=FROZEN), rf"transfer\.features\.layers: {NO_LAYER}"),
        (transfer(search={"features.layers": [[0], [9]]}), r".*transfer\.features\.layers: the"),
        ({"tasks": {"pos": {}, "ner": {"features": FROZEN}}}, rf"tasks\.ner\.features\.layers: {NO_LAYER}"),
        (transfer(continual={"loss": {"layers": [9]}}), rf"transfer\.continual\.loss\.layers: {NO_LAYER}"),
        (
            transfer(continual={"data": {"length": 1000}}),
            r"transfer\.continual\.data\.length 1000 is longer than the 48 tokens that the model reads",
        ),
        (transfer(best=3), "transfer: best 3: the search has 1 combination$"),
        (
            transfer(search={"fine_tune.epochs": [0, -1]}),
            r"transfer\.search: .*fine_tune\.epochs: 0 must be .* 1$",
        ),
        (probe(probes=["cka"], layers=[7]), r"probes\.p\.layers: the model has no layer 7"),
        (probe(probes=["distances"], distances={"layer": 7}), r"probes\.p\.distances\.layer: the model has no layer 7"),
        (
            probe(probes=["distances"], layers=[0], distances={"layer": 1}),
            r"probes\.p\.distances\.layer: layer 1 is not among those that are read",
        ),
        (probe(probes=["cka"], data={"length": 1000}), r"probes\.p\.data\.length 1000 is longer than the 48 tokens"),
        (
            probe(**WORDS, language="perm"),
            r"probes\.p\.words: perm is no language of the run, .* with probes\.p\.language \(there is trans\)",
        ),
        (probe(**WORDS, language="parent"), r"probes\.p\.words: parent is the parent itself"),
        (probe(**WORDS, language="nope"), r"probes\.p: no language 'nope' in the run \(there is parent, trans\)"),
        (adjust(loss={"layers": [9]}), rf"adjust\.loss\.layers: {NO_LAYER}"),
        (adjust(data={"length": 1000}), r"adjust\.data\.length 1000 is longer than the 48"),
        (adjust(rows=3, accumulation=2), "adjust: rows 3 must be a multiple of processes"),
    ],
)
def test_settings_that_cannot_be(values, message):
    refused(rf"^tiny: ({message})", one(**values))


@pytest.mark.parametrize(
    "values",
    [
        transfer(features={"tune": "none", "layers": [-2, 1]}, best=2, search={"fine_tune.rows": [4, 8]}),
        {"tasks": {"qa": {"length": 32, "stride": 8}}},
        probe(probes=["cka", "distances"], layers=[-1, 0], distances={"layer": 0}),
        {"probes": {"p": {**WORDS, "language": "trans"}, "q": {"probes": ["cka"], "language": "perm"}}},
        probe(**WORDS, layers=[9]),  # which reads none
        probe(probes=["retrieval"], layers=[9], retrieval={"static": PPMI}),  # nor does this
        adjust(loss={"layers": [-2]}, data={"length": 48}, rows=4, accumulation=2),
        {"pretrain__processes": 1, "pretrain__batch": {"rows": 4, "accumulation": 2, "length": 48}},
    ],
)
def test_settings_at_the_limit_pass(values):
    check_cells([one(**{"transfer": {"length": 32}, **values})])


def test_a_checkpoint_at_hand_has_its_layers(tmp_path):
    named = {"pretrain": None, "source": "", "model": bert(tmp_path / "bert", 64)}
    task = {"language": "trans", "train": "pos:builtin:mini-english?sentences=50", "length": 20}
    probe = {"language": "trans", "pairs": {"x": DERIVED}, "probes": ["cka"]}
    check_cells([one(**named, transfer={**task, "features": {"layers": [2]}}, probes={"p": {**probe, "layers": [2]}})])
    refused(
        r"transfer\.features\.layers: the model has no layer 9; .* to 2",
        one(**named, transfer={**task, "features": FROZEN}),
    )
    refused(r"probes\.p\.layers: .* no layer 3", one(**named, transfer=task, probes={"p": {**probe, "layers": [3]}}))
    adjust = {"pairs": {"x": DERIVED}, "loss": {"layers": [9]}}
    refused(r"adjust\.loss\.layers: .* no layer 9", one(**named, transfer=task, adjust=adjust))
    adjust = {"pairs": {"x": DERIVED}, "data": {"length": 1000}}
    refused("adjust.data.length 1000 is longer than the 64", one(**named, transfer=task, adjust=adjust))
    unnamed = {"p": {"pairs": {"x": DERIVED}, "probes": ["cka"]}}
    refused("probes.p: the language to compare with needs a name", one(**named, transfer=task, probes=unnamed))
    run = {"steps": 9, "start": {"model": named["model"]}, "batch": {"length": 24}, "optimizer": {"warmup_steps": 1}}
    refused(r"features\.layers: .* no layer 9", one(pretrain=run, transfer={"length": 24, "features": FROZEN}))


def test_a_model_that_is_not_at_hand_is_left_alone(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", False)
    task = {"task": "qa", "language": "trans", "train": ITEMS, "length": 32, "stride": 27, "features": FROZEN}
    named = {"pretrain": None, "source": "", "model": "no-such/model"}
    check_cells([one(**named, transfer=task)])
    refused("transfer: stride 28 leaves no room", one(**named, transfer={**task, "stride": 28}))


@pytest.mark.parametrize("part", ["target_model", "model2"])
def test_layers_of_a_second_model(part):
    second = {**STUDY["pretrain"], **MONOLINGUAL, "objective": {"kind": "mlm"}}
    second["model"] = {**second["model"], "layers": 3}
    pairs = {"x": {**DERIVED, "left": "trans"}}
    values: dict[str, Any] = {"second": second, "tasks": {}}
    if part == "model2":
        values["probes"] = {"p": {"probes": ["cka"], "pairs": pairs, "layers": [3]}}
    else:
        values |= {"tasks": {"pos": {}}, "pretrain__model": second["model"] | {"layers": 4}}
        values["transfer"] = {"length": 20, "features": {"tune": "none", "layers": [4]}}
    refused(
        rf"no layer {3 if part == 'model2' else 4}; it has 0 \(embeddings\) to {1 if part == 'model2' else 3}",
        one(**values),
    )


# --- sentence pairs in files ---


@pytest.fixture
def texts(tmp_path):
    """A pair of files of four lines, with links."""
    files = {"left": "a b\n" * 4, "right": "c d\n" * 4, "links": "0-0 1-1\n\n0-1\n1p0\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    pair: dict[str, Any] = {"kind": "text", "left": str(tmp_path / "left"), "right": str(tmp_path / "right")}
    pair |= {"links": {"kind": "file", "path": str(tmp_path / "links")}, "tokenizers": ["trans", "parent"]}
    return tmp_path, pair


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("right", "c d\n" * 3, "left: has 4 lines, but .*right has 3; line n must translate line n"),
        ("left", "a b\n" * 4 + "a", "left: has 5 lines, but .*right has 4"),
        ("links", "0-0\n" * 2, "links: has 2 lines, but the text has 4 sentence pairs"),
        ("links", "0-0\n0:1\n\n\n", "links:2: '0:1' is no link; links are i-j"),
    ],
)
def test_files_that_do_not_fit(file, text, message, texts):
    folder, pair = texts
    adjust = {"pairs": {"x": pair}, "data": {"dev": 1}}
    check_cells([one(adjust=adjust)])
    (folder / file).write_text(text)
    refused(rf"^tiny: adjust\.pairs\.x: .*{message}", one(adjust=adjust))
    plain = {**pair, "tokenizers": None}
    continual = {"length": 20, "continual": {"pairs": {"x": plain}}}
    refused(rf"^tiny: transfer\.continual\.pairs\.x: .*{message}", one(transfer=continual))
    probes = {"p": {"probes": ["cka"], "pairs": {"x": plain}}}
    refused(rf"^tiny: probes\.p\.pairs\.x: .*{message}", one(probes=probes))


def test_more_sentence_pairs_held_out_than_there_are(texts):
    _, pair = texts
    message = r"^tiny: adjust\.pairs\.x: no sentence pair is left to train or fit on: of 4 the last 4 are held out"
    for data in ({"dev": 5}, {"dev": 4}, {"dev": 2, "test": 2}, {}):
        refused(message, one(adjust={"pairs": {"x": pair}, "data": data}))
    check_cells([one(adjust={"pairs": {"x": pair}, "data": {"dev": 3}})])


# --- keys instead of options ---


ALONE = {"pretrain__language": "parent", "pretrain__objective": {"kind": "mlm"}, "pretrain__dictionary": {}}
SAME = {"train": "pos:builtin:mini-english", "test": "pos:builtin:mini-english#train"}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({**ALONE, "transfer": {"length": 20}}, r"first one: name a language with transfer\.language$"),
        ({**ALONE, "tasks": {"pos": {}, "ner": {}}}, r"name a language with tasks\.pos\.language$"),
        ({**ALONE, "tasks": {}, "probes": {"p": WORDS}}, r"name a language with probes\.p\.language$"),
        (
            {"transfer": {"length": 20, **SAME}},
            r"name another one with transfer\.train or transfer\.test \(SOURCE#dev chooses a split\)",
        ),
        (
            {"tasks": {"ner": {}, "pos": SAME}},
            r"name another one with tasks\.pos\.train or tasks\.pos\.test \(SOURCE#dev",
        ),
    ],
)
def test_keys_stand_for_the_options_of_the_command(values, message):
    refused(message, one(**values))


def test_options_are_keys_of_their_section():
    for problem, told in (
        ("name them with --target-test", "name them with tasks.pos.target.test"),
        ("add it: --set parser=spacy:NAME", "add it: --set tasks.pos.parser=spacy:NAME"),
        ("see --help and --set x=1", "see --help and --set x=1"),
    ):
        assert in_study(problem, "tasks.pos", TransferConfig) == f"tasks.pos: {told}"
