"""The study file that ``synthlang study --init`` writes: the how-to shows it, and it is a study that runs."""

import re
from pathlib import Path

import pytest

from probes.commands import TEMPLATE, write_new_study
from probes.study.cells import load_study
from probes.study.checks import check_cells
from probes.study.compare import comparisons
from synthlang.catalogue import folder
from tests.refusals import refused
from tests.study_cases import command


@pytest.fixture
def written(tmp_path):
    write_new_study(tmp_path / "mine.yaml")
    return tmp_path / "mine.yaml"


def test_it_is_a_study_of_two_crossed_transforms(written):
    config, cells = load_study(written, [])
    check_cells(cells)
    strengths = {}
    for cell in cells:
        assert cell.pretrain is not None and cell.pretrain.language is not None
        _, mark, permute = cell.pretrain.language.transforms
        strengths[cell.labels["order"], cell.labels["marking"]] = (permute.strength, mark.strength)
    assert strengths == {(o, m): (o == "free", m == "case") for o in ("fixed", "free") for m in ("none", "case")}
    assert len(cells) == 12 and config.title and not (config.papers or config.claims or config.learned)
    assert [one.is_interaction for one in comparisons(config.compare)] == [False, True]
    assert f"synthlang study {written} --dry-run" in written.read_text(encoding="utf-8")


def test_a_smoke_run_of_it_has_all_compared_conditions(written):
    config, cells = load_study(written, [], smoke=True)
    check_cells(cells)
    assert config.name == "case-marking-smoke" and {cell.labels["pretrain.seed"] for cell in cells} == {"0"}
    conditions = [(cell.labels["order"], cell.labels["marking"]) for cell in cells]
    assert sorted(conditions) == [("fixed", "case"), ("fixed", "none"), ("free", "case"), ("free", "none")]


def test_the_how_to_shows_the_file():
    document = (Path(__file__).parents[1] / "docs" / "how-to.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"^```yaml crossed\n(.*?)^```$", document, re.DOTALL | re.MULTILINE)
    assert shown == (folder() / TEMPLATE).read_text(encoding="utf-8")


def test_the_command_writes_it_once_and_runs_nothing(tmp_path, monkeypatch, capsys):
    path = tmp_path / "new" / "mine.yaml"
    assert command(monkeypatch, "study", "--init", path) == 0
    assert "--dry-run" in capsys.readouterr().out and list(tmp_path.rglob("*.yaml")) == [path]
    assert refused(write_new_study, path) == ("mine.yaml", "exists")
    for words in (["study"], ["study", "quickstart", "--init", str(tmp_path / "other.yaml")]):
        assert command(monkeypatch, *words) == 2
        assert "either a study or --init FILE" in capsys.readouterr().err
    assert not (tmp_path / "other.yaml").exists()
