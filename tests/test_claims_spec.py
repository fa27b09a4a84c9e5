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
from tests.test_claims_papers import GOOD, PAPERS, refused


@pytest.mark.parametrize("name", PAPERS)
def test_claims_file(name):
    claims = read_claims(name)
    assert len(claims) >= 6 and len({claim.id for claim in claims}) == len(claims)
    assert all(claim.source and re.fullmatch(r".*\.", claim.claim) for claim in claims)
    assert all(list(claim.quantities()) for claim in claims)


def test_a_claim_for_each_label():
    claims = {claim.id: claim for name in PAPERS for claim in read_claims(name)}
    easy = claims["script-alone-is-easy"].compare
    assert easy is not None and len(easy) == 12 and not any(entry.each for entry in easy)
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


@pytest.mark.parametrize(("right", "verdict"), [([8.0, 8.1, 8.2], "differs"), ([0.4, 0.5, 0.6], "agrees in sign")])
def test_one_task_of_three_decides(right, verdict):
    """NER far from 0 is not averaged away by two tasks near 0."""
    claim = next(claim for claim in read_claims("align_mlm") if claim.id == "script-alone-is-easy")
    rows = [
        result({"objective": objective, "transform": "trans"}, seed, task=task,
               delta=right[seed] if task == "ner" else 0.1 * seed)
        for objective in ("MLM", "XLM", "DICT-MLM", "ALIGN-MLM")
        for task in ("nli", "ner", "pos")
        for seed in range(3)
    ]  # fmt: skip
    assert judge(claim, observed(rows)).verdict == verdict


CLAIM = """
paper: mine.yaml
claims:
  - {id: one, claim: C., source: S, compare: [
      {where: {task: pos}, measure: zs, left: {where: {method: A}}, right: {where: {method: B}}, relation: greater}]}
"""
ORDER = "{measure: zs, along: [{method: A}, {method: B}], direction: rising}"
CORRELATE = "{x: {measure: zs}, y: {measure: sup}, over: [size], expect: positive}"
BAD_CLAIMS = {
    "no label": ("{method: B}", "{method: C}", "one: method: no label 'C'"),
    "no axis": ("{task: pos}", "{tasks: pos}", "one: 'tasks' is no axis"),
    "no relation": (", relation: greater", "", "relation: is required"),
    "other relation": ("relation: greater", "relation: better", "relation"),
    "near without margin": ("relation: greater", "relation: near, margin: 0", "near needs a margin above 0"),
    "measure without default margin": (
        "measure: zs, left: {where: {method: A}}, right: {where: {method: B}}, relation: greater",
        "measure: 'probe:x', left: {where: {method: A}}, right: {where: {method: B}}, relation: no_less",
        "no_less needs a margin above 0",
    ),
    "negative margin": ("relation: greater", "relation: less, margin: -1", "negative: no_less and no_more allow"),
    "without no axis": ("{method: B}}", "{method: B}, without: [size]}", "one: 'size' is no axis"),
    "among of no label": ("measure: zs, left", "among: {method: [C]}, measure: zs, left", "method: no label 'C'"),
    "no right": (", right: {where: {method: B}}", "", "right or with a value: give one"),
    "two rights": ("relation: greater", "relation: greater, value: 1", "right or with a value: give one"),
    "no measure": ("measure: zs, ", "", "needs a measure"),
    "short order": ("compare: [", f"order: [{ORDER}], compare: [", "along.*at least 3"),
    "two kinds": ("compare: [", f"correlate: {CORRELATE}, compare: [", "needs one of compare, order and correlate"),
    "none": ("compare: [", "compare: [], order: [", "compare"),
    "no paper": ("paper: mine.yaml", "paper: yours.yaml", "no such file"),
    "other layer": ("measure: zs", "measure: zs, layer: top", "layer"),
    "each twice": ("measure: zs, left", "measure: zs, each: {task: [pos]}, left", "'task' is in where and in each"),
    "each of no label": ("where: {task: pos}", "each: {task: [qa]}", "task: no label 'qa'"),
    "minus on one side": ("right: {where", "right: {minus: {where: {method: A}}, where", "minus goes with both sides"),
    "minus of no label": (
        "{method: A}}, right: {where: {method: B}}",
        "{method: A}, minus: {where: {method: C}}}, right: {where: {method: B}, minus: {}}",
        "one: method: no label 'C'",
    ),
    "no measure instead": ("measure: zs, ", "measure: zs, instead: f1, ", "must be parent, sup"),
    "each of none": ("measure: zs, left", "measure: zs, each: {method: []}, left", "each.method"),
}


@pytest.mark.parametrize("case", BAD_CLAIMS)
def test_bad_claim(case, tmp_path):
    old, new, message = BAD_CLAIMS[case]
    assert CLAIM.count(old) == 1, "the case must change something"
    (tmp_path / "mine.yaml").write_text(GOOD)
    path = tmp_path / "claims.yaml"
    path.write_text(CLAIM)
    assert [claim.id for claim in read_claims("claims.yaml", tmp_path)] == ["one"]
    path.write_text(CLAIM.replace(old, new))
    refused(read_claims, path, message)


OVER = f"{{id: o, claim: C., source: S, correlate: {CORRELATE}}}"
OF_METHOD = OVER.replace("size", "method")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (CLAIM + CLAIM.split("claims:")[1], "two claims are called 'one'"),
        (OVER, "o: 'size' is no axis"),
        (OVER.replace("size", "layer"), "layer goes with layer: each"),
        (OF_METHOD.replace("expect", "among: {size: [a]}, expect"), "'size' is in neither"),
        (OF_METHOD.replace("expect", "among: {method: [C]}, expect"), "method: no label 'C'"),
    ],
)
def test_claims_twice_and_over_no_axis(text, message, tmp_path):
    (tmp_path / "mine.yaml").write_text(GOOD)
    path = tmp_path / "claims.yaml"
    path.write_text(text if "claims:" in text else f"paper: mine.yaml\nclaims: [{text}]")
    refused(read_claims, path, message)
    path.write_text(f"claims: [{OVER}]")  # without a paper any axis will do
    assert [one.over for one in read_claims(path)[0].correlate or ()] == [["size"]]


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
    assert [table.name for table in tables] == ["first", "table3"] and len(tables[0].cells) == 4
    claims = {claim.id: claim for name in study.claims or () for claim in read_claims(str(name))}
    rows = []
    for cell in cells:
        labels, seed = cell.labels, int(cell.labels["pretrain.seed"])
        high, aligns = labels["transform"] == "trans+inv", labels["objective"] == "ALIGN-MLM"
        delta = (30.0 if high else 2.0) / (1 + aligns) + seed**2 / (9 + high)
        rows.append(result(labels, seed, alignment_all=40.0 + 50 * aligns - 10 * high + seed, delta=delta))
    verdicts = {name: judge(claim, observed(rows)).verdict for name, claim in claims.items()}
    assert verdicts["inversion-costs"] == "agrees in sign" and "not run" not in verdicts.values()


def test_every_key_is_told():
    text = (ROOT / "docs" / "claims.md").read_text()
    keys = {*ClaimEntry.model_fields, *Compare.model_fields, *Correlate.model_fields} - set("xy") - {"left", "right"}
    told = {key for key in keys if f"`{key}`" in text or f"`{key}:" in text}
    assert keys - told <= {"among", "expect", "kind", "over", "by"}
