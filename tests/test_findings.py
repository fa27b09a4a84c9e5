"""The page of what came out: made from studies that are kept, the same bytes each time, damage told in a line."""

from __future__ import annotations

import json
import re
import shutil
from itertools import product
from pathlib import Path
from statistics import mean
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from probes.claims.papers import claims_files, read_about, read_claims
from probes.claims.verdicts import WORDS
from probes.report.archive import archive_studies, read_archive
from probes.report.data import read_study
from probes.report.findings import FIGURES, MADE_BY, READINGS, STUDIES, check_page, page_of, write_findings
from probes.report.findings_data import compared_papers
from probes.report.findings_overview import OVERVIEW
from probes.report.findings_paper import NOT_DECIDED, PREDICATES
from probes.report.numbers import p_value
from synthlang.wording import enumerated
from tests.refusals import refusal, refused
from tests.report_study import cells_of, change, change_rows, make_grid, report, write_measures

DOCS = Path(__file__).parents[1] / "docs"
AXES = {
    "objective": ["MLM", "XLM", "DICT-MLM", "ALIGN-MLM"],
    "transform": ["trans", "trans+inv", "trans+syn"],
    "pretrain.seed": ["0", "1", "2"],
}
TASKS = ("nli", "ner", "pos")
NAMES: dict[str, Any] = {"paper": "align_mlm/table3", "claims": ["align_mlm"]}
SMALL = {**AXES, "transform": ["trans", "trans+inv"]}


def paper_study(folder: Path, scale: str = "tiny", axes: dict[str, list[str]] = SMALL, **more: Any) -> Path:
    """A study beside table 3 of ALIGN-MLM; the perplexities of its models are 10, 11 …"""
    config = {**NAMES, "scale": scale, "source": "text:/home/me/data/text/en", "seeds": [0, 1]}
    make_grid(folder, axes, TASKS, jitter=1.0, name="align_mlm-table3", config=config, **more)
    place = {cell["name"]: float(number) for number, cell in enumerate(cells_of(folder), 10)}
    change_rows(folder, lambda row, _: {"perplexity": place[row["cell"]], "source": "text:/home/me/data/text/en"})
    return folder


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of a paper in run/, and docs/findings/ with that study kept."""
    folder = tmp_path_factory.mktemp("made")
    archive_studies([paper_study(folder / "run")], folder / "docs" / "findings" / STUDIES)
    return folder


@pytest.fixture
def project(tmp_path: Path, made: Path) -> Path:
    """The folder of findings with one study of a paper, kept."""
    return Path(shutil.copytree(made, tmp_path, dirs_exist_ok=True)) / "docs" / "findings"


@pytest.fixture(scope="module")
def written(made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with its pages."""
    folder = Path(shutil.copytree(made, tmp_path_factory.mktemp("written"), dirs_exist_ok=True))
    write_findings(folder / "docs" / "findings", folder / "docs" / "findings.md")
    return folder


def page(folder: Path) -> str:
    """The page of a folder, written beside it."""
    return write_findings(folder, folder.with_suffix(".md")).page.read_text(encoding="utf-8")


def paper(folder: Path, name: str = "align_mlm") -> str:
    """The page of a paper, or under "own" that of the studies of none."""
    overview = write_findings(folder, folder.with_suffix(".md")).page
    return page_of(overview, name).read_text(encoding="utf-8")


def files(folder: Path) -> dict[str, bytes]:
    """All pages and figures by name."""
    found = write_findings(folder, folder.with_suffix(".md"))
    return {path.name: path.read_bytes() for path in (*found.pages, *found.figures)}


def section(text: str, title: str) -> str:
    """Return the text under a heading."""
    return text.split(f"\n## {title}")[1].split("\n## ", maxsplit=1)[0]


def lines_of(text: str) -> list[list[str]]:
    """The rows of the first table, with its header."""
    rows = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in rows if not line.startswith("| ---")]


