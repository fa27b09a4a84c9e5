"""``synthlang probe`` as a whole: the files it writes, its settings, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.measure.command import probe_command, probe_names, read_probe_config
from probes.measure.config import PROBES
from synthlang.config import parse
from synthlang.errors import InputError
from tests.tiny import PRETRAIN

PRESETS = sorted((Path(__file__).parents[1] / "configs" / "probes").glob("*.yaml"))
SMALL = ["data={dev: 30, sentences: 60}", "cka.sentences=40", "distances.pairs=5"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


@pytest.mark.parametrize("path", PRESETS, ids=lambda path: path.stem)
def test_every_preset_is_a_config(path):
    assert set(read_probe_config(path, {}, []).probes) <= set(PROBES)


def test_one_command_gives_the_whole_report_of_a_run(run, capsys):
    folder = probe_command(str(run), read_probe_config(None, {}, SMALL), None)
    assert folder == run / "probes"
    held = json.loads((folder / "probes.json").read_text())
    assert list(held["probes"]) == sorted(PROBES) and held["language"] == "trans+inv"
    page = (folder / "probes.html").read_text()
    for heading in ("Word embeddings", "Words in context", "Rotations", "Similarity of layers", "Distances"):
        assert f"<h2>{heading}</h2>" in page
    figures = {path.suffix for path in (folder / "figures").iterdir()}
    assert figures == {".svg", ".png"} and page.count("<svg") == len(list((folder / "figures").glob("*.svg")))
    assert "cka_against_retrieval" in held
    assert not [path.name for path in run.iterdir() if path.name.startswith(".probes")]
    again = probe_command(str(run), read_probe_config(None, {}, [*SMALL, "probes=[words]"]), None)
    later = json.loads((again / "probes.json").read_text())
    assert list(later["probes"]) == ["words"] and later["probes"]["words"] == held["probes"]["words"]
    assert "report:" in capsys.readouterr().out


def test_what_is_refused(run, tmp_path):
    one = read_probe_config(None, {"probes": ["words"]}, [])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(InputError, match="holds something else than results of probes"):
        probe_command(str(run), one, tmp_path / "mine")
    with pytest.raises(InputError, match="is a file"):
        probe_command(str(run), one, tmp_path / "mine" / "letter.txt")
    inside = read_probe_config(None, {"probes": ["maps"]}, [f"maps.save={tmp_path / 'out' / 'maps'}"])
    with pytest.raises(InputError, match=r"maps\.save: lies in the folder of the results"):
        probe_command(str(run), inside, tmp_path / "out")
    with pytest.raises(InputError, match=r"probes\.0: 'cca'"):
        read_probe_config(None, {"probes": probe_names("cca")}, [])
    with pytest.raises(InputError, match="name sentence pairs"):
        read_probe_config(None, {"language": "fr"}, ["natural=true"])
    with pytest.raises(InputError, match="there is no such folder; name a run"):
        probe_command("/nowhere/at/all", one, None)
    assert probe_names("all") == list(PROBES) and probe_names("a, b") == ["a", "b"]
