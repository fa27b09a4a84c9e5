"""Typology: each value by hand, specs, composition."""

import pytest

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import Language, parse_language
from synthlang.transforms.typology import Typology
from tests.annotated import annotated

HOUSES = (
    "the/DET/det/2 man/NOUN/nsubj/3 saw/VERB/root/0 two/NUM/nummod/6 big/ADJ/amod/6 houses/NOUN/obj/3 in/ADP/case/8 "
    "Paris/PROPN/nmod/6 ./PUNCT/punct/3"
)
OLD = "he/PRON/nsubjpass/3 was/AUX/auxpass/3 seen/VERB/root/0 in/ADP/case/5 Paris/PROPN/nmod/3 ./PUNCT/punct/3"
WILL = "she/PRON/nsubj/4 will/AUX/aux/4 have/AUX/aux/4 slept/VERB/root/0 ./PUNCT/punct/4"
OFTEN = "now/ADV/advmod/4 he/PRON/nsubj/4 often/ADV/advmod/4 saw/VERB/root/0 her/PRON/obj/4 ./PUNCT/punct/4"
SAID = "he/PRON/nsubj/2 said/VERB/root/0 that/SCONJ/mark/5 she/PRON/nsubj/5 slept/VERB/ccomp/2 ./PUNCT/punct/5"
WHO = "the/DET/det/2 man/NOUN/nsubj/5 who/PRON/nsubj/4 slept/VERB/acl:relcl/2 ran/VERB/root/0"
HIS = "his/PRON/nmod:poss/4 old/ADJ/amod/4 This/DET/det/4 cat/NOUN/nsubj/5 ran/VERB/root/0 !/PUNCT/punct/5"
TALL = "he/PRON/nsubj/3 is/AUX/cop/3 tall/ADJ/root/0 ./PUNCT/punct/3"
BOTH = "he/PRON/nsubj/2 slept/VERB/root/0 in/ADP/case/4 houses/NOUN/obl/2 and/CCONJ/cc/6 gardens/NOUN/conj/4"
EACH = (
    "he/PRON/nsubj/2 slept/VERB/root/0 in/ADP/case/4 houses/NOUN/obl/2 and/CCONJ/cc/7 in/ADP/case/7 "
    "gardens/NOUN/conj/4 )/PUNCT/punct/4 ./PUNCT/punct/4"
)
NOT_PROJECTIVE = "a/DET/det/3 b/NOUN/root/0 c/NOUN/nsubj/2 d/ADP/case/1"
NO_TREE = "a/NOUN/root/0 b/NOUN/root/0 c/ADP/case/2"

CASES = [
    ({"order": "SOV"}, HOUSES, "the man two big houses in Paris saw ."),
    ({"order": "SVO"}, HOUSES, "the man saw two big houses in Paris ."),
    ({"order": "VSO"}, HOUSES, "saw the man two big houses in Paris ."),
    ({"order": "VOS"}, HOUSES, "saw two big houses in Paris the man ."),
    ({"order": "OVS"}, HOUSES, "two big houses in Paris saw the man ."),
    ({"order": "OSV"}, HOUSES, "two big houses in Paris the man saw ."),
    ({"order": "SOV"}, OFTEN, "now he often her saw ."),
    ({"order": "VSO"}, TALL, "is tall he ."),
    ({"order": "VSO"}, OLD, "was seen he in Paris ."),  # labels of version 1
    ({"adposition": "postposition"}, HOUSES, "the man saw two big houses Paris in ."),
    ({"adposition": "preposition"}, HOUSES, "the man saw two big houses in Paris ."),
    ({"adposition": "postposition"}, BOTH, "he slept houses and gardens in"),
    ({"adposition": "postposition"}, EACH, "he slept houses in and gardens in ) ."),
    ({"genitive": "before"}, HOUSES, "the man saw in Paris two big houses ."),
    ({"genitive": "after"}, HIS, "old This cat his ran !"),
    ({"genitive": "before"}, OLD, "he was seen in Paris ."),  # of a verb: no genitive
    ({"adjective": "after"}, HOUSES, "the man saw two houses big in Paris ."),
    ({"numeral": "after"}, HOUSES, "the man saw big houses two in Paris ."),
    ({"numeral": "after", "adjective": "after"}, HOUSES, "the man saw houses big two in Paris ."),
    ({"demonstrative": "after"}, HIS, "his old cat This ran !"),
    ({"demonstrative": "after", "demonstratives": ["the"]}, HOUSES, "man the saw two big houses in Paris ."),
    ({"demonstrative": "after"}, HOUSES, "the man saw two big houses in Paris ."),
    ({"article": "after"}, HOUSES, "man the saw two big houses in Paris ."),
    ({"relative_clause": "before"}, WHO, "who slept the man ran"),
    ({"subordinator": "after"}, SAID, "he said she slept that ."),
    ({"auxiliary": "after"}, WILL, "she slept have will ."),
    ({"auxiliary": "after"}, OLD, "he seen was in Paris ."),
    ({"copula": "after"}, TALL, "he tall is ."),
    ({"oblique": "before"}, BOTH, "in houses and gardens he slept"),
    ({"oblique": "before"}, OLD, "in Paris he was seen ."),
    ({"head_direction": "final"}, HOUSES, "the man in Paris two big houses saw ."),
    ({"head_direction": "final"}, SAID, "that she slept he said ."),  # the mark stays, though it hangs on "slept"
    ({"head_direction": "final", "adposition": "postposition"}, HOUSES, "the man Paris in two big houses saw ."),
    ({"head_direction": "initial"}, HOUSES, "saw houses big two Paris in man the ."),
    ({"head_direction": "initial", "order": "SVO"}, HOUSES, "man the saw houses big two Paris in ."),
    ({"order": "SOV", "strength": 0.0}, HOUSES, "the man saw two big houses in Paris ."),
    ({"adposition": "preposition"}, NOT_PROJECTIVE, "a b c d"),
    ({"adposition": "preposition"}, NO_TREE, "a b c"),
]