def test_claims_without_a_paper_have_a_page_with_the_title_of_their_file(tmp_path):
    paper_study(tmp_path / "run")
    config = json.loads((tmp_path / "run" / "study.json").read_text())["config"]
    change(tmp_path / "run", config={**config, "claims": ["imbalance", "objectives"], "paper": None})
    folder = tmp_path / "docs" / "findings"
    archive_studies([tmp_path / "run"], folder / STUDIES)
    titles = {name: read_about(claims_files(name)[0]) for name in ("imbalance", "objectives")}
    overview = page(folder)
    of = {name: page_of(folder.with_suffix(".md"), name).read_text(encoding="utf-8") for name in titles}
    for name, about in titles.items():
        assert "[Claims, figures and scores](findings-" + name in section(overview, about.title)
        assert of[name].startswith(f"# {about.title}\n")
    assert titles["imbalance"].citation in of["imbalance"] and not titles["objectives"].citation


def test_the_claims_of_a_paper_have_a_line_each_with_both_numbers(project):
    text = section(paper(project), "Claims")
    header, *rows = lines_of(text)
    assert header == ["Claim", "Paper", "Compared", "Ours", "p", "Over", "Verdict", "Held"]
    row = next(row for row in rows if row[0] == "ALIGN beats MLM (align_mlm)")
    assert row[1] == "Δ: NLI 6.7 against 17.2, NER 15.5 against 43.3, POS 3.0 against 38.5"
    assert row[2] == "trans+inv nli delta, ALIGN-MLM − MLM (&lt; 0)" and row[5] == "3 models (tiny)"
    assert any("(&lt; 2, one-sided)" in row[2] for row in rows), "the margin of what is on par"
    assert re.fullmatch(r"[\d.]+ \([−\d.]+ to [−\d.]+\)", row[3])
    assert all(re.fullmatch(r"(\d+) of (\d+)(, \d+ not run)?( \(needs .*\))?", row[7]) for row in rows)
    verdicts = [row[6].split(" (")[0] for row in rows]
    assert len({*verdicts}) > 1
    counts = {word: verdicts.count(word) for word in WORDS if word in verdicts}
    words = [f"{n} {PREDICATES[word][n > 1]}" for word, n in counts.items()]
    assert f"We tested {len(rows)} claims: {enumerated(words)}." in text
    claims = [claim for claim in compared_papers(read_archive(project / STUDIES))["align_mlm"].claims if claim.was_run]
    found = [claim.main for claim in claims]
    still = [one for one in found if one.verdict == NOT_DECIDED]
    known = [one.needed for one in still if one.needed is not None]
    assert known and all(f"({one.still_needed})" in text for one in still if one.needed is not None)
    surely, perhaps = (sum(needed[end] <= 20 for needed in known) for end in (1, 0))
    assert f"No scale decides {len(still)} claims. " in text and f"can be estimated for {len(known)} of them. " in text
    assert f"With 20 models, {surely} to {perhaps} would be decided with 80 % power" in text
    [judged] = [claim.main for claim in claims if claim.claim.id == "align-beats-mlm"]
    assert judged.ours is not None and row[3].startswith(f"{judged.ours.mean:.2f} ")
    assert re.fullmatch(r"(< )?[\d.]+ for \(1.000 against\)", row[4].replace("&lt;", "<"))
    assert row[6:] == [judged.verdict, f"{judged.outcomes.count('holds')} of {len(judged.outcomes)}"]
    assert f"they have {sum(len(one.outcomes) for one in found)} comparisons" in text


def test_equal_results_give_equal_bytes(project, tmp_path):
    before = files(project)
    kept = {path: path.read_bytes() for path in (project / STUDIES).rglob("*.*")}
    archive_studies([tmp_path / "run"], project / STUDIES)
    assert {path: path.read_bytes() for path in (project / STUDIES).rglob("*.*")} == kept
    other = shutil.copytree(project, tmp_path / "elsewhere" / "findings")
    assert files(other) == before == files(project)


def test_the_pages_in_the_project_are_those_of_what_is_archived(tmp_path):
    """After a study was archived anew: synthlang findings docs/findings."""
    if not any((DOCS / "findings" / STUDIES).glob("*/study.json")):
        pytest.skip("no study is archived in docs/findings yet")
    folder = shutil.copytree(DOCS / "findings", tmp_path / "findings")
    drawn = {path.name for path in (folder / FIGURES).iterdir()}
    for name, content in files(folder).items():
        if name.endswith(".md"):
            assert content.decode() == (DOCS / name).read_text(encoding="utf-8"), name
    assert {path.name for path in (folder / FIGURES).iterdir()} == drawn
    sizes = {study.name: sum(file.stat().st_size for file in study.iterdir()) for study in (folder / STUDIES).iterdir()}
    assert max(sizes.values()) < 400_000, sizes


