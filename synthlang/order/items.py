"""Items and features of an order model, by their names (Wang & Eisner 2016, section 4 and released models).

An item is a pair (tag, arc) and is seen in three views:

    dependent   (NOUN, nsubj)   full NOUN&nsubj   tag NOUN    arc nsubj
    head        (@VERB, @)      full @VERB&@      tag @VERB   arc @

    BI_a_b               a stands right before b in BOS x1 … xn EOS
    PRE_a_b              a stands anywhere before b
    BFR_a_b AFT_a_b BTW_a_b   so too, and both before the head, both after it, one on each side (a, b no head)
    HI_a_b_c[_d[_e]]     an n-gram of 3 to 5 full names; the ends are padded with BOS and EOS

The value of a feature is how often it occurs. A name is all there is: a tag and an arc that
are the same text are the same feature. So a label may hold ``_``, and a name may have several
readings: ``PRE_a_b_c`` is of a and b_c and of a_b and c, whichever items a node has.

The released order models know labels of Universal Dependencies v1, today's treebanks and parsers those of v2. Only
labels are converted, not trees: where v2 attaches a word elsewhere (coordination) a v1 model sees the v2 tree. What v1
has no word for is taken to the nearest, what depends on more than the label follows a rule stated here.
Source: https://universaldependencies.org/v2/summary.html
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Literal, NamedTuple

NodeClass = Literal["N", "V"]
CLASSES: tuple[NodeClass, ...] = ("N", "V")
CLASS_OF_HEAD: dict[str, NodeClass] = {"NOUN": "N", "PROPN": "N", "PRON": "N", "VERB": "V"}
FAMILIES = ("BI", "PRE", "BFR", "AFT", "BTW")
HIGHER = "HI"
BOS, EOS = "BOS", "EOS"
SHORTEST, LONGEST = 3, 5  # n-grams of HI
MOST_ITEMS = 8  # 40,320 orders
MOST_NAMES = 1500  # item names of a view: a matrix of them must fit in memory

Item = tuple[str, str]


class Feature(NamedTuple):
    """A feature's name taken apart."""

    family: str
    tokens: tuple[str, ...]


def head_item(upos: str) -> Item:
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
    """Whether features can name the item: ``&`` joins, a space ends the name, BOS and EOS are no items."""
    return all(
        label and label not in (BOS, EOS) and "&" not in label and not any(c.isspace() for c in label) for label in item
    )


def parse_feature(name: str) -> Feature | None:
    """Take a name apart; None if it has several readings. ValueError says what is wrong with it."""
    family, *pieces = name.split("_")
    if family not in (*FAMILIES, HIGHER):
        raise ValueError(f"a feature starts with one of {', '.join((*FAMILIES, HIGHER))} and _")
    is_pair = family != HIGHER
    least, most, several = (2, 2, "2 names") if is_pair else (SHORTEST, LONGEST, "3 to 5 names")
    if any(c.isspace() for c in name):
        raise ValueError("a name in it has a space")
    if len(pieces) > least and (_can_be_pair(family, pieces) if is_pair else _can_be_ngram(pieces)):
        return _plain(family, pieces) if len(pieces) <= most else None
    if not least <= len(pieces) <= most:
        raise ValueError(f"{family} has {several} after it, here are {len(pieces)}")
    if not all(pieces):
        raise ValueError("a name in it is empty")
    _check(family, pieces)
    return Feature(family, tuple(pieces))


def _plain(family: str, pieces: list[str]) -> Feature | None:
    """The reading in which every ``_`` separates, if it is the only one in sight."""
    try:
        _check(family, pieces)
    except ValueError:
        return None
    return Feature(family, tuple(pieces)) if all(pieces) else None


def readings(name: str, odd: Container[str]) -> Iterator[Feature]:
    """The readings of a feature's name in which a name with ``_`` is one of ``odd``.

    >>> [f.tokens for f in readings("PRE_a_b_c", {"b_c", "a_b"})]
    [('a', 'b_c'), ('a_b', 'c')]
    """
    family, *pieces = name.split("_")
    if family == HIGHER:
        yield from (Feature(family, tokens) for tokens in _ngrams(pieces, odd, LONGEST) if len(tokens) >= SHORTEST)
        return
    for cut in range(1, len(pieces)):
        tokens = "_".join(pieces[:cut]), "_".join(pieces[cut:])
        if all(token and ("_" not in token or token in odd) for token in tokens):
            yield Feature(family, tokens)


def _ngrams(pieces: list[str], odd: Container[str], most: int) -> Iterator[tuple[str, ...]]:
    """All ways to join the pieces to at most ``most`` full names, BOS or EOS."""
    if not pieces:
        yield ()
    for cut in range(1, len(pieces) + 1 if most else 0):
        token = "_".join(pieces[:cut])
        if token.count("&") > 1:
            return
        if token in ((BOS, EOS) if "&" not in token else (token,)) and (cut == 1 or token in odd):
            for rest in _ngrams(pieces[cut:], odd, most - 1):
                yield token, *rest


def _check(family: str, tokens: list[str]) -> None:
    """ValueError for names that no two or more items can have together."""
    _check_padding(family, tokens)
    is_full = {"&" in token for token in tokens if token not in (BOS, EOS)}
    if len(is_full) == 2 or (family == HIGHER and False in is_full):
        raise ValueError("it mixes views" if len(is_full) == 2 else "HI takes names of the form UPOS&deprel")


def _check_padding(family: str, tokens: list[str]) -> None:
    kinds = [0 if token == BOS else 2 if token == EOS else 1 for token in tokens]
    if family not in ("BI", HIGHER) and set(kinds) != {1}:
        raise ValueError(f"{family} takes no BOS or EOS")
    if kinds != sorted(kinds) or set(kinds) == {0}:
        raise ValueError("BOS can only stand at the start, EOS only at the end")


def _can_be_pair(family: str, pieces: list[str]) -> bool:
    """Whether the pieces can be the names of two items."""
    for cut in range(1, len(pieces)):
        tokens = ["_".join(pieces[:cut]), "_".join(pieces[cut:])]
        try:
            _check(family, tokens)
        except ValueError:
            continue
        if all(tokens):
            return True
    return False


def _can_be_ngram(pieces: list[str]) -> bool:
    """Whether the pieces can be full names, after some BOS and before some EOS."""
    ends = [
        next((i for i, piece in enumerate(p) if piece != pad), 0) for p, pad in ((pieces, BOS), (pieces[::-1], EOS))
    ]
    parts = "_".join(pieces[ends[0] : len(pieces) - ends[1]]).split("&")
    # between two & there is the end of one name, a _ and the beginning of the next
    is_whole = len(parts) > 1 and parts[0] and parts[-1] and all("_" in part[1:-1] for part in parts[1:-1])
    items = len(parts) - 1
    return bool(is_whole) and items <= LONGEST and sum(ends) + items >= SHORTEST


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
