"""Every reader on damaged input: what it reads is sound, or it says in one line what is wrong; never a traceback."""

import gzip
import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.dictionary.word_dictionary import read_muse
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
TOKENIZER = train_vocabulary([Corpus.of_words([["the", "cat"]])], 270).parent.to_str()
ORM = "BI_BOS_NOUN&nsubj -0.5\nPRE_nsubj_@ 1.25\nHI_BOS_BOS_DET&det_@NOUN&@ 0.5\nBTW_DET_ADJ 2.0\nAFT_obj_obl 1e-3\n"
MODEL = '{"kind": "order-model", "format": 1, "name": "x", "labels": "ud2", "weights": {"N": {"PRE_a_@": 1.5}}}'
IOB = "en:Paul\tB-PER\nen:in\tO\nen:New\tB-LOC\nen:York\tI-LOC\n\nen:He\tO\n"
XNLI = "genre\tlabel\tsentence1\tsentence2\nfiction\tneutral\tHe ran. She sat.\tShe ran.\nfiction\tentailment\tA\tB\n"
QUESTION = {"id": "1", "question": "Who ran?", "answers": [{"text": "Paul B.", "answer_start": 4}]}
PARAGRAPH = {"context": "Now Paul B. ran home.", "qas": [QUESTION]}
SQUAD = json.dumps({"version": "1.1", "data": [{"title": "t", "paragraphs": [PARAGRAPH]}]})
SPANS = "set\t5:7:x\tWake me up.\ten\t{}\nget\t0:4:a,5:7:b\tWake me\ten\t{}\n"
ROWS = '{"words": ["He", "ran"], "upos": ["PRON", "VERB"]}\n{"words": ["Go"], "upos": ["VERB"]}\n'


def source(scheme):
    """Read everything; what comes out must be a sound corpus."""

    def read(path):
        source = open_source(f"{scheme}:{path.parent if scheme == 'hf' else path}")
        assert len(source.fingerprint) == 16
        for batch in (batch for split in source.splits for batch in source.batches(split)):
            assert list(batch.columns) == list(source.columns)
            for sentence in batch:
                assert sentence.words
                assert all(w and not any(c.isspace() and c != "\u00a0" for c in w) for w in sentence.words)
                assert "head" not in sentence.columns or tree_problem(sentence.columns["head"]) is None

    return read


def task(scheme):
    """Read everything: items whose texts have words, answers inside them."""

    def read(path):
        task = open_task(f"{scheme}:{path}")
        for batch in (batch for split in task.splits for batch in task.batches(split)):
            assert all(batch.strings(field) for field in range(len(task.fields)))
            assert (batch.answers.start < batch.answers.stop).all()
            derived, counts = derive_task(batch, parse_language("trans+inv"))
            assert len(derived) + sum(n for reason, n in counts.items() if reason.startswith("items")) == len(batch)

    return read


def read_slots(path):
    """A folder of slots: the file under test is seq.in of train."""
    folder = path.parent / "slots" / "train"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "seq.in").write_bytes(path.read_bytes())
    (folder / "seq.out").write_text("O O B-to\nO B-to I-to\n")
    (folder / "label").write_text("flight\nfare\n")
    task("slots")(folder.parent)


def read_orm(path):
    model = import_orm(path, path, "x")
    assert distribution(model)["N"].node == "N" and model.content


READERS = {  # file, what it holds when whole, reader
    "text": ("train.txt", TEXT, source("text")),
    "text.gz": ("train.txt.gz", TEXT, source("text")),
    "conllu": ("x-train.conllu", CONLLU, source("conllu")),
    "iob": ("train.txt", IOB, source("iob")),
    "hf": ("data/train.jsonl", ROWS, source("hf")),
    "ner": ("train.txt", IOB, task("ner")),
    "nli": ("test.tsv", XNLI, task("nli")),
    "qa": ("train.json", f"\ufeff{SQUAD}", task("qa")),
    "pos": ("x-train.conllu", CONLLU, task("pos")),
    "slots": ("x.tsv", SPANS, task("slots")),
    "slots of files": ("seq.in", "fly to boston\nfare new york\n", read_slots),
    "orm": ("x@N.orm", ORM, read_orm),
    "order model": ("x.json", MODEL, read_model),
    "order model gz": ("x.json.gz", MODEL, read_model),
    "muse": ("en-fr.txt", "the le\nthe la\ncat\tchat\nsaw vit\n", read_muse),
    "types": ("types.txt", "the\nold\tx\n", read_types),
    "tokenizer": ("tokenizer.json", TOKENIZER, lambda path: Vocabulary.load(path.parent)),
    "language": ("x.yaml", LANGUAGE, lambda path: parse_language(str(path))),
}
WHOLE = {
    name: gzip.compress(good.encode(), mtime=0) if file.endswith("gz") else good.encode()
    for name, (file, good, _) in READERS.items()
}


def placed(folder, name, content):
    path = folder / READERS[name][0]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", READERS)
def test_readers_read_what_is_whole(name, tmp_path):
    READERS[name][2](placed(tmp_path, name, WHOLE[name]))


def check(name, data, folder):
    path, messages = placed(folder, name, data.draw(damaged(WHOLE[name]))), list[str]()
    try:
        READERS[name][2](path)
    except InputError as error:
        messages.append(str(error))
    assert all(message.strip() and "\n" not in message for message in messages)


@pytest.mark.parametrize("name", [name for name in READERS if name != "hf"])
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_readers_survive_damage(name, data, tmp_path):
    check(name, data, tmp_path)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_data_sets_on_disk_survive_damage(data, tmp_path_factory):
    check("hf", data, tmp_path_factory.mktemp("hf"))
