"""Real spaCy and Stanza, through models trained here in seconds: trees, kills, workers, caches."""

import importlib.util
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import pytest

from synthlang.errors import InputError
from synthlang.files import TEMPORARY
from synthlang.parsing import ParsedSource, open_engine
from synthlang.parsing.command import parse_command
from synthlang.parsing.score import main, score
from synthlang.sources import open_source
from tests import parsing_models
from tests.parsing_models import SOURCE, clearnlp_rows, sentences

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("spacy") is None, reason="needs the extra parse: spaCy"),
    pytest.mark.skipif(importlib.util.find_spec("stanza") is None, reason="needs the extra parse: Stanza"),
]
SMALL = "builtin:mini-english?types=500&sentences=250&dev=20&test=20"
LONG = "builtin:mini-english?types=500&sentences=1400&dev=20&test=20"


@pytest.fixture(scope="session")
def spacy_folder(tmp_path_factory):
    return parsing_models.obtain(tmp_path_factory, "spacy-ud", parsing_models.train_spacy)


@pytest.fixture(scope="session")
def clearnlp_folder(tmp_path_factory):
    return parsing_models.obtain(tmp_path_factory, "spacy-clearnlp", parsing_models.train_clearnlp)


@pytest.fixture(scope="session")
def stanza_folder(tmp_path_factory):
    return parsing_models.obtain(tmp_path_factory, "stanza-ud", parsing_models.train_stanza)


@pytest.fixture(scope="session", params=["spacy", "stanza"])
def spec(request):
    return f"{request.param}:{request.getfixturevalue(f'{request.param}_folder')}"


def test_trees_of_unseen_sentences_are_mostly_right(spec):
    gold = [dict(s.columns) for s in sentences("test")]
    found = open_engine(spec).parse([s["form"] for s in gold])
    trained = score(gold, found)
    assert trained.upos > 0.8
    assert trained.las > 0.5
    flat = [{**s, "head": [0] + [1] * (len(s["form"]) - 1)} for s in found]
    assert score(gold, flat).las < trained.las - 0.2  # the control: labels alone are worth less


