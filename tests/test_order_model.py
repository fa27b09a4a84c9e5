"""Order models as files: names of features, labels, reading, writing, importing; bad input one by one."""

import gzip
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.order.items import check_feature, convert, head_item, views
from synthlang.order.model import OrderModel, find_model, import_orm, load_model, read_model, shipped_models
from tests.order_cases import features, random_model
from tests.refusals import place_and_code, refusal, refused

WEIGHTS: Any = {"N": {"PRE_DET&det_@NOUN&@": 1.5, "BI_BOS_det": -0.25}, "V": {"HI_BOS_PRON&nsubj_@VERB&@": 2.0}}
LEGAL = """BI_BOS_NOUN BI_@VERB&@_EOS PRE_nmod:poss_@ PRE_a_b_c PRE___@ BI_a_b_EOS HI_EOS_EOS_EOS
HI_BOS_BOS_A&b_@C&@_D&e HI_A&x_b_C&d_E&f HI_BOS__&__@X&@ HI_A&a_B&b_C&c_D&d_E&e_EOS"""
WRONG = """XX_a_b BI BI_a HI_A&b_C&d HI_A&b_C&d_A&b_A&b_A&b_A&b BI_a_ BI_A&b_c HI_a_b_c HI_BOS_BOS_BOS HI_BOS_BOS_A&
PRE_A&b_c_d HI_EOS_EOS"""


@pytest.mark.parametrize("name", [*LEGAL.split(), "PRE" + "_a" * 3000])
def test_feature_names(name):
    assert check_feature(name) == name


@pytest.mark.parametrize("name", [*WRONG.split(), "", "BI_a_b c", "HI_A&" + "_a" * 3000])
def test_malformed_feature_names(name):
    with pytest.raises(ValueError, match="must be BI, PRE"):
        check_feature(name)


def test_every_feature_of_an_order_has_a_legal_name():
    """The features include those of EOS alone, which all orders share."""
    items = [("NOUN", "a_b", False), ("VERB", "", True), ("_", "_", False), ("A", "x_EOS", False), ("A", "y", False)]
    for count in range(2, 6):
        for name in features(items[:count]):
            assert check_feature(name)


def test_views():
    assert views(("NOUN", "nsubj:pass")) == ("NOUN&nsubj:pass", "NOUN", "nsubj:pass")
    assert views(head_item("PROPN")) == ("@PROPN&@", "@PROPN", "@")


LABELS = [  # v2, v1, whether v1 comes back as the same v2 in a verb's node
    ("NOUN obj", "NOUN dobj", True),
    ("NOUN nsubj:pass", "NOUN nsubjpass", True),
    ("VERB csubj:pass", "VERB csubjpass", True),
    ("AUX aux:pass", "AUX auxpass", True),
    ("ADP fixed", "ADP mwe", True),
    ("PROPN flat", "PROPN name", True),
    ("PROPN flat:name", "PROPN name", False),
    ("X flat:foreign", "X foreign", True),
    ("X flat", "X foreign", False),
    ("NOUN obl", "NOUN nmod", True),
    ("NOUN obl:tmod", "NOUN nmod:tmod", True),
    ("NOUN orphan", "NOUN remnant", True),
    ("CCONJ cc", "CONJ cc", True),
    ("PART advmod", "PART neg", True),
    ("ADV advmod", "ADV advmod", True),
    ("AUX cop", "VERB cop", True),
    ("PRON nmod:poss", "PRON nmod:poss", True),
    ("DET det", "DET det", True),
    ("VERB acl:relcl", "VERB acl:relcl", True),
]


@pytest.mark.parametrize(("v2", "v1", "back"), LABELS)
def test_labels(v2, v1, back):
    v2, v1 = tuple(v2.split()), tuple(v1.split())
    assert convert(v2, "ud2", "ud1", "V") == v1
    assert (convert(v1, "ud1", "ud2", "V") == v2) == back
    assert convert(v2, "ud2", "ud2", "V") == v2 and convert(v1, "ud1", "ud1", "N") == v1


def test_labels_look_at_the_node_and_leave_heads_alone():
    assert convert(("NOUN", "nmod"), "ud1", "ud2", "N") == ("NOUN", "nmod")
    assert convert(("NOUN", "nmod"), "ud1", "ud2", "V") == ("NOUN", "obl")
    assert convert(head_item("NOUN"), "ud1", "ud2", "N") == head_item("NOUN")
    assert convert(head_item("NOUN"), "ud2", "ud1", "N") == head_item("NOUN")


@pytest.mark.parametrize("name", ["m.json", "m.json.gz"])
def test_what_is_written_is_read(tmp_path, name):
    path = tmp_path / name
    model = OrderModel(name="x", weights=WEIGHTS, licence="L", fit={"l2": 1.0})
    model.save(path)
    once = path.read_bytes()
    back = read_model(path)
    assert back.weights == model.weights and back.fit == model.fit and back.content == model.content
    back.save(path)
    assert path.read_bytes() == once
    assert load_model(str(path)).content == model.content
    # a byte order mark is no part of it
    text = b"\xef\xbb\xbf" + json.dumps({"kind": "order-model", "format": 1, "weights": WEIGHTS}).encode()
    path.write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_model(path).weights == WEIGHTS


