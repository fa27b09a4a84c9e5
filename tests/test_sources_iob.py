"""Sources of words with tags: columns of CoNLL, and utterances with slots."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import concatenate
from synthlang.errors import InputError
from synthlang.rewrite import mentions
from synthlang.sources.iob import IobSource
from synthlang.sources.slots import SlotsSource
from synthlang.sources.words import Words
from tests.real_data import DATA
from tests.test_tasks import write

TAG = st.sampled_from(["O", "B-PER", "I-PER", "B-LOC", "I-LOC"])
WORD = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=5)
WORD = WORD.filter(lambda w: w.split() == [w] and not w.startswith(("#", "-DOC")))
SENTENCES = st.lists(st.lists(st.tuples(WORD, TAG), min_size=1, max_size=6), min_size=1, max_size=5)


def rows(source, split="train"):
    return [(s.words, s.columns["ner"]) for batch in source.batches(split) for s in batch]


@given(SENTENCES, st.sampled_from(["", "en:"]), st.sampled_from(["\t", " ", "\tNNP\tB-NP\t"]))
def test_sentences_are_read_back_with_legal_tags(tmp_path_factory, sentences, prefix, between):
    text = "\n\n".join("\n".join(f"{prefix}{w}{between}{t}" for w, t in s) for s in sentences)
    source = IobSource(write(tmp_path_factory.getbasetemp() / "x.txt", text + "\n"))
    found = rows(source)
    common = prefix or next((p for p in [sentences[0][0][0][:3]] if p.endswith(":")), "")
    if prefix or not common:  # words that all begin alike, as "ab:", are taken for a prefix: cannot be told apart
        assert [words for words, _ in found] == [[w for w, _ in s] for s in sentences]
    for (_, tags), sentence in zip(found, sentences, strict=True):
        for at, (tag, (_, before)) in enumerate(zip(tags, sentence, strict=True)):
            assert tag[1:] == before[1:]
            starts = before[0] == "B" or at == 0 or sentence[at - 1][1][1:] != before[1:]
            assert tag == "O" or tag[0] == ("B" if starts else "I")


def test_the_formats(tmp_path):
    conll = "-DOCSTART- -X- O O\n\nEU NNP I-NP I-ORG\nrejects VBZ I-VP O\n\n# a comment\nre: X O S-PER\nde: X O E-LOC\n"
    assert rows(IobSource(write(tmp_path / "a.conll", conll))) == [
        (["EU", "rejects"], ["B-ORG", "O"]),
        (["re:", "de:"], ["B-PER", "B-LOC"]),
    ]
    wikiann = write(tmp_path / "b", "fr:10 000\tB-LOC\nfr:#\tO\r\nfr:re:x\tO\n\n\nfr:y\tB-PER")
    assert rows(IobSource(wikiann)) == [(["10\u00a0000", "#", "re:x"], ["B-LOC", "O", "O"]), (["y"], ["B-PER"])]


def test_one_word_without_the_prefix_keeps_them_all(tmp_path):
    path = write(tmp_path / "x.txt", "en:a O\nen:b O\n\nc O\n")
    assert rows(IobSource(path)) == [(["en:a", "en:b"], ["O", "O"]), (["c"], ["O"])]


def test_splits_of_a_folder(tmp_path):
    for name in ("train", "valid", "test"):
        write(tmp_path / "bare" / name, f"{name} O\n")
        write(tmp_path / "named" / f"en-{name}.bio", f"{name} O\n")
    for folder in ("bare", "named"):
        source = IobSource(tmp_path / folder)
        assert source.splits == ("train", "dev", "test")
        assert rows(source, "dev") == [(["valid"], ["O"])]
    assert IobSource(tmp_path / "bare").fingerprint == IobSource(tmp_path / "named").fingerprint
    assert IobSource(tmp_path / "bare" / "test").splits == ("test",)
    write(tmp_path / "bare" / "dev", "x O\n")
    with pytest.raises(InputError, match="several files for the split dev: dev, valid"):
        IobSource(tmp_path / "bare")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "holds no sentence"),
        ("\n \n", "holds no sentence"),
        ("a O\nb\n", "x.txt:2: a line holds a word and its tag"),
        ("a\tO\n\tO\n", "x.txt:2: the word is empty"),
        ("a\tO\n\nen:b\tX-PER\n", "x.txt:3: the tag 'X-PER' must be O, or B- or I-"),
        ("a\tB-\n", "the tag 'B-' must be"),
        ("en:\tO\n", "x.txt:1: the word is empty"),
    ],
)
def test_wrong_lines(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        list(IobSource(write(tmp_path / "x.txt", text)).batches("train"))


def utterances(folder, words="a b\n", tags="O B-x\n", labels="i\n"):
    write(folder / "seq.in", words)
    write(folder / "seq.out", tags)
    write(folder / "label", labels)
    return folder


def test_a_folder_of_utterances(tmp_path):
    source = SlotsSource(utterances(tmp_path / "valid", tags="I-x I-x\n"))
    assert (source.splits, source.columns, source.intents) == (("dev",), ("form", "slot"), ("i",))
    [batch] = source.batches("dev")
    assert batch[0].columns == {"form": ["a", "b"], "slot": ["B-x", "I-x"]}
    assert SlotsSource(utterances(tmp_path / "other", tags="I-x I-x\n")).splits == ("train",)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tags": "O\n"}, "seq.out:1: 1 tags for 2 words"),
        ({"tags": "O\nO\n"}, "seq.out:1: 1 tags"),
        ({"words": "a b\nc\n"}, "seq.out ends before the other files of its folder do"),
        ({"labels": "\n"}, "label:1: the intent is empty"),
        ({"tags": "O Bx\n"}, "seq.out:1: the tag 'Bx' must be O, or B- or I-"),
        ({"words": "", "tags": "", "labels": ""}, "holds no utterance"),
    ],
)
def test_wrong_utterances(tmp_path, changes, message):
    with pytest.raises(InputError, match=message):
        list(SlotsSource(utterances(tmp_path / "train", **changes)).batches("train"))


def test_slots_of_any_scheme(tmp_path):
    source = SlotsSource(utterances(tmp_path / "train", "a b c\n", "B-x E-x S-x\n"))
    assert next(source.batches("train"))[0].columns["slot"] == ["B-x", "I-x", "B-x"]


def test_a_folder_of_neither_layout_names_both(tmp_path):
    write(tmp_path / "other.tsv", "x\n")
    message = (
        "no folders train, valid, test of seq.in, seq.out, label either: .* holds no file whose name says .* in .tsv"
    )
    with pytest.raises(InputError, match=message):
        SlotsSource(tmp_path)


def test_a_part_that_is_missing(tmp_path):
    (utterances(tmp_path / "train") / "label").unlink()
    with pytest.raises(InputError, match=r"train: has no file label; a split is a folder of seq.in, seq.out, label"):
        SlotsSource(tmp_path)


@given(st.text(max_size=30), st.integers(0, 30), st.integers(0, 30))
def test_the_words_of_a_span_are_those_it_touches(text, start, stop):
    words = Words.of(text)
    assert [text[a:b] for a, b in zip(words.start, words.stop, strict=True)] == words.words
    touched = [
        i for i in range(len(words.words)) if any(start <= c < stop for c in range(words.start[i], words.stop[i]))
    ]
    span = words.span(start, stop)
    assert ([] if span is None else list(range(*span))) == touched
    if span is not None:
        covered = range(words.start[touched[0]], words.stop[touched[-1]])
        assert words.is_cut(span, start, stop) == any(not start <= c < stop for c in covered)


@pytest.mark.skipif(not (DATA / "ner").is_dir(), reason=f"needs the test data ner in {DATA}")
@pytest.mark.parametrize(
    ("folder", "sentences"),
    [("en", {"train": 20000, "dev": 10000, "test": 10000}), ("fr", {"train": 20000, "test": 10000})],
)
def test_wikiann(folder, sentences):
    source = IobSource(DATA / "ner" / "wikiann" / folder)
    batches = {split: list(source.batches(split)) for split in source.splits}
    assert {split: sum(map(len, b)) for split, b in batches.items()} == sentences
    assert not any(w.startswith(f"{folder}:") for b in batches["test"] for w in b.form.names or ())
    whole = concatenate(batches["test"])
    assert mentions(whole.columns["ner"], whole.offsets)[2] == ("LOC", "ORG", "PER")
