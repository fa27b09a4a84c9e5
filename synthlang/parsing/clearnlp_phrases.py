"""ClearNLP → UD, within phrases: prepositions, names of persons, dates, numbers, fixed expressions.

ClearNLP puts a preposition above its object (``prep`` + ``pobj``), UD below it (``case``):

    he sat on the mat    on ← sat (prep), mat ← on (pobj)    →    mat ← sat (obl), on ← mat (case)

    Barack ← Obama (compound)            →    Obama ← Barack (flat): a name of a person has no head
    May 3 , 2001   3, 2001 ← May         →    May, 2001 ← 3 (nmod:unmarked)
    according to X                       →    to ← according (fixed)
"""

from __future__ import annotations

import re
from functools import partial
from itertools import pairwise

from synthlang.parsing.clearnlp_words import CURRENCY, FIRST_OF_TWO, HALF_DAYS, MONTHS, TITLES
from synthlang.parsing.draft import TOP, Draft

WITH_OBJECT = ("prep", "agent", "dative", "pcomp")


def prepositions(draft: Draft) -> None:
    """Turn every preposition below its object; one with a clause becomes its ``mark``."""
    above = {draft.head[w] for w in draft.words if draft.label[w] == "pobj"}
    for word in draft.deepest_first(w for w in draft.words if draft.label[w] in WITH_OBJECT or w in above):
        objects = draft.children(word, "pobj") or _object_of_inner(draft, word)
        clauses = [] if objects else draft.children(word, "pcomp")
        if objects:
            _object_above(draft, word, objects[0])
        elif clauses and draft.label[word] in WITH_OBJECT[:-1]:
            _clause_above(draft, word, clauses[0])


def _object_of_inner(draft: Draft, word: int) -> list[int]:
    """out [of the house]: the object of the second preposition is that of the first too."""
    if draft.tag[word] != "IN" and draft.low[word] not in FIRST_OF_TWO:
        return []
    inner = [w for w in draft.children(word, "obl") if w > word]
    return [w for w in inner if word + 1 in draft.children(w, "case")][:1]


def _object_above(draft: Draft, word: int, first: int) -> None:
    label, head = draft.label[word], draft.head[word]
    draft.replace_head(word, first)
    for other in draft.children(first, "pobj"):
        draft.label[other] = "conj" if other > first else "dep"
    draft.attach(word, first, "case")
    if label == "pcomp":  # from [behind the door]: the outer preposition takes the object
        draft.label[first] = "pobj"
    elif label in WITH_OBJECT:
        draft.label[first] = oblique(draft, head, label)


def oblique(draft: Draft, head: int, label: str = "prep") -> str:
    """The label of a phrase with a preposition below ``head``."""
    if label == "agent":
        return "obl:agent"
    return "nmod" if draft.is_nominal(head) else "obl"


def _clause_above(draft: Draft, word: int, clause: int) -> None:
    head = draft.head[word]
    draft.replace_head(word, clause)
    if draft.label[clause] != "conj":
        draft.label[clause] = "acl" if draft.is_nominal(head) else "advcl"
    draft.attach(word, clause, "mark")


DAY = re.compile(r"(0?[1-9]|[12][0-9]|3[01])(st|nd|rd|th)?", re.IGNORECASE)
YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}|'[0-9]{2}")
FIXED = {  # phrase → the label of its first word, if it is certain (universaldependencies.org/en/dep/fixed.html)
    ("due", "to"): "case",
    ("because", "of"): "case",
    ("according", "to"): "case",
    ("such", "as"): "case",
    ("instead", "of"): "",
    ("rather", "than"): "",
    ("prior", "to"): "case",
    ("as", "to"): "",
    ("as", "of"): "case",
    ("as", "for"): "case",
    ("of", "course"): "advmod",
    ("as", "well"): "advmod",
    ("so", "that"): "mark",
    ("in", "order"): "mark",
    ("more", "than"): "",
    ("less", "than"): "",
    ("each", "other"): "",
    ("one", "another"): "",
    ("kind", "of"): "",
    ("sort", "of"): "",
    ("up", "to"): "",
}
LOOSE = frozenset([("more", "than"), ("less", "than"), ("up", "to")])  # fixed before a number only
HEDGES = frozenset([("kind", "of"), ("sort", "of")])  # fixed before what is no noun phrase


