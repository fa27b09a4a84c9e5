"""Items and features of an order model, by their names (Wang & Eisner 2016, section 4 and released models).

An item is a pair (tag, arc) and is seen in three views:

    dependent   (NOUN, nsubj)   full NOUN&nsubj   tag NOUN    arc nsubj
    head        (@VERB, @)      full @VERB&@      tag @VERB   arc @

    BI_a_b               a stands right before b in BOS x1 … xn EOS
    PRE_a_b              a stands anywhere before b
    BFR_a_b AFT_a_b BTW_a_b   so too, and both before the head, both after it, one on each side (a, b no head)
    HI_a_b_c[_d[_e]]     an n-gram of 3 to 5 full names; the ends are padded with BOS and EOS

The value of a feature is how often it occurs. A name is all there is: a tag and an arc that
are the same text are the same feature.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

NodeClass = Literal["N", "V"]
CLASSES: tuple[NodeClass, ...] = ("N", "V")
CLASS_OF_HEAD: dict[str, NodeClass] = {"NOUN": "N", "PROPN": "N", "PRON": "N", "VERB": "V"}
FAMILIES = ("BI", "PRE", "BFR", "AFT", "BTW")
HIGHER = "HI"
BOS, EOS = "BOS", "EOS"
SHORTEST, LONGEST = 3, 5  # n-grams of HI
MOST_ITEMS = 8  # 40,320 orders

Item = tuple[str, str]


class Feature(NamedTuple):
    """A feature's name taken apart."""

    family: str
    tokens: tuple[str, ...]


def head_item(upos: str) -> Item:
    """The head itself as an item."""
    return f"@{upos}", "@"


def full(item: Item) -> str:
    """The name that says most.

    >>> full(("NOUN", "nsubj")), full(head_item("VERB"))
    ('NOUN&nsubj', '@VERB&@')
    """
    return f"{item[0]}&{item[1]}"


def views(item: Item) -> tuple[str, str, str]:
    """The names in the three views: full, tag, arc."""
    return full(item), *item


def padding(items: int) -> int:
    """How many BOS, and EOS, the n-grams of a node see: min(5, n) − 1."""
    return min(LONGEST, items) - 1


def feature_name(family: str, *tokens: str) -> str:
    """The name of a feature.

    >>> feature_name("BI", "BOS", "nsubj")
    'BI_BOS_nsubj'
    """
    return "_".join((family, *tokens))


def can_name(item: Item) -> bool:
    """Whether features can name the item: ``_`` separates, ``&`` joins, a space ends the name."""
    return all(label and not any(c in "_&" or c.isspace() for c in label) for label in item)


def parse_feature(name: str) -> Feature:
    """Take a name apart; ValueError says what is wrong with it."""
    family, *tokens = name.split("_")
    if family not in (*FAMILIES, HIGHER):
        raise ValueError(f"a feature starts with one of {', '.join((*FAMILIES, HIGHER))} and _")
    expected = range(SHORTEST, LONGEST + 1) if family == HIGHER else range(2, 3)
    if len(tokens) not in expected:
        raise ValueError(f"{family} has {'3 to 5' if family == HIGHER else '2'} names after it, here are {len(tokens)}")
    if not all(tokens) or any(c.isspace() for c in name):
        raise ValueError("a name in it is empty or has a space")
    _check_padding(family, tokens)
    is_full = {"&" in token for token in tokens if token not in (BOS, EOS)}
    if len(is_full) == 2 or (family == HIGHER and False in is_full):
        raise ValueError("it mixes views" if len(is_full) == 2 else "HI takes names of the form UPOS&deprel")
    return Feature(family, tuple(tokens))


def _check_padding(family: str, tokens: list[str]) -> None:
    kinds = [0 if token == BOS else 2 if token == EOS else 1 for token in tokens]
    if family not in ("BI", HIGHER) and set(kinds) != {1}:
        raise ValueError(f"{family} takes no BOS or EOS")
    if kinds != sorted(kinds) or set(kinds) == {0}:
        raise ValueError("BOS can only stand at the start, EOS only at the end")
