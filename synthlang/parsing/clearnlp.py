"""Convert ClearNLP trees (spaCy's English pipelines) to UD v2 trees and labels, with the word lists of clearnlp.yaml.

he is happy              he ← is (nsubj), happy ← is (acomp)  →  he ← happy (nsubj), is ← happy (cop)
red , white and blue     white ← red, blue ← white, and ← white  →  blue ← red, and ← blue
let him go               him ← go (nsubj), go ← let (ccomp)  →  him ← let (obj), go ← let (xcomp)
it is easy to see        it (nsubj), see (xcomp)  →  it (expl), see (csubj)
he sat on the mat        on ← sat (prep), mat ← on (pobj)  →  mat ← sat (obl), on ← mat (case)
Barack Obama             Barack ← Obama (compound)  →  Obama ← Barack (flat): a name of a person has no head
May 3 , 2001             3, 2001 ← May  →  May, 2001 ← 3 (nmod:unmarked)
according to X           to ← according (fixed)
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

from synthlang.parsing.draft import TOP, Draft, attach_punctuation
from synthlang.strict_yaml import read_yaml

FORMAT = 1
TABLES: dict[str, Any] = read_yaml(Path(__file__).with_suffix(".yaml"))
WORDS = {name: frozenset(words.split()) for name, words in TABLES["words"].items()}
SUBJECTS = ("nsubj", "csubj", "nsubjpass", "csubjpass")
FINITE = ("VBD", "VBZ", "VBP", "MD")
WITH_OBJECT = ("prep", "agent", "dative", "pcomp")
DAY = re.compile(r"(0?[1-9]|[12][0-9]|3[01])(st|nd|rd|th)?", re.IGNORECASE)
YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}|'[0-9]{2}")
# In EWT, adjectives keep their part of speech inside names: *National Guard*.
ADJECTIVE_ENDING = re.compile(r"[a-z]{2,}(?:nal|ral|cal|ial|ual|ntal|ic|ish|ese|ian|ican|ive|ous|ern|ary|tary|aqi|ani)")


def is_clearnlp(labels: Iterable[str]) -> bool:
    """Return whether a parser has ClearNLP labels: ``dobj`` and ``pobj`` are not labels of UD."""
    return {"dobj", "pobj"} <= set(labels)


def convert(draft: Draft) -> None:
    """Change a ClearNLP tree into a UD tree, in place."""
    for step in STEPS:
        step(draft)


def coordination(draft: Draft) -> None:
    """Attach every conjunct to the first conjunct, and every conjunction to the conjunct after it."""
    for word in draft.having("cc"):
        after = [c for c in draft.children(draft.head[word], "conj") if c > word]
        if after and word > draft.head[word]:
            draft.head[word] = after[0]
    for word in draft.having("conj"):
        while draft.label[draft.head[word]] == "conj":
            draft.head[word] = draft.head[draft.head[word]]


def run_on_sentences(draft: Draft) -> None:
    """Make the first clause of a sentence such as *I came , I saw* the head of the sentence.

    ClearNLP attaches the first clause to the second as ``ccomp``. UD attaches the second to the first as ``parataxis``.
    """
    for word in draft.having("ccomp"):
        head = draft.head[word]
        if head < word or draft.lemma[head] in WORDS["speech"] or not _is_finite(draft, word):
            continue
        subjects = draft.children(head, *SUBJECTS)
        if draft.children(word, "mark") or (subjects and subjects[0] < word):
            continue
        draft.attach(word, draft.head[head], draft.label[head])
        draft.attach(head, word, "parataxis")
        for child in draft.children(head):
            if child < word:
                draft.head[child] = word


def _is_finite(draft: Draft, word: int) -> bool:
    helpers = draft.children(word, "aux", "auxpass", "cop")
    return any(draft.tag[w] in FINITE for w in (word, *helpers))


def name_adjectives(draft: Draft) -> None:
    """Change PROPN to ADJ for adjectives inside names, except names of persons."""
    for word in draft.having("compound", "nmod", "amod"):
        if draft.tag[word] == "NNP" and not draft.ner[word].endswith("PERSON"):
            low = draft.low[word]
            like = ADJECTIVE_ENDING.fullmatch(low) is not None and low not in WORDS["nouns like adjectives"]
            if like or low in WORDS["name adjectives"]:
                draft.upos[word] = "ADJ"


# --- within phrases


def prepositions(draft: Draft) -> None:
    """Move every preposition below its object. A preposition with a clause becomes the ``mark`` of the clause."""
    above = {draft.head[w] for w in draft.having("pobj")}
    for word in draft.deepest_first(w for w in draft.words if draft.label[w] in WITH_OBJECT or w in above):
        objects = draft.children(word, "pobj") or _object_of_inner(draft, word)
        clauses = [] if objects else draft.children(word, "pcomp")
        if objects:
            _object_above(draft, word, objects[0])
        elif clauses and draft.label[word] in WITH_OBJECT[:-1]:
            clause, nominal = clauses[0], draft.is_nominal(draft.head[word])
            draft.replace_head(word, clause)
            if draft.label[clause] != "conj":
                draft.label[clause] = "acl" if nominal else "advcl"
            draft.attach(word, clause, "mark")


def _object_of_inner(draft: Draft, word: int) -> list[int]:
    """Return the object that two prepositions share, as in out [of the house], or nothing."""
    if draft.tag[word] != "IN" and draft.low[word] not in WORDS["first of two"]:
        return []
    inner = [w for w in draft.children(word, "obl") if w > word]
    return [w for w in inner if word + 1 in draft.children(w, "case")][:1]


def _object_above(draft: Draft, word: int, first: int) -> None:
    label, nominal = draft.label[word], draft.is_nominal(draft.head[word])
    draft.replace_head(word, first)
    for other in draft.children(first, "pobj"):
        draft.label[other] = "conj" if other > first else "dep"
    draft.attach(word, first, "case")
    if label == "pcomp":  # from [behind the door]: the outer preposition takes the object
        draft.label[first] = "pobj"
    elif label in WITH_OBJECT:
        draft.label[first] = "obl:agent" if label == "agent" else "nmod" if nominal else "obl"


def names(draft: Draft) -> None:
    """Make the first word of a person's name the head of the name, and attach a title to the name."""
    spans: list[list[int]] = []
    for word in draft.words:
        if draft.ner[word] in ("B-PERSON", "B-PER"):
            spans.append([word])
        elif draft.ner[word] in ("I-PERSON", "I-PER") and spans and spans[-1][-1] == word - 1:
            spans[-1].append(word)
    for span in spans:
        _flat(draft, [w for w in span if draft.tag[w] in ("NNP", "NNPS", "NN", "IN", "JJ")])
    for word in draft.having("compound"):
        if draft.low[word] in WORDS["titles"] and draft.upos[draft.head[word]] == "PROPN":
            draft.label[word] = "nmod:desc"


