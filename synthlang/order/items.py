"""Items and features of an order model, by their names (Wang & Eisner 2016, section 4 and released models).

An item is a pair (tag, arc) with three views:

    dependent   (NOUN, nsubj)   full NOUN&nsubj   tag NOUN    arc nsubj
    head        (@VERB, @)      full @VERB&@      tag @VERB   arc @

    BI_a_b               a is immediately before b in BOS x1 … xn EOS
    PRE_a_b              a is anywhere before b
    BFR_a_b AFT_a_b BTW_a_b   dependent a is before dependent b: both before the head, both after it, one on each side
    HI_a_b_c[_d[_e]]     an n-gram of 3 to 5 full names, padded with BOS and EOS at the ends

The value of a feature is its number of occurrences. A feature is a plain string, and a label may contain ``_``, so
``PRE_a_b_c`` holds for a and b_c as well as for a_b and c.

The released order models use labels of Universal Dependencies v1, while today's treebanks and parsers use v2. Only
labels are converted, not trees: where v2 attaches a word elsewhere (coordination), a v1 model gets the v2 tree. A label
without an equivalent in v1 becomes the nearest label. Source: https://universaldependencies.org/v2/summary.html
"""

from __future__ import annotations

import re
from typing import Literal

NodeClass = Literal["N", "V"]
CLASSES: tuple[NodeClass, ...] = ("N", "V")
CLASS_OF_HEAD: dict[str, NodeClass] = {"NOUN": "N", "PROPN": "N", "PRON": "N", "VERB": "V"}
FAMILIES = ("BI", "PRE", "BFR", "AFT", "BTW")
HIGHER = "HI"
BOS, EOS = "BOS", "EOS"
SHORTEST, LONGEST = 3, 5  # n-grams of HI
MOST_ITEMS = 8  # 40,320 orders
_NAME, _FULL = r"[^&\s]+?", r"[^&\s]+?&[^&\s]+?"
_FEATURE = re.compile(
    rf"(?:{'|'.join(FAMILIES)})_(?:{_NAME}_{_NAME}|{_FULL}_{_FULL})|BI_(?:BOS_{_FULL}|{_FULL}_EOS)"
    rf"|HI(?P<pads>(?:_BOS)*)(?:_{_FULL})+(?P<more>(?:_EOS)*)|HI(?:_EOS){{3,5}}"
)

Item = tuple[str, str]


def head_item(upos: str) -> Item:
    """Return the item of a head with the tag ``upos``: ``("@VERB", "@")``."""
    return f"@{upos}", "@"


def full(item: Item) -> str:
    """Return the most specific name of an item.

    >>> full(("NOUN", "nsubj")), full(head_item("VERB"))
    ('NOUN&nsubj', '@VERB&@')
    """
    return f"{item[0]}&{item[1]}"


def views(item: Item) -> tuple[str, str, str]:
    """Return the names of an item in its three views: full, tag, arc."""
    return full(item), *item


def padding(items: int) -> int:
    """Return the number of BOS before the n items of a node, and of EOS after the items: min(5, n) − 1."""
    return min(LONGEST, items) - 1


def can_name(item: Item) -> bool:
    """Return True if features can name the item: no label is empty, BOS or EOS, or contains ``&`` or a space."""
    return all(
        label and label not in (BOS, EOS) and "&" not in label and not any(c.isspace() for c in label) for label in item
    )


def check_feature(name: str) -> str:
    """Return the name of a feature unchanged if it has the form of a feature.

    Raises:
        ValueError: The name does not have the form of a feature.
    """
    found = _FEATURE.fullmatch(name)
    names = name.count("&")  # names of an n-gram, without BOS and EOS
    is_ngram = found is not None and found["pads"] is not None
    pads = (found["pads"] + found["more"]).count("_") if found is not None and is_ngram else 0
    if found is None or (is_ngram and not (names <= LONGEST and names + pads >= SHORTEST)):
        raise ValueError(
            "must be BI, PRE, BFR, AFT or BTW and 2 names of the same form (UPOS&deprel, UPOS or deprel), or HI and 3 "
            "to 5 names UPOS&deprel, joined by _, with BOS only at the start and EOS only at the end"
        )
    return name


Scheme = Literal["ud1", "ud2"]

V2_TO_V1 = {
    "obj": "dobj",
    "nsubj:pass": "nsubjpass",
    "csubj:pass": "csubjpass",
    "aux:pass": "auxpass",
    "fixed": "mwe",
    "flat": "name",
    "flat:name": "name",
    "flat:foreign": "foreign",
    "obl": "nmod",
    "orphan": "remnant",
}
V1_TO_V2 = {
    "dobj": "obj",
    "nsubjpass": "nsubj:pass",
    "csubjpass": "csubj:pass",
    "auxpass": "aux:pass",
    "mwe": "fixed",
    "name": "flat",
    "foreign": "flat:foreign",
    "neg": "advmod",
    "remnant": "orphan",
}


def convert(item: Item, source: Scheme, target: Scheme, node: NodeClass) -> Item:
    """Convert an item (tag, arc) of a node of the class ``node`` from the label scheme ``source`` to ``target``.

    A head stays unchanged.

    >>> convert(("NOUN", "obl:tmod"), "ud2", "ud1", "V")
    ('NOUN', 'nmod:tmod')
    >>> convert(("NOUN", "nmod"), "ud1", "ud2", "V"), convert(("NOUN", "nmod"), "ud1", "ud2", "N")
    (('NOUN', 'obl'), ('NOUN', 'nmod'))
    """
    if source == target or item[1] == "@":
        return item
    return _to_v1(*item) if target == "ud1" else _to_v2(*item, node)


def _to_v1(tag: str, arc: str) -> Item:
    """Convert an item to v1. Three rules use the tag.

    - A copula is AUX in v2 and VERB in v1.
    - v1's ``neg`` is v2's ``advmod`` if the word is a PART (English *not*, German *nicht*). An adverb such as *never*
      or French *pas* has the same labels as other adverbs and stays.
    - ``flat`` is ``foreign`` for a word of another language (X), else ``name``.
    """
    tag = "CONJ" if tag == "CCONJ" else tag
    by_tag = {("PART", "advmod"): (tag, "neg"), ("AUX", "cop"): ("VERB", arc), ("X", "flat"): (tag, "foreign")}
    if (tag, arc) in by_tag:
        return by_tag[tag, arc]
    base, colon, subtype = arc.partition(":")
    return tag, V2_TO_V1.get(arc, f"nmod{colon}{subtype}" if base == "obl" else arc)


def _to_v2(tag: str, arc: str, node: NodeClass) -> Item:
    """Convert an item to v2. Two rules use the tag of the item or the class of the node.

    - A VERB that is a copula or a passive auxiliary is AUX.
    - An ``nmod`` of a verb is ``obl``, except ``nmod:poss``.
    """
    tag = "CCONJ" if tag == "CONJ" else tag
    if tag == "VERB" and arc in ("cop", "auxpass"):
        tag = "AUX"
    base, colon, subtype = arc.partition(":")
    is_oblique = base == "nmod" and node == "V" and subtype != "poss"
    return tag, V1_TO_V2.get(arc, f"obl{colon}{subtype}" if is_oblique else arc)
