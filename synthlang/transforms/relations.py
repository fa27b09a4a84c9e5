"""Universal Dependencies relations: labels of version 1 read as version 2, how close to its head a dependent stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Column
from synthlang.order.items import V1_TO_V2

# a negation keeps its label here: it has a layer of its own
VERSION_1 = {v1: v2 for v1, v2 in V1_TO_V2.items() if v1 != "neg"} | {"foreign": "flat"}
RELATIONS = frozenset(V1_TO_V2)
_VERSION_2 = (
    "acl advcl advmod amod appos aux case cc ccomp clf compound conj cop csubj dep det discourse dislocated expl fixed "
    "flat goeswith iobj list mark nmod nsubj nummod obj obl orphan parataxis punct reparandum root vocative xcomp"
)
_TAGS = "ADJ ADP ADV AUX CCONJ CONJ DET INTJ NOUN NUM PART PRON PROPN PUNCT SCONJ SYM VERB X"
RELATIONS |= frozenset(_VERSION_2.split())
TAGS = frozenset(_TAGS.split())
SUBJECTS, OBJECTS = ("nsubj", "csubj"), ("obj", "iobj")
COORDINATION = ("conj", "cc")
LOOSE = (*COORDINATION, "list", "parataxis", "discourse", "vocative", "dislocated", "reparandum", "orphan")
UNITS = ("fixed", "flat", "goeswith", "_")  # parts of one word or name; "_": a word that a transform inserted
MARKERS = ("case", "mark")

# Layers around a head, innermost first: a dependent that changes sides stands outside the lower layers there and
# inside the higher ones. Nouns: adjective, numeral, demonstrative, genitive, relative clause (Greenberg 1963,
# universal 20, and its mirror image); clauses: auxiliary, object, subject, adverbial, clause.
LAYERS = {
    **dict.fromkeys((*UNITS, "compound"), 0),
    **dict.fromkeys(("aux", "cop", "neg", "expl", "amod"), 1),
    **dict.fromkeys(("nummod", "obj", "iobj"), 2),
    **dict.fromkeys(("det", "nsubj", "csubj", "nmod:poss"), 3),
    **dict.fromkeys(("acl", "xcomp", "ccomp", "advcl"), 5),
    "appos": 6,
    **dict.fromkeys(LOOSE, 8),
}
OTHER_LAYER, INNER_MARKER, OUTER_MARKER, EDGE = 4, 7, 9, 10


def modern(label: str) -> str:
    """The label as version 2 writes it.

    >>> modern("nsubjpass"), modern("nmod:poss")
    ('nsubj:pass', 'nmod:poss')
    """
    return VERSION_1.get(label, label)


def base(label: str) -> str:
    """The universal relation of a label, of either version, without its subtype.

    >>> base("nsubjpass"), base("acl:relcl")
    ('nsubj', 'acl')
    """
    return modern(label).partition(":")[0]


def layer(label: str) -> int:
    """The layer of a label; ``case`` and ``mark`` and punctuation at the edge have their own."""
    return LAYERS.get(modern(label), LAYERS.get(base(label), OTHER_LAYER))


def lookup(column: Column, of_name: Callable[[str], Any], dtype: type = bool) -> NDArray[Any]:
    """[words] ``of_name(value)`` for the value of each word, computed once a name."""
    table: NDArray[Any] = np.asarray([of_name(name) for name in column.names or ()], dtype)
    return table[column.codes] if len(column.codes) else np.zeros(0, dtype)
