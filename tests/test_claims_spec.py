"""The papers' claims as files: what they compare, what is refused, and what the docs say of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from probes.claims.papers import read_claims, read_tables
from probes.claims.spec import ClaimEntry, Compare, Correlate
from probes.claims.verdicts import judge
from probes.study.cells import load_study
from tests.claims import observed, result
from tests.refusals import refusal, refused
from tests.test_claims_papers import GOOD, PAPERS


@pytest.mark.parametrize("name", PAPERS)
def test_claims_file(name):
    claims = read_claims(name)
    assert len(claims) >= 6 and len({claim.id for claim in claims}) == len(claims)
    assert all(claim.source and re.fullmatch(r".*\.", claim.claim) for claim in claims)
    assert all(list(claim.quantities()) for claim in claims)


def test_a_claim_for_each_label():
    claims = {claim.id: claim for name in PAPERS for claim in read_claims(name)}
    easy = claims["script-alone-is-easy"].compare
    assert easy is not None and len(easy) == 12 and not any(entry.for_each for entry in easy)
    wanted = {(o, t) for o in ("MLM", "XLM", "DICT-MLM", "ALIGN-MLM") for t in ("nli", "ner", "pos")}
    assert {(entry.where["objective"], entry.where["task"]) for entry in easy} == wanted
    assert [
        len(claims[one].entries())
        for one in ("align-outperforms-or-is-on-par", "adjustment-does-not-help-qa", "cka-tells-sentence-retrieval")
    ] == [27, 8, 4]
    for claim in claims.values():  # a sentence that says "every" does not rest on a mean over what it says it of
        for axis, said in (("task", "every task"), ("language", "every language")):
            if said in claim.claim and not claim.correlate:
                assert all(axis in quantity.where for quantity in claim.quantities()), claim.id
    assert claims["retrieval-of-types"].note


def test_choices_of_ours_are_dated_and_stand_ins_for_languages_are_named():
    """Margins, limits and one-sided relations have a date, and claims that compare languages or pairs what is read."""
    for claim in (claim for name in PAPERS for claim in read_claims(name)):
        of = claim.compare or ()
        chosen = any(one.margin or one.value or one.relation not in ("greater", "less") for one in of)
        assert (claim.fixed is not None) == chosen, claim.id
        named = {axis for one in claim.quantities() for axis in (*one.where, *one.average)}
        named |= {axis for one in claim.correlate or () for axis in one.over}
        named |= {axis for one in claim.entries() for axis in one.restrict_to}
        assert bool(claim.tested_on) == bool(named & {"language", "pair"}), claim.id


CLAIM = """
paper: mine.yaml
claims:
  - {id: one, claim: C., source: S, compare: [
      {where: {task: pos}, measure: zs, left: {where: {method: A}}, right: {where: {method: B}}, relation: greater}]}
"""
ORDER = "{measure: zs, along: [{method: A}, {method: B}], direction: rising}"
CORRELATE = "{x: {measure: zs}, y: {measure: sup}, over: [size], expect: positive}"
ENTRY = "claims.0.compare.0"
CLAIM_PLACE = "claims.0"
REFUSED = [
    ("{method: B}", "{method: C}", CLAIM_PLACE, "unknown"),
    ("relation: greater", "relation: equivalent, margin: 0", f"{ENTRY}.margin", "range"),
    # points of a score are no default margin of a probe's measure
    ("zs, left: {where: {method: A}}, right: {where: {method: B}}, relation: greater",
     "'probe:x', left: {where: {method: A}}, right: {where: {method: B}}, relation: non_inferior",
     f"{ENTRY}.margin", "missing"),
    ("{method: B}}", "{method: B}, exclude_axes: [size]}", CLAIM_PLACE, "unknown"),
    (", right: {where: {method: B}}", "", ENTRY, "missing"),
    ("relation: greater", "relation: greater, value: 1", ENTRY, "conflict"),
    ("compare: [", f"order: [{ORDER}], compare: [", "claims.0.order.0.along", "range"),
    ("compare: [", f"correlate: {CORRELATE}, compare: [", "claims.0", "conflict"),
    ("measure: zs, left", "measure: zs, for_each: {task: [pos]}, left", f"{ENTRY}.for_each.task", "duplicate"),
    ("where: {task: pos}", "for_each: {task: [qa]}", CLAIM_PLACE, "unknown"),
    ("right: {where", "right: {minus: {where: {method: A}}, where", f"{ENTRY}.right.minus", "conflict"),
    ("left: {where: {method: A}}, right: {where: {method: B}}", "left: {minus: {}}, value: 1", f"{ENTRY}.left.minus",
     "conflict"),
    ("relation: greater", "relation: greater, margin: -1", f"{ENTRY}.margin", "range"),
    ("{method: A}}, right: {where: {method: B}}",
     "{method: A}, minus: {where: {method: C}}}, right: {where: {method: B}, minus: {}}", CLAIM_PLACE, "unknown"),
    ("relation: greater", "relation: greater, above_floor: [{measure: delta}]", f"{ENTRY}.above_floor.0", "conflict"),
    ("relation: greater", "relation: greater, above_floor: [{where: {method: C}}]", CLAIM_PLACE, "unknown"),
    ("source: S", "source: S, fixed: {date: yesterday, reason: R.}", "claims.0.fixed.date", "type"),
    ("source: S", "source: S, tested_on: {tiny: Thai}", "claims.0.tested_on.tiny", "unknown"),
    ("measure: zs, ", "measure: zs, instead: sup, fallback_measure: zs, ", f"{ENTRY}.instead", "duplicate"),
]  # fmt: skip
"""What is replaced in CLAIM, by what, and the place and kind of the fault."""


@pytest.mark.parametrize(("old", "new", "place", "code"), REFUSED)
def test_refused(old, new, place, code, tmp_path):
    assert CLAIM.count(old) == 1, "the case must change something"
    (tmp_path / "mine.yaml").write_text(GOOD)
    path = tmp_path / "claims.yaml"
    path.write_text(CLAIM)
    assert [claim.id for claim in read_claims("claims.yaml", tmp_path)] == ["one"]
    path.write_text(CLAIM.replace(old, new))
    assert refused(read_claims, path) == (f"claims.yaml {place}", code)


OVER = f"{{id: o, claim: C., source: S, correlate: {CORRELATE}}}"
OF_METHOD = OVER.replace("size", "method")


@pytest.mark.parametrize(
    ("text", "place", "code"),
    [
        (CLAIM + CLAIM.split("claims:")[1], "claims.1.id", "duplicate"),
        (OVER, "claims.0", "unknown"),
        (OVER.replace("size", "layer"), "claims.0.correlate", "conflict"),
        (OF_METHOD.replace("expect", "restrict_to: {size: [a]}, expect"),
         "claims.0.correlate.restrict_to.size", "no_effect"),
        (OF_METHOD.replace("expect", "restrict_to: {method: [C]}, expect"), "claims.0", "unknown"),
    ],
)  # fmt: skip
def test_claims_twice_and_over_no_axis(text, place, code, tmp_path):
    (tmp_path / "mine.yaml").write_text(GOOD)
    path = tmp_path / "claims.yaml"
    path.write_text(text if "claims:" in text else f"paper: mine.yaml\nclaims: [{text}]")
    assert refused(read_claims, path) == (f"claims.yaml {place}", code)
    path.write_text(f"claims: [{OVER}]")  # without a paper any axis will do
    assert [one.over for one in read_claims(path)[0].correlate or ()] == [["size"]]


def test_messages(tmp_path):
    (tmp_path / "claims.yaml").write_text(CLAIM)
    assert refused(read_claims, tmp_path / "claims.yaml")[0] == "mine.yaml", "the paper is missing"
    (tmp_path / "mine.yaml").write_text(GOOD)
    path = tmp_path / "claims.yaml"
    for old, new, text in (
        ("{method: B}", "{method: C}",
         "claims.0: names the label 'C' of the axis 'method', which the labels of the paper do not have; "
         "allowed: A, B"),
        ("relation: greater", "relation: equivalent, margin: -1",
         "claims.0.compare.0.margin: must be above 0 for equivalent, not -1; give a margin in the unit of the measure"),
    ):  # fmt: skip
        path.write_text(CLAIM.replace(old, new))
        assert str(refusal(read_claims, path)) == f"{path}: {text}"


OLD = """
claims:
  - {id: one, claim: C., source: S, whole: true, compare: [
      {each: {task: [pos]}, among: {size: [big]}, instead: sup, measure: zs, left: {where: {method: A}},
       right: {where: {method: B}, without: [body]}, relation: near}]}
