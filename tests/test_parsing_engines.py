"""Real spaCy and Stanza, through the smallest models, trained here in seconds on mini-english: trees, kills, caches.

The first test process that wants a model trains it; the others (pytest-xdist) wait for it.
"""

import contextlib
import importlib.util
import io
import itertools
import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time
from functools import partial
from typing import Any

import pytest
from filelock import FileLock

import probes
import synthlang
from synthlang.files import TEMPORARY
from synthlang.parsing import ParsedSource, open_engine
from synthlang.parsing.chunks import ParseCache
from synthlang.parsing.engines import SpacyEngine, _sentence
from synthlang.parsing.parse_command import conllu, parse_command
from synthlang.parsing.score import main, score
from synthlang.sources import open_source
from synthlang.sources.mini_english import MiniEnglish
from tests.refusals import place_and_code, refusal, refused
from tests.runs import forked

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("spacy") is None, reason="needs the extra parse: spaCy"),
    pytest.mark.skipif(importlib.util.find_spec("stanza") is None, reason="needs the extra parse: Stanza"),
]
SOURCE = "builtin:mini-english?types=500&sentences=600&dev=60&test=60"
LONG = "builtin:mini-english?types=500&sentences=500&dev=20&test=20"
# (form, tag, lemma, upos, head, ClearNLP label); the tagger learns tags, the morphologizer upos
CLEARNLP = [
    "he/PRP/he/PRON/2/nsubj sat/VBD/sit/VERB/0/ROOT on/IN/on/ADP/2/prep the/DT/the/DET/5/det mat/NN/mat/NOUN/3/pobj"
    " ./././PUNCT/2/punct",
    "she/PRP/she/PRON/2/nsubj is/VBZ/be/AUX/0/ROOT happy/JJ/happy/ADJ/2/acomp ./././PUNCT/2/punct",
    "they/PRP/they/PRON/2/nsubj saw/VBD/see/VERB/0/ROOT cats/NNS/cat/NOUN/2/dobj and/CC/and/CCONJ/3/cc"
    " dogs/NNS/dog/NOUN/3/conj ./././PUNCT/2/punct",
]
ROWS = [[word.split("/") for word in text.split(" ")] for text in CLEARNLP]


def sentences(split):
    """The sentences of mini-english that the models are trained on (train) or not (dev, test)."""
    source = MiniEnglish(types=500, sentences=240, dev=60, test=60)
    return [sentence for batch in source.batches(split) for sentence in batch]


def train_spacy(folder):
    """UD labels, from mini-english."""
    names = {"pos": "upos", "heads": "head", "deps": "deprel"}
    rows = [{"words": s.words} | {k: s.columns[n] for k, n in names.items()} for s in sentences("train")[:240]]
    _train_spacy(rows, ["morphologizer", "parser"], 3, folder)


def train_clearnlp(folder):
    """ClearNLP labels and Penn tags, three sentences by heart; ``dobj`` and ``pobj`` make it ClearNLP."""
    columns = ([*zip(*sentence, strict=True)] for sentence in ROWS)
    rows = [
        {"words": words, "tags": tags, "pos": upos, "heads": list(map(int, heads)), "deps": deps}
        for words, tags, _, upos, heads, deps in columns
    ]
    _train_spacy(rows, ["tagger", "morphologizer", "parser"], 30, folder)


WORDS = {"@architectures": "spacy.HashEmbedCNN.v2", "pretrained_vectors": None, "width": 48, "depth": 2,
         "embed_size": 500, "window_size": 1, "maxout_pieces": 2, "subword_features": True}  # fmt: skip
TAGGER = {"@architectures": "spacy.Tagger.v2", "tok2vec": WORDS}
PARSER = {"@architectures": "spacy.TransitionBasedParser.v2", "state_type": "parser", "extra_state_tokens": False,
          "hidden_width": 48, "maxout_pieces": 2, "tok2vec": WORDS}  # fmt: skip
