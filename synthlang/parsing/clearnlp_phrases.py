"""ClearNLP → UD, within phrases: prepositions, names, numbers, fixed expressions.

ClearNLP puts a preposition above its object (``prep`` + ``pobj``), UD below it (``case``):

    he sat on the mat    on ← sat (prep), mat ← on (pobj)    →    mat ← sat (obl), on ← mat (case)
"""

from __future__ import annotations

from synthlang.parsing.clearnlp_words import FIRST_OF_TWO
from synthlang.parsing.draft import Draft

LABELS = ("prep", "agent", "dative", "pcomp")


def prepositions(draft: Draft) -> None:
    """Turn every preposition below its object; one with a clause becomes its ``mark``."""
    above = {draft.head[w] for w in draft.words if draft.label[w] == "pobj"}
    for word in draft.deepest_first(w for w in draft.words if draft.label[w] in LABELS or w in above):
        objects = draft.children(word, "pobj") or _object_of_inner(draft, word)
        clauses = [] if objects else draft.children(word, "pcomp")
        if objects:
            _object_above(draft, word, objects[0])
        elif clauses and draft.label[word] in LABELS[:-1]:
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
    elif label in LABELS:
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
