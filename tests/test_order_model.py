"""Order models as files: names of features, labels, reading, writing, importing; bad input one by one."""

import gzip
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.errors import InputError
from synthlang.order.items import convert, feature_name, head_item, parse_feature, views
from synthlang.order.model import OrderModel, find_model, import_orm, load_model, read_model, shipped_models
from tests.order_cases import random_model
from tests.real_data import DATA

WEIGHTS: Any = {"N": {"PRE_DET&det_@NOUN&@": 1.5, "BI_BOS_det": -0.25}, "V": {"HI_BOS_PRON&nsubj_@VERB&@": 2.0}}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("BI_BOS_NOUN", ("BI", ("BOS", "NOUN"))),
        ("BI_@VERB&@_EOS", ("BI", ("@VERB&@", "EOS"))),
        ("PRE_nmod:poss_@", ("PRE", ("nmod:poss", "@"))),
        ("HI_EOS_EOS_EOS", ("HI", ("EOS", "EOS", "EOS"))),
        ("HI_BOS_BOS_A&b_@C&@_D&e", ("HI", ("BOS", "BOS", "A&b", "@C&@", "D&e"))),
    ],
)
def test_feature_names(name, expected):
    assert parse_feature(name) == expected
    assert feature_name(expected[0], *expected[1]) == name


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("XX_a_b", "starts with one of"),
        ("", "starts with one of"),
        ("BI", "here are 0"),
        ("BI_a", "2 names"),
        ("PRE_A&b_c_d", "here are 3"),
        ("PRE_EOS_a_BOS", "here are 3"),
        ("HI_A&b_C&d", "3 to 5"),
        ("HI_A&b_C&d_A&b_A&b_A&b_A&b", "3 to 5"),
        ("BI_a_", "empty"),
        ("BI_a_b c", "space"),
        ("PRE_BOS_a", "no BOS or EOS"),
        ("AFT_a_EOS", "no BOS or EOS"),
        ("BI_a_BOS", "only stand at the start"),
        ("BI_EOS_a", "only at the end"),
        ("HI_BOS_BOS_BOS", "only stand at the start"),
        ("BI_A&b_c", "mixes views"),
        ("HI_a_b_c", "UPOS&deprel"),
    ],
)
def test_malformed_feature_names(name, reason):
    with pytest.raises(ValueError, match=reason):
        parse_feature(name)


def test_views():
    assert views(("NOUN", "nsubj:pass")) == ("NOUN&nsubj:pass", "NOUN", "nsubj:pass")
    assert views(head_item("PROPN")) == ("@PROPN&@", "@PROPN", "@")


LABELS = [  # v2, v1, whether v1 comes back as the same v2 in a verb's node
    (("NOUN", "obj"), ("NOUN", "dobj"), True),
    (("NOUN", "nsubj:pass"), ("NOUN", "nsubjpass"), True),
    (("VERB", "csubj:pass"), ("VERB", "csubjpass"), True),
    (("AUX", "aux:pass"), ("AUX", "auxpass"), True),
    (("ADP", "fixed"), ("ADP", "mwe"), True),
    (("PROPN", "flat"), ("PROPN", "name"), True),
    (("PROPN", "flat:name"), ("PROPN", "name"), False),
    (("X", "flat:foreign"), ("X", "foreign"), True),
    (("X", "flat"), ("X", "foreign"), False),
    (("NOUN", "obl"), ("NOUN", "nmod"), True),
    (("NOUN", "obl:tmod"), ("NOUN", "nmod:tmod"), True),
    (("NOUN", "orphan"), ("NOUN", "remnant"), True),
    (("CCONJ", "cc"), ("CONJ", "cc"), True),
    (("PART", "advmod"), ("PART", "neg"), True),
    (("ADV", "advmod"), ("ADV", "advmod"), True),
    (("AUX", "cop"), ("VERB", "cop"), True),
    (("PRON", "nmod:poss"), ("PRON", "nmod:poss"), True),
    (("DET", "det"), ("DET", "det"), True),
    (("VERB", "acl:relcl"), ("VERB", "acl:relcl"), True),
]


@pytest.mark.parametrize(("v2", "v1", "back"), LABELS)
def test_labels(v2, v1, back):
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
    model = OrderModel(name="x", weights=WEIGHTS, licence="L", fit={"l2": 1.0})
    model.save(tmp_path / name)
    once = (tmp_path / name).read_bytes()
    back = read_model(tmp_path / name)
    assert back.weights == model.weights and back.fit == model.fit and back.content == model.content
    back.save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == once
    assert load_model(str(tmp_path / name)).content == model.content


@given(st.dictionaries(st.sampled_from(sorted(random_model(0).weights["N"])), st.floats(-9, 9), max_size=20))
def test_the_fingerprint_is_of_weights_and_labels_only(weights):
    model = OrderModel(weights={"N": weights})
    assert model.content == OrderModel(name="other", licence="x", fit={"a": 1}, weights={"N": weights}).content
    assert model.content == OrderModel(weights={"N": {**weights, "BI_new_new": 0.0}}).content
    assert model.content != OrderModel(weights={"N": weights}, labels="ud1").content
    assert model.content != OrderModel(weights={"N": {**weights, "BI_new_new": 1.0}}).content
    assert model.content != OrderModel(weights={"V": weights}).content