def _flat(draft: Draft, words: list[int]) -> None:
    while words and draft.low[words[0]] in WORDS["titles"]:
        words = words[1:]
    tops = [w for w in words if draft.head[w] not in words]
    if len(words) < 2 or len(tops) != 1 or any(b - a > 2 for a, b in pairwise(words)):
        return
    if any(draft.label[w] not in ("compound", "nmod", "amod", "punct") for w in words if w not in tops):
        return
    first = words[0]
    if first != tops[0]:
        draft.replace_head(tops[0], first)
    for word in words[1:]:
        for child in draft.children(word):
            draft.head[child] = first
        draft.attach(word, first, "flat")


def dates_and_numbers(draft: Draft) -> None:
    """Make the day the head of a date, the hour the head of *am* or *pm*, and the currency sign the head of *$ 5*."""
    for word in draft.words:
        head = draft.head[word]
        if draft.low[word] in WORDS["currency"] and head > word and draft.tag[head] == "CD":
            number = [c for c in draft.children(head, "compound", "nummod") if c > word and draft.tag[c] == "CD"]
            draft.replace_head(head, word, stays=number)
            draft.attach(head, word, "nummod")
    for word in draft.words:
        head, label, form = draft.head[word], draft.label[word], draft.form[word]
        if draft.tag[word] not in ("CD", "JJ", "NN") or head == TOP:
            continue
        dated = draft.low[head] in WORDS["months"] and label in ("nummod", "appos", "npadvmod", "amod")
        halved = draft.low[head] in WORDS["half days"] and label == "nummod" and word < head
        if (dated and DAY.fullmatch(form)) or (halved and not dated):
            draft.replace_head(head, word)
            draft.attach(head, word, "nmod:unmarked")
        elif dated:
            draft.label[word] = "nmod:unmarked" if YEAR.fullmatch(form) else label
        elif label == "nummod" and word > head and draft.low[head] not in WORDS["currency"]:
            draft.label[word] = "nmod:unmarked" if YEAR.fullmatch(form) else "flat"