NETS: dict[str, dict[str, Any]] = {
    "tagger": {"model": TAGGER},
    "morphologizer": {"model": TAGGER},
    "parser": {"model": PARSER, "min_action_freq": 1},
}
"""Nets of half the width and depth of the usual ones, which are trained in a second."""


def _train_spacy(rows, pipes, epochs, folder):
    import spacy
    from spacy.training import Example

    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("en")
    for pipe in pipes:
        nlp.add_pipe(pipe, config=NETS[pipe])
    examples = []
    for row in rows:
        heads = [i if h == 0 else h - 1 for i, h in enumerate(row["heads"])]
        deps = ["ROOT" if h == 0 else d for h, d in zip(row["heads"], row["deps"], strict=True)]
        gold = {name: list(values) for name, values in row.items()} | {"heads": heads, "deps": deps}
        examples.append(Example.from_dict(nlp.make_doc(" ".join(row["words"])), gold))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.01
    order = random.Random(1)
    for _ in range(epochs):
        order.shuffle(examples)
        for start in range(0, len(examples), 16):
            nlp.update(examples[start : start + 16], sgd=optimizer)
    nlp.to_disk(folder)


def train_stanza(folder):
    """A tagger and a parser by Stanza's own trainers, and the pipeline.json that names them."""
    import logging

    from stanza.models import parser, tagger

    for split in ("train", "dev"):
        text = "".join(conllu(s, split) for s in sentences(split)[:200])
        (folder / f"{split}.conllu").write_text(text, encoding="utf-8")
    sizes = {"hidden_dim": 32, "char_hidden_dim": 16, "deep_biaff_hidden_dim": 32, "word_emb_dim": 32,
             "char_emb_dim": 16, "tag_emb_dim": 16, "transformed_dim": 16, "num_layers": 1, "word_cutoff": 1,
             "batch_size": 500, "seed": 1, "dropout": 0.1, "word_dropout": 0.1}  # fmt: skip
    shared = [
        "--mode", "train", "--lang", "en", "--shorthand", "en_mini", "--save_dir", str(folder), "--no_pretrain",
        "--cpu", "--train_file", str(folder / "train.conllu"), "--eval_file", str(folder / "dev.conllu"),
    ]  # fmt: skip
    shared += [part for name, size in sizes.items() for part in (f"--{name}", str(size))]
    logging.getLogger("stanza").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):
        tagger.main([*shared, "--save_name", "tagger.pt", "--max_steps", "20", "--eval_interval", "20",
                     "--composite_deep_biaff_hidden_dim", "16", "--augment_nopunct", "0", "--lr", "0.03"])  # fmt: skip
        parser.main([*shared, "--save_name", "parser.pt", "--max_steps", "50", "--eval_interval", "50", "--no_xpos",
                     "--no_ufeats", "--deep_biaff_output_dim", "16", "--no_checkpoint", "--optim", "adam",
                     "--lr", "0.03", "--no_second_optim", "--no_plateau"])  # fmt: skip
    own = {"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt"}
    (folder / "pipeline.json").write_text(json.dumps(own), encoding="utf-8")


@pytest.fixture(scope="session")
def folder_of(tmp_path_factory):
    """The folder of a model, trained once for all test processes of a run."""

    def obtain(name):
        train = {"spacy": train_spacy, "clearnlp": train_clearnlp, "stanza": train_stanza}[name]
        root = tmp_path_factory.getbasetemp()
        root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
        folder = root / name
        with FileLock(root / f"{name}.lock"):
            if not (folder / "trained").exists():
                folder.mkdir(exist_ok=True)
                train(folder)
                (folder / "trained").write_text("")
        return folder

    return obtain


@pytest.fixture(params=["spacy", "stanza"])
def spec(request, folder_of):
    return f"{request.param}:{folder_of(request.param)}"


def test_trees_of_unseen_sentences_are_mostly_right(spec):
    gold = [dict(s.columns) for s in sentences("test")]
    found = open_engine(spec).parse([s["form"] for s in gold])
    trained = score(gold, found)
    assert trained.upos > 0.8
    assert trained.las > 0.5
    flat = [{**s, "head": [0] + [1] * (len(s["form"]) - 1)} for s in found]
    assert score(gold, flat).las < trained.las - 0.2  # the control: labels alone are worth less


