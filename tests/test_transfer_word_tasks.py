"""Tasks whose labels stand on words: rows, labels, numbering of heads and predictions, by hand."""

import numpy as np
import pytest

from probes.transfer.batch import NO_LABEL
from probes.transfer.config import TransferConfig
from probes.transfer.tasks.ner import Ner
from probes.transfer.tasks.parsing import Parsing
from probes.transfer.tasks.pos import Pos
from probes.transfer.tasks.slots import Slots
from probes.transfer.tasks.words import words_of
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import PARENT, bind_language, parse_language
from synthlang.vocabularies import OURS
from synthlang.vocabulary import BOS, EOS, PAD, train_vocabulary
from tests.word_task_cases import NOTHING, SPELLED, derived_batch, items_of, reader_of, words_batch

NO = NO_LABEL


def task(kind, length=128):
    """The task; lengths may be below what a config allows, so that cases stay small."""
    return kind(TransferConfig(task=kind.name).model_copy(update={"length": length}))


def numbers(*values):
    return np.asarray(values, np.int64)


def letters(text):
    return [ord(letter) for letter in text]


TWO = words_batch(
    {"form": f"ab c {NOTHING} def g", "upos": "DET NOUN X VERB _"},
    {"form": "h", "upos": "NOUN"},
)
TAGS = {"tags": ("DET", "NOUN", "X")}


def test_a_batch_by_hand():
    examples = task(Pos).encode(TWO, [SPELLED], TAGS)
    assert examples.gold == [["DET", "NOUN", "X", "VERB"], ["NOUN"]]
    assert examples.ids == ("item0", "item1") and examples.lengths.tolist() == [9, 3]
    batch = examples.batch(numbers(1, 0))
    rows = [[BOS, *letters("h"), EOS, *[PAD] * 13], [BOS, *letters("abcdefg"), EOS, *[PAD] * 7]]
    assert batch.text.input_ids.tolist() == rows
    assert batch.text.valid is not None
    assert batch.text.valid.tolist() == [[True] * n + [False] * (16 - n) for n in (3, 9)]
    assert batch.text.spans == ((0, 16, 0),) and batch.role == "source" and batch.rows.tolist() == [1, 0]
    # the word without a token is not read, the word without a tag is no word, VERB is not in training
    assert batch.mask.tolist() == [[True, False, False], [True, True, True]]
    assert batch.words is not None
    assert batch.words.tolist() == [[[1, 1], [0, 0], [0, 0]], [[1, 2], [3, 3], [4, 6]]]
    assert batch.targets["tags"].tolist() == [[1, NO, NO], [0, 1, NO]]
    assert dict(examples.counts) == {
        "words without a token": 1,
        "words without a gold label": 1,
        "words with a label that training does not have": 1,
    }
    assert examples.predictions([[2, 0, 1], [1]]) == [["X", "DET", "", "NOUN"], ["NOUN"]]


@pytest.mark.parametrize(
    ("length", "tokens", "read"),
    [(9, "abcdefg", 3), (8, "abcdef", 3), (7, "abcde", 2), (5, "abc", 2), (4, "ab", 1), (3, "a", 0)],
)
def test_words_beyond_the_length_are_cut(length, tokens, read):
    examples = task(Pos, length).encode(TWO, [SPELLED], TAGS)
    batch = examples.batch(numbers(0))
    assert [i for i in batch.text.input_ids[0].tolist() if i != PAD] == [BOS, *letters(tokens), EOS]
    assert batch.mask.sum() == read and examples.lengths.tolist() == [len(tokens) + 2, 3]
    assert examples.counts.get("words beyond the length", 0) == 3 - read
    said = ["DET"] * read + [""] * (3 - read)
    assert examples.predictions([[0] * read, [1]]) == [[*said[:2], "", said[2]], ["NOUN"]]


def test_a_row_of_which_no_word_is_read():
    examples = task(Pos, 3).encode(TWO, [SPELLED], TAGS)
    batch = examples.batch(numbers(0))
    assert batch.mask.tolist() == [[False]] and batch.targets["tags"].tolist() == [[NO]]
    assert batch.text.input_ids[0, :4].tolist() == [BOS, ord("a"), EOS, PAD]


@pytest.fixture(scope="module")
def vocabulary():
    return train_vocabulary([Corpus.of_words([["the", "cat", "sat", "."]])], size=300)


NAMES = {"form": "Anna Smith saw New York .", "ner": "B-PER I-PER O B-LOC I-LOC O", "upos": "P P V P P PUNCT"}


