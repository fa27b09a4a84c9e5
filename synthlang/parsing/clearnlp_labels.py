"""ClearNLP → UD: labels and parts of speech."""

from __future__ import annotations

import re

from synthlang.parsing.clearnlp_words import NAME_ADJECTIVES, NOUNS_LIKE_ADJECTIVES
from synthlang.parsing.draft import TOP, Draft

PLAIN = {
    "acomp": "xcomp",
    "agent": "obl:agent",
    "attr": "xcomp",
    "auxpass": "aux:pass",
    "csubjpass": "csubj:pass",
    "dative": "iobj",
    "dobj": "obj",
    "intj": "discourse",
    "meta": "dep",
    "neg": "advmod",
    "nsubjpass": "nsubj:pass",
    "oprd": "xcomp",
    "pcomp": "advcl",
    "pobj": "obl",
    "poss": "nmod:poss",
    "preconj": "cc:preconj",
    "predet": "det:predet",
    "prep": "advmod",
    "prt": "compound:prt",
    "quantmod": "advmod",
    "relcl": "acl:relcl",
}
# Adjectives keep their part of speech inside names in EWT: *National Guard*.
ADJECTIVE_ENDING = re.compile(r"[a-z]{2,}(?:nal|ral|cal|ial|ual|ntal|ic|ish|ese|ian|ican|ive|ous|ern|ary|tary|aqi|ani)")


def labels(draft: Draft) -> None:
    """Give every word its UD label."""
    for word in draft.words:
        draft.label[word] = _label(draft, word)


def _label(draft: Draft, word: int) -> str:
    label, head = draft.label[word], draft.head[word]
    adjective = draft.upos[word] == "ADJ"
    if head == TOP:
        label = "root"
    elif label == "aux" and draft.tag[word] == "TO":
        label = "mark"
    elif label == "npadvmod":
        label = "nmod:unmarked" if draft.is_nominal(head) else "obl:unmarked"
    elif label == "prep" and draft.tag[word] in ("IN", "TO") and draft.upos[head] in ("VERB", "AUX", "ADJ"):
        label = "obl"  # a stranded preposition: nothing to sit [on]
    elif label == "relcl" and _is_infinitive(draft, word):
        label = "acl"
    elif label == "compound" and adjective:
        label = "amod"
    elif label == "nmod" and word < head and not draft.children(word, "case"):
        label = "amod" if adjective else "compound"
    return PLAIN.get(label, label)


def _is_infinitive(draft: Draft, word: int) -> bool:
    children = draft.children(word)
    wh = any(draft.tag[c] in ("WP", "WDT", "WRB", "WP$") for c in children)
    return draft.tag[word] == "VB" and any(draft.tag[c] == "TO" for c in children) and not wh


def name_adjectives(draft: Draft) -> None:
    """Adjectives inside names: PROPN → ADJ; not in names of persons."""
    for word in draft.words:
        if draft.tag[word] == "NNP" and draft.label[word] in ("compound", "nmod", "amod"):
            low = draft.low[word]
            like = ADJECTIVE_ENDING.fullmatch(low) is not None and low not in NOUNS_LIKE_ADJECTIVES
            if (like or low in NAME_ADJECTIVES) and not draft.ner[word].endswith("PERSON"):
                draft.upos[word] = "ADJ"


def part_of_speech(draft: Draft) -> None:
    """The parts of speech that follow from the UD label."""
    for word in draft.words:
        tag, label = draft.tag[word], draft.label[word]
        if tag == "WRB":
            draft.upos[word] = "ADV"
        elif label in ("cop", "aux", "aux:pass"):
            draft.upos[word] = "AUX"
        elif draft.upos[word] == "AUX" and tag[:1] == "V":
            draft.upos[word] = "VERB"
        elif tag == "IN" and label == "mark":
            draft.upos[word] = "SCONJ"
        elif tag == "IN" and label in ("case", "obl"):
            draft.upos[word] = "ADP"
        elif tag in ("IN", "RP") and label == "advmod":
            draft.upos[word] = "ADV"
        elif tag in ("DT", "WDT", "PDT") and label in ("det", "det:predet"):
            draft.upos[word] = "DET"
        elif draft.upos[word] in ("PROPN", "ADJ") and tag == "CD":
            draft.upos[word] = "NUM"