def test_an_engine_is_plain_data_until_it_parses_and_a_second_run_loads_no_model(folder_of, tmp_path):
    specs = [f"{kind}:{folder_of(kind)}" for kind in ("spacy", "stanza")]
    engines = [open_engine(spec) for spec in specs]
    for engine in engines:
        list(ParsedSource(open_source(SOURCE), engine, tmp_path).batches("dev"))
        assert pickle.loads(pickle.dumps(engine)) == engine and len(pickle.dumps(engine)) < 2000
    code = (
        "import sys; from pathlib import Path; from synthlang.parsing import *; from synthlang.sources import *;"
        "engines = [open_engine(spec) for spec in sys.argv[3:]];"
        "sources = [ParsedSource(open_source(sys.argv[1]), e, Path(sys.argv[2])) for e in engines];"
        "print(*((s.engine.fingerprint, sum(len(b) for b in s.batches('dev')), dict(s.hits)) for s in sources));"
        "print({'spacy', 'stanza', 'torch'} & {*sys.modules})"
    )
    arguments = [SOURCE, str(tmp_path), *specs]
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    assert done.stdout.split("\n")[:2] == [" ".join(str((e.fingerprint, 60, {True: 1})) for e in engines), "set()"]


def test_the_fingerprint_is_of_the_bytes_of_the_model(spec, tmp_path):
    kind, _, folder = spec.partition(":")
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert open_engine(f"{kind}:{copy}").fingerprint == open_engine(spec).fingerprint, "no path is part of it"
    model = copy / ("parser/model" if kind == "spacy" else "parser.pt")
    model.write_bytes(model.read_bytes() + b"\0")
    assert open_engine(f"{kind}:{copy}").fingerprint != open_engine(spec).fingerprint


def parse_two_chunks(*arguments, **options):
    """Run the command, which waits to be killed before it writes its third chunk."""
    write, calls = ParseCache.write, itertools.count(1)

    def waiting(*given):
        time.sleep(60 if next(calls) > 2 else 0)
        write(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ParseCache, "write", staticmethod(waiting))
        parse_command(*arguments, **options)


