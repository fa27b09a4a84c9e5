"""The words that are transliterated: by type or token, uniformly or by frequency, or from a list; the overlap."""

import pickle
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.corpus import Corpus, concatenate, count_words
from synthlang.derive_command import derive_command
from synthlang.dictionary.draw_command import dictionary_command
from synthlang.language import bind_language, parse_language
from synthlang.scripts import SCRIPTS
from synthlang.sources import open_source
from synthlang.transforms.transliterate import Transliterate
from tests.annotated import annotated
from tests.refusals import refusal, refused

SOURCE = "builtin:mini-english?types=500&sentences=500&dev=100&test=0"
COUNTS = {"the": 6, "cat": 3, "dog": 3, "a": 2, "sat": 1, "ran": 1}
WORDS = Corpus.of_words([[*COUNTS, "unseen"]])


def trans(**options):
    return Transliterate(**options)


def changed(transform, corpus=WORDS, key=0):
    forms = transform.rewrite(corpus, key).form.values()
    return {old for old, new in zip(corpus.form.values(), forms, strict=True) if old != new}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"strength": 0.0}, set()),
        ({"strength": 0.5}, {"the", "cat", "dog"}),  # equal counts in the order of the form
        ({"strength": 0.34}, {"the", "cat"}),
        ({"strength": 0.67}, {"the", "cat", "dog", "a"}),
        ({"strength": 1.0}, {*COUNTS, "unseen"}),
        ({"by": "token", "strength": 0.3}, {"the"}),
        ({"by": "token", "strength": 0.38}, {"the", "cat"}),  # until the share is reached
        ({"by": "token", "strength": 0.8}, {"the", "cat", "dog", "a"}),
        ({"by": "token", "strength": 1.0}, {*COUNTS, "unseen"}),
    ],
)
def test_the_most_frequent_by_hand(options, expected):
    assert changed(trans(order="frequent", **options).bind(COUNTS)) == expected


def test_a_word_of_a_sentence_that_was_dropped_is_not_read_back():
    corpus = Corpus.of_words([["the", "cat"], ["ӟ"]])  # no word of the source can be written so
    for spec in ("trans:0.5", "trans:0.5+inv"):
        language = parse_language(spec)
        derived = language.derive(corpus)
        assert language.invert(derived).texts() == corpus.take(derived.ids).texts() == ["the cat"]


def test_a_list_of_types(tmp_path):
    path = tmp_path / "types.tsv"
    path.write_text("cat\tNOUN\ndog\t1\n\nsat\nnever\n")
    assert changed(trans(types=path)) == {"cat", "dog", "sat"}
    frequent = {"types": path, "order": "frequent"}
    assert changed(trans(**frequent, strength=0.25).bind(COUNTS)) == {"cat"}
    assert changed(trans(**frequent, strength=0.6, by="token").bind(COUNTS)) == {"cat", "dog"}
    assert changed(trans(**frequent, strength=1.0)) == {"cat", "dog", "sat"}
    both = changed(trans(types=path, strength=0.5))
    assert both == changed(trans(strength=0.5)) & {"cat", "dog", "sat"}
    listed = parse_language({"name": "x", "transforms": [{"kind": "transliterate", "types": str(path)}]})
    copy = tmp_path / "again.txt"
    copy.write_text("sat\nnever\ndog\ncat\n")
    same = parse_language({"name": "x", "transforms": [{"kind": "transliterate", "types": str(copy)}]})
    assert same.fingerprint == listed.fingerprint != parse_language("trans").fingerprint
    copy.write_text("\u200bcat\nSan\u00a0Juan\n", encoding="utf-8")  # a word as any reader reads it
    assert changed(trans(types=copy), Corpus.of_words([["cat", "San\u00a0Juan", "Juan"]])) == {"cat", "San\u00a0Juan"}


