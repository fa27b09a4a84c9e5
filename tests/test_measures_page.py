"""CKA against retrieval, and what a page says of it and of counts."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from probes.measures.cka.probe import cka_sentence
from probes.measures.maps.show import maps_sentence
from probes.measures.page import cka_against_retrieval, write_page
from probes.measures.result import ProbeResult
from probes.measures.retrieval.show import retrieval_sentence
from probes.measures.words.alignment import words_sentence


def found_of(cka, counted, linked, variants=("context",)):
    """Return results of both probes: CKA of same-number layers and accuracy by layer, or None without a pair."""
    layers = [
        {"layer": i, "pairs": {
            name: {"csls": None if value is None else {"mean": value}}
            for name, value in (("counted", a), ("unlike", a), ("linked", b))
        }}
        for i, (a, b) in enumerate(zip(counted, linked, strict=True))
    ]  # fmt: skip
    links = {"counted": 0 if None in counted else 90, "unlike": 0 if None in counted else 90, "linked": 100}
    retrieval = {"variants": {name: {"layers": layers, "links": links} for name in variants}, "static": None}
    same = {"biased": cka, "debiased": cka}
    return {
        "cka": ProbeResult(
            {"comparisons": {"languages": {"same_layer": same}}, "counts": {"sentence pairs not drawn": 0}}
        ),
        "retrieval": ProbeResult({**retrieval, "counts": {"linked words without a subword": 3}}),
    }


def page_of(found, together, folder):
    values = {"cka_against_retrieval": together, "settings": {}, "parents": {}, "model": "m", "language": "l"}
    return write_page(folder, {**values, "parent": "p", "fingerprint": "f", "notes": []}, found).read_text()


CKA, FEW, ALL = [0.2, 0.5, 0.6, 0.8], [1.0, 5.0, 4.0, 9.0], [2.0, 6.0, 9.0, 8.0]


def test_it_is_that_of_the_pairs_that_count(tmp_path):
    found = found_of(CKA, FEW, ALL)
    together = cka_against_retrieval(found, 0)
    assert together is not None and together["r"] == pytest.approx(stats.pearsonr(CKA, FEW).statistic)
    page = page_of(found, together, tmp_path)
    assert f"pairs that count): {together['r']:.2f} (n&nbsp;=&nbsp;4 layers)" in page


def test_where_few_pairs_count_it_is_that_of_the_figure(tmp_path):
    found = found_of(CKA, [None] * 4, ALL)
    together = cka_against_retrieval(found, 0)
    assert together is not None and together["r"] == pytest.approx(stats.pearsonr(CKA, ALL).statistic)
    assert "all linked pairs): " in page_of(found, together, tmp_path)


@pytest.mark.parametrize(("cka", "variants", "reason"), [
    (CKA[:2], ("context",), "2 pairs: a correlation needs at least 3"),
    (None, ("context",), "the models are read at different numbers of layers"),
    (CKA, ("types",), "words in context were not retrieved"),
    ([0.5] * 4, ("context",), "the first variable is constant"),
])  # fmt: skip
def test_no_number_is_said_with_its_reason(tmp_path, cka, variants, reason):
    layers = len(cka or CKA)
    found = found_of(cka, FEW[:layers], ALL[:layers], variants)
    together = cka_against_retrieval(found, 0)
    assert together is not None and together["r"] is None
    page = page_of(found, together, tmp_path)
    assert "<h2>CKA against retrieval</h2>" in page and reason in page


def test_static_vectors_have_no_layers_and_without_one_probe_there_is_nothing(tmp_path):
    found = found_of(CKA, FEW[:1], ALL[:1])
    found["retrieval"].values["static"] = {"kind": "load"}
    together = cka_against_retrieval(found, 0)
    assert together is not None and together["r"] is None
    assert "static vectors, which have no layers" in page_of(found, together, tmp_path)
    del found["cka"]
    assert cka_against_retrieval(found, 0) is None
    assert "CKA against retrieval" not in page_of(found, None, tmp_path)


def test_counts_are_shown_where_there_are_any_and_the_page_names_its_command(tmp_path):
    found = found_of(CKA, FEW, ALL)
    page = page_of(found, None, tmp_path)
    assert "linked words without a subword: 3" in page and "Items left out or counted" in page
    assert "not drawn" not in page
    assert "Made by synthlang probe." in page


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 1000), n=st.integers(3, 9))
def test_pearson_over_layers(seed, n):
    random = np.random.default_rng(seed)
    cka, retrieval = random.random(n), random.random(n) * 100

    def against(cka, retrieval):
        return cka_against_retrieval(found_of(cka, retrieval, retrieval), seed)

    found = against(cka.tolist(), retrieval.tolist())
    assert found["r"] == pytest.approx(np.corrcoef(cka, retrieval)[0, 1], abs=1e-9)
    assert found["n"] == n and found["kind"] == "pearson"
    assert against(cka.tolist(), (3 * cka + 1).tolist())["r"] == pytest.approx(1.0)
    gaps = against([None, *cka.tolist(), 0.5], [0.3, *retrieval.tolist(), None])
    assert gaps == {**found, "pairs": "all linked pairs"}


def test_the_page_begins_with_what_each_probe_found(tmp_path):
    found = found_of(CKA, FEW, ALL)
    found = {name: replace(result, summary=f"{name} found this.") for name, result in found.items()}
    page = page_of(found, None, tmp_path)
    assert page.index("<h2>Summary</h2>") < page.index("cka found this.") < page.index("retrieval found this.")
    assert page.index("retrieval found this.") < page.index("<h2>Similarity of layers</h2>")


def test_sentences_of_the_summary():
    mean = {
        "languages": {"mean": {"biased": 0.91}},
        "random_target": {"mean": {"biased": 0.4}},
        "paraphrase": {"mean": {"biased": None}},
    }
    assert cka_sentence({"comparisons": mean}) == (
        "The layers of the two languages have a mean CKA of 0.91 (0.40 with random weights in one language)."
    )
    assert cka_sentence({"comparisons": {"languages": {"mean": {"biased": None}}}}) == ""
    csls = {"counted": {"csls": {"mean": 31.66}}, "linked": {"csls": None}}
    context = {"layers": [{"layer": 2, "pairs": csls}], "links": {"counted": 60, "unlike": 60}}
    retrieval = {"headline": {"variant": "context"}, "variants": {"context": context}}
    assert retrieval_sentence(retrieval) == (
        "At layer 2 the nearest word of the other language is the translation for 31.7 % of the words in context "
        "(pairs that count; CSLS)."
    )
    context["links"] = {"counted": 0, "unlike": 0}
    assert retrieval_sentence(retrieval).startswith("No word could be retrieved")
    whole, rest = ({"n": n, "cosine": {"mean": mean}} for n, mean in ((512, 52.0), (100, 12.34)))
    words = {"types": 512, "candidates": {"parent": 4221}, "scores": {"all": whole, "held_out": rest}}
    assert "52.0 % of 512" in words_sentence(words) and "12.3 % of the 100 outside" in words_sentence(words)
    assert words_sentence({"scores": None}) == ""
    layers = [{"layer": 2, "words": {"csls": {"mean": {"p@1": 58.8}}}}]
    maps = {"before": layers, "maps": {"dictionary": {"layers": layers}}}
    assert "58.8 % without a map, 58.8 % with a map fitted on a dictionary" in maps_sentence(maps)