"""
RENAMED = {"whole": "require_all", "each": "for_each", "among": "restrict_to", "instead": "fallback_measure",
           "without": "exclude_axes", "near": "equivalent"}  # fmt: skip


def test_old_keys_are_read_with_a_warning(tmp_path):
    old, new = tmp_path / "old.yaml", tmp_path / "new.yaml"
    old.write_text(OLD)
    text = OLD
    for name, now in RENAMED.items():
        text = re.sub(rf"\b{name}\b", now, text)
    new.write_text(text)
    with pytest.warns(FutureWarning) as told:
        assert read_claims(old) == read_claims(new)
    assert {re.findall("'(.*?)'", str(one.message))[1] for one in told} == set(RENAMED.values())


ROOT = Path(__file__).parents[1]


def blocks(folder: Path) -> dict[str, Path]:
    found = re.findall(
        r"^```yaml (\w+)\n(.*?)^```$", (ROOT / "docs" / "claims.md").read_text(), re.DOTALL | re.MULTILINE
    )
    paths = {kind: folder / {"own": "mine.yaml"}.get(kind, f"my-{kind}.yaml") for kind, _ in found}
    for kind, text in found:
        paths[kind].write_text(text)
    return paths


def test_the_files_of_the_document_are_read_and_judged(tmp_path, monkeypatch):
    paths = blocks(tmp_path)
    assert set(paths) == {"own", "claims", "paper"}
    study, cells = load_study(paths["own"], [])
    assert len(cells) == 18
    monkeypatch.chdir(tmp_path)
    tables = [table for name in study.paper or () for table in read_tables(str(name))]
    assert [table.name for table in tables] == ["first", "table3"] and len(tables[0].numbers) == 4
    claims = {claim.id: claim for name in study.claims or () for claim in read_claims(str(name))}
    rows = []
    for cell in cells:
        labels, seed = cell.labels, int(cell.labels["pretrain.seed"])
        high, aligns = labels["transform"] == "trans+inv", labels["objective"] == "ALIGN-MLM"
        delta = (30.0 if high else 2.0) / (1 + aligns) + seed**2 / (9 + high)
        rows.append(result(labels, seed, alignment_all=40.0 + 50 * aligns - 10 * high + seed, delta=delta))
    verdicts = {name: judge(claim, observed(rows)).verdict for name, claim in claims.items()}
    assert verdicts["inversion-costs"] == "replicates" and "not run" not in verdicts.values()


def test_every_key_is_told():
    text = (ROOT / "docs" / "claims.md").read_text()
    keys = {*ClaimEntry.model_fields, *Compare.model_fields, *Correlate.model_fields} - set("xy") - {"left", "right"}
    told = {key for key in keys if f"`{key}`" in text or f"`{key}:" in text}
    assert keys - told <= {"restrict_to", "expect", "kind", "over", "by"}