def test_ten_verdicts_are_recomputed_with_pandas_and_scipy_alone(monkeypatch):
    """The code of docs/recompute.md, against the pages of the findings."""
    monkeypatch.chdir(DOCS)
    code = "".join(re.findall(r"^```python\n(.*?)^```$", Path("recompute.md").read_text(), re.DOTALL | re.MULTILINE))
    assert {*re.findall(r"^(?:import|from) (\w+)", code, re.MULTILINE)} == {"json", "pandas", "scipy"}
    made: dict[str, Any] = {}
    exec(compile(code, "recompute.md", "exec"), made)
    assert len(made["found"]) == 10 and len({word for *_, word in made["found"].values()}) == 3
    for (name, claim), (inside, against, word) in made["found"].items():
        rows = lines_of(section(Path(f"findings-{name}.md").read_text(encoding="utf-8"), "The claims at every scale"))
        of_claim = [row for row in rows if row[0].lower().startswith(f"{claim.replace('-', ' ')} (")]
        [row] = [row for row in of_claim if row[5].endswith(("models (tiny)", f"models (tiny ({name}))"))]
        shown = f"{p_value(inside)} for ({p_value(against)} against)"
        assert (row[4].replace("&lt;", "<"), row[6].split(" (")[0]) == (shown, word), claim