def test_a_killed_command_goes_on_where_it_stopped(folder_of, tmp_path, capsys):
    spec, cache = f"spacy:{folder_of('spacy')}", tmp_path / "cache"
    process = forked(partial(parse_two_chunks, cache=cache), LONG, spec, tmp_path / "out")
    deadline = time.monotonic() + 60
    while len(list(cache.rglob("*.gz"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    process.kill()
    process.join()
    kept = len(list(cache.rglob("*.gz")))
    assert kept == 2 and not (tmp_path / "out").exists(), "it was killed in the middle"

    counts = parse_command(LONG, spec, tmp_path / "out", cache=cache, workers=2)
    assert f"{kept} of 5 chunks from the cache" in capsys.readouterr().err
    parse_command(LONG, spec, tmp_path / "whole", cache=tmp_path / "fresh")
    assert counts == {"train": 500, "dev": 20, "test": 20}
    names = ["dev.conllu", "manifest.json", "test.conllu", "train.conllu"]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == names
    assert all((tmp_path / "out" / n).read_bytes() == (tmp_path / "whole" / n).read_bytes() for n in names)
    assert not list(tmp_path.glob(f"{TEMPORARY}*")), "the killed run left nothing"


def test_clearnlp_labels_are_known_and_converted(folder_of):
    spec = f"spacy:{folder_of('clearnlp')}"
    words = [[row[0] for row in s] for s in ROWS]
    engine, raw = open_engine(spec), open_engine(spec, convert=False)
    assert [list(zip(s["head"], s["deprel"], strict=True)) for s in engine.parse(words)] == [
        [(2, "nsubj"), (0, "root"), (5, "case"), (5, "det"), (2, "obl"), (2, "punct")],
        [(3, "nsubj"), (3, "cop"), (0, "root"), (3, "punct")],
        [(2, "nsubj"), (0, "root"), (2, "obj"), (5, "cc"), (3, "conj"), (2, "punct")],
    ]
    assert [s["deprel"] for s in raw.parse(words[:1])] == [["nsubj", "root", "prep", "det", "pobj", "punct"]]
    assert raw.fingerprint != engine.fingerprint
    (line, empty) = engine.parse_text(["he sat  on the mat.", " \t "])  # white space is no word
    assert [w for sentence in line for w in sentence["form"]] == ["he", "sat", "on", "the", "mat", "."]
    assert empty == []


def test_stanza_without_a_tokenizer_takes_words_only(folder_of):
    engine = open_engine(f"stanza:{folder_of('stanza')}")
    assert engine.parse([]) == [] and engine.parse_text([]) == []
    assert refused(engine.parse_text, ["a b"]) == ("pipeline.json tokenize", "missing")


def test_stanza_takes_a_language_from_its_resources(folder_of, tmp_path, monkeypatch):
    own = folder_of("stanza")
    models = {"pos": "tagger.pt", "depparse": "parser.pt", "tokenize": "tagger.pt"}
    entry: dict[str, Any] = {model: {"mini": {"md5": str(number)}} for number, model in enumerate(models, start=1)}
    chosen = {**dict.fromkeys(models, "mini"), "lemma": "identity"}
    entry |= {"lang_name": "English", "packages": {"default": chosen}, "lemma": {"identity": {}}}
    for model, file in models.items():
        (tmp_path / "en" / model).mkdir(parents=True)
        shutil.copy(own / file, tmp_path / "en" / model / "mini.pt")
    (tmp_path / "resources.json").write_text(json.dumps({"en": entry, "english": {"alias": "en"}}))
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path))
    words = [s.words for s in sentences("test")[:5]]
    engine = open_engine("stanza:en")
    assert engine.parse(words) == open_engine(f"stanza:{own}").parse(words)
    assert open_engine(f"stanza:{tmp_path}").fingerprint == engine.fingerprint
    assert refusal(open_engine, "stanza:english").hint == "write en"
    (tmp_path / "en" / "depparse" / "mini.pt").unlink()
    error = refusal(open_engine, "stanza:en")
    assert place_and_code(error) == (tmp_path.name, "extra") and "stanza.download('en')" in error.hint


def test_morphology_is_read_from_the_documents_of_both_libraries():
    """Features and lemmas of each word, ``_`` where there are none, and only if they are wanted."""
    from spacy.tokens import Doc
    from spacy.vocab import Vocab
    from stanza.models.common.doc import Document

    forms, lemmas, heads = ["she", "walks", "!"], ["she", "walk", ""], [2, 0, 2]
    feats = ["Number=Sing|Person=3", "Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", ""]
    labels, tags = ["nsubj", "root", "punct"], ["PRON", "VERB", "PUNCT"]
    places = [head - 1 if head else at for at, head in enumerate(heads)]
    document = Doc(Vocab(), forms, pos=tags, morphs=feats, lemmas=lemmas, heads=places, deps=labels)
    names = ("id", "text", "lemma", "feats", "head", "deprel", "upos")
    rows = zip(range(1, 4), forms, lemmas, feats, heads, labels, tags, strict=True)
    sentence = Document([[dict(zip(names, row, strict=True)) for row in rows]]).sentences[0]
    plain = ("form", "upos", "head", "deprel")
    for columns in (plain, (*plain, "feats", "lemma")):
        of_spacy = SpacyEngine("", "", "", columns, "", convert=False)._parsed(list(document))
        of_stanza = _sentence(sentence, columns)
        assert tuple(of_spacy) == tuple(of_stanza) == columns and of_spacy == of_stanza
    assert of_stanza["feats"] == [*feats[:2], "_"] and of_stanza["lemma"] == ["she", "walk", "_"]


def test_an_engine_with_morphology_is_another_engine(folder_of, tmp_path):
    stanza = shutil.copytree(folder_of("stanza"), tmp_path / "stanza")
    assert refused(open_engine, f"stanza:{stanza}", morphology=True) == ("stanza", "missing")
    own = json.loads((stanza / "pipeline.json").read_text()) | {"lemma": "lemma.pt"}
    (stanza / "lemma.pt").write_bytes(b"x")
    (stanza / "pipeline.json").write_text(json.dumps(own))
    (tmp_path / "config.cfg").write_text("")
    meta = {"pipeline": ["morphologizer", "parser"], "labels": {"parser": ["nsubj", "obj"]}}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    assert refused(open_engine, f"spacy:{tmp_path}", morphology=True) == (tmp_path.name, "missing")
    (tmp_path / "meta.json").write_text(json.dumps(meta | {"pipeline": [*meta["pipeline"], "trainable_lemmatizer"]}))
    for spec in (f"stanza:{stanza}", f"spacy:{tmp_path}"):
        plain, more = open_engine(spec), open_engine(spec, morphology=True)
        assert more.columns == (*plain.columns, "feats", "lemma") and more.fingerprint != plain.fingerprint


@pytest.mark.parametrize(
    ("own", "place"),
    [
        ('{"lang": "en", "pos": "tagger.pt"}', "pipeline.json depparse"),
        ('{"lang": "en", "pos": "tagger.pt", "depparse": "other.pt"}', "pipeline.json depparse"),
        ('["en"]', "pipeline.json"),
    ],
)
def test_bad_lists_of_own_models(own, place, tmp_path):
    (tmp_path / "pipeline.json").write_text(own)
    (tmp_path / "tagger.pt").write_bytes(b"")
    (tmp_path / "parser.pt").write_bytes(b"")
    assert refused(open_engine, f"stanza:{tmp_path}")[0] == place


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ("spacy", "", "unknown"),
        ("spacy:", "", "unknown"),
        ("udpipe:en", "", "unknown"),
        ("spacy:no_such_pipeline", "", "extra"),
        ("spacy:json", "", "extra"),
        ("spacy:./nowhere", "nowhere", "missing"),
        ("stanza:./nowhere", "nowhere", "missing"),
        ("stanza:xx", "resources", "extra"),
        ("spacy:./list", "list", "missing"),
    ],
)
def test_parsers_that_are_not_there(spec, place, code, tmp_path, monkeypatch):
    monkeypatch.setenv("STANZA_RESOURCES_DIR", str(tmp_path / "resources"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "list").mkdir()
    (tmp_path / "list/config.cfg").touch()
    (tmp_path / "list/meta.json").write_text("[]")
    assert refused(open_engine, spec) == (place, code)


def test_an_engine_of_another_name_is_refused_in_python(tmp_path):
    for parse in (synthlang.parse, probes.parse):
        assert refused(parse, SOURCE, tmp_path / "out", engine="udpipe") == ("", "unknown")


@pytest.mark.parametrize("pipes", [[], ["morphologizer", "parser"]])
def test_pipelines_that_cannot_give_trees(pipes, tmp_path):
    meta = {"pipeline": pipes, "labels": {"parser": ["dobj", "pobj"]}}
    (tmp_path / "meta.json").write_text(json.dumps(meta))
    (tmp_path / "config.cfg").write_text("")
    assert refused(open_engine, f"spacy:{tmp_path}") == (tmp_path.name, "missing")


def test_the_score_of_a_parser_is_a_table(folder_of, tmp_path, capsys):
    gold = "1\the\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsat\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "x-test.conllu").write_text(gold)
    assert main([f"spacy:{folder_of('clearnlp')}", str(tmp_path / "x-test.conllu")]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert [row.count("|") for row in rows[2:]] == [9] * 6  # a head, a rule, before and after with and without marks
    assert main(["spacy:no_such_pipeline", str(tmp_path)]) == 2
    (tmp_path / "x-test.conllu").write_text("1\the\t_\tPRON\t_\t_\t_\t_\t_\t_\n\n")
    assert main([f"spacy:{folder_of('clearnlp')}", str(tmp_path / "x-test.conllu")]) == 2
    assert "needs the column 'head'" in capsys.readouterr().err
    assert main([]) == 2
    assert "usage" in capsys.readouterr().err