def saved(tmp_path, **changes):
    data = {"kind": "order-model", "format": 1, "name": "x", "labels": "ud2", "weights": WEIGHTS, **changes}
    path = tmp_path / "m.json"
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not None}))
    return path


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kind": "other"}, "no order model"),
        ({"format": 2}, "format 2; this version reads format 1"),
        ({"format": None}, "format None"),
        ({"labels": "ud3"}, "labels"),
        ({"weights": None}, "weights"),
        ({"weights": {"A": {}}}, "weights"),
        ({"weights": {"N": {"BI_a": 1.0}}}, "weights.N: feature 'BI_a': BI has 2 names"),
        ({"weights": {"N": {"BI_a_b": math.nan}}}, "weights"),
        ({"weights": {"N": {"BI_a_b": math.inf}}}, "weights"),
        ({"weights": {"N": {"BI_a_b": "1"}}}, "weights"),
        ({"weights": {"N": {"BI_a_b": -500.0}}}, "less than 500 from 0"),
        ({"weights": {"N": {f"BI_a_b{i}": 1.0 for i in range(1600)}}}, "1601 different item names"),
        ({"unknown": 1}, "unknown"),
        ({"fingerprint": "0" * 16}, "damaged or was edited"),
    ],
)
def test_bad_files(tmp_path, changes, reason):
    path = saved(tmp_path, **changes)
    with pytest.raises(InputError, match=reason) as error:
        read_model(path)
    assert str(path) in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.json", b"[1]", "JSON object"),
        ("a.json", b"{", "not JSON"),
        ("a.json", b"\xff\xfe", "not UTF-8"),
        ("a.json", b'{"kind": 1, "kind": 2}', "given twice"),
        ("a.json", b"[" * 100_000, "recursion"),
        (
            "a.json",
            b'{"format": ' + b"9" * 5000 + b"}",
            r"json: holds a number of 5000 digits; at most 300 can be read$",
        ),
        ("a.json.gz", gzip.compress(b'{"kind": "order-model"}', mtime=0)[:-9], "no whole gzip file"),
    ],
)
def test_damaged_files(tmp_path, name, content, reason):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=reason):
        read_model(tmp_path / name)


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_a_byte_order_mark_is_no_part_of_a_model(tmp_path, name):
    text = b"\xef\xbb\xbf" + json.dumps({"kind": "order-model", "format": 1, "weights": WEIGHTS}).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    assert read_model(tmp_path / name).weights == WEIGHTS


def test_a_model_that_is_not_there(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_model(tmp_path / "no.json")
    with pytest.raises(InputError, match=r"is none of .*fr.*, nor a file"):
        find_model("klingon")


def test_shipped_models_are_whole_and_have_cards():
    names = shipped_models()
    assert {"de", "en", "fr", "ga"} <= set(names)
    for name in names:
        model = load_model(name)
        path = find_model(name)
        assert path.stat().st_size < 400_000
        assert model.fingerprint == model.content and model.labels == "ud2"
        assert set(model.classes) == {"N", "V"} and model.licence.startswith("CC BY-SA")
        card = path.with_name(f"{name}.md").read_text()
        assert model.content in card and model.licence in card
        scores = model.fit["held_out"]["all"]
        assert scores["model"] > scores["direction"] > scores["uniform"]


ORM = "PRE_DET&det_@NOUN&@ 1.5\nBI_BOS_det -2.5E-1\n"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("BI_a_b", "a feature, a space and its weight"),
        ("BI_x_y 500", "between -500 and 500"),
        ("BI_x_y " + "9" * 5000, "'9{40}…' must be a number"),
        ("BI_a 1.0", "BI has 2 names"),
        ("BI_a_b x", "must be a number"),
        ("BI_a_b nan", "must be a number"),
        ("BI_a_b inf", "must be a number"),
        ("BI_a_b 1_0", "must be a number"),
        ("BI_a_b 1.0 2.0", "must be a number"),
        ("BI_BOS_det 1.0", "twice"),
    ],
)
def test_damaged_lines_of_a_released_model(tmp_path, line, reason):
    (tmp_path / "x@N.orm").write_text(ORM + line + "\n")
    (tmp_path / "x@V.orm").write_text(ORM)
    with pytest.raises(InputError, match=reason) as error:
        import_orm(tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")
    assert error.value.line == 3


def test_importing_a_released_model(tmp_path):
    (tmp_path / "x@N.orm").write_text(ORM)
    (tmp_path / "x@V.orm").write_text("AFT_a_b 1.0\n")
    model = import_orm(tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")
    assert model.weights == {"N": {"PRE_DET&det_@NOUN&@": 1.5, "BI_BOS_det": -0.25}, "V": {"AFT_a_b": 1.0}}
    assert model.labels == "ud1"
    (tmp_path / "x@V.orm").write_text("")
    with pytest.raises(InputError, match="holds no weight"):
        import_orm(tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")


def test_blank_lines_and_a_byte_order_mark_in_a_released_model(tmp_path):
    (tmp_path / "x@N.orm").write_text("\ufeff" + ORM.replace("\n", "\n\n  \n"), encoding="utf-8")
    (tmp_path / "x@V.orm").write_text("\n" + ORM)
    model = import_orm(tmp_path / "x@N.orm", tmp_path / "x@V.orm", "x")
    assert model.weights["N"] == model.weights["V"] == {"PRE_DET&det_@NOUN&@": 1.5, "BI_BOS_det": -0.25}


def test_the_published_models_are_whole():
    folder = DATA / "gd_models"
    if not folder.exists():
        pytest.skip(f"no {folder}")
    model = import_orm(folder / "GD_French" / "fr@N.orm", folder / "GD_French" / "fr@V.orm", "fr")
    assert {c: len(w) for c, w in model.weights.items()} == {"N": 24434, "V": 23150}