# --- clauses


def copulas(draft: Draft) -> None:
    """Make the predicate the head of its clause, with the form of *be* below it (``cop``)."""
    verbs = (w for w in draft.words if draft.low[w] in WORDS["forms of be"] and draft.tag[w][:1] == "V")
    for word in draft.deepest_first(w for w in verbs if not draft.label[w].startswith("aux")):
        predicate = _predicate(draft, word)
        if predicate is not None:
            if draft.children(predicate, *SUBJECTS):
                for child in draft.children(word, *SUBJECTS):
                    draft.label[child] = f"{draft.label[child][:5]}:outer"
            draft.replace_head(word, predicate)
            draft.attach(word, predicate, "cop")


def _predicate(draft: Draft, word: int) -> int | None:
    plain = draft.children(word, "attr", "acomp", "oprd")
    if any(draft.low[w] == "there" for w in draft.children(word, "expl")):
        for thing in plain:
            draft.label[thing] = "nsubj"
        return None
    if plain:
        return next((w for w in plain if w > word), plain[0])
    clauses = [w for w in draft.children(word, "ccomp", "xcomp") if w > word]
    if clauses and draft.children(word, *SUBJECTS):
        return clauses[0]
    phrases = [w for w in draft.children(word, "obl", "advcl") if w > word and draft.children(w, "case", "mark")]
    adverbs = [w for w in draft.children(word, "advmod", "prt") if draft.low[w] in WORDS["places"]]
    places = sorted(w for w in (*phrases, *adverbs) if w > word)
    return next(iter(places or adverbs), None)


def raised_objects(draft: Draft) -> None:
    """Turn the subject of a clause without a finite verb into the object of the verb above it."""
    for word in draft.having("ccomp"):
        head, children = draft.head[word], draft.children(word)
        marked = draft.children(word, "mark") or any(draft.tag[c] in ("WRB", "WP", "WDT") for c in children)
        if head == TOP or head > word or marked or _is_finite(draft, word) or draft.tag[word][:2] == "WP":
            continue
        subjects = draft.children(word, *SUBJECTS)
        if subjects:
            draft.attach(subjects[0], head, "dobj")
        draft.label[word] = "xcomp"


def recipients(draft: Draft) -> None:
    """Turn the object of *tell*, *ask*, … into the recipient."""
    for word in draft.having("dobj"):
        head = draft.head[word]
        if draft.lemma[head] in WORDS["take recipient"] and draft.low[word] not in ("it", "that", "this"):
            person = draft.tag[word] in ("PRP", "NNP") or bool(draft.children(head, "ccomp", "xcomp"))
            if person and draft.children(head, "dobj", "dative")[0] == word:
                draft.label[word] = "dative"


def clausal_complements(draft: Draft) -> None:
    """Turn the ``xcomp`` of most adjectives and of some verbs into ``advcl``.

    A clause that *it* stands for, as in *it is easy to see*, becomes ``csubj`` instead.
    """
    for word in draft.having("xcomp", "ccomp"):
        head = draft.head[word]
        if head == TOP or head > word:
            continue
        expletive = [w for w in draft.children(head, "nsubj", "nsubjpass") if draft.low[w] == "it"]
        if expletive and _extraposes(draft, head, word):
            draft.label[expletive[0]], draft.label[word] = "expl", "csubj"
        elif draft.label[word] == "xcomp" and draft.tag[word][:2] == "VB":
            adjective = draft.tag[head][:2] == "JJ" and draft.low[head] not in WORDS["adjectives with xcomp"]
            if adjective or draft.lemma[head] in WORDS["verbs with advcl"]:
                draft.label[word] = "advcl"


