"""Labels of Universal Dependencies v2 as those of v1 and back, for the lookup in an order model.

The released order models know v1 labels, today's treebanks and parsers v2 ones. Only labels
change, not trees: where v2 attaches a word elsewhere (coordination) a v1 model sees the v2 tree.
What v1 has no word for is taken to the nearest, what depends on more than the label follows a
rule stated here. Source: https://universaldependencies.org/v2/summary.html
"""

from __future__ import annotations

from typing import Literal

from synthlang.order.items import Item, NodeClass

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
    """The item (tag, arc) of a node in the labels of another scheme; a head only changes scheme.

    >>> convert(("NOUN", "obl:tmod"), "ud2", "ud1", "V")
    ('NOUN', 'nmod:tmod')
    >>> convert(("NOUN", "nmod"), "ud1", "ud2", "V"), convert(("NOUN", "nmod"), "ud1", "ud2", "N")
    (('NOUN', 'obl'), ('NOUN', 'nmod'))
    """
    if source == target or item[1] == "@":
        return item
    return _to_v1(*item) if target == "ud1" else _to_v2(*item, node)


def _to_v1(tag: str, arc: str) -> Item:
    """As-v1. Three rules look at the tag:

    - a copula is AUX in v2 and VERB in v1;
    - v1's ``neg`` is v2's ``advmod`` when the word is a PART (English *not*, German *nicht*; an
      adverb such as *never* or French *pas* cannot be told from others by its labels and stays);
    - ``flat`` of a word of another language (X) is ``foreign``, else a ``name``.
    """
    tag = "CONJ" if tag == "CCONJ" else tag
    if (tag, arc) == ("PART", "advmod"):
        return tag, "neg"
    if (tag, arc) == ("AUX", "cop"):
        return "VERB", arc
    if (tag, arc) == ("X", "flat"):
        return tag, "foreign"
    if arc in V2_TO_V1:
        return tag, V2_TO_V1[arc]
    base, colon, subtype = arc.partition(":")
    return tag, f"nmod{colon}{subtype}" if base == "obl" else arc


def _to_v2(tag: str, arc: str, node: NodeClass) -> Item:
    """As-v2: an ``nmod`` of a verb is ``obl`` (except ``nmod:poss``), a copula VERB is AUX."""
    tag = "CCONJ" if tag == "CONJ" else tag
    if (tag, arc) == ("VERB", "cop") or (tag == "VERB" and arc == "auxpass"):
        tag = "AUX"
    if arc in V1_TO_V2:
        return tag, V1_TO_V2[arc]
    base, colon, subtype = arc.partition(":")
    is_oblique = base == "nmod" and node == "V" and subtype != "poss"
    return tag, f"obl{colon}{subtype}" if is_oblique else arc
