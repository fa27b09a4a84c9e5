"""Tasks of the hub's shapes, in local folders: what readers make of columns, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from synthlang.sources.hub_data import ROWS
from synthlang.tasks import open_task, split_for
from synthlang.tasks.batch import RENAMED, join_batches
from synthlang.tasks.pairs import NO_LABEL, NO_WORD
from synthlang.tasks.questions import MISPLACED, NO_ANSWER
from tests.hub_folders import TEXT, datasets, jsonl, offline, parquet  # noqa: F401  a fixture
from tests.refusals import refusal, refused
from tests.task_cases import labels_of
from tests.test_tasks import CONTEXT, only, spans

PAIRS: dict[str, Any] = {"sentence1": ["He ran.", "A b", "C"], "sentence2": ["She sat.", "D", " "], "label": [1, -1, 0]}
GLUE = {"sentence1": TEXT, "sentence2": TEXT, "label": datasets.ClassLabel(names=["entailment", "not_entailment"])}
ANSWERS = {"text": datasets.List(TEXT), "answer_start": datasets.List(datasets.Value("int32"))}
SQUAD = {"id": TEXT, "title": TEXT, "context": TEXT, "question": TEXT, "answers": ANSWERS}


def questions(*answers, **more):
    n = len(answers)
    found = [{"text": [t for _, t in one], "answer_start": [s for s, _ in one]} for one in answers]
    return {"context": [CONTEXT] * n, "question": ["Who ran?"] * n, "answers": found, **more}


def test_pairs_as_in_glue(tmp_path):
    folder = parquet(
        tmp_path / "rte", {**GLUE, "idx": datasets.Value("int32")},
        train={**PAIRS, "idx": [7, 8, 9]},
        validation={**PAIRS, "idx": [1, 1, 1]},
        test={**PAIRS, "label": [-1] * 3, "idx": [0, 1, 2]},
    )  # fmt: skip
    task = open_task(f"nli:hf:{folder}")
    assert (task.kind, task.fields, task.columns, task.size("dev")) == (
        "classes",
        ("premise", "hypothesis"),
        ("form",),
        3,
    )
    assert task.labels == ("entailment", "not_entailment")
    batch = only(task)
    assert (batch.ids, labels_of(batch)) == (("7",), ["not_entailment"])
    assert (batch.strings(0), batch.strings(1)) == (["He ran ."], ["She sat ."])
    assert batch.counts == {NO_LABEL: 1, NO_WORD: 1}
    assert task.splits == ("train", "dev")
    for error in (refusal(task.batches, "test"), refusal(split_for, task, "test", None, task.name)):
        assert error.reason == f"the task has no split 'test' ({NO_LABEL}: 3), only train, dev"


@pytest.mark.parametrize("good", [b"", b'{"premise": "a", "hypothesis": "b", "label": "x"}\n'])
def test_a_text_that_is_not_utf_8_has_a_place(tmp_path, good):
    """The error comes when the task is opened, or when its hash is computed."""
    (tmp_path / "train.jsonl").write_bytes(good + b'{"premise": "\xff", "hypothesis": "b", "label": "x"}\n')
    error = refusal(lambda: open_task(f"nli:hf:{tmp_path}").fingerprint)
    assert (error.path, error.keys, error.code) == (f"nli:hf:{tmp_path}", ("train",), "format")


def test_pairs_with_labels_as_strings_or_numbers(tmp_path):
    rows = {"Premise": ["a", "b", "c", "d"], "Hypothesis": ["e", "f", "g", "h"]}
    strings = jsonl(tmp_path / "s", train={**rows, "gold_label": ["Neutral", "-", "weird", None]},
                    dev={**rows, "gold_label": ["neutral", "other", "contradiction", ""]})  # fmt: skip
    task = open_task(f"nli:hf:{strings}")
    assert task.labels == ("neutral", "contradiction", "other", "weird")  # those of all splits, with their names
    assert (only(task).ids, labels_of(only(task))) == (("0", "2"), ["neutral", "weird"])
    assert set(labels_of(only(task, "dev"))) - set(labels_of(only(task))) == {"other", "contradiction"}
    numbers = open_task(f"nli:hf:{jsonl(tmp_path / 'n', train={**rows, 'label': [2, 0, -1, 0]})}")
    assert (numbers.labels, labels_of(only(numbers))) == (("0", "2"), ["2", "0", "0"])


def test_matched_splits_and_the_usual_names_before_them(tmp_path):
    data = {s: PAIRS | {"sentence1": [s, "x", "x"]} for s in ("train", "validation_matched", "validation_mismatched")}
    loaded = {s: datasets.Dataset.from_dict(c, datasets.Features(GLUE)) for s, c in data.items()}
    from synthlang.tasks.pairs import HubPairs

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthlang.tasks.base.load_data", lambda name: loaded)
        assert only(HubPairs("glue:mnli"), "dev").strings(0) == ["validation_matched"]
        loaded["dev"] = loaded["train"]
        assert only(HubPairs("glue:mnli"), "dev").strings(0) == ["train"]


def test_the_languages_of_one_data_set(tmp_path):
    rows = {"sentence1": ["A", "C"], "sentence2": ["B", "D"], "label": ["neutral"] * 2, "language": ["en", "de"]}
    folder = jsonl(tmp_path / "x", dev=rows)
    assert refused(only, open_task(f"nli:hf:{folder}"), "dev") == ("x dev", "conflict")
    assert only(open_task(f"nli:hf:{folder}?language=de"), "dev").strings(0) == ["C"]
    assert refused(open_task, f"nli:hf:{folder}?language=fr") == ("x dev", "empty")
    del rows["language"]
    assert refused(open_task, f"nli:hf:{jsonl(tmp_path / 'y', dev=rows)}?language=de") == ("y language", "missing")


@pytest.mark.parametrize("form", ["struct of lists", "list of structs"])
def test_questions_as_in_squad(tmp_path, form):
    columns = questions([(4, "old cat"), (4, "old cat")], [], [(5, "old cat")], [(35, "$5 h")], [(0, "The")])
    columns |= {"id": ["a", "b", "c", "d", "a"], "title": ["T"] * 5}
    columns["context"][4] = "The end. "
    columns["question"][4] = "What?"
    features = dict(SQUAD)
    if form == "list of structs":
        features["answers"] = datasets.List({"text": TEXT, "answer_start": datasets.Value("int32")})
        columns["answers"] = [
            [{"text": t, "answer_start": s} for t, s in zip(a["text"], a["answer_start"], strict=True)]
            for a in columns["answers"]
        ]
    task = open_task(f"qa:hf:{parquet(tmp_path / 'q', features, validation=columns)}")
    assert (task.kind, task.fields, task.splits, task.size("dev")) == ("spans", ("question", "context"), ("dev",), 5)
    batch = only(task, "dev")
    assert batch.ids == ("a", "b", "d", "a#2")
    assert batch.texts[:, 1].tolist() == [0, 0, 0, 4]  # three questions share a paragraph
    assert spans(batch) == [("a", "old cat", 4), ("d", "$ 5 house", 36), ("a#2", "The", 0)]
    assert batch.extra == {"title": ("T",) * 4}
    assert batch.counts == {
        MISPLACED: 1,
        NO_ANSWER: 1,
        "answers widened to whole words": 1,
        RENAMED: 1,
    }


def test_questions_of_json_that_cannot_be_answered(tmp_path):
    columns = questions([(4, "old")], [(4, "old")], is_impossible=[False, True])
    batch = only(open_task(f"qa:hf:{jsonl(tmp_path / 'q', train=columns)}"))
    assert (batch.ids, spans(batch)) == (("0", "1"), [("0", "old", 4)])


def test_slots_with_intents_of_the_hub(tmp_path):
    names = datasets.ClassLabel(names=["get", "set", "never"])
    features = {"tokens": datasets.List(TEXT), "tags": datasets.List(TEXT), "label": names, "id": TEXT}
    columns = {"tokens": [["a", "b"], [], ["c"]], "tags": [["I-x", "E-x"], [], ["S-y"]], "label": [1, 0, 0]}
    columns["id"] = ["u", "v", None]
    task = open_task(f"slots:hf:{parquet(tmp_path / 's', features, train=columns)}")
    assert (task.tags, task.label_name, task.labels, task.splits) == (
        "slot",
        "intent",
        ("get", "set", "never"),
        ("train",),
    )
    batch = only(task)
    assert [s.columns for s in batch.corpus] == [
        {"form": ["a", "b"], "slot": ["B-x", "I-x"]},
        {"form": ["c"], "slot": ["B-y"]},
    ]
    assert (labels_of(batch), batch.ids) == (["set", "get"], ("u", "1"))
    text = jsonl(tmp_path / "t", train={"tokens": [["a"], ["b"]], "slots": [["O"], ["O"]], "intent": ["z", "y"]})
    other = open_task(f"slots:hf:{text}")
    assert (other.labels, labels_of(only(other))) == (("y", "z"), ["z", "y"])
    assert other.fingerprint != task.fingerprint
    plain = open_task(f"slots:hf:{jsonl(tmp_path / 'p', train={'tokens': [['a']], 'slots': [['O']]})}")
    assert (plain.labels, only(plain).label) == ((), None)


def test_slots_in_strings(tmp_path):
    columns = {"text": ["fly to new  york", " ", "go"], "slots": ["O O B-to I-to", "", "O"], "intent": ["a b"] * 3}
    task = open_task(f"slots:hf:{jsonl(tmp_path / 's', train=columns)}")
    batch = only(task)
    assert [s.words for s in batch.corpus] == [["fly", "to", "new", "york"], ["go"]]
    assert (batch.corpus.columns["slot"].values(), labels_of(batch)) == (["O", "O", "B-to", "I-to", "O"], ["a b"] * 2)
    short = jsonl(tmp_path / "t", train=columns | {"slots": ["O B-to I-to", "", "O"]})
    assert refused(open_task, f"slots:hf:{short}") == ("t train.row 1.slots", "format")


@pytest.mark.parametrize(
    ("scheme", "columns", "place", "code"),
    [
        ("nli", {"text": ["a"]}, "d", "missing"),
        ("nli", {"premise": ["a"] * 2, "hypothesis": ["b"] * 2, "label": [-1, None]}, "d", "empty"),
        ("qa", {"context": ["a"], "question": ["b"]}, "d", "missing"),
        ("qa", questions([(5, "old")]), "d train", "empty"),
        ("qa", questions([(4, "old")], [(4, "old")], question=["a", None]), "d train.row 2.question", "missing"),
        ("ner", {"tokens": [["a"]], "ner_tags": [[3]]}, "d", "missing"),
        ("parsing", {"tokens": [["a"]], "upos": [["X"]], "deprel": [["root"]]}, "d", "missing"),
        ("slots", {"tokens": [["a"]], "slots": [["x"]]}, "d train.row 1.slots", "format"),
        ("slots", {"tokens": [["a"]], "slots": [["O", "O"]], "intent": ["x"]}, "d train.row 1.slots", "format"),
        (
            "slots", {"tokens": [["a"], ["b"]], "slots": [["O"], ["O"]], "intent": ["x", ""]},
            "d train.row 2.intent", "missing",
        ),
    ],
)  # fmt: skip
def test_wrong_data_sets(tmp_path, scheme, columns, place, code):
    folder = jsonl(tmp_path / "d", train=columns)
    assert refused(lambda: list(open_task(f"{scheme}:hf:{folder}").batches("train"))) == (place, code)


def test_answers_that_are_not_whole(tmp_path):
    for value in ({"text": ["old"], "answer_start": []}, {"text": [None], "answer_start": [4]}, None):
        folder = parquet(tmp_path / str(value)[:9], SQUAD, train={
            "id": ["a"], "title": [None], "context": [CONTEXT], "question": ["Who?"], "answers": [value]
        })  # fmt: skip
        assert refused(open_task, f"qa:hf:{folder}") == (f"{folder.name} train.row 1.answers", "format")


def test_no_row_at_all(tmp_path):
    empty: dict[str, list[str]] = {name: [] for name in PAIRS}
    assert refused(open_task, f"nli:hf:{parquet(tmp_path / 'd', GLUE, train=PAIRS, test=empty)}") == ("d", "failed")
    from synthlang.tasks.pairs import HubPairs

    loaded = {s: datasets.Dataset.from_dict(c, datasets.Features(GLUE)) for s, c in (("train", PAIRS), ("test", empty))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthlang.tasks.base.load_data", lambda name: loaded)
        assert refused(HubPairs, "x") == ("nli:hf:x test", "empty")


def test_batches_do_not_depend_on_how_rows_are_read(tmp_path):
    n = 2 * ROWS + 300
    rows = {"premise": [f"a {i}" for i in range(n)], "hypothesis": ["b"] * n, "label": ["neutral"] * n}
    task = open_task(f"nli:hf:{jsonl(tmp_path / 'd', train=rows)}")
    assert [len(batch) for batch in task.batches("train")] == [1000, 1000, 300]
    whole = join_batches(list(task.batches("train")))
    assert whole.ids == tuple(map(str, range(n))) and whole.strings(0) == rows["premise"]
    assert len(whole.corpus) == 2 * n