def names(draft: Draft) -> None:
    """Let the first word of each person's name head it; a title before a name hangs on it."""
    for start, stop in persons(draft):
        _flat(draft, [w for w in range(start, stop) if draft.tag[w] in ("NNP", "NNPS", "NN", "IN", "JJ")])
    for word in draft.words:
        if draft.label[word] == "compound" and draft.low[word] in TITLES and draft.upos[draft.head[word]] == "PROPN":
            draft.label[word] = "nmod:desc"


def persons(draft: Draft) -> list[tuple[int, int]]:
    """(first word, word after the last) of every name of a person."""
    spans: list[tuple[int, int]] = []
    for word in draft.words:
        if draft.ner[word] in ("B-PERSON", "B-PER"):
            spans.append((word, word + 1))
        elif draft.ner[word] in ("I-PERSON", "I-PER") and spans and spans[-1][1] == word:
            spans[-1] = (spans[-1][0], word + 1)
    return spans


def _flat(draft: Draft, words: list[int]) -> None:
    while words and draft.low[words[0]] in TITLES:
        words = words[1:]
    tops = [w for w in words if draft.head[w] not in words]
    if len(words) < 2 or len(tops) != 1 or any(b - a > 2 for a, b in pairwise(words)):
        return
    if any(draft.label[w] not in ("compound", "nmod", "amod", "punct") for w in words if w not in tops):
        return
    first, top = words[0], tops[0]
    if first != top:
        draft.replace_head(top, first)
    for word in words[1:]:
        for child in draft.children(word):
            draft.head[child] = first
        draft.attach(word, first, "flat")


def dates_and_numbers(draft: Draft) -> None:
    """The day heads a date, the clock time its half of the day, the currency sign its amount."""
    _amounts(draft)
    for word in draft.words:
        head = draft.head[word]
        if draft.tag[word] not in ("CD", "JJ", "NN") or head == TOP:
            continue
        if draft.low[head] in MONTHS and draft.label[word] in ("nummod", "appos", "npadvmod", "amod"):
            _date(draft, word, head)
        elif draft.low[head] in HALF_DAYS and draft.label[word] == "nummod" and word < head:
            draft.replace_head(head, word)
            draft.attach(head, word, "nmod:unmarked")
        elif draft.label[word] == "nummod" and word > head and draft.low[head] not in CURRENCY:
            draft.label[word] = "nmod:unmarked" if YEAR.fullmatch(draft.form[word]) else "flat"


def _amounts(draft: Draft) -> None:
    """$ 5: the sign is the head in EWT."""
    for word in draft.words:
        head = draft.head[word]
        if draft.low[word] in CURRENCY and head > word and draft.tag[head] == "CD":
            number = [c for c in draft.children(head, "compound", "nummod") if c > word and draft.tag[c] == "CD"]
            draft.replace_head(head, word, partial(_not_in, number))
            draft.attach(head, word, "nummod")


def _not_in(words: list[int], word: int) -> bool:
    return word not in words


def _date(draft: Draft, word: int, month: int) -> None:
    if DAY.fullmatch(draft.form[word]):
        draft.replace_head(month, word)
        draft.attach(month, word, "nmod:unmarked")
    elif YEAR.fullmatch(draft.form[word]):
        draft.label[word] = "nmod:unmarked"


def fixed_expressions(draft: Draft) -> None:
    """Hang the second word of a fixed expression on the first, where the two belong together already."""
    for word in draft.words[:-1]:
        pair = (draft.low[word], draft.low[word + 1])
        if pair not in FIXED or not _belong(draft, word) or not _here(draft, word, pair):
            continue
        second = word + 1
        if draft.head[word] == second:
            draft.attach(word, draft.head[second], draft.label[second])
        for child in draft.children(second):
            draft.head[child] = word
        draft.attach(second, word, "fixed")
        if FIXED[pair] and draft.head[word] != TOP:
            draft.label[word] = FIXED[pair]


def _belong(draft: Draft, word: int) -> bool:
    first, second = draft.head[word], draft.head[word + 1]
    return first in (second, word + 1) or second == word


def _here(draft: Draft, word: int, pair: tuple[str, str]) -> bool:
    if pair in LOOSE:
        return word + 2 in draft.words and draft.tag[word + 2] == "CD"
    if pair in HEDGES:
        return draft.label[word] == "advmod"
    if pair == ("as", "well"):
        return not (word + 2 in draft.words and draft.low[word + 2] == "as")
    if pair == ("so", "that"):
        return draft.label[word] in ("mark", "advmod", "dep") and draft.label[word + 1] == "mark"
    return True
