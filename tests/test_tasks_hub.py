"""Tasks of the hub's shapes, in local folders: what readers make of columns, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest

from synthlang.errors import InputError
from synthlang.tasks import open_task, split_for
from tests.hub_folders import TEXT, datasets, jsonl, offline, parquet  # noqa: F401  a fixture
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
    assert batch.counts == {"pairs left out, no gold label": 1, "pairs left out, a text without a word": 1}
    assert task.splits == ("train", "dev")
    for ask in (lambda: task.batches("test"), lambda: split_for(task, "test", None, task.name)):
        with pytest.raises(
            InputError, match=r"has no split 'test' \(pairs left out, no gold label: 3\); it has train, "
        ):
            ask()


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
        patch.setattr("synthlang.tasks.pairs.load_data", lambda name: loaded)
        assert only(HubPairs("glue:mnli"), "dev").strings(0) == ["validation_matched"]
        loaded["dev"] = loaded["train"]
        assert only(HubPairs("glue:mnli"), "dev").strings(0) == ["train"]


def test_the_languages_of_one_data_set(tmp_path):
    rows = {"sentence1": ["A", "C"], "sentence2": ["B", "D"], "label": ["neutral"] * 2, "language": ["en", "de"]}
    folder = jsonl(tmp_path / "x", dev=rows)
    with pytest.raises(InputError, match=r"the split dev: holds several languages; choose one as in \?language=de"):
        only(open_task(f"nli:hf:{folder}"), "dev")
    assert only(open_task(f"nli:hf:{folder}?language=de"), "dev").strings(0) == ["C"]
    with pytest.raises(InputError, match=r"the split dev: holds no labelled pair$"):
        open_task(f"nli:hf:{folder}?language=fr")
    del rows["language"]
    with pytest.raises(InputError, match="has no column 'language' to choose from"):
        open_task(f"nli:hf:{jsonl(tmp_path / 'y', dev=rows)}?language=de")


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
        "answers left out, the context has another text at their place": 1,
        "questions left out, no answer of theirs can be used": 1,
        "answers widened to whole words": 1,
        "ids numbered, another item has the same": 1,
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
    with pytest.raises(InputError, match="row 1 of the split train: 4 words but 3 values in 'slots'"):
        open_task(f"slots:hf:{jsonl(tmp_path / 't', train=columns | {'slots': ['O B-to I-to', '', 'O']})}")


@pytest.mark.parametrize(
    ("scheme", "columns", "message"),
    [
        ("nli", {"text": ["a"]}, r"no column for the premise \(premise or sentence1 or sentence_a\); it has text"),
        ("nli", {"premise": ["a"], "hypothesis": ["b"]}, "no column for the label"),
        ("nli", {"premise": [{"en": "a"}], "hypothesis": ["b"], "label": [0]}, "no column for the premise"),
        ("nli", {"premise": ["a"], "hypothesis": ["b"], "label": [0.5]}, r"no column for the label .*\(float64\)"),
        (
            "nli",
            {"premise": ["a"] * 2, "hypothesis": ["b"] * 2, "label": [-1, None]},
            r"no split holds a labelled pair \(pairs left out, no gold label: 2\)",
        ),
        ("qa", {"context": ["a"], "question": ["b"]}, "answers with text and answer_start; it has context .string."),
        ("qa", {"context": ["a"], "question": ["b"], "answers": ["c"]}, "needs the texts context and question"),
        ("qa", questions([(5, "old")]), "the split train: holds no question that can be used .answers left out, the"),
        ("qa", questions([(-1, "old")]), "the split train: holds no question that can be used"),
        ("qa", questions([(10**6, "old")]), "the split train: holds no question that can be used"),
        ("qa", questions([(4, "old")], question=[None, "a"]), None),
        ("ner", {"tokens": [["a"]], "ner_tags": [[3]]}, "the task needs the column 'ner'; ner:hf:.* has form$"),
        ("ner", {"text": ["a"]}, "the task needs the column 'ner'"),
        ("pos", {"tokens": [["a"]]}, r"the task needs the column 'upos'; .* A parser gives trees"),
        ("pos", {"tokens": [["a", "b"]], "upos": [["X"]]}, "row 1 of the split train: 2 words but 1 values in 'upos'"),
        ("parsing", {"tokens": [["a"]], "upos": [["X"]], "deprel": [["root"]]}, "the task needs the column 'head'"),
        (
            "parsing",
            {"tokens": [["a", "b"]], "upos": [["X", "X"]], "head": [[0, 0]], "deprel": [["root", "root"]]},
            "row 1 of the split train: words 1 and 2 are both roots",
        ),
        ("slots", {"tokens": [["a"]], "slots": [["x"]]}, "'slots': the tag 'x' must be O, or B- or I- and a name"),
        ("slots", {"tokens": [["a"]], "slots": [["O", "O"]], "intent": ["x"]}, "1 words but 2 values in 'slots'"),
        ("slots", {"tokens": [["a"], ["b"]], "slots": [["O"], ["O"]], "intent": ["x", ""]}, "row 2 .* no label in"),
    ],
)  # fmt: skip
def test_wrong_data_sets(tmp_path, scheme, columns, message):
    if message is None:
        columns = questions([(4, "old")], [(4, "old")], question=["a", None])
        message = "row 2 of the split train: there is no question"
    folder = jsonl(tmp_path / "d", train=columns)
    with pytest.raises(InputError, match=message) as info:
        list(open_task(f"{scheme}:hf:{folder}").batches("train"))
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("scheme", ["nli", "qa", "slots"])
def test_what_cannot_be_reached(tmp_path, scheme):
    folder = jsonl(tmp_path / "d", train={"text": ["a"]})
    for name, message in (
        ("nobody/nothing", "hf:nobody/nothing: cannot load the data set: "),
        (f"{folder}:nope", "cannot load the data set: .*nope"),
        ("/no/such", "no such file or folder"),
    ):
        with pytest.raises(InputError, match=message) as info:
            open_task(f"{scheme}:hf:{name}")
        assert "\n" not in str(info.value)


def test_answers_that_are_not_whole(tmp_path):
    for value in ({"text": ["old"], "answer_start": []}, {"text": [None], "answer_start": [4]}, None):
        folder = parquet(tmp_path / str(value)[:9], SQUAD, train={
            "id": ["a"], "title": [None], "context": [CONTEXT], "question": ["Who?"], "answers": [value]
        })  # fmt: skip
        with pytest.raises(InputError, match="row 1 of the split train: 'answers' must have as many of text as of ans"):
            open_task(f"qa:hf:{folder}")


def test_no_row_at_all(tmp_path):
    empty: dict[str, list[str]] = {name: [] for name in PAIRS}
    with pytest.raises(InputError, match=r"cannot load the data set: .*no data") as info:
        open_task(f"nli:hf:{parquet(tmp_path / 'd', GLUE, train=PAIRS, test=empty)}")
    assert "\n" not in str(info.value)
    from synthlang.tasks.pairs import HubPairs

    loaded = {s: datasets.Dataset.from_dict(c, datasets.Features(GLUE)) for s, c in (("train", PAIRS), ("test", empty))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("synthlang.tasks.pairs.load_data", lambda name: loaded)
        with pytest.raises(InputError, match=r"nli:hf:x: the split test: holds no labelled pair$"):
            HubPairs("x")
