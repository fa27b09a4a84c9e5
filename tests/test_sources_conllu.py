from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.sources import open_source
from synthlang.sources.base import require_columns
from synthlang.sources.conllu import ConlluSource, tree_problem
from synthlang.sources.words import visible
from tests.real_data import DATA
from tests.refusals import refusal, refused

TREEBANKS = [  # sentences and words, as counted in the INDEX of the test data
    ("ud2/en_ewt", {"train": (12544, 204577), "dev": (2001, 25147), "test": (2077, 25094)}),
    ("ud2/ja_gsd", {"dev": (511, 11556), "test": (557, 12615)}),
    ("ud1/ar_padt_r1.2", {"dev": (786, 28263)}),
]


def word(number: int | str, form: str = "w", head: int | str = 0, deprel: str = "dep", upos: str = "X") -> str:
    return f"{number}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_"


def write(path: Path, *lines: str, newline: str = "\n") -> Path:
    path.write_bytes(newline.join(lines).encode())
    return path


def rows(source: ConlluSource, split: str) -> list[dict[str, Any]]:
    return [dict(sentence.columns) for batch in source.batches(split) for sentence in batch]


def trees(count: int) -> st.SearchStrategy[list[int]]:
    """Heads of a random tree: every word hangs on one that comes before it in a random order."""

    def heads(order_and_picks: tuple[list[int], list[int]]) -> list[int]:
        order, picks = order_and_picks
        head = [0] * count
        for place, (node, pick) in enumerate(zip(order, picks, strict=True)):
            head[node] = order[pick % place] + 1 if place else 0
        return head

    picks = st.lists(st.integers(0, 99), min_size=count, max_size=count)
    return st.tuples(st.permutations(range(count)), picks).map(heads)


FORM = st.text(st.characters(exclude_categories=["Cs", "Zs", "Cc", "Zl", "Zp"]), min_size=1, max_size=6)
FORM = FORM.filter(lambda form: form.split() == [form] and visible(form) == form)
SENTENCE = st.integers(1, 8).flatmap(
    lambda n: st.fixed_dictionaries(
        {
            "form": st.lists(FORM, min_size=n, max_size=n),
            "upos": st.lists(st.sampled_from(["NOUN", "VERB", "_"]), min_size=n, max_size=n),
            "head": trees(n),
            "deprel": st.lists(st.sampled_from(["nsubj", "nmod:poss", "root"]), min_size=n, max_size=n),
        }
    )
)