def test_the_first_page_in_the_project_is_short():
    text = (DOCS / "findings.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 1500
    assert all(len(alt.split()) <= 30 for alt in re.findall(r"!\[(.*?)\]", text))


def test_the_table_of_the_readme_is_that_of_the_quickstart_that_is_kept():
    rows = pq.read_table(DOCS / "findings" / STUDIES / "quickstart" / "results.parquet").to_pylist()
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    for language, objective in product(["trans", "trans+inv"], ["MLM", "ALIGN-MLM"]):
        wanted = {"transform": language, "objective": objective}
        of = sorted(
            (r for r in rows if wanted.items() <= json.loads(r["labels"]).items()), key=lambda r: r["pretrain_seed"]
        )
        sup, delta, aligned = (mean(r[key] for r in of) for key in ("sup", "delta", "alignment_forward"))
        each = " ".join(f"{r['delta']:.1f}" for r in of)
        ours = rf"{sup:.1f} \| {delta:.1f} \([^|]+\) \| {each} \| [\d.]+ \| {aligned:.1f} \|"
        assert re.search(rf"\| {re.escape(language)} \| {objective} \| {ours}", readme), ours


def test_what_is_kept_is_small_and_says_nothing_of_the_machine(tmp_path):
    run = paper_study(tmp_path / "run", axes=AXES, seconds={"pretrain-1": 7.5})
    labels = cells_of(run)[0]["labels"]
    names = ["pretrain.perplexity.parent", "alignment.scores.all.cosine.mean", "cka.same_layer.debiased"]
    write_measures(run, [["MLM, trans, 0", json.dumps(labels), 0, "p", name, "", "", 1.5] for name in names])
    [kept] = archive_studies([run], tmp_path / "kept")
    assert kept.folder == tmp_path / "kept" / "align_mlm-table3-tiny" and kept.size < 40_000  # 324 rows of scores
    assert {path.name for path in kept.folder.iterdir()} == {"study.json", "results.parquet", "measures.parquet"}
    text = (kept.folder / "study.json").read_text(encoding="utf-8")
    assert not re.search(r"environment|seconds|/home|stages/|transfer", text)
    assert '"text:…/text/en"' in text
    results = pq.read_table(kept.folder / "results.parquet")
    assert set(results["source"].to_pylist()) == {"text:…/text/en"}
    assert results.drop_columns("source").equals(pq.read_table(run / "results.parquet").drop_columns("source"))
    assert pq.read_table(kept.folder / "measures.parquet")["measure"].to_pylist() == names[:2]
    assert report(kept.folder).table("Claim", "Verdict") == report(run).table("Claim", "Verdict")


def test_cells_that_differ_in_seeds_are_kept_by_what_differs(tmp_path):
    run = paper_study(tmp_path / "run", axes=AXES)
    [kept] = archive_studies([run], tmp_path / "kept")
    written = cells_of(kept.folder)
    assert {cell.get("like") for cell in written} >= {None, written[0]["name"]}
    assert {tuple(cell["overrides"]) for cell in written if "like" in cell} == {("pretrain.pretrain.seed",)}
    assert [cell.overrides for cell in read_study(kept.folder).cells] == [cell["overrides"] for cell in cells_of(run)]
    change(kept.folder, cells=written[1:])
    assert refused(read_study, kept.folder) == ("study.json", "format")


def test_measures_that_a_claim_reads_are_kept(tmp_path):
    names = [q.measure for claim in read_claims("emerging") for q in claim.quantities()]
    read = sorted({name.removeprefix("probe:") for name in names if name.startswith("probe:")})
    run = make_grid(tmp_path / "run", {"objective": ["MLM"]}, config={"claims": ["emerging"]})
    write_measures(run, [["MLM", "{}", 0, "p", name, layer, "", 1.5] for name in [*read, "other"] for layer in (0, 1)])
    [kept] = archive_studies([run], tmp_path / "kept")
    found = pq.read_table(kept.folder / "measures.parquet")["measure"].to_pylist()
    assert read and found == [name for name in read for _ in (0, 1)]


@pytest.mark.parametrize("tuned", [None, {}])
def test_the_alignment_of_models_that_a_probe_reads_after_tuning_is_kept(tuned, tmp_path):
    names = ["words.scores.all.cosine.mean", "words.scores.all.csls.mean"]
    run = make_grid(tmp_path / "run", {"objective": ["MLM"]}, config={"tuned": tuned, "probes": {"words": {}}})
    write_measures(run, [["MLM", "{}", 0, "p", name, "", "", 1.5] for name in names])
    [kept] = archive_studies([run], tmp_path / "kept")
    found = pq.read_table(kept.folder / "measures.parquet")["measure"].to_pylist()
    assert found == ([] if tuned is None else names[:1])


@pytest.mark.usefixtures("rendered")
def test_a_name_has_one_colour_at_all_scales(project, tmp_path):
    some = SMALL | {"objective": ["DICT-MLM", "ALIGN-MLM"]}  # and the colours begin with these
    archive_studies([paper_study(tmp_path / "some", "lab", some, fingerprint="cd" * 8)], project / STUDIES)
    page(project)
    first, second = (
        re.findall(r"fill: (#\w+); opacity: 0.75", (project / FIGURES / name).read_text(encoding="utf-8"))
        for name in ("1-align-mlm-table3-lab.svg", "2-align-mlm-table3-tiny.svg")
    )
    mlm, xlm, *others = dict.fromkeys(second)
    assert others == list(dict.fromkeys(first)) and {mlm, xlm}.isdisjoint(first)


def test_a_verdict_is_followed_by_those_of_scales_that_decide_differently(project, tmp_path):
    run = paper_study(tmp_path / "other", "wide", fingerprint="cd" * 8)  # archived after tiny
    change_rows(run, lambda row, of: {"delta": float(row["delta"]) + 50 * (of["objective"] == "ALIGN-MLM")})
    archive_studies([run], project / STUDIES)
    text = paper(project)
    _, *rows = lines_of(section(text, "Claims"))
    every = lines_of(section(text, "The claims at every scale"))[1:]
    assert any("(" in row[6] for row in rows)
    for claim, *_, over, told, _held in rows:
        [(scale, other)] = [
            (re.findall(r"\w+", row[5])[-1], row[6]) for row in every if row[0] == claim and row[5] != over
        ]
        verdict = told.split(" (")[0]
        differs = other not in (NOT_DECIDED, verdict)
        assert told == (f"{verdict} ({scale}: {other})" if differs else verdict)


def test_figures_of_a_former_page_do_not_stay(written, tmp_path):
    project = Path(shutil.copytree(written, tmp_path, dirs_exist_ok=True)) / "docs" / "findings"
    stale, other = project / FIGURES / "9-gone.svg", project / FIGURES / "notes.txt"
    stale.write_text("<svg/>")
    other.write_text("mine")
    page(project)
    assert not stale.exists() and other.exists()


DAMAGES = [
    (lambda kept: (kept / "study.json").unlink(), "study.json", "missing"),
    (lambda kept: (kept / "study.json").write_text("[]"), "study.json", "format"),
    (lambda kept: change(kept, kept={"format": 2}), "study.json", "format"),
    (lambda kept: change(kept, kept={"format": 1}), "results.parquet", "damaged"),
    (lambda kept: change(kept, cells=3), "study.json", "format"),
    (lambda kept: (kept / "results.parquet").unlink(), "results.parquet", "missing"),
    (lambda kept: (kept / "measures.parquet").write_bytes(b"PAR1"), "measures.parquet", "damaged"),
]


@pytest.mark.parametrize(("damage", "place", "code"), DAMAGES)
def test_a_damaged_folder_or_one_of_another_version_is_refused(damage, place, code, written, tmp_path):
    project = Path(shutil.copytree(written, tmp_path, dirs_exist_ok=True)) / "docs" / "findings"
    before = project.with_suffix(".md").read_bytes()
    damage(project / STUDIES / "align_mlm-table3-tiny")
    assert refused(page, project) == (place, code)
    assert project.with_suffix(".md").read_bytes() == before


def only(run: Path, seeds: tuple[str, ...]) -> Path:
    """The study as it is when the cells of these seeds have been run, and a task of a cell that has two."""
    cells = cells_of(run)
    done = {cell["name"] for cell in cells if cell["labels"]["pretrain.seed"] in seeds}
    begun = next(cell["name"] for cell in cells if cell["name"] not in done)
    change(run, cells=[{**cell, "status": "done" if cell["name"] in done else "pending"} for cell in cells])
    table = pq.read_table(run / "results.parquet")
    rows = [r for r in table.to_pylist() if r["cell"] in done or (r["cell"] == begun and r["task"] == "pos")]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), run / "results.parquet")
    return run