@pytest.mark.parametrize("options", [{"order": "frequent"}, {"by": "token"}, {"order": "frequent", "by": "token"}])
def test_counts_are_needed_and_make_the_share(options):
    source = open_source(SOURCE)
    counts: Counter[str] = Counter()
    for batch in source.batches("train"):
        count_words(counts, batch)
    nested = []
    for strength in (0.2, 0.5, 0.8):
        spec = {"name": "x", "transforms": [{"kind": "transliterate", **options, "strength": strength}]}
        language = parse_language(spec)
        assert language.needs_counts
        assert refused(language.derive, WORDS) == ("", "missing")
        bound = pickle.loads(pickle.dumps(bind_language(language, source)))
        train, dev = (concatenate(list(source.batches(s))) for s in ("train", "dev"))
        chosen = changed(bound.transforms[0], train, bound.keys[0])
        nested.append(chosen)
        if options.get("by") == "token":
            largest = max(counts.values()) / counts.total()
            assert strength <= sum(counts[w] for w in chosen) / counts.total() < strength + largest + 1e-9
        else:
            assert len(chosen) == round(strength * len(counts))
            assert min(counts[w] for w in chosen) >= max(counts[w] for w in set(counts) - chosen)
        derived = bound.derive(dev)  # of the same training text, whatever split is derived
        assert {a for a, b in zip(dev.form.values(), derived.form.values(), strict=True) if a != b} <= chosen | (
            set(dev.form.values()) - set(counts)
        )
        assert bound.invert(derived).texts() == dev.texts()
    assert nested[0] < nested[1] < nested[2]


def test_words_of_a_test_set_are_counted_only_if_that_is_asked_for(tmp_path, capsys):
    """Language, vocabulary and dictionary alike; the log and the card say in what the words were counted."""
    (tmp_path / "test.txt").write_text("a b\na c\n")
    spec, frequent = f"text:{tmp_path / 'test.txt'}", tmp_path / "frequent.yaml"
    frequent.write_text("{name: x, transforms: [{kind: transliterate, order: frequent, strength: 0.34}]}")
    needs = [(str(frequent), None), ("inv", "300")]
    for language, vocabulary in needs:
        refusal(derive_command, spec, language, tmp_path / "d", vocabulary=vocabulary)
    refusal(dictionary_command, "trans", spec, tmp_path / "d")
    (before, after), *_ = derive_command(spec, str(frequent), tmp_path / "d", counts="test")
    assert (before, after) == ("a b", "а b")
    assert "words are counted in the split test" in " ".join(capsys.readouterr().err.split())
    assert "Words were counted in the split `test`" in (tmp_path / "d" / "README.md").read_text()
    derive_command(spec, "inv", tmp_path / "ids", vocabulary="300", counts="test")
    assert derive_command(f"{spec}?split=train", str(frequent), tmp_path / "train")[0] == (before, after)


words = st.text(st.characters(exclude_categories=("Cs", "Zs", "Zl", "Zp", "Cc")), min_size=1).filter(
    lambda w: w.split() == [w]
)


@given(st.lists(st.one_of(words, st.sampled_from(["<mask>", "a<s>", "<", "the"])), max_size=6, unique=True))
def test_words_are_written_as_the_script_writes_each(forms):
    for name, script in SCRIPTS.items():
        found = trans(script=name).rewrite(Corpus.of_words([forms]), 0).form.values()
        assert found == [script.encode(form) for form in forms]


def test_types_are_those_of_the_parent():
    """``mark`` changes forms; which words are transliterated stays what it is without it, and all is invertible."""
    corpus = annotated(*(f"w{i}/NOUN/obj/0 v{i}/VERB/x/1" for i in range(200)))
    plain = parse_language("trans:0.5").derive(corpus).form.values()
    mark = {"kind": "mark", "case": {"obj": "o"}}
    spec = {"name": "x", "transforms": [mark, {"kind": "transliterate", "strength": 0.5}]}
    language = parse_language(spec)
    derived = language.derive(corpus)
    script = SCRIPTS["cyrillic"]
    for old, new, parent in zip(plain, derived.form.values(), corpus.form.values(), strict=True):
        form = f"{parent}·o" if parent.startswith("w") else parent
        assert new == (form if old == parent else script.encode(form))
    assert language.invert(derived).texts() == corpus.texts()
