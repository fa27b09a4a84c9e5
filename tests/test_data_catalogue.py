"""The catalogue of data sets: every path that a study reads has an entry, and entries are consistent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

import probes
from probes.cli import _with_source, app
from probes.data_commands import data_of_study
from probes.study.checks import inputs_of
from synthlang import catalogue
from synthlang.catalogue import TINY, folder
from synthlang.config import parse
from synthlang.data import entries
from synthlang.data.entries import ROOT, DataSet, entry, name_of, names, names_of, places
from synthlang.data.sizes import Size
from synthlang.data.sources import ByHand, GitFiles, HubFiles, MadeOf
from synthlang.data.state import items
from synthlang.data.steps import Align, Parse, Segment
from synthlang.errors import InputError
from synthlang.files import no_such
from synthlang.parallel.pairs import AlignerLinks, TextPair
from tests.refusals import refused
from tests.shipped import catalogued, place, study

STUDIES = [name for name in catalogue.names("studies") if not name.endswith(f"/{TINY}")]
PATH = re.compile(rf"\b{ROOT}/(?!\.)[\w./{{}}-]*\w")
__all__ = ["place"]


@pytest.mark.parametrize("name", STUDIES)
def test_all_data_of_every_study_is_in_the_catalogue(name, place):
    paths = inputs_of(study(catalogued(name))[1])
    assert [path for path in paths if name_of(path) is None] == []
    size = name.rpartition("/")[2]
    assert items(names_of(paths), Path(ROOT), size) or size not in ("paper", "lab")


def test_every_path_in_every_config_leads_to_an_entry():
    """Paths with words, such as data/nli/{language}, are expanded by the studies that the test above walks."""
    files = [path for path in folder().rglob("*.yaml") if path.name != "data.yaml"]
    settings = (re.sub(r"(^|\s)#.*", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE) for file in files)
    found = {path for text in settings for path in PATH.findall(text)}
    plain = {path for path in found if "{" not in path and "LANG" not in path}
    known = {f"{ROOT}/{spot}" for name in names() for spot in places(name)}
    assert len(plain) > 30
    assert not {path for path in plain if not any(f"{spot}/".startswith(f"{path}/") for spot in known)}


def test_the_data_of_a_study_whose_cells_cannot_be_built_without_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # without the dictionaries, whose words are part of the languages
    found, size = data_of_study(Path("emerging-table1"), "lab")
    assert {"muse/en-fr", "muse/zh-en", "text/ru", "nli/fr"} <= set(found) and size == "lab"


def test_an_error_about_a_missing_file_of_the_catalogue_names_the_command():
    assert _with_source(no_such(Path("data/nli/en"))).hint.endswith("; run: synthlang data fetch nli/en")
    assert "fetch" not in _with_source(no_such(Path("mine/nli/en"))).hint


def origins(name: str) -> list[entries.Origin]:
    data = entry(name)
    return [data, *([data.lab] if data.lab is not None else [])]


@pytest.mark.parametrize("name", names())
def test_an_entry_is_consistent(name):
    data = entry(name)
    assert isinstance(data, DataSet) and len(set(places(name))) == len(places(name))
    assert all(name_of(f"{ROOT}/{spot}") == name for spot in places(name))
    assert data.layout in ("pairs", "dictionary", "vectors") or not data.fills
    for origin in origins(name):
        assert origin.is_fetched == (origin.convert is not None) and len(origin.checked) > 8
        if isinstance(origin.source, MadeOf):
            assert origin.source.base in names() and [step.kind for step in origin.steps] == ["parse"]
        if origin.convert is None:
            continue
        came = {file.name for file in getattr(origin.source, "remote", [])} or set(getattr(origin.source, "files", []))
        for given in origin.convert.inputs:
            first = given.partition("!")[0]
            assert first in came or any(first.split("/")[0] == one.split("/")[0] for one in came), (given, came)
        if isinstance(origin.source, HubFiles):
            assert origin.source.revision, "a commit is known of every data set of the hub"
        if isinstance(origin.source, GitFiles):
            assert re.fullmatch("[0-9a-f]{40}|r2.3", origin.source.commit)


@pytest.mark.parametrize("name", names())
def test_a_data_set_that_fetch_brings_has_a_download_and_a_size_on_disk_each_with_its_basis(name):
    for origin in origins(name):
        for size in (origin.download, origin.disk):
            if isinstance(origin.source, ByHand):
                assert size is None
                continue
            assert size is not None and len(size.model_dump(exclude_none=True)) == 1
            assert str(size).startswith("≈ ") == (size.estimated is not None)
        made = isinstance(origin.source, MadeOf)
        assert made or origin.download is None or origin.download.megabytes > 0
        assert origin.disk is None or origin.disk.megabytes > 0


@pytest.mark.parametrize("name", names())
def test_a_folder_has_the_same_splits_from_each_source(name):
    data = entry(name)
    assert bool(data.splits) == (not data.fills)
    for origin in origins(name) if data.splits else ():
        assert origin.convert is None or origin.convert.written_splits == data.splits


@pytest.mark.parametrize("wrong", [{}, {"stated": 1, "estimated": 1}])
def test_a_size_has_one_basis(wrong):
    with pytest.raises(InputError, match="exactly one key"):
        parse(Size, wrong, "data.yaml")


def test_every_parsed_folder_that_a_config_names_is_made_by_a_step(place):
    found = {path for name in STUDIES for path in inputs_of(study(catalogued(name))[1]) if path.endswith("-parsed")}
    made = {f"{ROOT}/{name}" for name in names() if isinstance(entry(name).source, MadeOf)}
    parsed = ("text/en-parsed", "text/wikitext103/en-parsed", "text/en-morphology-parsed", "text/babylm/en-parsed")
    assert found == made == {f"{ROOT}/{name}" for name in parsed}
    for path in found:
        [step] = entry(path.removeprefix(f"{ROOT}/")).steps
        assert isinstance(step, Parse) and step.amount
    # the parser of the text is the one with which the study parses the items
    for name in STUDIES:
        size = name.rpartition("/")[2]
        for cell in study(catalogued(name))[1] if size in ("paper", "lab") else ():
            used = {name_of(path) or "" for path in inputs_of([cell])}
            transfer = cell.configs.get("transfer")
            parsers = {
                step.parser for one in used if one for step in entry(one).origin(size).steps if step.kind == "parse"
            }
            assert not parsers or transfer is None or {getattr(transfer, "parser", None)} <= {*parsers, None}


def pairs_of(value: object) -> Iterator[TextPair]:
    """The parallel text in a config."""
    if isinstance(value, TextPair):
        yield value
    elif isinstance(value, BaseModel):
        yield from (pair for field in type(value).model_fields for pair in pairs_of(getattr(value, field)))
    elif isinstance(value, Mapping):
        yield from (pair for one in value.values() for pair in pairs_of(one))
    elif isinstance(value, list | tuple):
        yield from (pair for one in value for pair in pairs_of(one))


def test_parallel_text_is_aligned_at_the_sizes_that_use_it(place):
    needed, known = set(), set()
    for name in STUDIES:
        size = name.rpartition("/")[2]
        configs = {id(one): one for cell in study(catalogued(name))[1] for one in cell.configs.values()}
        for pair in (pair for config in configs.values() for pair in pairs_of(config)):
            if pair.left and pair.unit == "word" and isinstance(pair.links, AlignerLinks) and name_of(pair.left):
                assert pair.words == "spaces" and size in ("paper", "lab"), "the step aligns words at spaces"
                needed.add((name_of(pair.left), size, pair.links.program))
    for name in names():
        for size in ("paper", "lab"):
            steps = entry(name).origin(size).steps_at(size)
            known |= {(name, size, step.program) for step in steps if isinstance(step, Align)}
    assert known == needed and len(known) == 54


def test_text_without_spaces_is_segmented():
    """What has no step comes with words: treebanks, tokenized tables, dictionaries and vectors."""
    languages = {"zh": "spacy:zh", "th": "spacy:th"}
    segmented = set()
    for name in names():
        for origin in origins(name):
            steps = [step for step in origin.steps if isinstance(step, Segment)]
            of = [step for step in steps if step.segmenter in languages.values()]
            assert all(step.only in (None, step.segmenter[-2:]) and step.amount for step in of)
            segmented |= {name for _ in of}
    without = {name for name in names() if re.search(r"\b(zh|th)\b", name)} - segmented
    words = {"ud/zh", "pairs/xnli/zh-en", "muse/en-zh", "muse/zh-en", "muse/en-th", "muse/th-en", "fasttext/zh"}
    assert without == words


def test_what_is_not_free_says_how_to_obtain_it_and_has_a_source_at_lab():
    by_hand = [name for name in names() if isinstance(entry(name).source, ByHand)]
    without = [name for name in by_hand if entry(name).lab is None]
    assert len(by_hand) == 12 and without == ["qa/squad-sov/en"], "which no study reads at lab"


def test_the_lists_of_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    done = CliRunner().invoke(app, ["data", "list", "--for", "align_mlm-table3", "--size", "lab"])
    assert done.exit_code == 0, done.output
    assert "5 data sets, 5 missing, of which 5 can be fetched (≈ " in done.output
    assert done.output.rstrip().endswith(" on disk)")
    assert len(probes.list_data()) == len(names())
    assert refused(probes.fetch_data) == ("", "missing")
    assert refused(probes.list_data, ["nli/en"], size="small") == ("--size", "unknown")
    assert refused(probes.fetch_data, ["nli/xx"]) == ("", "unknown")


@pytest.mark.parametrize("name", ["ud/fr", "ud/ru", "ud/zh"])
def test_treebanks_of_google_had_a_restricted_licence_before_ud_2_5(name):
    data = entry(name)
    assert isinstance(data.source, GitFiles) and data.source.commit == "r2.3"
    assert (data.licence, data.restricted) == ("CC-BY-NC-SA-3.0", True)
    assert (entry("ud/en").licence, entry("ud/en").restricted) == ("CC-BY-SA-4.0", False)


def test_downloads_of_xnli_have_the_sizes_that_its_card_states():
    stated = {name: entry(f"nli/{name}").download for name in ("el", "en", "hi", "ur")}
    assert stated == {
        name: Size(stated=size) for name, size in (("el", 74.6), ("en", 50.6), ("hi", 70.9), ("ur", 46.7))
    }