def test_a_study_is_kept_in_parts(project, written, tmp_path):
    folder = project / STUDIES / "align_mlm-table3-tiny"
    whole = {path.name: path.read_bytes() for path in folder.iterdir()}
    finished = (written / "docs" / "findings.md").read_text(encoding="utf-8")
    shutil.rmtree(folder)
    first = only(paper_study(tmp_path / "first"), ("1",))
    [kept] = archive_studies([first], project / STUDIES)
    assert kept.waiting == 16
    text = page(project)
    assert "- align_mlm-table3-tiny: 16 of 24 cells not run yet." in section(text, "Not finished")
    assert "## Verdicts" not in text and "![" not in text
    (project / READINGS).write_text("align_mlm: {text: [Not yet.]}\n")
    assert page(project) == text, "a reading waits for the study"
    (project / READINGS).unlink()
    parts = [only(paper_study(tmp_path / name), seeds) for name, seeds in (("b", ("0", "1")), ("c", ("2",)))]
    [kept] = archive_studies(parts, project / STUDIES)
    assert kept.waiting == 0
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == whole
    assert page(project) == finished


def test_a_study_that_is_kept_can_grow(project, tmp_path):
    """An objective more is planned and run: what is kept of the others counts, under another fingerprint as well."""
    grown = SMALL | {"objective": [*SMALL["objective"], "OURS"]}
    run = paper_study(tmp_path / "grown", axes=grown, fingerprint="cd" * 8)
    whole = {path: (run / path).read_bytes() for path in ("study.json", "results.parquet")}
    new = [cell["name"] for cell in cells_of(run) if cell["labels"]["objective"] == "OURS"]
    change(run, cells=[c if c["name"] in new else {**c, "status": "pending", "stages": {}} for c in cells_of(run)])
    table = pq.read_table(run / "results.parquet")
    rows = [row for row in table.to_pylist() if row["cell"] in new]
    pq.write_table(pa.Table.from_pylist(rows, table.schema), run / "results.parquet")
    [kept] = archive_studies([run], project / STUDIES)
    assert kept.waiting == 0 and "| OURS |" in paper(project)
    joined = {path.name: path.read_bytes() for path in kept.folder.iterdir()}
    for path, data in whole.items():
        (run / path).write_bytes(data)
    archive_studies([run], project / STUDIES)
    assert joined == {path.name: path.read_bytes() for path in kept.folder.iterdir()}, "as if it was run at once"


def pending(run: Path) -> None:
    cells = cells_of(run)
    change(run, cells=[{**cells[0], "status": "pending"}, *cells[1:]])


