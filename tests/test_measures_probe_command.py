"""``synthlang probe`` as a whole: the files it writes, its settings, and what it refuses."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from pretrain.config import PretrainConfig
from pretrain.run import pretrain
from probes.measures.probe_command import (
    _without_words,
    measure,
    probe_command,
    probe_names,
    read_probe_config,
    run_probe,
)
from probes.measures.probe_input import ProbeInput
from probes.measures.table import PROBES, ProbeConfig
from probes.models.opening import open_pretrained
from synthlang.catalogue import names
from synthlang.config import parse
from synthlang.errors import InputError
from tests.lengths_probe import LengthsConfig
from tests.refusals import refused
from tests.tiny import PRETRAIN, changed

SMALL = ["data={dev: 30, sentences: 60}", "cka.sentences=40", "distances.pairs=5"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("probed") / "run"
    pretrain(parse(PretrainConfig, PRETRAIN), folder)
    return folder


@pytest.mark.parametrize("name", names("probes"))
def test_every_preset_is_a_config(name):
    assert set(read_probe_config(Path(name), {}, []).probes) <= set(PROBES)


def test_one_command_gives_the_whole_report_of_a_run(run, capsys):
    folder = probe_command(str(run), read_probe_config(None, {}, SMALL), None)
    assert folder == run / "probes"
    saved = json.loads((folder / "probes.json").read_text())
    assert list(saved["probes"]) == sorted(ProbeConfig().probes) and saved["language"] == "trans+inv"
    page = (folder / "probes.html").read_text()
    for heading in ("Word embeddings", "Words in context", "Rotations", "Similarity of layers", "Distances"):
        assert f"<h2>{heading}</h2>" in page
    figures = {path.suffix for path in (folder / "figures").iterdir()}
    assert figures == {".svg", ".png"} and page.count("<svg") == len(list((folder / "figures").glob("*.svg")))
    assert "cka_against_retrieval" in saved
    assert not [path.name for path in run.iterdir() if path.name.startswith(".probes")]
    again = probe_command(str(run), read_probe_config(None, {}, [*SMALL, "probes=[words]"]), None)
    later = json.loads((again / "probes.json").read_text())
    assert list(later["probes"]) == ["words"] and later["probes"]["words"] == saved["probes"]["words"]
    said = capsys.readouterr().out
    assert "report:" in said
    for language in ("parent", "trans+inv"):
        assert re.search(
            rf"^{re.escape(language)}: [\d.]+ tokens per word, [\d.]+ % of the tokens unknown$", said, re.M
        )


def test_all_checkpoints_of_a_run_are_probed(tmp_path, capsys):
    """Steps in between have the values that ``words`` measures there by itself, and the last those of the run."""
    run = tmp_path / "run"
    pretrain(parse(PretrainConfig, changed(PRETRAIN, checkpoints={"every": 6, "keep": 1, "at": [1, 0.5]})), run)
    options = {"probes": ["words", "sentences"], "checkpoints": "all"}
    folder = probe_command(str(run), read_probe_config(None, options, ["sentences.most=8"]), None)
    saved = json.loads((folder / "probes.json").read_text())
    by_step = {one["step"]: one["probes"] for one in saved["checkpoints"]}
    assert list(by_step) == [1, 3, 6] and "checkpoints" not in saved["probes"]["words"]
    for probe in ("words", "sentences"):
        last = {key: value for key, value in saved["probes"][probe].items() if key != "notes"}
        assert by_step[6][probe] == last != by_step[1][probe]
    plain = probe_command(str(run), read_probe_config(None, {"probes": ["words"]}, []), tmp_path / "plain")
    within = json.loads((plain / "probes.json").read_text())["probes"]["words"]["checkpoints"]
    for one in within:
        assert one["languages"]["trans+inv"]["scores"] == by_step[one["step"]]["words"]["scores"]
    with (folder / "checkpoints.csv").open() as handle:
        rows = [row for row in csv.DictReader(handle) if row["measure"] == "words.scores.all.cosine.mean"]
    assert [(row["step"], row["probe"], row["layer"]) for row in rows] == [(str(n), "words", "") for n in (1, 3, 6)]
    expected = [by_step[step]["words"]["scores"]["all"]["cosine"]["mean"] for step in (1, 3, 6)]
    assert [float(row["value"]) for row in rows] == expected
    page, shown = (folder / "probes.html").read_text(), capsys.readouterr().out
    assert "<h2>Checkpoints</h2>" in page and "main measures by step" in shown
    assert {"steps-1-sentences-bits.svg", "steps-1-words-percent.svg"} <= {
        path.name for path in (folder / "figures").iterdir()
    }
    (run / "checkpoints" / "step-1" / "model.safetensors").write_bytes(b"x")
    again = probe_command(str(run), read_probe_config(None, {**options, "probes": ["words"]}, []), None)
    assert [one["step"] for one in json.loads((again / "probes.json").read_text())["checkpoints"]] == [3, 6]
    assert "step-1 is damaged and was skipped" in capsys.readouterr().out
    two = read_probe_config(None, {**options, "model2": str(run)}, [])
    assert refused(probe_command, str(run), two, None) == ("checkpoints", "conflict")


def test_a_language_that_the_run_did_not_read_is_measured_with_a_note(run, tmp_path, capsys):
    note = "the model was not pretrained on perm, only on parent, trans+inv"
    found = {}
    for language in ("perm", "trans+inv"):
        config = read_probe_config(None, {"language": language, "probes": ["cka"]}, [*SMALL, "cka.random=[]"])
        folder = probe_command(str(run), config, tmp_path / language)
        found[language] = json.loads((folder / "probes.json").read_text())
        for told in (capsys.readouterr().out, (folder / "probes.html").read_text()):
            assert (note in " ".join(told.split())) == (language == "perm")
    assert found["perm"]["notes"] == [note] and found["trans+inv"]["notes"] == []
    first, second = (found[name]["probes"]["cka"]["comparisons"]["languages"] for name in found)
    assert first["mean"] != second["mean"]


def test_what_is_refused(run, tmp_path):
    one = read_probe_config(None, {"probes": ["words"]}, [])
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    inside = read_probe_config(None, {"probes": ["maps"]}, [f"maps.save={tmp_path / 'out' / 'maps'}"])
    cases: list[tuple[Any, tuple[Any, ...], tuple[str, str]]] = [
        (probe_command, (str(run), one, tmp_path / "mine"), ("mine", "exists")),
        (probe_command, (str(run), one, tmp_path / "mine" / "letter.txt"), ("letter.txt", "exists")),
        (probe_command, (str(run), inside, tmp_path / "out"), ("maps.save", "conflict")),
        (probe_command, (str(tmp_path / "mine"), one, None), ("mine", "missing")),
        (probe_names, ("words,cca",), ("--probe", "unknown")),
    ]
    for call, given, refusal in cases:
        assert refused(call, *given) == refusal
    assert probe_names("all") == list(PROBES) and probe_names("cka, words") == ["cka", "words"]
    assert probe_names(None) is None


def test_what_is_missing_is_found_before_anything_is_measured(run, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    monkeypatch.setattr("probes.measures.probe_command.run_probe", lambda *_: pytest.fail("a probe was run"))
    (tmp_path / "text").write_text("a cat ||| a cat\n" * 90)
    pair = f"pairs={{a: {{kind: text, joint: {tmp_path / 'text'}}}}}"
    config = read_probe_config(None, {"probes": ["words", "retrieval"]}, [*SMALL, pair])
    assert refused(probe_command, str(run), config, tmp_path / "out") == ("pairs.a", "extra")
    assert not (tmp_path / "out").exists()


def test_a_probe_that_fails_does_not_cost_the_results_of_those_before_it(run, tmp_path, monkeypatch):
    config = read_probe_config(None, {"probes": ["words", "cka", "retrieval"]}, [*SMALL, "cka.random=[]"])

    def full(*_):
        raise InputError("no space is left", code="failed")

    monkeypatch.setattr("probes.measures.retrieval.probe.source_of", full)
    assert refused(probe_command, str(run), config, tmp_path / "out") == ("retrieval", "failed")
    saved = json.loads((tmp_path / "out" / "probes.json").read_text())
    assert list(saved["probes"]) == ["cka", "words"] and saved["settings"]["probes"] == ["words", "cka"]
    # files in the place of a stage would be taken for the finished stage
    given = ProbeInput(open_pretrained(str(run), None), config, run)
    assert refused(measure, given, tmp_path / "stage") == ("retrieval", "failed") and not (tmp_path / "stage").exists()


def test_other_keys_of_data_do_not_change_how_many_pairs_are_fitted():
    assert read_probe_config(None, {}, []).data.sentences == 20_000
    assert read_probe_config(None, {}, ["data.dev=10"]).data.sentences == 20_000
    assert read_probe_config(None, {}, ["data.sentences=null"]).data.sentences is None


def found_by(run, probes, settings):
    config = read_probe_config(None, {"probes": probes}, settings)
    given = ProbeInput(open_pretrained(str(run), None), config, run)
    with given.reading():
        return {name: run_probe(name, given).values for name in probes}


def test_what_fits_nothing_needs_nothing_to_fit_on(run, tmp_path):
    """All sentence pairs are measured, or for CKA, which holds nothing out, none has to be."""
    few = ["layers=[0]", "cka.random=[]", "distances.picture=none"]
    everything = ["data={dev: 1000, test: 150}", *few]
    results = found_by(run, ["retrieval", "distances", "cka"], everything)
    assert results["retrieval"]["counts"]["sentence pairs to train on"] == 0 and results["distances"]["related"] > 50
    none = found_by(run, ["cka"], ["data={dev: 0, test: 150}", *few])
    assert none["cka"]["sentences"] == results["cka"]["sentences"] > 20
    assert refused(found_by, run, ["retrieval"], ["data.dev=0"]) == ("data.dev", "empty")
    with pytest.raises(InputError, match="cka: no sentence pair is left"):
        found_by(run, ["cka"], ["data.test=1000"])
    with pytest.raises(InputError, match="no sentence pair is left to train or fit on"):
        probe_command(str(run), read_probe_config(None, {"probes": ["maps"]}, everything), tmp_path / "maps")


@pytest.mark.parametrize(
    ("settings", "ours", "left_out"),
    [
        ({}, True, False),
        ({}, False, True),
        ({"model2": "other"}, True, True),
        ({"model2": "other", "words": {"dictionary": "muse.txt"}}, True, False),
        ({"model2": "other", "probes": ["words", "cka"]}, True, False),
    ],
)
def test_words_is_left_out_aloud_where_no_translations_are_known(settings, ours, left_out):
    said = io.StringIO()
    config = parse(ProbeConfig, settings)
    kept = _without_words(config, ours, Console(file=said))
    assert ("words" not in kept.probes) == left_out == ("words is left out" in said.getvalue())
    assert set(kept.probes) | {"words"} == set(config.probes) | {"words"}


class MoreProbes(ProbeConfig):
    """All probes and one more: the file above, and one line."""

    lengths: LengthsConfig = LengthsConfig()


def test_a_probe_is_a_file_and_a_line(run, tmp_path):
    config = parse(MoreProbes, {"probes": ["lengths"], "data": {"dev": 30}, "lengths": {"most": 9}})
    assert "lengths" in MoreProbes.table()
    folder = probe_command(str(run), config, tmp_path / "out")
    found = json.loads((folder / "probes.json").read_text())["probes"]
    assert list(found) == ["lengths"] and found["lengths"]["counts"] == {"sentences counted": 9}
    page = (folder / "probes.html").read_text()
    for text in ("<h2>Lengths of sentences</h2>", "spaces separate words", "sentences counted: 9"):
        assert text in page
    with pytest.raises(InputError, match=r"probes.*'minimal_pairs' or 'lengths'"):
        parse(MoreProbes, {"probes": ["length"]})
    with pytest.raises(InputError, match=r"lengths\.most: "):
        parse(MoreProbes, {"lengths": {"most": "many"}})
