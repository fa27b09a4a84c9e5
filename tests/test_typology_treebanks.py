"""What typology does holds on whole treebanks: every dependent on its side, every clause in order, trees kept."""

import itertools

import numpy as np
import pytest

from synthlang.corpus import Corpus
from synthlang.sources import open_source
from synthlang.transforms.layout import layout_forest
from synthlang.transforms.relations import base
from synthlang.trees import Forest
from tests.real_data import DATA
from tests.test_typology import typology

SOURCES = ["builtin:mini-english?types=500&sentences=1000&dev=0&test=0", f"conllu:{DATA}/ud2/en_ewt"]
SIDES = ("before", "after")


@pytest.fixture(scope="module", params=SOURCES, ids=["mini-english", "ewt"])
def batch(request):
    if request.param.startswith("conllu") and not DATA.exists():
        pytest.skip(f"real data is not at {DATA}")
    return next(open_source(request.param).batches("train"))


def moved(batch, **options):
    """(derived words as rows of the batch, place of each row, flags of words in sentences laid out)."""
    rewrite = typology(**options).rewrite(batch)
    rows = rewrite.origin + np.repeat(batch.offsets[:-1], batch.lengths)
    place = np.empty(len(rows), np.int64)
    place[rows] = np.arange(len(rows))
    return place, layout_forest(batch).is_projective[batch.sentence_of_word]


@pytest.mark.parametrize(
    ("option", "value", "label"),
    [
        ("adposition", "preposition", "case"),
        ("adposition", "postposition", "case"),
        *[
            (option, side, label)
            for side in SIDES
            for option, label in [
                ("adjective", "amod"),
                ("numeral", "nummod"),
                ("relative_clause", "acl"),
                ("subordinator", "mark"),
                ("auxiliary", "aux"),
                ("copula", "cop"),
                ("oblique", "obl"),
            ]
        ],
    ],
)
def test_every_dependent_stands_on_its_side(batch, option, value, label):
    place, ready = moved(batch, **{option: value})
    parent = Forest.of(batch).parent
    of_label = np.asarray([base(name) == label for name in batch.columns["deprel"].values()]) & (parent >= 0) & ready
    assert of_label.sum() > 10
    after = place[of_label] > place[parent[of_label]]
    assert after.all() if value in ("after", "postposition") else not after.any()


@pytest.mark.parametrize("order", ["SOV", "SVO", "VSO", "VOS", "OVS", "OSV"])
def test_every_clause_has_the_order(batch, order):
    place, ready = moved(batch, order=order)
    parent = Forest.of(batch).parent
    letters = {"nsubj": "S", "csubj": "S", "obj": "O", "iobj": "O"}
    clauses: dict[int, list[tuple[int, str]]] = {}
    for row, label in enumerate(batch.columns["deprel"].values()):
        if base(label) in letters and parent[row] >= 0 and ready[row]:
            clauses.setdefault(int(parent[row]), []).append((int(place[row]), letters[base(label)]))
    full = 0
    for verb, items in clauses.items():
        found = "".join(letter for _, letter in sorted([*items, (int(place[verb]), "V")]))
        shown = "".join(letter for letter, _ in itertools.groupby(found))
        assert shown == "".join(letter for letter in order if letter in found)
        full += len(shown) == 3
    assert full > 100


@pytest.mark.parametrize("options", [{"head_direction": "final"}, {"order": "VSO", "adposition": "postposition"}])
def test_trees_labels_and_final_marks_stay(batch, options):
    language = typology(**options)
    numbers = np.arange(len(batch.form.codes), dtype=np.int32)
    extra = Corpus(batch.offsets, {**batch.columns, "n": type(batch.form)(numbers)}, batch.ids)
    derived = language.derive(extra)
    n, starts = derived.columns["n"].codes, np.repeat(derived.offsets[:-1], derived.lengths)
    head = derived.columns["head"].codes
    old = batch.columns["head"].codes
    old_rows = np.where(old > 0, old - 1 + np.repeat(batch.offsets[:-1], batch.lengths), -1)
    new_rows = np.where(head > 0, n[np.clip(head - 1, 0, None) + starts], -1)
    assert (new_rows == old_rows[n]).all()
    last = batch.offsets[1:] - 1
    marks = last[np.asarray(batch.columns["upos"].values())[last] == "PUNCT"]
    assert len(marks) > 100 and (n[marks] == marks).all()


def test_stronger_changes_more_and_what_a_weaker_one_changed(batch):
    changed = []
    for strength in (0.0, 0.3, 0.6, 1.0):
        origin = typology(head_direction="final", strength=strength).rewrite(batch).origin
        changed.append(set(batch.sentence_of_word[origin != batch.position].tolist()))
    assert not changed[0]
    assert all(a < b for a, b in itertools.pairwise(changed))