@pytest.mark.parametrize("name", ["parent", "trans+inv"])
def test_labels_follow_their_words(vocabulary, name):
    language = PARENT if name == "parent" else parse_language(name)
    batch = derived_batch(words_batch(NAMES), language)
    reader = reader_of(language, vocabulary)
    pos = task(Pos).encode(batch, [reader], {"tags": ("P", "PUNCT", "V")})
    ner = task(Ner).encode(batch, [reader], {"tags": ("B-LOC", "B-PER", "I-LOC", "I-PER", "O")})
    back = name != "parent"
    assert pos.gold == [["P", "P", "V", "P", "P", "PUNCT"]]
    expected = "B-LOC I-LOC O B-PER I-PER O" if back else NAMES["ner"]  # York New saw Smith Anna .
    assert ner.gold == [expected.split()]
    rows = ner.batch(numbers(0))
    assert rows.targets["tags"][0].tolist() == ([0, 2, 4, 1, 3, 4] if back else [1, 3, 4, 0, 2, 4])
    assert rows.role == "target" and rows.words is not None
    for (first, last), word in zip(rows.words[0].tolist(), batch.corpus.form.values(), strict=True):
        ids = vocabulary.tokenizer(language.script).encode(word, add_special_tokens=False).ids
        assert rows.text.input_ids[0, first : last + 1].tolist() == ids
        assert not back or min(ids) >= vocabulary.size


TREE = {
    "form": "the cats saw bob .",
    "upos": "DET NOUN VERB PROPN PUNCT",
    "head": "2 3 0 3 3",
    "deprel": "det nsubj root obj punct",
}
RELATIONS = {"relations": ("det", "nsubj", "obj", "punct", "root"), "root": ("root",)}


def test_heads_count_the_words_that_are_read():
    batch = words_batch(TREE | {"form": f"the {NOTHING} saw bobby ."})
    examples = task(Parsing, 12).encode(batch, [SPELLED], RELATIONS)  # room for the saw bobb
    assert [word[:2] for word in examples.gold[0]] == [[2, "det"], [3, "nsubj"], [0, "root"], [3, "obj"], [3, "punct"]]
    assert [word[2] for word in examples.gold[0]] == TREE["upos"].split()
    targets = examples.batch(numbers(0)).targets
    # the head of "the" has no token, so there is nothing to attach it to; "saw" is the second word of the row
    assert targets["heads"].tolist() == [[NO, 0]] and targets["relations"].tolist() == [[NO, 4]]
    assert dict(examples.counts) == {"words beyond the length": 2, "words without a token": 1}
    # "the" under "saw" (2 in the row, 3 in the sentence), "saw" under the root
    nothing = [-1, ""]
    assert examples.predictions([[(2, 0), (0, 4)]]) == [[[3, "det"], nothing, [0, "root"], nothing, nothing]]


def test_a_head_that_was_left_out_is_no_target_and_does_not_count():
    examples = task(Parsing).encode(words_batch(TREE | {"head": "-1 3 0 3 3"}), [SPELLED], RELATIONS)
    assert examples.batch(numbers(0)).targets["heads"].tolist() == [[NO, 3, 0, 3, 3]]
    assert examples.batch(numbers(0)).targets["relations"].tolist() == [[NO, 1, 4, 2, 3]]
    assert examples.counts == {"words whose head was left out": 1}
    said = examples.predictions([[(4, 2), (3, 1), (0, 4), (3, 2), (2, 3)]])
    assert task(Parsing).metrics()["uas"](examples.gold, said) == 75.0


def test_sentences_of_one_item_follow_each_other():
    corpus = Corpus.of([{"form": [*"abc"], "upos": [*"XYZ"], "head": [2, 0, 2], "deprel": [*"prp"]}] * 2)
    examples = task(Parsing).encode(items_of(corpus, [0, 0]), [SPELLED], {"relations": ("p", "r"), "root": ("r",)})
    assert [word[0] for word in examples.gold[0]] == [2, 0, 2, 5, 0, 5]
    assert examples.batch(numbers(0)).targets["heads"].tolist() == [[2, 0, 2, 5, 0, 5]]
    assert examples.batch(numbers(0)).text.input_ids[0, :8].tolist() == [BOS, *letters("abcabc"), EOS]


KA = {"name": "ka", "transforms": [{"kind": "mark", "case": {"nsubj": "ka", "obj": "o"}, "as_words": True}]}


