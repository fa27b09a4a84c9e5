"""Tasks by hand: what readers make of files, good, wrong and damaged; what becomes of items in a language."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from synthlang.derive_command import derive_command
from synthlang.language import parse_language
from synthlang.sources.base import BATCH_SENTENCES
from synthlang.sources.slots import WORDLESS
from synthlang.sources.text import UNCUT
from synthlang.tasks import FORMS, SCHEMES, derive_task, is_task, open_task
from synthlang.tasks.batch import RENAMED
from synthlang.tasks.derive import LOST_ANSWERS, SPLIT
from synthlang.tasks.export import answer_texts
from synthlang.tasks.pairs import NO_LABEL, NO_WORD
from synthlang.tasks.questions import WIDENED as WIDENED_ANSWERS
from tests.refusals import place_and_code, refusal, refused
from tests.task_cases import labels_of


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
    assert batch.counts == {NO_LABEL: 1, NO_WORD: 1}


def test_the_languages_of_one_file(tmp_path):
    rows = "language\tgold_label\tsentence1\tsentence2\tpairID\nen\tneutral\tA\tB\t1\nde\tneutral\tC\tD\t1\n"
    path = write(tmp_path / "xnli.dev.tsv", rows)
    error = refusal(lambda: list(open_task(f"nli:{path}").batches("dev")))
    assert (
        place_and_code(error) == ("xnli.dev.tsv:3", "conflict")
        and error.hint == "choose a language, as in ?language=en"
    )
    task = open_task(f"nli:{path}?language=de")
    assert only(task, "dev").strings(0) == ["C"]
    assert task.fingerprint != open_task(f"nli:{path}?language=en").fingerprint
    as_test = open_task(f"nli:{path}?split=test&language=de")
    assert (as_test.splits, as_test.name) == (("test",), f"nli:{path}") and only(as_test, "test").strings(0) == ["C"]
    assert refused(open_task, f"nli:{path}?language=fr") == ("xnli.dev.tsv", "empty")
    assert refused(open_task, f"nli:{path}?language=") == ("xnli.dev.tsv language", "empty")


ROW = {"gold_label": "contradiction", "sentence1": "A", "sentence2": "B", "pairID": 7, "annotator_labels": ["x"]}
XNLI_MT = "premise\thypo\tlabel\nA\tB\tcontradictory\nC\tD\tneutral\n"
SICK = "pair_ID\tsentence_A\tsentence_B\tentailment_label\tSemEval_set\n"
SICK += "1\tA\tB\tNEUTRAL\tTRAIN\n2\tC\tD\tENTAILMENT\tTRIAL\n3\tE\tF\tNEUTRAL\tTEST\n4\tG\tH\tNEUTRAL\tTEST\n"


def test_the_layouts_of_public_releases(tmp_path):
    """MNLI and SNLI as JSON lines, the machine translations of XNLI, all of SICK in one file, MultiATIS++."""
    rows = "".join(json.dumps(row) + "\n" for row in (ROW, {**ROW, "gold_label": "-"}))
    task = open_task(f"nli:{write(tmp_path / 'mnli_train.jsonl', rows)}")
    batch = only(task)
    assert (batch.ids, labels_of(batch), batch.counts) == (("7",), ["contradiction"], {NO_LABEL: 1})
    for line in ("{,}", "[" * 100_000, "9" * 5_000):
        broken = write(tmp_path / "x.jsonl", f"{rows}{line}\n")
        assert refused(lambda broken=broken: list(open_task(f"nli:{broken}").batches("train"))) == (
            "x.jsonl:3",
            "format",
        )
    assert open_task(f"nli:{write(tmp_path / 'a.tsv', XNLI_MT)}").labels == ("neutral", "contradiction")
    sick = write(tmp_path / "SICK.txt", SICK)
    assert {split: only(open_task(f"nli:{sick}"), split).ids for split in ("train", "dev", "test")} == {
        "train": ("1",),
        "dev": ("2",),
        "test": ("3", "4"),
    }
    assert open_task(f"nli:{sick}?split=test").splits == ("test",)
    assert only(open_task(f"nli:{sick}?split=test"), "test").ids == ("3", "4")
    atis = "id\tutterance\tslot_labels\tintent\n1\tfly to rome\tO O B-city\tatis_flight\n"
    batch = only(open_task(f"slots:{write(tmp_path / 'train_EN.tsv', atis)}"))
    assert batch.corpus[0].columns == {"form": ["fly", "to", "rome"], "slot": ["O", "O", "B-city"]}
    assert labels_of(batch) == ["atis_flight"]
    wrong = write(tmp_path / "b.tsv", atis + "2\tgo\tO O\tx\n")
    assert refused(lambda: list(open_task(f"slots:{wrong}").batches("train"))) == ("b.tsv:3", "format")


def test_ids_of_questions_may_be_integers_or_missing(tmp_path):
    qas = [question(7, (4, "old cat")), question("b", (4, "old cat")), question(None, (4, "old"))]
    del qas[2]["id"]
    batch = only(open_task(f"qa:{squad(tmp_path / 'q.json', {'context': CONTEXT, 'qas': qas})}"))
    assert batch.ids == ("7", "b", "2")


def test_clauses_of_a_script_without_spaces_are_counted_and_said(tmp_path, capsys):
    context = "我们昨天去了北京大学。"
    path = squad(tmp_path / "q.json", {"context": context, "qas": [question("a", (6, "北京大学"), text="哪里？")]})
    assert only(open_task(f"qa:{path}")).counts == {WIDENED_ANSWERS: 1, UNCUT: 1}
    derive_command(f"qa:{path}", "inv", tmp_path / "d")
    said = capsys.readouterr().err
    assert WIDENED_ANSWERS in said and UNCUT.split(" (")[0] in said


def test_characters_of_a_script_without_spaces_are_words_if_asked_for(tmp_path):
    context = "我们昨天去了北京大学。"
    path = squad(tmp_path / "q.json", {"context": context, "qas": [question("a", (6, "北京大学"), text="哪里？")]})
    whole, cut = open_task(f"qa:{path}"), open_task(f"qa:{path}?cjk=characters")
    batch = only(cut)
    assert batch.counts == {} and batch.strings(1) == [" ".join(context)]
    assert spans(batch) == [("a", "北 京 大 学", 12)]
    assert cut.fingerprint != whole.fingerprint
    pairs = write(tmp_path / "p.tsv", "premise\thypothesis\tlabel\n我在Linux上\tネコだ\tneutral\n")
    assert only(open_task(f"nli:{pairs}?cjk=characters")).strings(0) == ["我 在 Linux 上"]
    assert refused(open_task, f"nli:{pairs}?cjk=words") == ("p.tsv cjk", "unknown")


def test_files_without_a_split_in_their_names_are_named(tmp_path):
    header = "gold_label\tsentence1\tsentence2\n"
    for name, text in (("one", "A"), ("other", "B")):
        write(tmp_path / f"{name}.tsv", f"{header}neutral\t{text}\tX\n")
    assert refused(open_task, f"nli:{tmp_path}") == (tmp_path.name, "unknown")
    task = open_task(f"nli:{tmp_path}?train=other.tsv&test=one.tsv")
    assert task.splits == ("train", "test")
    assert [only(task, split).strings(0) for split in task.splits] == [["B"], ["A"]]
    question = {"id": "1", "question": "C", "answers": [], "is_impossible": True}
    questions = {"data": [{"paragraphs": [{"context": "A b", "qas": [question]}]}]}
    file = write(tmp_path / "squad.json", json.dumps(questions))
    assert open_task(f"qa:{file}?split=dev").splits == ("dev",)


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
        "answers left out because the context has another text at their place": 1,
        "answers left out because they have no word": 1,
        "questions left out because none of their answers is usable": 2,
        "questions left out because they have no word": 1,
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
    assert counts == {SPLIT: 2, LOST_ANSWERS: 1}
    mixed, counts = derive_task(only(task), parse_language("inv"), (0,))
    assert mixed.ids == ("a", "b", "c")
    assert mixed.strings(0)[0] == "ran Who ?"
    assert spans(mixed) == spans(only(task))
    assert counts == {}


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
    assert batch.counts == {WORDLESS: 1}
    derived, _ = derive_task(batch, parse_language("inv"))
    assert derived.corpus[0].columns == {"form": ["york", "new", "to", "fly"], "slot": ["B-to", "I-to", "O", "O"]}


def test_a_long_group_is_cut_for_a_parser_only(tmp_path):
    context = " ".join(f"Word{i} ran." for i in range(BATCH_SENTENCES + 5))
    task = open_task(f"qa:{squad(tmp_path / 'q.json', {'context': context, 'qas': [question('a', (0, 'Word0'))]})}")
    assert [len(b.corpus) for b in task.batches("train")] == [BATCH_SENTENCES + 6]
    assert [len(c) for c in task.as_source().batches("train")] == [BATCH_SENTENCES, 6]


def test_taking_items_keeps_what_is_theirs(tmp_path):
    qas = [question("a", (4, "old cat")), question("b", (12, "saw")), question("c")]
    other = {"context": "A dog ran.", "qas": [question("d", (2, "dog"))]}
    batch = only(open_task(f"qa:{squad(tmp_path / 'q.json', {'context': CONTEXT, 'qas': qas}, other)}"))
    part = batch.take(np.asarray([1, 3]))
    assert (part.ids, spans(part)) == (("b", "d"), [("b", "saw", 12), ("d", "dog", 2)])
    assert part.strings(1) == [batch.strings(1)[1], "A dog ran ."]
    assert len(part.corpus) == 2 + 1 + 1 + 1
    assert len(batch.take(np.asarray([], np.int64)).corpus) == 0


def paragraph(**changes):
    return {"context": CONTEXT, "qas": [question("a", (4, "old cat"))], **changes}


def test_ids_that_come_again_are_numbered(tmp_path):
    qas = [question(name, (4, "old")) for name in ("a", "a", "b", "a#2", "a")]
    task = open_task(f"qa:{squad(tmp_path / 'x.json', paragraph(qas=qas), paragraph(qas=qas[:1]))}")
    [batch] = task.batches("train")
    assert batch.ids == ("a", "a#2", "b", "a#2#2", "a#3", "a#4")
    assert batch.counts == {RENAMED: 4}
    lines = "".join(f"{name}\ta\tb\tneutral\n" for name in "7787")
    path = write(tmp_path / "x.tsv", "index\tsentence1\tsentence2\tlabel\n" + lines)
    [batch] = open_task(f"nli:{path}").batches("train")
    assert batch.ids == ("7", "7#2", "8", "7#3")


NLI = "sentence1\tsentence2\tlabel\n"
QA = "x.json data.0.paragraphs.0"
# malformed lines of slots and of CoNLL-U are in the tests of the sources that read them
UNTAGGED = "1\tHe\t_\tPRON\t_\t_\t2\tnsubj\t_\t_\n2\tran\t_\tVERB\t_\t_\t0\troot\t_\t_\n\n"
FILES: list[tuple[str, Any, str, str]] = [
    ("nli", "", "x.tsv:1", "missing"),
    ("nli", "sentence1\tsentence2\n", "x.tsv:1", "missing"),
    ("nli", NLI, "x.tsv", "empty"),
    ("nli", SICK.replace("TRAIN", "A").replace("TRIAL", "B").replace("TEST", "C"), "x.tsv", "empty"),
    ("nli", NLI + "a\tb\t-\n", "x.tsv", "empty"),
    ("nli", NLI + "a\tb\tneutral\n\nc\td\n", "x.tsv:4", "format"),
    ("nli", NLI + "a\tb\tneutral\textra\n", "x.tsv:2", "format"),
    ("nli", NLI + "a\tb\tneutral\n?language=de", "x.tsv language", "missing"),
    ("qa", {"data": []}, "x.json", "empty"),
    ("qa", [paragraph(context=" ")], "x.json", "empty"),
    ("qa", [paragraph(context="\ud800")], "x.json", "type"),
    ("qa", [paragraph(qas=[{"id": 1.5, "question": "a"}])], f"{QA}.qas.0.id", "type"),
    ("qa", [paragraph(qas=[question("a", (True, "old"))])], f"{QA}.qas.0.answers.0.answer_start", "type"),
    ("slots", "set\t0:9:x\tabc", "x.tsv", "empty"),
    ("pos", "", "x.conllu", "empty"),
    ("pos:lines", "a O\n", "x.conllu", "missing"),
    ("parsing:iob", "a O\n", "x.conllu", "missing"),
    ("ner", UNTAGGED, "x.conllu", "missing"),
    ("ner:conllu", UNTAGGED, "x.conllu", "missing"),
    ("ner:iob", UNTAGGED, "x.conllu", "format"),
]


@pytest.mark.parametrize("content", [b"{\n\xff}", b"{\n,}"])
def test_json_that_is_none_has_its_line(tmp_path, content):
    path = tmp_path / "x.json"
    path.write_bytes(content)
    assert refused(open_task, f"qa:{path}")[0] == "x.json:2"


@pytest.mark.parametrize(("scheme", "content", "place", "code"), FILES)
def test_wrong_files(tmp_path, scheme, content, place, code):
    path = tmp_path / {"qa": "x.json", "nli": "x.tsv", "slots": "x.tsv"}.get(scheme, "x.conllu")
    if scheme == "qa" and isinstance(content, list) and content:
        content = {"data": [{"paragraphs": content}]}
    language = ""
    if isinstance(content, str):
        content, _, language = content.partition("?")
    written = json.dumps(content) if isinstance(content, dict | list) else content
    path.write_bytes(written if isinstance(written, bytes) else written.encode())
    spec = f"{scheme}:{path}{language and '?'}{language}"
    assert refused(lambda: list(open_task(spec).batches("train"))) == (place, code)


@pytest.mark.parametrize("scheme", ["ner", "ner:conllu", "ner:iob"])
def test_treebanks_without_entities_are_refused_with_the_formats_that_have_them(tmp_path, scheme):
    path = write(tmp_path / "x.conllu", UNTAGGED)
    assert "with a word and its tag on each line" in refusal(open_task, f"{scheme}:{path}").hint


@pytest.mark.parametrize(
    ("spec", "place", "code"),
    [
        ("nli:", "", "unknown"),
        ("nli:/no/such.tsv", "such.tsv", "missing"),
        ("nli:builtin:other", "", "unknown"),
        ("ner:builtin:mini-english?types=1", "builtin:mini-english types", "range"),
        ("nli:builtin:mini-english?limit=5", "builtin:mini-english?limit=5 limit", "unsupported"),
        ("nli:x.tsv?lang=de", "x.tsv lang", "unknown"),
        ("nli:hf:x?lang=de", "nli:hf:x lang", "unknown"),
    ],
)
def test_specs_that_name_no_task(spec, place, code):
    assert refused(open_task, spec) == (place, code)


def test_answers_outside_their_context(tmp_path):
    qas = [question(str(start), (start, "old")) for start in (-1, 1000, 10**18)] + [question("b", (4, "old"))]
    [batch] = open_task(f"qa:{squad(tmp_path / 'x.json', paragraph(qas=qas))}").batches("train")
    assert batch.ids == ("b",)


def test_fields_and_which_specs_are_tasks():
    task = open_task("nli:builtin:mini-english?types=500&sentences=3")
    assert (task.field_rows(None), task.field_rows(("hypothesis",))) == ((0, 1), (1,))
    assert str(refusal(task.field_rows, ("answer",))) == (
        "nli:builtin:mini-english: the task has no field 'answer'; use premise or hypothesis"
    )
    assert [is_task(s) for s in ("nli:x", "qa:x", "text:x", "nli", "conllu:nli")] == [True, True, False, False, False]
    assert all(is_task(f"{scheme}:x") and f"{scheme}:PATH" in FORMS for scheme in SCHEMES)