@settings(max_examples=30)
@given(st.dictionaries(st.sampled_from(sorted(random_model(0).weights["N"])), st.floats(-9, 9), max_size=20))
def test_the_fingerprint_is_of_weights_and_labels_only(weights):
    model = OrderModel(weights={"N": weights})
    assert model.content == OrderModel(name="other", licence="x", fit={"a": 1}, weights={"N": weights}).content
    assert model.content == OrderModel(weights={"N": {**weights, "BI_new_new": 0.0}}).content
    assert model.content != OrderModel(weights={"N": weights}, labels="ud1").content
    assert model.content != OrderModel(weights={"N": {**weights, "BI_new_new": 1.0}}).content
    assert model.content != OrderModel(weights={"V": weights}).content


DATA_OF_FILE = {"kind": "order-model", "format": 1, "name": "x", "labels": "ud2", "weights": WEIGHTS}


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"labels": "ud3"}, "m.json labels"),
        ({"weights": None}, "m.json weights"),
        ({"weights": {"A": {}}}, "m.json weights.A"),
        ({"weights": {"N": {"BI_a": 1.0}}}, "m.json weights.N.BI_a"),
        ({"weights": {"N": {"BI_a_b": math.nan}}}, "m.json weights.N.BI_a_b"),
        ({"weights": {"N": {"BI_a_b": -500.0}}}, "m.json weights.N.BI_a_b"),
        ({"unknown": 1}, "m.json unknown"),
        (b"[1]", "m.json"),
        (b"{", "m.json:1"),
        (gzip.compress(b'{"kind": "order-model"}', mtime=0)[:-9], "m.json"),
    ],
)
def test_bad_files(tmp_path, changes, place):
    path = tmp_path / "m.json"
    if isinstance(changes, dict):
        changes = json.dumps({**DATA_OF_FILE, **changes}).encode()
    if changes is not None:
        path.write_bytes(changes)
    assert refused(read_model, path)[0] == place


@pytest.mark.parametrize(
    ("changes", "code"),
    [({"kind": "other"}, "format"), ({"format": 2}, "unsupported"), ({"fingerprint": "0" * 16}, "damaged")],
)
def test_the_kind_of_fault_of_a_file(tmp_path, changes, code):
    path = tmp_path / "m.json"
    path.write_text(json.dumps({**DATA_OF_FILE, **changes}))
    assert refused(read_model, path) == ("m.json", code)


def test_shipped_models_are_whole_and_have_cards():
    names = shipped_models()
    assert {"de", "en", "fr", "ga"} <= set(names)
    for name in names:
        model, path = load_model(name), find_model(name)
        assert path.stat().st_size < 400_000
        assert model.fingerprint == model.content and model.labels == "ud2"
        assert set(model.classes) == {"N", "V"} and model.licence.startswith("CC BY-SA")
        card = path.with_name(f"{name}.md").read_text()
        assert model.content in card and model.licence in card
        scores = model.fit["held_out"]["all"]
        assert scores["model"] > scores["direction"] > scores["uniform"]
    error = refusal(find_model, "klingon")
    assert error.code == "missing" and "fr" in error.hint


ORM = "PRE_DET&det_@NOUN&@ 1.5\nBI_BOS_det -2.5E-1\n"


@pytest.mark.parametrize(
    "line",
    [
        *("BI_a_b", "BI_x_y 500", "BI_x_y " + "9" * 5000, "BI_a 1.0", "BI_a_b x", "BI_a_b nan", "BI_a_b 1_0"),
        *("BI_a_b 1.0 2.0", "BI_BOS_det 1.0"),
    ],
)
def test_damaged_lines_of_a_released_model(tmp_path, line):
    (tmp_path / "x@N.orm").write_text(ORM + line + "\n")
    (tmp_path / "x@V.orm").write_text(ORM)
    error = refusal(import_orm, tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")
    code = "duplicate" if line.startswith("BI_BOS_det") else "format"
    assert place_and_code(error) == ("x@N.orm:3", code) and len(str(error)) < 600


def test_importing_a_released_model(tmp_path):
    noun, verb = tmp_path / "x@N.orm", tmp_path / "x@V.orm"
    noun.write_text("\ufeff" + ORM.replace("\n", "\n\n  \n"), encoding="utf-8")  # blank lines, a byte order mark
    verb.write_text("AFT_a_b 1.0\nPRE_nmod:because_of_@ 1.5\nHI_BOS_NOUN&nmod:of_x_@VERB&@ 2.0\n")
    model = import_orm(noun, verb, "x")
    verbs = {"AFT_a_b": 1.0, "PRE_nmod:because_of_@": 1.5, "HI_BOS_NOUN&nmod:of_x_@VERB&@": 2.0}
    assert model.weights == {"N": {"PRE_DET&det_@NOUN&@": 1.5, "BI_BOS_det": -0.25}, "V": verbs}
    assert model.labels == "ud1"
    verb.write_text("")
    assert refused(import_orm, noun, verb, "x") == ("x@V.orm", "empty")
