"""The languages of Kallini et al. 2024 against independent computations, on mini-English and on a treebank."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from functools import cache, partial
from string import punctuation
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from pretrain.config import PretrainConfig
from pretrain.prepare import prepare
from synthlang.config import parse
from synthlang.corpus import Corpus, Sentence
from synthlang.derive_command import derive_command
from synthlang.errors import InputError
from synthlang.language import Language, bind_language, checked_source, parse_language
from synthlang.sources import open_source
from synthlang.sources.base import word_counts
from synthlang.store import Store
from synthlang.transforms.shuffle import drawn
from synthlang.vocabularies.build import with_added_forms
from synthlang.vocabulary import Vocabulary, train_vocabulary
from tests.real_data import DATA
from tests.refusals import refused
from tests.tiny import PRETRAIN, changed

MINI = "builtin:mini-english?types=500&sentences=900&dev=0&test=0&feats&lemma"
EWT = DATA / "ud2" / "en_ewt"
SOURCES = [
    pytest.param((MINI, "train"), id="mini-english"),
    pytest.param(
        (f"conllu:{EWT}?feats&lemma", "dev"),
        id="ewt",
        marks=pytest.mark.skipif(not EWT.is_dir(), reason=f"{EWT} is missing"),
    ),
]
SHUFFLES: dict[str, tuple[int | None, int | None]] = {  # seed of NumPy's generator, window
    "deterministic-shuffle-s21": (21, None),
    "deterministic-shuffle-s57": (57, None),
    "deterministic-shuffle-s84": (84, None),
    "local-shuffle-w3": (0, 3),
    "local-shuffle-w5": (0, 5),
    "local-shuffle-w10": (0, 10),
}
PARTS = {"n't", "'ll", "'s", "'re", "'ve", "'m"}
Rows = list[tuple[int, list[str], bool]]  # id, words and flag of each sentence that is kept


@cache
def batches_of(given: tuple[str, str]) -> tuple[Corpus, ...]:
    return tuple(open_source(given[0]).batches(given[1]))


@cache
def vocabulary_of(given: tuple[str, str]) -> Vocabulary:
    source = open_source(given[0])
    marked = [parse_language("impossible/no-reverse"), parse_language("impossible/no-hop")]
    return with_added_forms(
        train_vocabulary(source.batches(given[1]), 400), marked, partial(word_counts, source, given[1])
    )


def bound(name: str, given: tuple[str, str]) -> Language:
    language = parse_language(name)
    vocabulary = vocabulary_of(given) if language.on_tokens else None
    return bind_language(language, open_source(given[0]), vocabulary, given[1])


def rows_of(language: Language, batch: Corpus) -> Rows:
    rewrite = language.rewrite(batch)
    assert rewrite.affected is not None
    flags = zip(rewrite.apply(batch), rewrite.affected.tolist(), strict=True)
    return [(sentence.id, sentence.words, flag) for sentence, flag in flags]


@cache
def units_of(given: tuple[str, str], unit: str) -> list[dict[int, list[str]]]:
    """The words of each sentence, or the tokens of its words one after another, by id; a dictionary for each batch."""
    words = [{sentence.id: sentence.words for sentence in batch} for batch in batches_of(given)]
    if unit == "word":
        return words
    tokens = cache(lambda word: vocabulary_of(given).parent.encode(word, add_special_tokens=False).tokens)
    return [{number: [t for w in of for t in tokens(w)] for number, of in batch.items()} for batch in words]


# --- shuffles


@pytest.mark.parametrize("given", SOURCES)
@pytest.mark.parametrize("unit", ["word", "token"])
@pytest.mark.parametrize("name", [*SHUFFLES, "even-odd-shuffle", "no-shuffle"])
def test_shuffles(name, unit, given):
    language = bound(f"impossible/{name}" + ("/paper" if unit == "token" else ""), given)
    seed, window = SHUFFLES.get(name, (None, None))
    for batch, sentences in zip(batches_of(given), units_of(given, unit), strict=True):
        expected: Rows = []
        for number, units in sentences.items():
            if not 2 <= len(units) <= 350:
                continue
            step = window or len(units)
            parts = [units[start : start + step] for start in range(0, len(units), step)]
            if seed is not None:
                for part in parts:
                    np.random.default_rng(seed).shuffle(part)  # a list, as in the release
            moved = [unit for part in parts for unit in part]
            expected.append((number, units[::2] + units[1::2] if name == "even-odd-shuffle" else moved, True))
        assert rows_of(language, batch) == expected


def test_the_orders_of_the_release():
    """NumPy 2.2.3, the version of the release, shuffles the lists of 1 to 350 numbers into orders with this hash.

    NumPy 1.26.4 and 2.4.6 draw the same orders.
    """
    orders = "".join(str(drawn(seed, length).tolist()) for seed in (0, 21, 57, 84) for length in range(1, 351))
    expected = "902c67f8156c8f354e6c70d8fcb90019383c703819ba287b30860e16997e86e0"
    assert hashlib.sha256(orders.encode()).hexdigest() == expected


def test_random_orders_are_uniform_and_differ_between_sentences():
    language = parse_language("impossible/nondeterministic-shuffle")
    corpus = Corpus.of_words([["a", "b", "c"]] * 6000)
    found, counts = np.unique(language.derive(corpus).texts(), return_counts=True)
    assert len(found) == 6 and (abs(counts - 1000) < 5 * math.sqrt(1000 * 5 / 6)).all()


def test_the_seed_of_a_language_does_not_change_its_fixed_orders():
    steps = [{"kind": "shuffle", "permutation": "fixed", "draw": 21}]
    texts = [
        parse_language({"name": "x", "seed": seed, "transforms": steps}).derive(batches_of((MINI, "train"))[0]).texts()
        for seed in (0, 1)
    ]
    assert texts[0] == texts[1]


def test_short_and_long_sentences_are_left_out():
    lengths = [0, 1, 2, 350, 351]
    corpus = Corpus.of_words([["w"] * length for length in lengths])
    rewrite = parse_language("impossible/no-shuffle").rewrite(corpus)
    assert np.diff(rewrite.offsets).tolist() == [2, 350]
    assert rewrite.counts == {"shuffle: sentences dropped, too short or too long": 3}


# --- reversal


@pytest.mark.parametrize("given", SOURCES)
@pytest.mark.parametrize("unit", ["word", "token"])
def test_reversals(unit, given):
    size = "/paper" if unit == "token" else ""
    control, after, whole = (bound(f"impossible/{name}-reverse{size}", given) for name in ("no", "partial", "full"))
    marker = "🅁" if unit == "word" else "ĠðŁħģ"
    for batch, units in zip(batches_of(given), units_of(given, unit), strict=True):
        kept = [number for number, words in units.items() if unit == "word" or len(words) > 1]
        marked = rows_of(control, batch)
        assert [number for number, _, _ in marked] == kept
        for number, words, flag in marked:
            assert flag and words.count(marker) == 1 and [w for w in words if w != marker] == units[number]
        ends = [words.index(marker) + 1 for _, words, _ in marked]
        partial = [
            (n, words[:end] + words[: end - 1 : -1], flag) for (n, words, flag), end in zip(marked, ends, strict=True)
        ]
        assert rows_of(after, batch) == partial
        assert rows_of(whole, batch) == [(n, words[::-1], flag) for n, words, flag in marked]
        for language in (control, after, whole):
            rewrite = language.rewrite(batch)
            assert language.invert(rewrite.apply(batch)).texts() == rewrite.source(batch).texts()


def test_places_of_markers_are_uniform():
    language = parse_language("impossible/no-reverse")
    derived = language.derive(Corpus.of_words([["a", "b", "c"]] * 4000))
    counts = np.bincount([sentence.words.index("🅁") for sentence in derived])
    assert len(counts) == 4 and (abs(counts - 1000) < 5 * math.sqrt(1000 * 3 / 4)).all()


# --- hops


def is_affected(features: str) -> bool:
    given = set(features.split("|"))
    return {"Person=3", "Tense=Pres", "VerbForm=Fin"} <= given and bool({"Number=Sing", "Number=Plur"} & given)


def has_letters(words: list[str]) -> bool:
    return any(character.isalnum() for word in words for character in word)


def counts_as_word(word: str) -> bool:
    return word not in PARTS and not all(character in punctuation for character in word)


def hopped(sentence: Sentence, distance: int) -> tuple[list[str], bool, bool]:
    """The sentence with markers, whether it is affected, and whether enough words follow every verb.

    Markers are inserted from the last verb to the first, and a later marker is one of the words that follow.
    """
    after: list[str] = []
    affected, complete = False, True
    columns = [sentence.columns[name] for name in ("form", "feats", "lemma")]
    for word, given, lemma in reversed(list(zip(*columns, strict=True))):
        if not is_affected(given):
            after.insert(0, word)
            continue
        affected = True
        after.insert(0, word if lemma == "_" else lemma)
        place = passed = 0
        while passed < distance and has_letters(after[place + 1 :]):
            passed += counts_as_word(after[place])
            place += 1
        complete &= passed == distance
        if distance and has_letters(after[place + 1 :]):
            while place + 1 < len(after) and not counts_as_word(after[place]):
                place += 1
        if after[place + 1 : place + 2] and after[place + 1] in PARTS:
            place += 1
        after.insert(place + 1, "🅂" if "Number=Sing" in given.split("|") else "🄿")
    return after, affected, complete


@pytest.mark.parametrize("given", SOURCES)
@pytest.mark.parametrize(("name", "distance"), [("no-hop", 0), ("word-hop", 4), ("word-hop/paper", 4)])
def test_hops(name, distance, given):
    language = bound(f"impossible/{name}", given)
    seen = {"affected": 0, "left out": 0}
    for batch in batches_of(given):
        expected: Rows = []
        for sentence in batch:
            words, affected, _ = hopped(sentence, distance)
            lost = affected and not hopped(sentence, 4)[2]
            seen["affected"] += affected and not lost
            seen["left out"] += lost
            if not lost:
                expected.append((sentence.id, words, affected))
        assert rows_of(language, batch) == expected
    assert min(seen.values()) > 100


@pytest.mark.parametrize("given", SOURCES)
def test_token_hop(given):
    """The tokens of the control with each marker four tokens after its place."""
    language, control = bound("impossible/token-hop/paper", given), bound("impossible/no-hop", given)
    tokenizer = vocabulary_of(given).parent
    markers = {"🅂": "ĠðŁħĤ", "🄿": "ĠðŁĦ¿"}
    for batch in batches_of(given):
        expected: Rows = []
        for number, words, flag in rows_of(control, batch):
            tokens: list[str] = []
            for word in reversed(words):
                if word in markers:
                    tokens.insert(4, markers[word])
                else:
                    tokens = tokenizer.encode(word, add_special_tokens=False).tokens + tokens
            expected.append((number, tokens, flag))
        assert rows_of(language, batch) == expected


THIRD = "Person=3|Tense=Pres|VerbForm=Fin"
FEATURES = {  # as written in the cases after a verb and its lemma
    "S": f"Mood=Ind|Number=Sing|{THIRD}",
    "P": f"Mood=Ind|Number=Plur|{THIRD}",
    "none": f"Mood=Ind|{THIRD}",
    "dual": f"Mood=Ind|Number=Dual|{THIRD}",
    "first": "Number=Sing|Person=1|Tense=Pres|VerbForm=Fin",
    "past": "Number=Sing|Person=3|Tense=Past|VerbForm=Fin",
    "participle": "Number=Sing|Person=3|Tense=Pres|VerbForm=Part",
}
HOPS = [  # sentence, distance, derived sentence or None if it is left out, affected
    ("he cleans=clean=S a b c d e", 4, "he clean a b c d 🅂 e", True),
    ("he cleans=clean=S a b c d", 4, "he clean a b c d 🅂", True),
    ("he cleans=clean=S a b c .", 4, None, True),  # three words follow
    ("he cleans=clean=S a b c .", 0, None, True),  # the control leaves out the same sentences
    ("he cleans=clean=S a b c … 1", 4, "he clean a b c … 🅂 1", True),  # only the marks of ASCII do not count
    ("he cleans=clean=S a b c … .", 4, None, True),  # no letter follows
    ("they clean=clean=P a , b c , d .", 4, "they clean a , b c , d 🄿 .", True),
    ("it is=be=S n't a b c d 's e", 4, "it be n't a b c d 's 🅂 e", True),
    ("it is=be=S n't a b c d", 0, "it be n't 🅂 a b c d", True),
    ("it 's=be=S a b c d", 0, "it be 🅂 a b c d", True),
    ("it goes=_=S a b c d", 4, "it goes a b c d 🅂", True),  # no lemma
    ("x=x=S y=y=P a b c d", 4, "x y a b c 🅂 d 🄿", True),
    ("x=x=S a b c y=y=P d", 4, None, True),  # too few words after the second verb
    ("he ran=run=past a b c d", 4, "he ran a b c d", False),
    ("i run=be=first", 4, "i run", False),
    ("they run=be=none", 4, "they run", False),
    ("they two run=be=dual", 4, "they two run", False),
    ("the running=run=participle", 4, "the running", False),
]


def sentence_of(text: str) -> dict[str, list[str]]:
    rows = [(*word.split("="), word, "")[:3] if "=" in word else (word, word, "") for word in text.split()]
    form, lemma, kind = zip(*rows, strict=True)
    return {"form": [*form], "lemma": [*lemma], "feats": [FEATURES.get(k, "_") for k in kind]}


@pytest.mark.parametrize(("sentence", "distance", "expected", "affected"), HOPS)
def test_hops_by_hand(sentence, distance, expected, affected):
    corpus = Corpus.of([sentence_of(text) for text in ("b", sentence, "a")])  # no hop may reach the next sentence
    language = parse_language({"name": "x", "transforms": [{"kind": "hop", "distance": distance}]})
    rewrite = language.rewrite(corpus)
    assert rewrite.apply(corpus).texts() == ["b", *([] if expected is None else [expected]), "a"]
    assert rewrite.affected is not None
    assert rewrite.affected.tolist() == [False, *[affected] * (expected is not None), False]


@pytest.mark.parametrize(
    ("sentence", "by", "expected"),
    [
        ("he cleans=clean=S a b c", 2, "he clean a b 🅂 c"),
        ("he cleans=clean=S n't a , b", 2, "he clean n't a , 🅂 b"),
        ("he cleans=clean=S a b", 2, "he clean a b 🅂"),
        ("he cleans=clean=S a b", 9, "he clean a b 🅂"),
        ("he cleans=clean=S", 2, "he clean 🅂"),
        ("x=x=S y=y=P a b c", 3, "x y a b 🅂 c 🄿"),  # other markers are not counted
        ("_ cleans=clean=S a", 1, "_ clean a 🅂"),  # a word that looks like the tag of inserted words
    ],
)
def test_delays_by_hand(sentence, by, expected):
    tagged = [sentence_of(text) for text in ("b", sentence, "a c")]
    corpus = Corpus.of([row | {"upos": ["X"] * len(row["form"])} for row in tagged])
    steps = [{"kind": "hop", "distance": 0, "room": 0}, {"kind": "delay", "by": by}]
    assert parse_language({"name": "x", "transforms": steps}).derive(corpus).texts() == ["b", expected, "a c"]


def write_treebank(folder):
    """Write sentences of the grammar as CoNLL-U."""
    source = open_source("builtin:mini-english?types=500&sentences=50&dev=0&test=0&feats&lemma")
    names = ("form", "lemma", "upos", "feats", "head", "deprel")
    with (folder / "a-train.conllu").open("w", encoding="utf-8") as handle:
        for sentence in next(source.batches("train")):
            rows = zip(*(sentence.columns[name] for name in names), strict=True)
            for n, (form, lemma, tag, feats, head, deprel) in enumerate(rows, 1):
                handle.write(f"{n}\t{form}\t{lemma}\t{tag}\t_\t{feats}\t{head}\t{deprel}\t_\t_\n")
            handle.write("\n")


@pytest.mark.parametrize("spec", ["conllu:{}", "conllu:{}?lemma", "conllu:{}?feats&lemma", "conllu:{}?limit=20"])
def test_a_hop_reads_the_lemmas_and_features_that_a_treebank_has(tmp_path, spec):
    write_treebank(tmp_path)
    limit = "&limit=20" if "limit" in spec else ""
    named = open_source(f"conllu:{tmp_path}?feats&lemma{limit}")
    language = parse_language("impossible/word-hop")
    found = checked_source(language, open_source(spec.format(tmp_path)), spec)
    assert found.fingerprint == named.fingerprint and found.columns == named.columns
    assert [language.derive(b).texts() for b in found.batches("train")] == [
        language.derive(b).texts() for b in named.batches("train")
    ]
    plain = open_source(f"conllu:{tmp_path}")
    assert checked_source(parse_language("inv"), plain, "") is plain


def test_data_sets_are_equal_with_and_without_the_options_for_columns(tmp_path):
    write_treebank(tmp_path)
    specs = [f"conllu:{tmp_path}?feats&lemma", f"conllu:{tmp_path}", MINI, MINI.replace("&feats&lemma", "")]
    found = []
    for number, spec in enumerate(specs):
        derive_command(spec, "impossible/word-hop", tmp_path / str(number))
        found.append(pq.read_table(tmp_path / str(number) / "data" / "derived" / "train-00000.parquet"))
    assert found[0].equals(found[1]) and found[2].equals(found[3]) and len(found[1])


@pytest.mark.parametrize(
    ("name", "text"),
    [("text:a.txt", "he cleans it .\n"), ("conllu:a.conllu", "1\tit\t_\tPRON\t_\t_\t0\troot\t_\t_\n\n")],
    ids=["text", "a parser without morphology"],
)
def test_a_hop_needs_lemmas_and_features_of_the_source(tmp_path, monkeypatch, name, text):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name.partition(":")[2]).write_text(text, encoding="utf-8")
    language = parse_language("impossible/word-hop")
    assert refused(bind_language, language, open_source(name)) == ("the source", "missing")


def test_a_run_reads_the_lemmas_and_features_of_its_treebank(tmp_path):
    write_treebank(tmp_path)
    runs = []
    for options in ("", "?feats&lemma"):
        hop = parse_language("impossible/word-hop").model_dump()
        values = {"source": f"conllu:{tmp_path}{options}", "language": hop, "objective": {"kind": "mlm"}}
        runs.append(prepare(parse(PretrainConfig, changed(PRETRAIN, **values)), Store(tmp_path / "store")))
    plain, named = runs
    assert plain.parents == named.parents
    assert [member.source.columns for member in plain.languages] == [
        member.source.columns for member in named.languages
    ]


SMALL = "builtin:mini-english?types=500&sentences=60&dev=0&test=20"


@pytest.mark.parametrize(
    "task",
    [
        "pos:conllu:{}",
        f"pos:{SMALL}",
        f"minimal:{SMALL}",
        f"nli:{SMALL}",
        f"ner:{SMALL}",
        f"slots:{SMALL}",
        f"qa:{SMALL}",
    ],
)
def test_a_task_has_the_lemmas_and_features_that_a_hop_reads(tmp_path, task):
    write_treebank(tmp_path)
    found = []
    for number, more in enumerate(("", "?feats&lemma")):
        spec = task.format(tmp_path) + (more.replace("?", "&") if "?" in task else more)
        derive_command(spec, "impossible/word-hop", tmp_path / str(number))
        found.append(pq.read_table(tmp_path / str(number) / "data" / "derived" / "train.parquet"))
    assert found[0].equals(found[1]) and len(found[0])


@dataclass(frozen=True)
class Lemmas:
    """A parser for which the first word is a verb in the third person. Each word is its own lemma."""

    columns: tuple[str, ...]
    fingerprint = name = version = "lemmas"

    def parse(self, sentences):
        return [self._parsed([*words]) for words in sentences]

    def _parsed(self, words):
        rest = len(words) - 1
        tags = {"upos": ["VERB", *["NOUN"] * rest], "head": [0, *[1] * rest], "deprel": ["root", *["dep"] * rest]}
        feats = ["Number=Sing|Person=3|Tense=Pres|VerbForm=Fin", *["_"] * rest]
        return {"form": words, **tags, "lemma": words, "feats": feats}


def test_a_parser_gives_the_lemmas_and_features_that_a_text_has_not(tmp_path, monkeypatch):
    (tmp_path / "train.txt").write_text("cleans it well on every day .\n" * 3, encoding="utf-8")
    asked = []

    def opened(spec, morphology=False):
        asked.append(morphology)
        return Lemmas(("form", "upos", "head", "deprel", *(("feats", "lemma") if morphology else ())))

    monkeypatch.setattr("synthlang.parsing.open_engine", opened)
    for number, language in enumerate(("impossible/word-hop", "sov")):
        out = tmp_path / str(number)
        derive_command(f"text:{tmp_path}", language, out, parser="spacy:x", cache=tmp_path / "c")
    assert asked == [True, False]
    with pytest.raises(InputError, match="needs the column 'lemma'"):
        derive_command(f"text:{tmp_path}", "impossible/word-hop", tmp_path / "none")


# --- the flag


def test_the_flag_goes_through_compositions():
    batch = batches_of((MINI, "train"))[0]
    hop, trans, reverse = {"kind": "hop"}, {"kind": "transliterate"}, {"kind": "reverse", "part": "none"}
    short = {"kind": "shuffle", "permutation": "none", "longest": 8, "strength": 0.5}

    def flags(*steps: dict[str, Any]) -> dict[int, bool]:
        return {n: flag for n, _, flag in rows_of(parse_language({"name": "x", "transforms": list(steps)}), batch)}

    alone = flags(hop)
    assert 0 < sum(alone.values()) < len(alone)
    assert flags(hop, trans) == flags(hop, {"kind": "invert"}, {"kind": "permute"}, trans) == alone
    assert flags(hop, reverse) == dict.fromkeys(alone, True)
    both, half = flags(short, hop), flags(short)
    assert 0 < len(both) < len(alone) and both.keys() == alone.keys() & half.keys()
    assert both == {number: alone[number] or half[number] for number in both}
    assert parse_language("trans+inv").rewrite(batch).affected is None


def test_strength_is_a_share_of_the_sentences_and_none_is_dropped_at_0():
    batch = batches_of((MINI, "train"))[0]
    sizes = []
    for strength in (0.0, 0.5, 1.0):
        rows = rows_of(parse_language({"name": "x", "transforms": [{"kind": "hop", "strength": strength}]}), batch)
        sizes.append((len(batch) - len(rows), {n for n, _, flag in rows if flag}))
    assert sizes[0] == (0, set()) and sizes[1][1] < sizes[2][1]
    assert sizes[1][0] / sizes[2][0] == pytest.approx(0.5, abs=0.15)


@pytest.mark.parametrize("name", ["impossible/word-hop", "impossible/token-hop/paper", "impossible/full-reverse/paper"])
def test_a_data_set_has_the_flag(tmp_path, name):
    out = tmp_path / "out"
    derive_command(MINI, name, out, vocabulary="300" if name.endswith("paper") else None)
    language = parse_language(name)
    if language.on_tokens:
        language = bind_language(language, open_source(MINI), Vocabulary.load(out / "tokenizer" / "parent"))
    table = pq.read_table(out / "data" / "derived" / "train-00000.parquet")
    columns = [table.column(column).to_pylist() for column in ("id", "words", "affected")]
    assert list(zip(*columns, strict=True)) == rows_of(language, batches_of((MINI, "train"))[0])
    assert "`affected` in `derived`" in (out / "README.md").read_text(encoding="utf-8")
    assert "affected" not in pq.read_table(out / "data" / "parent" / "train-00000.parquet").column_names


def test_a_data_set_does_not_depend_on_workers(tmp_path, monkeypatch):
    monkeypatch.setattr("synthlang.export.run.SHARD_BATCHES", 1)  # so that 2,100 sentences are two shards
    sentences = []
    for sentence in batches_of((MINI, "train"))[0].between(0, 150):
        rows = zip(*(sentence.columns[column] for column in ("form", "lemma", "upos", "feats")), strict=True)
        lines = [
            f"{n}\t{form}\t{lemma}\t{tag}\t_\t{given}\t_\t_\t_\t_"
            for n, (form, lemma, tag, given) in enumerate(rows, 1)
        ]
        sentences.append("\n".join(lines) + "\n\n")
    (tmp_path / "a-train.conllu").write_text("".join(sentences) * 14, encoding="utf-8")
    folders = [tmp_path / str(workers) for workers in (1, 2)]
    for workers, folder in enumerate(folders, 1):
        derive_command(f"conllu:{tmp_path}?feats&lemma", "impossible/nondeterministic-shuffle", folder, workers=workers)
    first, second = ({p.relative_to(f): p.read_bytes() for p in f.rglob("*") if p.is_file()} for f in folders)
    assert first == second and sum(path.match("data/derived/*") for path in first) == 2


def test_a_marker_that_is_no_token_is_refused():
    source = open_source(MINI)
    vocabulary = train_vocabulary(source.batches("train"), 300)
    language = parse_language("impossible/no-reverse/paper")
    assert refused(bind_language, language, source, vocabulary) == ("", "missing")