def _extraposes(draft: Draft, head: int, clause: int) -> bool:
    """Return whether *it* stands for the clause: it is good [to …], it seems [that …], it takes long [to …]."""
    if draft.lemma[head] in ("take", "seem", "appear", "happen"):
        return draft.tag[clause] == "VB" or draft.lemma[head] != "take"
    marked = any(draft.low[w] in ("to", "that", "if") for w in draft.children(clause, "mark", "aux"))
    predicate = bool(draft.children(head, "cop")) and draft.low[head] not in WORDS["adjectives with xcomp"]
    return predicate and marked


# --- labels


def fixed_expressions(draft: Draft) -> None:
    """Attach the second word of a fixed expression to the first, if the tree already connects the two words."""
    for word in draft.words[:-1]:
        second, pair = word + 1, f"{draft.low[word]} {draft.low[word + 1]}"
        head = draft.head[word]
        together = head in (second, draft.head[second]) or draft.head[second] == word
        if pair not in TABLES["fixed"] or not together or not _is_fixed(draft, word, pair):
            continue
        if head == second:
            draft.attach(word, draft.head[second], draft.label[second])
        for child in draft.children(second):
            draft.head[child] = word
        draft.attach(second, word, "fixed")
        if draft.head[word] != TOP:
            draft.label[word] = TABLES["fixed"][pair] or draft.label[word]


def _is_fixed(draft: Draft, word: int, pair: str) -> bool:
    label, third = draft.label[word], word + 2 if word + 2 in draft.words else TOP
    match pair:
        case "more than" | "less than" | "up to":  # before a number only
            return third != TOP and draft.tag[third] == "CD"
        case "kind of" | "sort of":  # except before a noun phrase
            return label == "advmod"
        case "as well":
            return draft.low[third] != "as"
        case "so that":
            return label in ("mark", "advmod", "dep") and draft.label[word + 1] == "mark"
    return True


def labels(draft: Draft) -> None:
    """Replace the ClearNLP label of every word by the UD label."""
    for word in draft.words:
        label, head = draft.label[word], draft.head[word]
        adjective = draft.upos[word] == "ADJ"
        if head == TOP:
            label = "root"
        elif label == "aux" and draft.tag[word] == "TO":
            label = "mark"
        elif label == "npadvmod":
            label = "nmod:unmarked" if draft.is_nominal(head) else "obl:unmarked"
        elif label == "prep" and draft.tag[word] in ("IN", "TO") and draft.upos[head] in ("VERB", "AUX", "ADJ"):
            label = "obl"  # a stranded preposition, as in: nothing to sit [on]
        elif label == "relcl" and _is_infinitive(draft, word):
            label = "acl"
        elif label == "compound" and adjective:
            label = "amod"
        elif label == "nmod" and word < head and not draft.children(word, "case"):
            label = "amod" if adjective else "compound"
        draft.label[word] = TABLES["labels"].get(label, label)


def _is_infinitive(draft: Draft, word: int) -> bool:
    tags = {draft.tag[child] for child in draft.children(word)}
    return draft.tag[word] == "VB" and "TO" in tags and not tags & {"WP", "WDT", "WRB", "WP$"}


def part_of_speech(draft: Draft) -> None:
    """Correct parts of speech by the Penn Treebank tag and the UD label."""
    for word in draft.words:
        tag, label, upos = draft.tag[word], draft.label[word], draft.upos[word]
        if tag == "WRB":
            upos = "ADV"
        elif label in ("cop", "aux", "aux:pass"):
            upos = "AUX"
        elif upos == "AUX" and tag[:1] == "V":
            upos = "VERB"
        elif tag == "IN" and label == "mark":
            upos = "SCONJ"
        elif tag == "IN" and label in ("case", "obl"):
            upos = "ADP"
        elif tag in ("IN", "RP") and label == "advmod":
            upos = "ADV"
        elif tag in ("DT", "WDT", "PDT") and label in ("det", "det:predet"):
            upos = "DET"
        elif upos in ("PROPN", "ADJ") and tag == "CD":
            upos = "NUM"
        draft.upos[word] = upos


STEPS = (
    *(coordination, run_on_sentences, name_adjectives, prepositions, names, dates_and_numbers, copulas),
    *(raised_objects, recipients, clausal_complements, fixed_expressions, labels, part_of_speech, attach_punctuation),
)