def typology(**options):
    return parse_language({"name": "x", "transforms": [{"kind": "typology", **options}]})


@pytest.mark.parametrize(("options", "sentence", "expected"), CASES, ids=lambda v: str(v)[:30])
def test_cases(options, sentence, expected):
    corpus = annotated(sentence)
    language = typology(**options)
    rewrite = language.rewrite(corpus)
    assert rewrite.apply(corpus).texts() == [expected]
    assert [corpus[0].words[i] for i in rewrite.origin.tolist()] == expected.split()


def test_counts_by_reason_and_sentences_that_stay():
    corpus = annotated(HOUSES, NOT_PROJECTIVE, NO_TREE)
    assert dict(typology(order="SOV").rewrite(corpus).counts) == {
        "typology: sentences laid out": 1,
        "typology: sentences left, not projective": 1,
        "typology: sentences left, no tree": 1,
    }
    assert not typology(order="SOV", strength=0.0).rewrite(corpus).counts


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give a value to at least one of order, oblique"),
        ({"order": "SVX"}, "SOV"),
        ({"adposition": "after"}, "preposition"),
        ({"order": "SOV", "strength": 2}, "strength"),
        ({"article": "after", "articles": []}, "articles"),
        ({"adjectives": "after"}, "did you mean adjective"),
    ],
)
def test_wrong_specs(options, message):
    with pytest.raises(InputError, match=message):
        typology(**options)


def test_it_has_no_inverse_and_needs_trees():
    language = typology(order="SOV")
    assert language.requires == ("upos", "head", "deprel") and not language.invertible
    with pytest.raises(InputError, match="no inverse"):
        language.invert(annotated(HOUSES))
    with pytest.raises(InputError, match="typology needs the column 'upos'; the corpus has form"):
        language.derive(Corpus.of_words([["a"]]))
    assert len(language.derive(Corpus.of_words([]))) == 0


def test_it_reads_the_parents_words_and_moves_inserted_ones():
    """After a transliteration articles are still articles; a particle moves with the word it was put to."""
    steps = [{"kind": "transliterate"}, {"kind": "mark", "case": {"obj": "o"}, "as_words": True}]
    after = {"kind": "typology", "article": "after", "order": "SOV"}
    language = parse_language({"name": "x", "transforms": [*steps, after]})
    assert language.derive(annotated(HOUSES)).texts() == ["ман тхе тшо биг хоусес o ин Парис саш Ѣ"]


def test_the_fingerprint_knows_every_value():
    prints = {typology(**{"order": order}).fingerprint for order in ("SOV", "VSO")}
    prints |= {typology(adposition="postposition").fingerprint, typology(order="SOV", strength=0.5).fingerprint}
    assert len(prints) == 4
    assert isinstance(typology(order="SOV").transforms[0], Typology)
    assert Language(name="a", transforms=(Typology(order="SOV"),)).fingerprint in prints