UNFIT = [
    (lambda run: (run / "results.parquet").unlink(), "results.parquet", "missing"),
    (lambda run: change(run, config={"claims": ["mine.yaml"]}), "study.json config.claims", "unsupported"),
    (lambda run: change(run, config={"claims": ["nobody"]}), "study.json config.claims", "unknown"),
    (lambda run: change(run, config={"paper": "my.yaml/first"}), "study.json config.paper", "unsupported"),
    (lambda run: change(run, name="…", config={}), "study.json name", "format"),
]


@pytest.mark.parametrize(("spoil", "place", "code"), UNFIT)
def test_what_cannot_be_archived_is_refused_and_leaves_the_rest(spoil, place, code, tmp_path):
    good, bad = paper_study(tmp_path / "good"), paper_study(tmp_path / "bad")
    spoil(bad)
    assert refused(archive_studies, [good, bad], tmp_path / "kept") == (place, code)
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize("stage", ["pretrain", "transfer pos seed 1"])
def test_a_part_of_other_settings_is_not_mixed_with_what_is_kept(stage, project, tmp_path):
    folder = project / STUDIES / "align_mlm-table3-tiny"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    other = paper_study(tmp_path / "other")
    pending(other)
    first, *rest = cells_of(other)
    keys = dict.fromkeys((name for name in first["keys"] if name.startswith(stage.split(" ")[0])), "ef" * 8)
    change(other, cells=[{**first, "keys": first["keys"] | keys}, *rest])
    error = refusal(archive_studies, [other], project / STUDIES)
    assert str(error) == (
        f"{other}: the study is not finished (1 of 24 cells is not run), and the cell 'MLM, trans, 0', which is "
        "archived under the same name, has other settings here or is not a cell here; finish the study, which then "
        "replaces the archived one"
    )
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    (folder / "results.parquet").write_bytes(b"PAR1")
    assert refused(archive_studies, [other], project / STUDIES) == ("results.parquet", "damaged")


WRONG_TEXTS = [
    (READINGS, "align_mln: {text: [x]}", "align_mln", "unknown"),
    (READINGS, "align_mlm: {figures: [table3, steps]}", "align_mlm.figures", "unknown"),
    (READINGS, "align_mlm: {figures: [delta of table4]}", "align_mlm.figures", "unknown"),
    (READINGS, "align_mlm: {line: [x]}", "align_mlm.line", "unknown"),
    (OVERVIEW, "papers: {align_mlm: {alt: " + "x" * 251 + "}}", "papers.align_mlm.alt", "range"),
    (OVERVIEW, "results: [{title: x}]", "results.0.study", "missing"),
    (OVERVIEW, "papers: {align_mlm: {figure: table9}}", "papers.align_mlm.figure", "unknown"),
    (OVERVIEW, "results: [{title: x, study: y, text: z, figure: delta}]", "results.0.figure", "unknown"),
]


@pytest.mark.parametrize(("file", "written", "place", "code"), WRONG_TEXTS)
def test_a_wrong_text_is_refused(file, written, place, code, project):
    (project / file).write_text(written + "\n")
    assert refused(page, project) == (f"{file} {place}", code)


def test_a_page_that_was_written_by_hand_stays(project):
    by_hand = project.with_suffix(".md")
    by_hand.write_text("# Findings\n\nBy hand.\n")
    assert refused(page, project) == ("findings.md", "exists")
    assert by_hand.read_text() == "# Findings\n\nBy hand.\n"
    other = by_hand.rename(page_of(by_hand, "align_mlm"))
    assert refused(page, project) == ("findings-align_mlm.md", "exists")
    assert not by_hand.exists()
    other.rename(by_hand)
    assert refused(check_page, project) == ("findings", "exists")


def test_without_an_archived_study_nothing_is_written(tmp_path):
    assert refused(page, tmp_path / "findings") == ("findings", "empty")
    assert not list(tmp_path.iterdir())


def test_a_page_elsewhere_links_to_the_figures(project, tmp_path):
    text = write_findings(project, tmp_path / "page.md").page.read_text(encoding="utf-8")
    assert "](docs/findings/figures/1-align-mlm-table3-tiny.svg)" in text and MADE_BY in text
    assert "](page-align_mlm.md)" in text and (tmp_path / "page-align_mlm.md").is_file()
    [figure] = (project / FIGURES).iterdir()
    ElementTree.fromstring(figure.read_text(encoding="utf-8"))
