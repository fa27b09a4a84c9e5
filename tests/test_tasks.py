"""Tasks by hand: what readers make of files, what becomes of items in a language."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.sources.base import BATCH_SENTENCES
from synthlang.tasks import derive_task, is_task, open_task
from synthlang.tasks.export import answer_texts
from tests.task_cases import Chain, Noise, labels_of


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def squad(path, *paragraphs, **more):
    data = {"version": "1.1", "data": [{"title": "T", "paragraphs": list(paragraphs)}]}
    return write(path, json.dumps({**data, **more}))


def question(name, *answers, text="Who ran?", **more):
    found = [{"text": t, "answer_start": s} for s, t in answers]
    return {"id": name, "question": text, "answers": found, **more}


CONTEXT = "The old cat saw her. It ran to the $5 house."


def only(task, split="train"):
    [batch] = task.batches(split)
    return batch


def spans(batch):
    texts, starts = answer_texts(batch)
    return [(batch.ids[i], t, s) for i, t, s in zip(batch.answers.item.tolist(), texts, starts, strict=True)]


def test_pairs_of_texts_with_several_sentences(tmp_path):
    path = write(
        tmp_path / "x.tsv",
        "index\tsentence1\tsentence2\tlabel\n"
        '7\tHe said "Go". She left!\tShe left.\tEntailment\n'
        "8\tA b.\tC d.\t-\n"
        "9\t \tC d.\tneutral\n"
        "10\tA b\tC\tweird\n",
    )
    task = open_task(f"nli:{path}")
    assert (task.kind, task.fields, task.splits) == ("classes", ("premise", "hypothesis"), ("train",))
    assert task.labels == ("entailment", "neutral", "weird")
    batch = only(task)
    assert batch.ids == ("7", "10")
    assert labels_of(batch) == ["entailment", "weird"]
    assert batch.strings(0) == ['He said " Go " . She left !', "A b"]
    assert batch.strings(1) == ["She left .", "C"]
    assert batch.text_of_sentence.tolist() == [0, 0, 1, 2, 3]
    assert batch.corpus.ids.tolist() == [0, 1, 2, 3, 4]
    assert batch.counts == {"pairs left out, no gold label": 1, "pairs left out, a text without a word": 1}


def test_the_languages_of_one_file(tmp_path):
    rows = "language\tgold_label\tsentence1\tsentence2\tpairID\nen\tneutral\tA\tB\t1\nde\tneutral\tC\tD\t1\n"
    path = write(tmp_path / "xnli.dev.tsv", rows)
    with pytest.raises(InputError, match=r"xnli.dev.tsv:3: holds several languages; choose one as in \?language=de"):
        list(open_task(f"nli:{path}").batches("dev"))
    task = open_task(f"nli:{path}?language=de")
    assert only(task, "dev").strings(0) == ["C"]
    assert task.fingerprint != open_task(f"nli:{path}?language=en").fingerprint


def test_questions_share_their_context(tmp_path):
    paragraph = {
        "context": CONTEXT,
        "qas": [
            question("a", (4, "old cat"), (4, "old cat"), (0, "The")),
            question("b", (35, "$5 h"), (12, "saw her. It")),  # the first cuts a word
            question("c", is_impossible=True, plausible_answers=[]),
            question("d", (5, "old cat")),  # not at its place
            question("e", (3, " ")),
            question("f", (0, "The"), text=" "),
        ],
    }
    batch = only(open_task(f"qa:{squad(tmp_path / 'q.json', paragraph)}"))
    assert batch.ids == ("a", "b", "c")
    assert batch.texts[:, 1].tolist() == [0, 0, 0]
    assert batch.strings(1)[0] == "The old cat saw her . It ran to the $ 5 house ."
    assert spans(batch) == [
        ("a", "old cat", 4),
        ("a", "The", 0),
        ("b", "$ 5 house", 36),
        ("b", "saw her . It", 12),
    ]
    assert batch.extra == {"title": ("T", "T", "T")}
    assert batch.counts == {
        "answers widened to whole words": 1,
        "answers left out, the context has another text at their place": 1,
        "answers left out, no word in them": 1,
        "questions left out, no answer of theirs can be used": 2,
        "questions left out, without a word": 1,
    }


def test_answers_in_a_derived_language(tmp_path):
    qas = [
        question("a", (4, "old cat")),
        question("b", (12, "saw her."), (12, "saw")),
        question("c", (12, "saw her. It")),
    ]
    task = open_task(f"qa:{squad(tmp_path / 'q.json', {'context': CONTEXT, 'qas': qas})}")
    batch, counts = derive_task(only(task), parse_language("inv"))
    assert batch.strings(1)[0] == "her saw cat old The . house 5 $ the to ran It ."
    assert spans(batch) == [("a", "cat old", 8), ("b", "saw", 4)]
    assert counts == {"answers torn apart": 2, "items dropped, no answer is in one piece": 1}
    mixed, counts = derive_task(only(task), parse_language("inv"), (0,))
    assert mixed.ids == ("a", "b", "c")
    assert mixed.strings(0)[0] == "ran Who ?"
    assert spans(mixed) == spans(only(task))
    assert counts == {}


def test_an_item_goes_with_its_sentence():
    task = open_task("nli:builtin:mini-english?types=500&sentences=60&dev=1&test=1")
    batch = only(task)
    noise: Any = Chain(Noise(3, drop=0.2, delete=0.0, insert=0.0))
    result, counts = derive_task(batch, noise)
    lost = counts["noise: dropped"]
    assert 0 < lost < 60
    assert len(result) == len(batch) - counts["items dropped, a sentence of theirs was dropped"]
    assert len(result.corpus) == 2 * len(result)
    kept = {name: row for row, name in enumerate(batch.ids)}
    assert result.strings(0) == [batch.strings(0)[kept[name]] for name in result.ids]


def test_torn_entities_can_drop_their_items(tmp_path):
    path = write(tmp_path / "train", "en:a\tB-PER\nen:!\tI-PER\nen:b\tI-PER\n\nen:c\tB-PER\nen:d\tI-PER\n")
    task = open_task(f"ner:{path}")
    spec = {"name": "x", "transforms": [{"kind": "invert"}], "torn_entities": "several"}
    both, counts = derive_task(only(task), parse_language(spec))
    assert [s.columns["ner"] for s in both.corpus] == [["B-PER", "I-PER", "I-PER"], ["B-PER", "I-PER"]]
    assert counts == {}  # the mark keeps its place here, and so does every neighbour
    path = write(tmp_path / "dev", "a\tB-PER\nb\tI-PER\n!\tO\nc\tB-LOC\n\nx\tB-PER\ny\tI-PER\nz\tO\n!\tO\n")
    rows = open_task(f"ner:{path}")
    permuted = {"name": "x", "seed": 1, "transforms": [{"kind": "permute"}]}
    torn, counts = derive_task(only(rows, "dev"), parse_language(permuted))
    several = counts.get("ner: mentions torn apart", 0)
    left, counts = derive_task(only(rows, "dev"), parse_language({**permuted, "torn_entities": "drop"}))
    assert len(left) == len(torn) - several
    assert counts.get("items dropped, a sentence of theirs was dropped", 0) == several


def test_slots_with_intents(tmp_path):
    for split, words in (("train", "fly to new york"), ("valid", "go"), ("test", "go")):
        write(tmp_path / split / "seq.in", f"{words}\n\n")
        write(tmp_path / split / "seq.out", ("O O B-to I-to" if split == "train" else "O") + " \n\n")
        write(tmp_path / split / "label", f"{split}\n\n")
    task = open_task(f"slots:{tmp_path}")
    assert (task.kind, task.splits, task.label_name) == ("words", ("train", "dev", "test"), "intent")
    assert task.labels == ("test", "train", "valid")
    batch = only(task)
    assert labels_of(batch) == ["train"]
    assert batch.counts == {"utterances left out, without a word": 1}
    derived, _ = derive_task(batch, parse_language("inv"))
    assert derived.corpus[0].columns == {"form": ["york", "new", "to", "fly"], "slot": ["B-to", "I-to", "O", "O"]}


def test_slots_as_spans_of_characters(tmp_path):
    lines = [
        "set\t11:19:time,4:6:x\tWake me at 9:30pm, ok\ten_XX\t{}",
        "set\t-2:3:time\tWake me\ten_XX\t{}",
        "set\t\tWake me\ten_XX\t{}",
        "set\t0:4:a,0:7:b\tWake me\ten_XX\t{}",
    ]
    task = open_task(f"slots:{write(tmp_path / 'x-dev.tsv', chr(10).join(lines))}")
    batch = only(task, "dev")
    tags = [dict(zip(s.words, s.columns["slot"], strict=True)) for s in batch.corpus]
    assert tags[0] == {
        "Wake": "O",
        "me": "B-x",
        "at": "O",
        "9": "B-time",
        ":": "I-time",
        "30pm": "I-time",
        ",": "I-time",
        "ok": "O",
    }
    assert tags[1:] == [{"Wake": "O", "me": "O"}, {"Wake": "B-a", "me": "B-b"}]
    assert batch.counts == {"slots widened to whole words": 1, "utterances left out, a slot is not inside the text": 1}


def test_mini_english_pairs():
    task = open_task("nli:builtin:mini-english?types=500&sentences=1500&dev=6&test=0")
    assert task.splits == ("train", "dev")
    assert task.columns == ("form", "upos", "head", "deprel", "ner")
    batches = list(task.batches("train"))
    assert [len(b.corpus) for b in batches] == [BATCH_SENTENCES, 1000]
    assert np.concatenate([b.corpus.ids for b in batches]).tolist() == list(range(3000))
    shares = Counter(label for b in batches for label in labels_of(b))
    assert set(shares.values()) == {500}
    source = task.as_source()
    assert (source.splits, source.columns, source.fingerprint) == (task.splits, task.columns, task.fingerprint)
    assert [s for c in source.batches("train") for s in c] == [s for b in batches for s in b.corpus]


def test_a_long_group_is_cut_for_a_parser_only(tmp_path):
    context = " ".join(f"Word{i} ran." for i in range(BATCH_SENTENCES + 5))
    task = open_task(f"qa:{squad(tmp_path / 'q.json', {'context': context, 'qas': [question('a', (0, 'Word0'))]})}")
    assert [len(b.corpus) for b in task.batches("train")] == [BATCH_SENTENCES + 6]
    assert [len(c) for c in task.as_source().batches("train")] == [BATCH_SENTENCES, 6]


def test_the_parent_language_changes_nothing(tmp_path):
    for spec in ("nli:builtin:mini-english?types=500&sentences=50", "ner:builtin:mini-english?types=500&sentences=50"):
        batch = only(open_task(spec))
        result, counts = derive_task(batch, PARENT)
        assert counts == {}
        assert list(result.corpus) == list(batch.corpus)
        assert result.ids == batch.ids


def test_taking_items_keeps_what_is_theirs(tmp_path):
    qas = [question("a", (4, "old cat")), question("b", (12, "saw")), question("c")]
    other = {"context": "A dog ran.", "qas": [question("d", (2, "dog"))]}
    batch = only(open_task(f"qa:{squad(tmp_path / 'q.json', {'context': CONTEXT, 'qas': qas}, other)}"))
    part = batch.take(np.asarray([1, 3]))
    assert (part.ids, spans(part)) == (("b", "d"), [("b", "saw", 12), ("d", "dog", 2)])
    assert part.strings(1) == [batch.strings(1)[1], "A dog ran ."]
    assert len(part.corpus) == 2 + 1 + 1 + 1
    assert len(batch.take(np.asarray([], np.int64)).corpus) == 0


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("nli:", "must be one of: nli:PATH"),
        ("pos:", "must be one of"),
        ("tags:x", "must be one of"),
        ("nli:/no/such.tsv", "no such file or folder"),
        ("nli:builtin:other", "the only built-in one is mini-english"),
        ("ner:builtin:mini-english?types=1", "types must be between"),
        ("nli:x.tsv?lang=de", r"after \? there must be language=… and not 'lang=de'"),
    ],
)
def test_specs_that_name_no_task(spec, message):
    with pytest.raises(InputError, match=message):
        open_task(spec)


def test_which_specs_are_tasks():
    assert [is_task(s) for s in ("nli:x", "qa:x", "text:x", "nli", "conllu:nli")] == [True, True, False, False, False]


def test_fields_that_there_are_not():
    task = open_task("nli:builtin:mini-english?types=500&sentences=3")
    assert task.field_rows(None) == (0, 1)
    assert task.field_rows(("hypothesis",)) == (1,)
    with pytest.raises(InputError, match="there is no field 'answer'; there are premise, hypothesis"):
        task.field_rows(("answer",))
