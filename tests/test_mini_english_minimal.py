"""Minimal pairs of the grammar: one difference each, by a reading of their own; annotation and randomness."""

from __future__ import annotations

from collections import Counter

import pytest

from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.mini_english.minimal import OTHER_DETERMINER, OTHER_NUMBER, PARADIGMS, PHENOMENA, minimal_pairs

CASES = {"I": "me", "we": "us", "they": "them", "he": "him", "she": "her"}
CASES |= {theirs: ours for ours, theirs in CASES.items()}


def edits(good, bad):
    """Every edit of one place that makes ``bad`` of ``good``, by trying all places."""
    found = set()
    for n, word in enumerate(good):
        rest = good[:n], good[n + 1 :]
        if len(good) == len(bad) and [*rest[0], bad[n], *rest[1]] == bad and bad[n] != word:
            found.add(("replace", word, bad[n]))
        if [*rest[0], *rest[1]] == bad:
            found.add(("delete", word, ""))
        if n and [*good[: n - 1], word, good[n - 1], *rest[1]] == bad:
            found.add(("swap", good[n - 1], word))
        if n + 1 < len(bad) and [*good[: n + 1], bad[n + 1], *rest[1]] == bad:
            found.add(("insert", "", bad[n + 1]))
    return found


def test_edits_finds_no_edit_where_two_places_differ():
    assert edits(["a", "b", "c"], ["b", "b", "a"]) == set() == edits(["a", "b", "c"], ["a"])
    assert edits(["a", "b", "c"], ["a", "c", "b"]) == {("swap", "b", "c")}


@pytest.mark.parametrize("types", [500, 2000])
def test_each_pair_differs_in_exactly_one_place(types):
    source = MiniEnglish(types=types, seed=types)
    verbs = {form: verb for verb in source.lexicon.verbs for form in (verb.base, verb.third)}
    counts: Counter[str] = Counter()
    for pair in minimal_pairs(source, "test", 240):
        good, bad = pair.good["form"], pair.bad["form"]
        found = edits(good, bad)
        assert len({kind for kind, _, _ in found}) == 1, (good, bad)
        kind, before, after = min(found)
        counts[pair.paradigm] += 1
        phenomenon = pair.phenomenon
        if phenomenon == "agreement" or pair.paradigm == "relative_agreement":
            other = OTHER_NUMBER.get(before)
            assert kind == "replace" and (after == other or verbs[before] is verbs[after])
            assert before == other or after not in (verbs[after].past if after in verbs else "",)
        elif phenomenon == "case":
            assert (kind, CASES[before]) == ("replace", after)
        elif phenomenon == "argument order":
            assert kind == "swap" and {before, after} & CASES.keys()
        elif phenomenon == "determiners":
            assert (kind == "replace" and OTHER_DETERMINER[before] == after) or (
                kind == "delete" and before in "the an"
            )
        elif pair.paradigm == "relative_pronoun":
            assert {before, after} == {"who", "which"} and kind == "replace"
        else:
            assert kind == "insert" and after in ("it", "him", "her", "them")
    assert counts == dict.fromkeys(PARADIGMS, 240 // len(PARADIGMS))


def test_a_phrase_or_clause_stands_between_the_subject_and_its_verb():
    for pair in minimal_pairs(MiniEnglish(), "dev", 120):
        if pair.paradigm in ("agreement_across_phrase", "agreement_across_relative"):
            place = next(n for n, (a, b) in enumerate(zip(pair.good["form"], pair.bad["form"], strict=True)) if a != b)
            subject = pair.good["deprel"].index("nsubj")
            inside = {"agreement_across_phrase": "nmod", "agreement_across_relative": "acl:relcl"}[pair.paradigm]
            assert inside in pair.good["deprel"][subject + 1 : place]


def test_both_sides_have_a_tree_and_words_of_the_lexicon():
    source = MiniEnglish(types=500)
    for pair in minimal_pairs(source, "train", 60):
        assert pair.phenomenon in PHENOMENA
        for side in (pair.good, pair.bad):
            assert {len(values) for values in side.values()} == {len(side["form"])}
            assert set(side["form"]) <= source.lexicon.tags.keys()
            heads = side["head"]
            assert heads.count(0) == 1 and all(0 <= head <= len(heads) and head != n for n, head in enumerate(heads, 1))
        if len(pair.good["form"]) == len(pair.bad["form"]):
            assert {**pair.good, "form": 0} == {**pair.bad, "form": 0}


def test_features_and_lemmas_are_columns_if_the_source_has_them():
    pairs = list(minimal_pairs(MiniEnglish(types=500, feats=True, lemma=True), "test", 36))
    plain = list(minimal_pairs(MiniEnglish(types=500), "test", 36))
    assert [pair.bad["form"] for pair in pairs] == [pair.bad["form"] for pair in plain]
    assert {*pairs[0].good} == {*plain[0].good} | {"feats", "lemma"}
    for pair in pairs:
        for side in (pair.good, pair.bad):
            assert len(side["form"]) == len(side["feats"]) == len(side["lemma"]) and all(side["lemma"])


def test_pairs_depend_on_the_settings_the_split_and_their_number_alone():
    def texts(count=24, split="test", **settings):
        return [" ".join(pair.bad["form"]) for pair in minimal_pairs(MiniEnglish(**settings), split, count)]

    assert texts() == texts() == texts(48)[:24]
    assert len({tuple(texts(**settings)) for settings in ({}, {"seed": 1}, {"types": 600}, {"split": "dev"})}) == 4


def test_samples():
    found = {
        p.paradigm: (" ".join(p.good["form"]), " ".join(p.bad["form"]))
        for p in minimal_pairs(MiniEnglish(), "test", 12)
    }
    assert found["subject_case"] == (
        "he loved our rough ball with the weak farmer .",
        "him loved our rough ball with the weak farmer .",
    )
    assert found["agreement_across_phrase"] == (
        "the horse in the stadiums has wanted that like Lincoln .",
        "the horse in the stadiums have wanted that like Lincoln .",
    )
