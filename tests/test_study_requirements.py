"""The table of what each study needs: free data and a day at `lab`, counts by hand, and what a dry run prints."""

from __future__ import annotations

import re

import pytest

from probes.requirements_page import SIZES, page_of
from probes.study.requirements import MEASURED, Requirements, requirements, requirements_of
from synthlang import catalogue
from synthlang.data.entries import DataSet, entry, names
from synthlang.data.sources import MadeOf
from synthlang.wording import large
from tests.real_data import DATA
from tests.study_cases import command

DAY = 24.0
"""Limit of the hours at `lab`."""
FREE = {"CC-BY", "CC0", "Apache", "ODC-By", "free", "none stated", "unknown", "non-commercial", "for research"}
"""Words of licences that need neither a fee nor a request."""


@pytest.fixture(scope="module")
def found() -> dict[str, Requirements]:
    return {row.name: row for size in SIZES for row in requirements(size)}


@pytest.fixture(scope="module")
def page(found: dict[str, Requirements]) -> str:
    return page_of(list(found.values()))


def test_a_study_at_lab_reads_only_free_data_that_fetch_brings(found):
    for row in (row for row in found.values() if row.size == "lab"):
        assert row.data, row.name
        for item in row.data:
            source, origin = item.origin.source, item.origin
            if isinstance(source, MadeOf):  # by a step of fetch, of a data set that it brings
                assert item.origin.steps, item.name
                origin = entry(source.base).origin("lab")
            assert origin.is_fetched, (row.name, item.name)
            assert any(word in origin.licence for word in FREE), (item.name, origin.licence)


def test_a_study_at_lab_takes_at_most_a_day_on_one_gpu(found):
    rows = [row for row in found.values() if row.size == "lab"]
    assert len(rows) == len([name for name in catalogue.names("studies") if name.endswith("/lab")]) > 50
    assert [row.name for row in rows if not row.is_complete or row.hours > DAY] == []
    assert all("H200" in row.device.name for row in rows)
    assert found["emerging-table1/paper"].hours > 1000 * DAY, "a control: the estimate tells the sizes apart"


def test_a_study_by_hand(found):
    """Four models of 6,000 × 256 rows × 128 tokens, and 24 fits of three passes over EWT at 128 tokens."""
    row = found["align_mlm-figure1/lab"]
    pretraining, fits = 6000 * 32_768, 3 * 12_543 * 128
    assert row.stages["pretrain"] == 4 and row.stages["fit"] == 24
    assert row.tokens == 4 * pretraining + 24 * fits
    assert {item.name for item in row.data} == {"text/en", "ud/en"}
    assert row.disk == sum(cost.disk or 0 for cost in row.costs) > 1e9


@pytest.mark.parametrize("name", ["align_mlm-table3/lab", "cao2020-table1/paper", "dose-inv/tiny"])
def test_a_dry_run_prints_the_same(name, found, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    study, _, size = name.rpartition("/")
    command(monkeypatch, "study", study, "--size", size, "--dry-run")
    told, row = capsys.readouterr().out, found[name]
    for kind, noun in (("pretrain", "pretraining"), ("fit", "fine-tuning")):
        tokens = [cost.tokens for cost in row.costs if cost.kind == kind]
        if tokens:
            assert f"to do: {len(tokens):,} {noun}s of " in told
            assert f"{large(sum(tokens))} tokens in all" in told
    assert re.search(r"forecast: about ", told)


def test_every_study_and_every_number_is_in_the_table(found, page):
    parts = re.split(r"^### ", page, flags=re.MULTILINE)
    sections = {part.split("\n")[0].strip("`"): part for part in parts if part}
    assert list(sections) == [*SIZES, "Restricted data"]
    for name in catalogue.names("studies"):
        study, _, size = name.rpartition("/")
        if size in SIZES:
            assert sections[size].count(f"| `{study}` |") == 1, name
    cells = next(row for row in sections["lab"].splitlines() if "`emerging-table1`" in row).split(" | ")
    row = found["emerging-table1/lab"]
    assert cells[1] == "30" and cells[4] == large(row.tokens) and float(cells[5]) == pytest.approx(row.hours, abs=0.05)
    assert not cells[9] and "segment" in cells[10] and all(cell.startswith("≈ ") for cell in cells[11:])
    assert "| `ner/en-conll` | licence of Reuters or the LDC | by hand | WikiNEuRal" in sections["Restricted data"]


def test_measured_times_are_of_studies_and_beside_their_estimates(found, page):
    assert found.keys() >= MEASURED.keys()
    assert page.count("0.27 (one NVIDIA H200") == 1
    for name, measured in MEASURED.items():
        assert 0.2 < measured.hours / found[name].hours < 2, (name, measured.hours, found[name].hours)


def test_files_of_the_working_folder_do_not_change_the_table(found, tmp_path, monkeypatch):
    for name in ("ud/en/en-ud-train.conllu", "muse/en-fr.txt", "ner/en/train.txt"):
        path = tmp_path / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 10_000)
    monkeypatch.chdir(tmp_path)
    for name in ("emerging-table1/lab", "align_mlm-table3/lab", "impact-table3/paper"):
        assert requirements_of(name).tokens == found[name].tokens


def labelled() -> dict[str, DataSet]:
    return {name: entry(name) for name in names() if entry(name).items is not None}


def test_numbers_of_items_are_of_labelled_data():
    assert len(labelled()) > 10
    assert {data.layout for data in labelled().values()} <= {"nli", "ner", "qa", "slots", "conllu"}


@pytest.mark.skipif(not DATA.exists(), reason=f"{DATA} has the data sets")
@pytest.mark.parametrize(
    ("name", "file", "between"),
    [
        ("ner/en", "ner/wikiann/en/train", r"\n\s*\n"),
        ("slots/atis/en", "slots/atis/train/seq.in", "\n"),
        ("slots/snips/en", "slots/snips/train/seq.in", "\n"),
    ],
)
def test_numbers_of_items_are_those_of_the_data(name, file, between):
    text = (DATA / file).read_text(encoding="utf-8").strip()
    assert len(re.split(between, text)) == entry(name).items