def test_an_engine_is_plain_data_until_it_parses(spec):
    code = (
        "import pickle, sys; from synthlang.parsing import open_engine; e = open_engine(sys.argv[1]);"
        "pickle.dumps(e); print(e.fingerprint, 'spacy' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code, spec], check=True, capture_output=True, text=True)
    assert done.stdout.split() == [open_engine(spec).fingerprint, "False", "False"]
    engine = open_engine(spec)
    engine.parse([["it", "rains"]])
    assert pickle.loads(pickle.dumps(engine)) == engine
    assert len(pickle.dumps(engine)) < 2000


def test_the_fingerprint_is_of_the_bytes_of_the_model(spec, tmp_path):
    kind, _, folder = spec.partition(":")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert open_engine(f"{kind}:{copy}").fingerprint == open_engine(spec).fingerprint, "no path is part of it"
    model = copy / ("parser/model" if kind == "spacy" else "parser.pt")
    model.write_bytes(model.read_bytes() + b"\0")
    assert open_engine(f"{kind}:{copy}").fingerprint != open_engine(spec).fingerprint


def test_a_killed_command_goes_on_where_it_stopped(spacy_folder, tmp_path):
    spec, cache = f"spacy:{spacy_folder}", tmp_path / "cache"
    code = (
        "import sys; from pathlib import Path; from synthlang.parsing.command import parse_command;"
        "parse_command(sys.argv[1], sys.argv[2], Path(sys.argv[3]), cache=Path(sys.argv[4]))"
    )
    process = subprocess.Popen([sys.executable, "-c", code, LONG, spec, str(tmp_path / "out"), str(cache)])
    deadline = time.monotonic() + 60
    while len(list(cache.rglob("*.gz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    kept = len(list(cache.rglob("*.gz")))
    assert 2 <= kept < 9 and not (tmp_path / "out").exists(), "it was killed in the middle"

    source = ParsedSource(open_source(LONG), open_engine(spec), cache)
    list(source.batches("train"))
    assert source.hits[True] == kept and source.hits[False] == 7 - kept
    counts = parse_command(LONG, spec, tmp_path / "out", cache=cache, workers=2)
    parse_command(LONG, spec, tmp_path / "whole", cache=tmp_path / "fresh")
    assert counts == {"train": 1400, "dev": 20, "test": 20}
    names = ["dev.conllu", "manifest.json", "test.conllu", "train.conllu"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == names
    assert all((tmp_path / "out" / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in names)
    assert not list(tmp_path.glob(f"{TEMPORARY}*")), "the killed run left nothing"


def test_stanza_in_processes_gives_the_same_bytes(stanza_folder, tmp_path):
    spec = f"stanza:{stanza_folder}"
    for workers in (1, 2):
        parse_command(SMALL, spec, tmp_path / f"out{workers}", cache=tmp_path / f"cache{workers}", workers=workers)
    one, two = ({p.name: p.read_bytes() for p in (tmp_path / f"out{w}").iterdir()} for w in (1, 2))
    assert one == two and len(one) == 4


def test_a_second_run_does_not_load_the_model(spec, tmp_path):
    source = ParsedSource(open_source(SOURCE), open_engine(spec), tmp_path)
    list(source.batches("dev"))
    code = (
        "import sys; from pathlib import Path; from synthlang.parsing import *; from synthlang.sources import *;"
        "s = ParsedSource(open_source(sys.argv[1]), open_engine(sys.argv[2]), Path(sys.argv[3]));"
        "print(sum(len(b) for b in s.batches('dev')), dict(s.hits), 'spacy' in sys.modules, 'torch' in sys.modules)"
    )
    arguments = [SOURCE, spec, str(tmp_path)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "60 {True: 1} False False"


def test_clearnlp_labels_are_known_and_converted(clearnlp_folder):
    words = [[row[0] for row in s] for s in clearnlp_rows()]
    parsed = open_engine(f"spacy:{clearnlp_folder}").parse(words)
    assert [list(zip(s["head"], s["deprel"], strict=True)) for s in parsed] == [
        [(2, "nsubj"), (0, "root"), (5, "case"), (5, "det"), (2, "obl"), (2, "punct")],
        [(3, "nsubj"), (3, "cop"), (0, "root"), (3, "punct")],
        [(2, "nsubj"), (0, "root"), (2, "obj"), (5, "cc"), (3, "conj"), (2, "punct")],
    ]
    raw = open_engine(f"spacy:{clearnlp_folder}", convert=False)
    assert [s["deprel"] for s in raw.parse(words[:1])] == [["nsubj", "root", "prep", "det", "pobj", "punct"]]
    assert raw.fingerprint != open_engine(f"spacy:{clearnlp_folder}").fingerprint


def test_spacy_finds_words_itself_and_white_space_is_none(clearnlp_folder):
    (line, empty) = open_engine(f"spacy:{clearnlp_folder}").parse_text(["he sat  on the mat.", " \t "])
    assert [w for sentence in line for w in sentence["form"]] == ["he", "sat", "on", "the", "mat", "."]
    assert empty == []


def test_stanza_without_a_tokenizer_takes_words_only(stanza_folder):
    engine = open_engine(f"stanza:{stanza_folder}")
    assert engine.parse([]) == [] and engine.parse_text([]) == []
    with pytest.raises(InputError, match="names no tokenizer"):
        engine.parse_text(["a b"])


def test_stanza_takes_a_language_from_its_resources(stanza_folder, tmp_path, monkeypatch):
    entry = {"lang_name": "English", "packages": {"default": {"pos": "mini", "depparse": "mini", "lemma": "identity"}},
             "pos": {"mini": {"md5": "1"}}, "depparse": {"mini": {"md5": "2"}}, "lemma": {"identity": {}},
             "tokenize": {"mini": {"md5": "3"}}}  # fmt: skip
    entry["packages"]["default"]["tokenize"] = "mini"  # type: ignore[index]
    for model, file in (("pos", "tagger.pt"), ("depparse", "parser.pt"), ("tokenize", "tagger.pt")):
        (tmp_path / "en" / model).mkdir(parents=True)
        shutil.copy(stanza_folder / file, tmp_path / "en" / model / "mini.pt")
    (tmp_path / "resources.json").write_text(json.dumps({"en": entry, "english": {"alias": "en"}}))
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    words = [s.words for s in sentences("test")[:5]]
    engine = open_engine("stanza:en")
    assert engine.parse(words) == open_engine(f"stanza:{stanza_folder}").parse(words)
    assert open_engine(f"stanza:{tmp_path}").fingerprint == engine.fingerprint
    with pytest.raises(InputError, match="stanza:en"):
        open_engine("stanza:english")
    (tmp_path / "en" / "depparse" / "mini.pt").unlink()
    with pytest.raises(InputError, match=r"the model depparse/mini of en is missing.*stanza\.download\('en'\)"):
        open_engine("stanza:en")


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ('{"lang": "en", "pos": "tagger.pt"}', "depparse: is required"),
        ('{"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt", "ner": "x"}', "ner"),
        ('{"lang": "en", "pos": "tagger.pt", "depparse": "other.pt"}', "other.pt, which is not there"),
        ('["en"]', "must be an object"),
        ('{"lang": 1}', "lang: 1 must be a valid string"),
        ('{"lang"', "not JSON"),
    ],
)
def test_bad_lists_of_own_models(own, message, tmp_path):
    (tmp_path / "pipeline.json").write_text(own)
    (tmp_path / "tagger.pt").write_bytes(b"")
    (tmp_path / "parser.pt").write_bytes(b"")
    with pytest.raises(InputError, match=message):
        open_engine(f"stanza:{tmp_path}")


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("spacy", "must be spacy:NAME"),
        ("spacy:", "must be spacy:NAME"),
        ("udpipe:en", "must be spacy:NAME"),
        ("spacy:no_such_pipeline", "python -m spacy download no_such_pipeline"),
        ("spacy:json", "not installed"),
        ("spacy:./nowhere", "no folder of a spaCy pipeline"),
        ("stanza:./nowhere", "must hold pipeline.json"),
        ("stanza:xx", r"stanza\.download\('xx'\)"),
    ],
)
def test_parsers_that_are_not_there(spec, message, tmp_path, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    with pytest.raises(InputError, match=message):
        open_engine(spec)


def test_pipelines_that_cannot_give_trees(clearnlp_folder, tmp_path):
    import spacy

    spacy.blank("en").to_disk(tmp_path / "blank")
    with pytest.raises(InputError, match="needs a parser and parts of speech"):
        open_engine(f"spacy:{tmp_path / 'blank'}")
    copy = tmp_path / "untagged"
    shutil.copytree(clearnlp_folder, copy)
    meta = json.loads((copy / "meta.json").read_text())
    meta["pipeline"].remove("tagger")
    (copy / "meta.json").write_text(json.dumps(meta))
    with pytest.raises(InputError, match="needs a tagger"):
        open_engine(f"spacy:{copy}")


def test_the_score_of_a_parser_is_a_table(clearnlp_folder, tmp_path, capsys):
    gold = "1\the\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsat\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "x-test.conllu").write_text(gold)
    assert main([f"spacy:{clearnlp_folder}", str(tmp_path / "x-test.conllu")]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.count("|") for row in rows[2:]] == [9] * 6  # a head, a rule, before and after with and without marks
    assert main(["spacy:no_such_pipeline", str(tmp_path)]) == 2
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
