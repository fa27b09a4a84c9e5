"""Code switching: cases by hand, the draw and the cap against a loop, shares, dictionaries."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from synthlang.corpus import Corpus
from synthlang.dictionary.word_dictionary import read_weighted
from synthlang.language import parse_language
from synthlang.rng import key_of, uniform
from synthlang.transforms.code_switch import CodeSwitch
from synthlang.transforms.transliterate import type_hashes
from tests.annotated import annotated
from tests.refusals import refused

ALL = {"probability": 1.0, "cap": 1.0}


def switched(*before, **options):
    return parse_language({"name": "x", "transforms": [*before, {"kind": "code_switch", **options}]})


@pytest.fixture
def muse(tmp_path):
    path = tmp_path / "en-de.txt"
    path.write_text("cat Katze\ncat Kater\nthe die\ndog\tHund\nhotel hotel\n", encoding="utf-8")
    return str(path)


TRANS = {"kind": "transliterate"}


def test_cases(muse):
    corpus = Corpus.of_words([["The", "cat", "saw", "the", "hotel", "dog"]])
    # the parent's words go back into the derived language
    assert switched(TRANS, **ALL).derive(corpus).texts() == ["The cat saw the hotel dog"]
    assert switched(TRANS, **ALL, strength=0.0).derive(corpus).texts() == ["Тхе цат саш тхе хотел дог"]
    assert switched(TRANS, **ALL, coverage=0.0).derive(corpus).texts() == ["Тхе цат саш тхе хотел дог"]
    # words of a third language: as they stand, else in lower case; looked up by the parent's word
    assert switched(**ALL, dictionary=muse).derive(corpus).texts() == ["die Katze saw die hotel Hund"]
    assert switched(TRANS, **ALL, dictionary=muse).derive(corpus).texts() == ["die Katze саш die hotel Hund"]
    assert switched({"kind": "invert"}, **ALL, dictionary=muse).derive(corpus).texts() == [
        "Hund hotel die saw Katze die"
    ]
    # what a later transform does, it does to the words that were put in
    language = parse_language({"name": "x", "transforms": [{"kind": "code_switch", **ALL, "dictionary": muse}, TRANS]})
    assert language.derive(corpus).texts()[0].startswith("дие")
    assert switched(**ALL).derive(corpus).texts() == corpus.texts()  # the parent in itself: nothing to switch


def test_labels_stay_and_words_of_transforms_are_no_candidates():
    corpus = annotated("the/DET/det/2 cat/NOUN/nsubj/3 ran/VERB/root/0 ./PUNCT/punct/3")
    mark = {"kind": "mark", "case": {"nsubj": "_ka"}, "as_words": True}
    derived = switched(mark, TRANS, **ALL).derive(corpus)
    assert derived[0].words == ["the", "cat", derived[0].words[2], "ran", "."] and derived[0].words[2] != "_ka"
    assert derived[0].columns["upos"] == ["DET", "NOUN", "_", "VERB", "PUNCT"]


def test_counts_by_reason():
    corpus = Corpus.of_words([["a", "b", "c", "d"]] * 25)
    counts = switched(TRANS, probability=1.0, cap=0.1).rewrite(corpus).counts
    assert dict(counts) == {
        "code_switch: words": 100,
        "code_switch: words drawn": 100,
        "code_switch: words over the cap": 90,
        "code_switch: words replaced": 10,
    }


def loop(corpus, options, seed, derived):
    """Return the words that are replaced, batch by batch and word by word."""
    key = key_of("transform", seed, "code_switch", 0)
    transform = CodeSwitch(**options)
    batches: dict[int, list[int]] = {}
    for row, sentence in enumerate(corpus):
        batches.setdefault(sentence.id // transform.batch_sentences, []).append(row)
    replaced = set()
    for rows in batches.values():
        drawn, words = [], 0
        for row in rows:
            for place, word in enumerate(corpus[row].words):
                words += 1
                number = uniform(key_of("word", key), int(corpus.ids[row]), place)[0]
                in_dictionary = type_hashes(key, [word])[0] < transform.coverage
                if in_dictionary and derived[row].words[place] != word:
                    drawn += [(number, row, place)] if number < transform.probability * transform.strength else []
        limit = math.floor(round(transform.cap * transform.strength * words, 9))
        replaced |= {(row, place) for _, row, place in sorted(drawn)[:limit]}
    return replaced


@settings(max_examples=40)
@given(
    st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9), min_size=1, max_size=30),
    st.fixed_dictionaries(
        {
            "probability": st.sampled_from([0.1, 0.3, 1.0]),
            "cap": st.sampled_from([0.05, 0.15, 0.5]),
            "coverage": st.sampled_from([0.5, 1.0]),
            "strength": st.sampled_from([0.5, 1.0]),
            "batch_sentences": st.sampled_from([4, 5, 10]),
        }
    ),
    st.integers(0, 2),
)
def test_the_draw_and_the_cap_against_a_loop(rows, options, seed):
    corpus = Corpus.of_words(rows, first=40)
    spec = {"name": "x", "seed": seed, "transforms": [TRANS, {"kind": "code_switch", **options}]}
    plain = parse_language({**spec, "transforms": [TRANS]}).derive(corpus)
    derived = parse_language(spec).derive(corpus)
    found = {
        (row, place)
        for row in range(len(corpus))
        for place, word in enumerate(derived[row].words)
        if word != plain[row].words[place]
    }
    assert found == loop(corpus, options, seed, plain)
    assert all(derived[row].words[place] == corpus[row].words[place] for row, place in found)


def test_translations_are_drawn_uniformly(muse):
    corpus = Corpus.of_words([["cat", "dog"]] * 2000)
    forms = switched(**ALL, dictionary=muse, translations="uniform").derive(corpus).form.values()
    assert forms.count("Katze") + forms.count("Kater") == 2000 == forms.count("Hund")
    assert forms.count("Katze") == pytest.approx(1000, abs=100)


def test_translations_are_drawn_by_their_weights(tmp_path):
    """Word by word; the words of lower case, those without a translation and those of one translation between them."""
    path, plain = tmp_path / "weights.txt", tmp_path / "plain.txt"
    path.write_text("cat Katze 9\ncat\tKater\t0.5\ndog Hund 3\ncat Mieze 2.5\nthe die 1\nthe der 1\n")
    plain.write_text("cat Katze\ncat Kater\ndog Hund\ncat Mieze\nthe die\nthe der\n")
    table = {"cat": [("Katze", 9.0), ("Kater", 0.5), ("Mieze", 2.5)], "dog": [("Hund", 3.0)]}
    table["the"] = [("die", 1.0), ("der", 1.0)]
    corpus = Corpus.of_words([["The", "cat", "saw", "the", "dog", "cat"]] * 2000, first=7)
    language = switched(**ALL, dictionary=str(path), translations="weighted")
    found, key = language.derive(corpus), key_of("translation", key_of("transform", 0, "code_switch", 0))
    forms = found.form.values()
    for row in range(200):
        for place, word in enumerate(corpus[row].words):
            number, expected = uniform(key, int(corpus.ids[row]), place)[0], word
            options = table.get(word.lower(), [])
            for target, weight in reversed(options):
                before = sum(w for t, w in options[: [t for t, _ in options].index(target)])
                expected = target if number < (before + weight) / sum(w for _, w in options) else expected
            assert found[row].words[place] == expected
    assert [forms.count(word) / 4000 for word in ("Katze", "Kater", "Mieze")] == pytest.approx(
        [9 / 12, 0.5 / 12, 2.5 / 12], abs=0.03
    )
    # without weights as uniformly, but by another name
    alike = [switched(**ALL, dictionary=str(plain), translations=how) for how in ("uniform", "weighted")]
    assert alike[0].derive(corpus).texts() == alike[1].derive(corpus).texts() != found.texts()
    assert len({one.fingerprint for one in (*alike, language)}) == 3
    assert refused(switched, dictionary=str(path), translations="uniform")[0] == "weights.txt:1 transforms.0.dictionary"


def test_other_draws_switch_other_words_of_the_same_dictionary():
    """As probable and independent; transliteration and the words of the dictionary are those of the language."""
    corpus = Corpus.of_words([["cat", "dog", "the", "hotel", "big", "old"]] * 1000)
    language = switched(TRANS, probability=0.5, cap=1.0, coverage=0.6)
    texts = [language.redrawn(number) for number in (0, 1, 2, 1)]
    assert texts[0] is language and len({one.fingerprint for one in texts}) == 3
    forms = [np.asarray(one.derive(corpus).form.values()).reshape(-1, 6) for one in texts]
    assert (forms[1] == forms[3]).all()
    plain = np.asarray(parse_language({"name": "x", "transforms": [TRANS]}).derive(corpus).form.values()).reshape(-1, 6)
    changed = [form != plain for form in forms]
    some = changed[0].any(0)
    assert 0 < some.sum() < 6  # of the words, those of the dictionary
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert (changed[a].any(0) == changed[b].any(0)).all()
        assert (changed[a] & changed[b])[:, some].mean() == pytest.approx(0.25, abs=0.05)  # independent
        assert changed[b][:, some].mean() == pytest.approx(0.5, abs=0.05)
    assert parse_language("trans+inv").redrawn(1).fingerprint == parse_language("trans+inv").fingerprint


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ("a b 1\nc d\n", "d.txt:2"),
        ("a b 1\na b 2\n", "d.txt:2"),
        ("a b zero\n", "d.txt:1"),
        ("a b 0\n", "d.txt:1"),
        ("a b inf\n", "d.txt:1"),
        ("a b 1 2\n", "d.txt:1"),
        ("\n", "d.txt"),
    ],
)
def test_damaged_weights_are_refused(tmp_path, lines, place):
    (tmp_path / "d.txt").write_text(lines)
    assert refused(read_weighted, tmp_path / "d.txt")[0] == place


def test_it_has_no_inverse_and_the_fingerprint_is_of_the_content(tmp_path, muse):
    language = switched(dictionary=muse)
    assert not language.invertible
    assert refused(language.invert, Corpus.of_words([["a"]])) == ("", "unsupported")
    copy, other = tmp_path / "copy.txt", tmp_path / "other.txt"
    copy.write_text("\n" + (tmp_path / "en-de.txt").read_text())
    other.write_text("cat Katze\n")
    assert switched(dictionary=str(copy)).fingerprint == language.fingerprint
    assert switched(dictionary=str(other)).fingerprint != language.fingerprint != switched().fingerprint
