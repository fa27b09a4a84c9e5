"""Marking: each option by hand, exact inverses, what is refused."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.language import parse_language
from synthlang.sources import open_source
from tests.annotated import annotated
from tests.refusals import refused

GAVE = (
    "the/DET/det/2 man/NOUN/nsubj/3/Number=Sing gave/VERB/root/0 Anna/PROPN/iobj/3/Number=Sing two/NUM/nummod/6 "
    "houses/NOUN/obj/3/Case=Acc|Number=Plur of/ADP/case/8 Paris/PROPN/nmod/6/Number=Sing ./PUNCT/punct/3"
)
SHE = (
    "she/PRON/nsubj/2/Number=Sing|Person=3 saw/VERB/root/0 him/PRON/obj/2/Number=Sing and/CCONJ/cc/6 "
    "they/PRON/nsubj/6/Number=Plur|Person=3 slept/VERB/conj/2 !/PUNCT/punct/2"
)
OLD = "he/PRON/nsubjpass/3 was/AUX/auxpass/3 seen/VERB/root/0 ./PUNCT/punct/3"
LEAF = "she/PRON/nsubj/4 all/DET/det/3 the/DET/det/1 ran/VERB/root/0"  # "the" has a dependent, and so has "she"
ROLES = {"nsubj": "ka", "obj": "o", "nmod": "no"}

CASES = [  # options, sentence, derived, origin
    ({"case": ROLES}, GAVE, "the man·ka gave Anna two houses·o of Paris·no .", list(range(9))),
    ({"case": ROLES, "place": "before"}, GAVE, "the ka·man gave Anna two o·houses of no·Paris .", list(range(9))),
    (
        {"case": ROLES, "as_words": True},
        GAVE,
        "the man ka gave Anna two houses o of Paris no .",
        [0, 1, -1, 2, 3, 4, 5, -1, 6, 7, -1, 8],
    ),
    ({"case": {"obj": "o"}, "as_words": True, "place": "before"}, SHE, "she saw o him and they slept !", None),
    ({"case": {"nsubj": "ka"}, "separator": "-"}, OLD, "he-ka was seen .", None),  # a label of version 1
    ({"case": {"nsubj:pass": "pa", "nsubj": "ka"}}, OLD, "he·pa was seen .", None),
    ({"number": "s"}, GAVE, "the man gave Anna two houses·s of Paris .", None),
    ({"number": "s", "case": ROLES}, GAVE, "the man·ka gave Anna two houses·s·o of Paris·no .", None),
    (
        {"number": "s", "case": {"obj": "o"}, "as_words": True},
        GAVE,
        "the man gave Anna two houses s o of Paris .",
        [0, 1, 2, 3, 4, 5, -1, -1, 6, 7, 8],
    ),
    (
        {"number": "s", "case": {"obj": "o"}, "place": "before"},
        GAVE,
        "the man gave Anna two o·s·houses of Paris .",
        None,
    ),
    (
        {"number": "s", "case": {"obj": "o"}, "as_words": True, "place": "before"},
        GAVE,
        "the man gave Anna two o s houses of Paris .",
        None,
    ),
    ({"agreement": {"PRON": "e", "NOUN": "t"}}, GAVE, "the man gave·t Anna two houses of Paris .", None),
    ({"agreement": {"Number=Plur|Person=3": "en", "PRON": "t"}}, SHE, "she saw·t him and they slept·en !", None),
    ({"agreement": {"PRON": "t", "Number=Plur": "en"}}, SHE, "she saw·t him and they slept·t !", None),
    ({"after_verb": {"word": "P", "distance": 0}}, SHE, "she saw P him and they slept P !", None),
    ({"after_verb": {"word": "P", "distance": 2}}, SHE, "she saw him and P they slept P !", None),
    ({"after_verb": {"word": "P"}}, SHE, "she saw him and they slept P P !", [0, 1, 2, 3, 4, 5, -1, -1, 6]),
    ({"drop": ["articles"]}, GAVE, "man gave Anna two houses of Paris .", [1, 2, 3, 4, 5, 6, 7, 8]),
    ({"drop": ["pronouns"]}, SHE, "saw him and slept !", [1, 2, 3, 5, 6]),
    ({"drop": ["pronouns", "articles"]}, LEAF, "she all the ran", [0, 1, 2, 3]),
    ({"drop": ["articles"], "articles": ["a"]}, LEAF, "she all the ran", [0, 1, 2, 3]),
    ({"drop": ["articles"], "articles": ["ALL"]}, LEAF, "she the ran", [0, 2, 3]),
    ({"drop": ["articles"], "case": ROLES}, GAVE, "man·ka gave Anna two houses·o of Paris·no .", None),
    ({"drop": ["pronouns"], "after_verb": {"word": "P", "distance": 1}}, SHE, "saw him P and slept P !", None),
    ({"case": ROLES, "strength": 0.0}, GAVE, "the man gave Anna two houses of Paris .", list(range(9))),
]


def marked(**options):
    return parse_language({"name": "x", "transforms": [{"kind": "mark", **options}]})


@pytest.mark.parametrize(("options", "sentence", "expected", "origin"), CASES, ids=lambda v: str(v)[:30])
def test_cases(options, sentence, expected, origin):
    corpus = annotated(sentence)
    language = marked(**options)
    rewrite = language.rewrite(corpus)
    derived = rewrite.apply(corpus)
    assert derived.texts() == [expected]
    assert origin is None or rewrite.source_index.tolist() == origin
    for form, source, upos in zip(
        derived[0].words, rewrite.source_index.tolist(), derived[0].columns["upos"], strict=True
    ):
        assert upos == ("_" if source < 0 else corpus[0].columns["upos"][source])
        assert source < 0 or corpus[0].words[source] in form.split("·") + form.split("-")
    if language.invertible:
        back = language.invert(derived)
        assert {n: c.values() for n, c in back.columns.items()} == {n: c.values() for n, c in corpus.columns.items()}


def test_no_word_loses_its_head():
    derived = marked(drop=["articles", "pronouns"]).derive(annotated(GAVE, SHE, LEAF))
    assert all(min(sentence.columns["head"]) >= 0 for sentence in derived)


@pytest.mark.parametrize(
    ("options", "columns"),
    [
        ({"case": ROLES}, "upos deprel"),
        ({"drop": ["articles"]}, "upos deprel head"),
        ({"agreement": {"NOUN": "t"}}, "upos deprel head"),
        ({"agreement": {"Number=Plur": "t"}}, "upos deprel head feats"),
        ({"number": "s"}, "upos deprel feats"),
    ],
)
def test_what_an_option_reads(options, columns):
    assert marked(**options).requires == tuple(columns.split())
    if "feats" in columns:
        assert refused(marked(**options).derive, annotated("a/NOUN/root/0")) == ("", "missing")


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"case": ROLES}, "x·ka/X/dep/1"),
        ({"case": ROLES, "place": "before"}, "ka·x/X/dep/1"),
        ({"case": ROLES}, "·o/X/dep/1"),
        ({"case": ROLES, "as_words": True}, "ka/_/dep/1"),
        ({"after_verb": {"word": "P"}}, "P/_/dep/1"),
    ],
)
def test_a_word_that_looks_marked_is_refused(options, word):
    assert refused(marked(**options).derive, annotated(f"a/NOUN/root/0 {word}")) == ("", "conflict")


def test_a_second_mark_with_the_same_marker_is_refused_and_another_is_exact():
    corpus = annotated(GAVE)
    same = {"name": "x", "transforms": [{"kind": "mark", "case": ROLES}, {"kind": "mark", "case": {"obj": "ka"}}]}
    assert refused(parse_language(same).derive, corpus) == ("", "conflict")
    steps = [
        {"kind": "mark", "case": ROLES, "as_words": True},
        {"kind": "mark", "case": {"obj": "x"}, "as_words": True},
        {"kind": "mark", "agreement": {"NOUN": "t"}},
    ]
    language = parse_language({"name": "x", "transforms": steps})
    derived = language.derive(corpus)
    assert derived.texts() == ["the man ka gave·t Anna two houses x o of Paris no ."]
    assert language.invert(derived).texts() == corpus.texts()


@pytest.fixture(scope="module")
def batch():
    return next(open_source("builtin:mini-english?types=500&sentences=300&dev=0&test=0").batches("train"))


OPTIONS = [
    {"case": {"nsubj": "ka", "obj": "o", "obl": "ni", "nmod": "no", "nmod:poss": "po"}},
    {"case": {"nsubj": "ka", "obj": "o"}, "as_words": True, "place": "before"},
    {"agreement": {"PRON": "e", "NOUN": "t"}, "after_verb": {"word": "P", "distance": 3}},
    {"after_verb": {"word": "P", "distance": 1}, "strength": 0.5},
]
AROUND = [{"kind": "transliterate", "strength": 0.5, "script": "hangul"}, {"kind": "invert"}, {"kind": "permute"}]


@settings(max_examples=25)
@given(st.data())
def test_every_invertible_composition_restores_every_column(batch, data):
    steps = [{"kind": "mark", **data.draw(st.sampled_from(OPTIONS))}, *AROUND]
    steps = data.draw(st.permutations(steps))[: data.draw(st.integers(2, 4))]
    language = parse_language({"name": "x", "seed": data.draw(st.integers(0, 3)), "transforms": steps})
    derived = language.derive(batch)
    back = language.invert(derived)
    assert back.texts() == batch.texts()
    for name in set(batch.columns) - {"ner"}:  # a mention torn apart stays several
        assert back.columns[name].values() == batch.columns[name].values()


@pytest.mark.parametrize("distance", [0, 1, 4])
def test_words_after_verbs_against_a_loop(batch, distance):
    derived = marked(after_verb={"word": "P", "distance": distance}).derive(batch)
    for before, after in zip(batch, derived, strict=True):
        upos = before.columns["upos"]
        words = [i for i, tag in enumerate(upos) if tag != "PUNCT"]
        wanted = [words[min(words.index(i) + distance, len(words) - 1)] for i, tag in enumerate(upos) if tag == "VERB"]
        expected = [w for i, form in enumerate(before.words) for w in [form, *["P"] * wanted.count(i)]]
        assert after.words == expected


def test_features_are_a_column_of_conllu_if_asked_for(tmp_path):
    path = tmp_path / "x.conllu"
    path.write_text("1\tcats\t_\tNOUN\t_\tCase=Nom|Number=Plur\t0\troot\t_\t_\n\n", encoding="utf-8")
    plain, more = open_source(f"conllu:{path}"), open_source(f"conllu:{path}?feats")
    assert more.columns == (*plain.columns, "feats") and plain.fingerprint != more.fingerprint
    batch = next(more.batches("train"))
    assert batch[0].columns["feats"] == ["Case=Nom|Number=Plur"]
    assert marked(number="s").derive(batch).texts() == ["cats·s"]
