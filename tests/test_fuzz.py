"""Every reader on damaged input: what it reads is sound, or it says in one line what is wrong; never a traceback."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.dictionary.words import read_muse
from synthlang.errors import InputError
from synthlang.language import parse_language
from synthlang.order.distribution import distribution
from synthlang.order.model import import_orm, read_model
from synthlang.sources import open_source
from synthlang.sources.conllu import tree_problem
from synthlang.tasks import derive_task, open_task
from synthlang.transforms.transliterate import read_types
from synthlang.vocabulary import Vocabulary, train_vocabulary
from tests.fuzz import damaged

TREE = (
    "1\tHe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tsaw\t_\tVERB\t_\t_\t0\troot\t_\t_\n3\t.\t_\tPUNCT\t_\t_\t2\tpunct\t_\t_\n"
)
CONLLU = (
    f"# sent_id = 1\n{TREE}\n# sent_id = 2\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n{TREE}8.1\t_\t_\t_\t_\t_\t_\t_\t_\t_\n\n"
)
TEXT = "He saw her. She ran!\n\nÜber \u00a0 the hills, e.g. “far” away…\n"
LANGUAGE = """name: x
seed: 3
transforms:
- {kind: transliterate, strength: 0.5}
- {kind: invert}
- {kind: permute, window: 3}
"""
MANY = settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def read_source(scheme: str, path: Path) -> None:
    """Read everything; what comes out must be a sound corpus."""
    source = open_source(f"{scheme}:{path}")
    assert len(source.fingerprint) == 16
    for split in source.splits:
        for batch in source.batches(split):
            assert list(batch.columns) == list(source.columns)
            for sentence in batch:
                assert sentence.words
                assert all(w and not any(c.isspace() and c != "\u00a0" for c in w) for w in sentence.words)
                if "head" in sentence.columns:
                    assert tree_problem(sentence.columns["head"]) is None


TOKENIZER = train_vocabulary([Corpus.of_words([["the", "cat"]])], 270).parent.to_str().encode()


def read_json_lines(path: Path) -> None:
    read_source("hf", path.parent)


def read_task(scheme: str, path: Path) -> None:
    """Read everything: items whose texts have words, answers inside them."""
    task = open_task(f"{scheme}:{path}")
    for split in task.splits:
        for batch in task.batches(split):
            assert all(batch.strings(field) for field in range(len(task.fields)))
            assert (batch.answers.start < batch.answers.stop).all()
            derived, counts = derive_task(batch, parse_language("inv"))
            assert len(derived) + sum(n for reason, n in counts.items() if reason.startswith("items")) == len(batch)


def write_slots(path: Path) -> None:
    """A folder of slots: the file under test is seq.in of train."""
    folder = path.parent / "slots" / "train"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seq.in").write_bytes(path.read_bytes())
    (folder / "seq.out").write_text("O O B-to\nO B-to I-to\n")
    (folder / "label").write_text("flight\nfare\n")
    read_task("slots", folder.parent)


def read_orm(path: Path) -> None:
    model = import_orm(path, path, "x")
    probabilities = distribution(model)["N"].node
    assert probabilities == "N" and model.content


ORM = "BI_BOS_NOUN&nsubj -0.5\nPRE_nsubj_@ 1.25\nHI_BOS_BOS_DET&det_@NOUN&@ 0.5\nBTW_DET_ADJ 2.0\nAFT_obj_obl 1e-3\n"
MODEL = json.dumps(
    {"kind": "order-model", "format": 1, "name": "x", "labels": "ud2", "weights": {"N": {"PRE_a_@": 1.5}}}
)
MUSE = "the le\nthe la\ncat\tchat\nsaw vit\n"
IOB = "en:Paul\tB-PER\nen:in\tO\nen:New\tB-LOC\nen:York\tI-LOC\n\nen:He\tO\n"
XNLI = "genre\tlabel\tsentence1\tsentence2\nfiction\tneutral\tHe ran. She sat.\tShe ran.\nfiction\tentailment\tA\tB\n"
QUESTION = {"id": "1", "question": "Who ran?", "answers": [{"text": "Paul B.", "answer_start": 4}]}
SQUAD = {
    "version": "1.1",
    "data": [{"title": "t", "paragraphs": [{"context": "Now Paul B. ran home.", "qas": [QUESTION]}]}],
}

READERS: dict[str, tuple[str, bytes, Callable[[Path], object]]] = {
    "text": ("train.txt", TEXT.encode(), lambda p: read_source("text", p)),
    "text.gz": ("train.txt.gz", gzip.compress(TEXT.encode(), mtime=0), lambda p: read_source("text", p)),
    "conllu": ("x-train.conllu", CONLLU.encode(), lambda p: read_source("conllu", p)),
    "slots": ("seq.in", b"fly to boston\nfare new york\n", write_slots),
    "orm": ("x@N.orm", ORM.encode(), read_orm),
    "order model": ("x.json", MODEL.encode(), read_model),
    "order model gz": ("x.json.gz", gzip.compress(MODEL.encode(), mtime=0), read_model),
    "muse": ("en-fr.txt", MUSE.encode(), read_muse),
    "types": ("types.txt", b"the\nold\tx\n", read_types),
    "iob": ("train.txt", IOB.encode(), lambda p: read_source("iob", p)),
    "ner": ("train.txt", IOB.encode(), lambda p: read_task("ner", p)),
    "nli": ("test.tsv", XNLI.encode(), lambda p: read_task("nli", p)),
    "qa": ("train.json", json.dumps(SQUAD).encode(), lambda p: read_task("qa", p)),
    "tokenizer": ("tokenizer.json", TOKENIZER, lambda p: Vocabulary.load(p.parent)),
    "language": ("x.yaml", LANGUAGE.encode(), lambda p: parse_language(str(p))),
}


def refusal(read: Callable[[Path], object], path: Path) -> str | None:
    """What the reader refuses with, None if it reads; any other error goes on to the test."""
    try:
        read(path)
    except InputError as error:
        return str(error)
    return None


def check_message(message: str | None) -> None:
    assert message is None or (message.strip() and "\n" not in message)


@pytest.mark.parametrize("name", READERS)
def test_readers_read_what_is_whole(name, tmp_path):
    file, good, read = READERS[name]
    (tmp_path / file).write_bytes(good)
    read(tmp_path / file)


@pytest.mark.parametrize("name", READERS)
@MANY
@given(data=st.data())
def test_readers_survive_damage(name, data, tmp_path):
    file, good, read = READERS[name]
    path = tmp_path / file
    path.write_bytes(data.draw(damaged(good)))
    check_message(refusal(read, path))


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_data_sets_on_disk_survive_damage(data, tmp_path):
    rows = [{"words": ["He", "ran"], "upos": ["PRON", "VERB"]}, {"words": ["Go"], "upos": ["VERB"]}]
    good = "".join(json.dumps(row) + "\n" for row in rows).encode()
    folder = tmp_path / str(data.draw(st.integers(0, 10**9)))
    folder.mkdir(exist_ok=True)
    (folder / "train.jsonl").write_bytes(data.draw(damaged(good)))
    check_message(refusal(read_json_lines, folder / "train.jsonl"))
