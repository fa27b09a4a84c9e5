"""Questions and their answers: windows, rows, targets and spans against plain ones."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from probes.transfer.tasks.qa import Windows, best_answer, longest_question
from synthlang.corpus import Column, Corpus
from synthlang.tasks import derive_task, open_task
from tests.pair_cases import INVERT_TOKENS, pieces_of, plain_row, qa, reader, shown, tokens_of, words_of
from tests.refusals import refused
from tests.task_cases import random_batch

ANSWERABLE, SOME_NOT = {"no_answer": ()}, {"no_answer": ("yes",)}
LANGUAGES = [("parent", "parent"), ("trans", "trans"), ("parent", "trans+inv"), ("trans", "parent")]


def asked(seed, items, names=("parent", "parent"), bert=False):
    """Random questions on random contexts in the languages of two readers."""
    readers = tuple(reader(name, int(name != "parent"), bert) for name in names)
    batch = random_batch(np.random.default_rng(seed), items)
    for field, own in enumerate(readers):
        batch, _ = derive_task(batch, own.language, (field,))
    return batch, readers


def first_answer(batch, item):
    found = np.flatnonzero(batch.answers.item == item)
    return None if not len(found) else (int(batch.answers.start[found[0]]), int(batch.answers.stop[found[0]]))


def plain_windows(batch, readers, task):
    """For each window: (item, ids, columns of the context, start and stop target), step by step."""
    length, stride, extra = task.config.length, task.config.stride, 3 if readers[0].bert else 4
    limit = longest_question(length, stride, extra)
    rows = []
    for item in range(len(batch)):
        question = tokens_of(batch, item, 0, readers[0])[:limit]
        words, begin = words_of(batch, item, 1)
        pieces = pieces_of(readers[1], words)
        context = [(token, number) for number, piece in enumerate(pieces) for token in piece]
        answer, room, at = first_answer(batch, item), length - extra - len(question), 0
        while True:
            window = context[at : at + room]
            ids, _, first = plain_row(question, [token for token, _ in window], readers[0].bert)
            column = first + (0 if readers[0].bert else 1)
            span = (0, 0)
            if answer is not None:
                mine = [i for i, (_, number) in enumerate(context) if answer[0] <= number + begin < answer[1]]
                if mine and at <= mine[0] and mine[-1] < at + len(window):
                    span = (mine[0] - at + column, mine[-1] - at + column)
            rows.append((item, ids, list(range(column, column + len(window))), span))
            if at + room >= len(context):
                break
            at += room - stride
    return rows


@pytest.mark.parametrize("bert", [False, True], ids=["roberta", "bert"])
@pytest.mark.parametrize("names", LANGUAGES, ids="-".join)
@pytest.mark.parametrize(("length", "stride"), [(24, 0), (64, 20), (512, 128)])
def test_windows_equal_a_plain_reference(bert, names, length, stride):
    batch, readers = asked(length, 24, names, bert)
    task = qa(length=length, stride=stride)
    examples = task.encode(batch, readers, ANSWERABLE)
    expected = plain_windows(batch, readers, task)
    assert examples.lengths.tolist() == [len(ids) for _, ids, _, _ in expected]
    assert examples.windows.item.tolist() == [item for item, *_ in expected]
    blocks = names[0] != names[1]
    for rows in np.array_split(np.random.default_rng(1).permutation(len(examples)), 5):
        inputs = examples.batch(rows)
        for number, row in enumerate(rows.tolist()):
            _, ids, columns, span = expected[row]
            assert shown(inputs.text, number)[0] == ids
            moved = inputs.text.spans[0][1] - (columns[0] - 1 + bert) if blocks else 0  # the second text's block
            assert inputs.mask[number].nonzero().ravel().tolist() == [0, *(c + moved for c in columns)]
            target = [inputs.targets[name][number].item() for name in ("start", "stop")]
            assert target == [column + moved if span[1] else 0 for column in span]
    if length == 24:
        assert len(examples) > len(batch) and "questions cut to" in " ".join(examples.counts)


def told(examples, size=7):
    """Return the outputs of a head that knows the targets, in batches of ``size``."""
    outputs: list[Any] = [None] * len(examples)
    for rows in np.array_split(np.random.default_rng(0).permutation(len(examples)), -(-len(examples) // size)):
        inputs = examples.batch(rows)
        starts, stops = (inputs.targets[name].tolist() for name in ("start", "stop"))
        for row, start, stop in zip(rows.tolist(), starts, stops, strict=True):
            outputs[row] = (0.0, [(1.0, start, stop)]) if stop else (2.0, [])
    return outputs


@pytest.mark.parametrize(
    "names", [*LANGUAGES, (INVERT_TOKENS, INVERT_TOKENS)], ids=lambda n: "-".join(map(str, n))[:20]
)
@pytest.mark.parametrize(("length", "stride"), [(48, 20), (256, 64)])
def test_answers_survive_windows(names, length, stride):
    readers = tuple(reader(name, int(name != "parent")) for name in names)
    batch = random_batch(np.random.default_rng(3), 40)
    for field, own in enumerate(readers) if names[0] != INVERT_TOKENS else ():
        batch, _ = derive_task(batch, own.language, (field,))
    if names[0] == INVERT_TOKENS:
        batch, _ = derive_task(batch, readers[0].language)
    examples = qa(length=length, stride=stride).encode(batch, readers, ANSWERABLE)
    found = examples.predictions(told(examples))
    lost = sum(n for reason, n in examples.counts.items() if reason.startswith("answers not learned"))
    wrong = 0
    for item, (gold, said) in enumerate(zip(examples.gold, found, strict=True)):
        answer = first_answer(batch, item)
        expected = "" if answer is None else " ".join(batch.corpus.form.values()[slice(*answer)])
        assert (gold["answers"][:1] or [""]) == [expected]
        wrong += said["answer"] != expected
    assert wrong == lost and lost < len(batch) / 4
    assert all(count > 0 for count in examples.counts.values())
    assert sum(bool(said["answer"]) for said in found) > len(batch) / 4


def squad(tmp_path, context, *questions):
    """An opened batch of questions (text, answers) on one context."""
    entries = [
        {"id": str(n), "question": q, "answers": [{"text": a, "answer_start": context.index(a)} for a in answers]}
        for n, (q, *answers) in enumerate(questions)
    ]
    path = tmp_path / "train.json"
    path.write_text(json.dumps({"data": [{"title": "T", "paragraphs": [{"context": context, "qas": entries}]}]}))
    [batch] = open_task(f"qa:{path}").batches("train")
    return batch


def test_gold_answers_by_hand(tmp_path):
    batch = squad(tmp_path, "The old cat saw her. It ran.", ("Who saw?", "old cat", "cat", "old cat"), ("Why?",))
    own = reader()
    task = qa()
    examples = task.encode(batch, (own, own), task.labels(batch))
    opening = "The old cat saw her . It ran"
    assert list(examples.gold) == [
        {"answers": ["old cat", "cat"], "opening": opening},
        {"answers": [], "opening": opening},
    ]
    assert task.labels(batch) == SOME_NOT and task.labels(batch.take(np.array([0]))) == ANSWERABLE
    assert refused(task.labels, batch.take(np.array([1]))) == ("", "empty")


def test_a_token_stands_for_the_whole_word_that_it_touches(tmp_path):
    batch = squad(tmp_path, "Unbelievable cats ran .", ("Who?", "cats"))
    own = reader()
    examples = qa().encode(batch, (own, own), ANSWERABLE)
    sizes = [len(piece) for piece in pieces_of(own, ["Unbelievable", "cats", "ran", "."])]
    begin = int(examples.rows.begin(np.array([0]))[0])
    assert sizes[0] > 3 and sizes[1] > 1
    said = examples.predictions([(0.0, [(1.0, begin + sizes[0] - 1, begin + sizes[0])])])
    assert said == [{"answer": "Unbelievable cats"}]


def test_no_answer_is_said_only_where_training_has_it(tmp_path):
    batch = squad(tmp_path, "The old cat saw her .", ("Who?", "cat"), ("Why?",))
    own = reader()
    task = qa()
    known, unknown = (task.encode(batch, (own, own), labels) for labels in (SOME_NOT, ANSWERABLE))
    begin = known.rows.begin(np.arange(2)).tolist()
    outputs = [(5.0, [(4.0, begin[0], begin[0])]), (4.0, [(4.0, begin[1], begin[1])])]
    assert [said["answer"] for said in known.predictions(outputs)] == ["", "The"]  # equal scores: the span
    assert [said["answer"] for said in unknown.predictions(outputs)] == ["The", "The"]
    assert unknown.predictions([(5.0, []), (0.0, [])]) == [{"answer": ""}] * 2


def test_the_smallest_score_of_no_answer_counts():
    batch, readers = asked(2, 10)
    examples = qa(length=24, stride=4).encode(batch, readers, SOME_NOT)
    many = int(np.argmax(np.bincount(examples.windows.item)))
    assert (examples.windows.item == many).sum() > 2
    rows = np.flatnonzero(examples.windows.item == many)
    begin = int(examples.rows.begin(rows[-1:])[0])
    outputs: list[Any] = [(9.0, []) for _ in range(len(examples))]
    last = int(examples.windows.size[rows[-1]]) - 1
    outputs[rows[-1]] = (9.0, [(3.0, begin + last, begin + last)])
    assert examples.predictions(outputs)[many] == {"answer": ""}
    outputs[rows[0]] = (2.0, [])
    assert examples.predictions(outputs)[many] != {"answer": ""}


def test_a_stride_must_leave_room_to_move_on():
    batch, readers = asked(0, 3)
    for length, stride in ((8, 3), (16, 11), (128, 128), (32, 400)):
        task = qa(length=length, stride=stride)
        assert refused(task.encode, batch, readers, ANSWERABLE) == ("stride", "range")
        assert longest_question(length, length - 6, 4) == 1  # the largest one that does


def test_an_answer_that_no_token_stands_for_is_counted(tmp_path):
    batch = squad(tmp_path, "The old cat saw her .", ("Who?", "cat"), ("Which?", "old cat"))
    names = tuple(" " if name == "cat" else name for name in batch.corpus.form.names)
    corpus = Corpus(batch.corpus.offsets, {"form": Column(batch.corpus.form.codes, names)}, batch.corpus.ids)
    own = reader()
    examples = qa().encode(replace(batch, corpus=corpus), (own, own), ANSWERABLE)
    assert examples.counts == {"answers not learned, they have no token": 1}
    assert examples.answer.min(axis=1).tolist()[0] == -1 and examples.answer.min(axis=1).tolist()[1] > 0


def test_majority_is_a_constant_opening_or_no_answer():
    task = qa()
    gold = [
        {"answers": ["a b"], "opening": "a b c d"},
        {"answers": ["z"], "opening": "p q r s"},
        {"answers": ["a b c"], "opening": "a b c d"},
    ]
    none = {"answers": [], "opening": "e f g h"}
    assert task.majority(gold, [gold[1], none]) == [{"answer": "p q"}, {"answer": "e f"}]
    assert task.majority([*gold, *[none] * 9], [gold[1]]) == [{"answer": ""}]


def test_answers_that_are_too_long_are_counted(tmp_path):
    batch = squad(tmp_path, "the big old cat sat on the mat", ("who ?", "the big old cat"), ("where ?", "the mat"))
    for head, long in (({}, 0), ({"answer_words": 3}, 1), ({"answer_words": 1}, 2), ({"answer_tokens": 1}, 2)):
        examples = qa(length=64, stride=8, head=head).encode(batch, (reader("parent", 0),) * 2, ANSWERABLE)
        assert examples.counts.get("answers that are never given, they are too long", 0) == long
        word_of = examples.batch(np.arange(2)).word_of
        assert word_of is not None and len(set(word_of[0, 1:].tolist())) > 5


def plain_best(windows, found):
    """A span counts in the window where it has most context on the smaller side."""
    best = None
    for number in range(len(windows)):
        for score, first, last in found[number]:
            scores = []
            for other, (begin, many) in enumerate(windows):
                if begin <= first and last < begin + many:
                    scores.append((min(first - begin, begin + many - 1 - last) + 0.01 * many, -other))
            if -max(scores)[1] == number and (best is None or score > best[0]):
                best = (score, first, last)
    return best


def test_a_span_counts_where_it_has_most_context():
    rng = np.random.default_rng(0)
    filtered = 0
    for _ in range(300):
        size, room, stride = (int(rng.integers(*r)) for r in ((1, 40), (5, 12), (0, 4)))
        windows = Windows.over(np.array([size]), np.array([room]), stride)
        places = list(zip(windows.start.tolist(), windows.size.tolist(), strict=True))
        found = []
        for start, many in places:
            firsts = rng.integers(start, start + many, 3).tolist()
            spans = [(float(rng.integers(0, 50)), f, int(rng.integers(f, start + many))) for f in firsts]
            found.append(sorted(spans, key=lambda s: -s[0]))
        expected = plain_best(places, found)
        score, first, last = best_answer(windows.start, windows.size, found)
        assert any((score, first, last) in spans for spans in found)
        if expected is None:
            expected = max((span for spans in found for span in spans), key=lambda s: s[0])
        assert score == expected[0]
        filtered += score < max(span[0] for spans in found for span in spans)
    assert filtered > 20
    assert best_answer(np.array([0]), np.array([4]), [[]])[2] == -1


def test_a_window_that_does_not_hold_all_of_an_answer_does_not_hide_it():
    windows = Windows.over(np.array([36]), np.array([20]), 4)
    assert (windows.start.tolist(), windows.size.tolist()) == ([0, 16], [20, 20])
    # token 17 alone has more context in the first window, which ends at token 19
    assert best_answer(windows.start, windows.size, [[(-1.0, 3, 3)], [(20.0, 17, 22)]]) == (20.0, 17, 22)