@given(st.lists(SENTENCE, min_size=1, max_size=6), st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_random_trees_are_read_back(tmp_path_factory, sentences, newline, noise):
    lines = []
    for sentence in sentences:
        lines += ["# text = 1\tx"] * noise
        columns = zip(sentence["form"], sentence["head"], sentence["deprel"], sentence["upos"], strict=True)
        for number, (form, head, deprel, upos) in enumerate(columns, start=1):
            if noise:
                lines.append(f"{number}-{number + 1}" + "\t_" * 9)
            lines.append(word(number, form, head, deprel, upos))
            if noise:
                lines.append(f"{number}.1" + "\t_" * 9)
        lines += ["", ""] if noise else [""]
    path = write(tmp_path_factory.mktemp("t") / "x.conllu", *lines[: None if noise else -1], newline=newline)
    assert rows(ConlluSource(path), "train") == sentences


def test_a_form_with_a_space(tmp_path):
    path = write(tmp_path / "x.conllu", word(1, "10 000", 2, "nummod", "NUM"), word(2, "mots", 0, "root", "NOUN"))
    [batch] = ConlluSource(path).batches("train")
    assert batch.form.values() == ["10\u00a0000", "mots"] and batch.columns["head"].names is None


def test_features_and_lemmas_are_read_with_their_options(tmp_path):
    lines = ["1\t10 000\t10 000\tNUM\t_\tNumType=Card\t2\tnummod\t_\t_", "2\tmots\tmot\tNOUN\t_\t_\t0\troot\t_\t_"]
    path = write(tmp_path / "x.conllu", *lines)
    feats, lemma = ["NumType=Card", "_"], ["10 000", "mot"]
    seen = set()
    for options, added in (("", {}), ("?feats", {"feats": feats}), ("?lemma&feats", {"feats": feats, "lemma": lemma})):
        source = ConlluSource(f"{path}{options}")
        [batch] = source.batches("train")
        assert source.columns == tuple(batch.columns) == ("form", "upos", "head", "deprel", *added)
        assert {name: batch.columns[name].values() for name in added} == added
        seen.add(source.fingerprint)
    assert len(seen) == 3


TAGGED = [word("1-2", "ab", "_", "_", "_"), word(1, "a", "_", "_", "DET"), word(2, "b", "_", "_", "NOUN"), ""]
TREED = [word("1-2", "ab", "_", "_", "_"), word(1, "a", 2, "_", "DET"), word(2, "b", 0, "_", "NOUN"), ""]
GOOD = [word(1, head=2), word(2), ""]
BAD = [
    (["1\tw\t_"], 1, "the line has 3 columns separated by tabs, but CoNLL-U has 10"),
    ([*GOOD, "# c", word("x")], 5, "the id 'x' must be the number of a word, a range such as 3-4"),
    ([word(2)], 1, "the id 2 is out of sequence: 1 must"),
    ([word(1), word(1)], 2, "2 must come next; insert a blank line before each sentence"),
    ([word(1), word(2, head="_")], 2, "the head '_' of word 2 must be the number of a word"),
    ([word(1, head="9" * 5000)], 1, "of word 1 must be the number of a word"),
    ([word(1, head=-1)], 1, "the head '-1' of word 1 must be the number of a word, or 0 for the root"),
    ([*GOOD, word(1), word(2, head=3)], 5, "the head 3 of word 2 is out of range: the sentence has 2 words"),
    ([*GOOD, word(1), word(2, head=1), word(3)], 6, "words 1 and 3 are both roots"),
    ([*GOOD, word(1, head=2), word(2, head=1)], 4, "the sentence has no root"),
    ([*GOOD, word(1), "1.1" + "\t_" * 9, word(2, head=3), word(3, head=2)], 6, "word 2 is in a cycle of heads"),
    ([word(1), word(2, head=2)], 2, "word 2 is in a cycle of heads"),
    ([word(1, form="")], 1, "word 1 has an empty form"),
    ([*TAGGED, *TREED], 6, "word 1 has the head '2', but the words before it have none"),
    ([*TREED, *TAGGED], 6, "the head '_' of word 1 must be the number of a word"),
    (
        [word(1)[:-1] + "NER=B-PER", "", word(1)[:-1] + "NER=PER"],
        3,
        "NER: the tag 'PER' must be O, or B-, I-, E-, S-, L- or U- and a name",
    ),
]


@pytest.mark.parametrize(("lines", "line", "reason"), BAD)
def test_wrong_lines(tmp_path, lines, line, reason):
    path = write(tmp_path / "x.conllu", *lines)
    error = refusal(lambda: list(ConlluSource(path).batches("train")))
    assert (error.path, error.line, error.code) == (path, line, "format")
    assert reason in error.text  # the lines have many faults, and a message is of one


@pytest.mark.parametrize(
    ("content", "place"),
    [
        *((content, "x.conllu") for content in (b"", b"\n\n", b"# only a comment\n\n", b"\r\n")),
        (f"{word(1)}\n\n".encode() + word(1, "é").encode("latin-1"), "x.conllu:3"),
        (gzip.compress(b"1\ta", mtime=0), "x.conllu"),
    ],
)
def test_wrong_bytes(tmp_path, content, place):
    (tmp_path / "x.conllu").write_bytes(content)
    assert refused(lambda: list(ConlluSource(tmp_path / "x.conllu").batches("train")))[0] == place


@given(st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_tree_problem_agrees_with_walking_to_the_root(head):
    def reaches_root(node: int) -> bool:
        for _ in head:
            node = head[node - 1] if 0 < node <= len(head) else node
        return node == 0

    is_tree = head.count(0) == 1 and max(head) <= len(head) and all(map(reaches_root, range(1, len(head) + 1)))
    assert (tree_problem(head) is None) == is_tree


@pytest.mark.parametrize(("folder", "counts"), TREEBANKS, ids=[folder for folder, _ in TREEBANKS])
def test_real_treebanks(folder, counts):
    if not (DATA / folder).is_dir():
        pytest.skip(f"needs the test data {folder} in {DATA}")
    source = ConlluSource(DATA / folder)
    found = {}
    for split in source.splits:
        batches = list(source.batches(split))
        found[split] = (sum(map(len, batches)), sum(int(batch.offsets[-1]) for batch in batches))
        assert all(" " not in form for batch in batches for form in batch.form.names or ())
    assert found == counts


def test_a_file_without_heads_has_tags_and_no_trees(tmp_path):
    source = ConlluSource(write(tmp_path / "x-dev.conllu", "# text = x", *TAGGED, "# text = x", *TAGGED))
    assert source.columns == ("form", "upos")
    [corpus] = source.batches("dev")
    assert corpus.columns["upos"].values() == ["DET", "NOUN"] * 2
    assert refused(require_columns, source, ("head",), "y", "the task parsing") == ("y", "missing")


@pytest.mark.parametrize(
    ("first", "second", "columns", "values"),
    [
        ("NER=B-PER", "_", ("ner",), ["B-PER", "O"]),
        ("Slot=O|Gloss=x", "Slot=I-x", ("slot",), ["O", "B-x"]),  # made legal
        ("A=b|NER=O|Slot=O", "Slot=B-x|NER=O", ("ner", "slot"), ["O", "O"]),
        ("_", "NER=B-PER", (), None),
        ("NER=PERSON", "NER=B-PER", (), None),
        ("Corner=B-PER", "_", (), None),
    ],
)
def test_the_first_sentence_tells_which_tags_there_are(tmp_path, first, second, columns, values):
    path = write(tmp_path / "x.conllu", word(1)[:-1] + first, "", word(1)[:-1] + second)
    source = open_source(f"conllu:{path}")
    assert source.columns == ("form", "upos", "head", "deprel", *columns)
    [corpus] = source.batches("train")
    assert tuple(corpus.columns) == source.columns
    assert values is None or corpus.columns[columns[0]].values() == values
