"""docs/claims.md: its files are read as they stand, and its study names what they name."""

from __future__ import annotations

import re
from pathlib import Path

from probes.study.cells import load_study
from probes.study.judged.claims import Compare, Correlate, Entry, read_claims
from probes.study.judged.papers import read_tables
from probes.study.judged.verdicts import judge
from tests.judged import observed, result

ROOT = Path(__file__).parents[1]


def blocks(folder: Path) -> dict[str, Path]:
    found = re.findall(
        r"^```yaml (\w+)\n(.*?)^```$", (ROOT / "docs" / "claims.md").read_text(), re.DOTALL | re.MULTILINE
    )
    paths = {kind: folder / {"own": "mine.yaml"}.get(kind, f"my-{kind}.yaml") for kind, _ in found}
    for kind, text in found:
        paths[kind].write_text(text.replace("configs/", f"{ROOT}/configs/"))
    return paths


def test_the_files_of_the_document_are_read_and_judged(tmp_path, monkeypatch):
    paths = blocks(tmp_path)
    assert set(paths) == {"own", "claims", "paper"}
    study, cells = load_study(paths["own"], [])
    assert len(cells) == 12
    monkeypatch.chdir(tmp_path)
    tables = [table for name in study.paper or () for table in read_tables(str(name))]
    assert [table.name for table in tables] == ["first", "table3"] and len(tables[0].cells) == 4
    claims = {claim.id: claim for name in study.claims or () for claim in read_claims(str(name))}
    held = []
    for cell in cells:
        labels, seed = cell.labels, int(cell.labels["pretrain.seed"])
        high, aligns = labels["transform"] == "trans+inv", labels["objective"] == "ALIGN-MLM"
        delta = (30.0 if high else 2.0) / (1 + aligns) + seed**2 / (9 + high)
        held.append(result(labels, seed, alignment_all=40.0 + 50 * aligns - 10 * high + seed, delta=delta))
    verdicts = {name: judge(claim, observed(held)).verdict for name, claim in claims.items()}
    assert verdicts["inversion-costs"] == "agrees in sign" and "not run" not in verdicts.values()


def test_every_key_is_told():
    text = (ROOT / "docs" / "claims.md").read_text()
    keys = {*Entry.model_fields, *Compare.model_fields, *Correlate.model_fields} - {
        "left",
        "right",
        "x",
        "y",
        "over",
        "by",
    }
    assert {key for key in keys if f"`{key}`" not in text and f"`{key}:" not in text} <= {"among", "expect", "kind"}