def test_inserted_words_are_read_but_not_labelled(vocabulary):
    """the cats ka saw bob o . — with the heads of five words, and a mention that nothing tears."""
    language = parse_language(KA)
    batch = derived_batch(words_batch(TREE | {"ner": "O B-X O B-PER O"}), language)
    assert batch.corpus.texts() == ["the cats ka saw bob o ."]
    reader = reader_of(language, vocabulary)
    parsing = task(Parsing).encode(batch, [reader], RELATIONS)
    assert [word[0] for word in parsing.gold[0]] == [2, 3, 0, 3, 3]
    rows = parsing.batch(numbers(0))
    assert rows.targets["heads"].tolist() == [[2, 3, 0, 3, 3]] and rows.words is not None
    words = [vocabulary.parent.encode(w, add_special_tokens=False).ids for w in batch.corpus.form.values()]
    ends = np.cumsum([0, *map(len, words)])
    assert rows.words[0].tolist() == [[1 + ends[i], ends[i + 1]] for i in (0, 1, 3, 4, 6)]
    assert [i for i in rows.text.input_ids[0].tolist() if i != PAD] == [BOS, *(i for w in words for i in w), EOS]
    assert parsing.counts == {"words without a gold label": 2}
    right = [(2, 0), (3, 1), (0, 4), (3, 2), (3, 3)]
    assert parsing.predictions([right]) == [[word[:2] for word in parsing.gold[0]]]
    ner = task(Ner).encode(batch, [reader], {"tags": ("B-PER", "I-PER", "O")})
    assert ner.gold == [["O", "B-X", "O", "B-PER", "O"]]
    assert ner.counts["words without a gold label"] == 2
    assert task(Pos).encode(batch, [reader], {"tags": ("DET",)}).gold == [TREE["upos"].split()]


def test_where_words_are_tokens_the_first_one_has_the_label(vocabulary):
    """Two persons side by side stay two, although the tokens between their first ones are no words."""
    spec = {"name": "t", "transforms": [{"kind": "invert", "unit": "token", "keep_final_punctuation": False}]}
    batch = words_batch({"form": "the bob ann smith", "ner": "O B-PER B-PER I-PER", "upos": "DET PROPN PROPN PROPN"})
    language = bind_language(parse_language(spec), _source(batch), vocabulary)
    derived = derived_batch(batch, language)
    reader = reader_of(language, vocabulary)
    examples = task(Ner).encode(derived, [reader], {"tags": ("B-PER", "I-PER", "O")})
    assert examples.gold == [["B-PER", "I-PER", "B-PER", "O"]]  # smith ann bob the
    rows = examples.batch(numbers(0))
    assert rows.words is not None and bool((rows.words[:, :, 0] == rows.words[:, :, 1]).all())
    first = rows.text.input_ids[0][rows.words[0, :, 0]].tolist()
    backwards = reversed(batch.corpus.form.values())
    assert first == [vocabulary.parent.encode(word, add_special_tokens=False).ids[0] for word in backwards]
    assert examples.counts == {}
    with pytest.raises(InputError, match=r"language t moves or changes tokens .* parsing needs"):
        task(Parsing).encode(derived, [reader], RELATIONS)
    reader = SPELLED.__class__(language, SPELLED.tokenizer, 0, OURS, "target")
    with pytest.raises(InputError, match="the model's tokenizer is not the one"):
        words_of(derived, reader, 16, np.ones(len(derived.corpus.form.codes), bool))


def _source(batch):
    from synthlang.tasks.base import SentencesOf, TaskSet

    class Fixed(TaskSet):
        name, kind, fields = "fixed", "words", ("text",)
        fingerprint, splits, columns = "f", ("train",), tuple(batch.corpus.columns)

        def batches(self, split):
            return iter([batch])

    return SentencesOf(Fixed())


FLY = words_batch(
    {"form": "to paris now", "slot": "O B-city B-time"},
    {"form": "new york", "slot": "B-city I-city"},
    intents=["flight", "fare"],
)


def test_slots_and_intents():
    kind = task(Slots)
    labels = kind.labels(FLY)
    assert labels == {"tags": ("B-city", "B-time", "I-city", "I-time", "O"), "intents": ("fare", "flight")}
    examples = kind.encode(FLY, [SPELLED], labels)
    gold = [{"slots": ["O", "B-city", "B-time"], "intent": "flight"}, {"slots": ["B-city", "I-city"], "intent": "fare"}]
    assert examples.gold == gold
    targets = examples.batch(numbers(1, 0)).targets
    assert targets["intent"].tolist() == [0, 1] and targets["tags"].tolist() == [[0, 2, NO], [4, 0, 1]]
    assert examples.predictions([(1, [4, 0, 1]), (0, [0, 2])]) == gold
    small = kind.encode(FLY, [SPELLED], {"tags": ("B-city", "I-city", "O"), "intents": ("flight",)})
    assert small.batch(numbers(0, 1)).targets["intent"].tolist() == [0, NO]
    assert small.counts == {
        "words with a label that training does not have": 1,
        "items with an intent that training does not have": 1,
    }
    assert small.predictions([(0, [2, 0, 2]), (0, [0, 1])])[1] == {"slots": ["B-city", "I-city"], "intent": "flight"}
