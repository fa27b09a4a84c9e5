"""ClearNLP trees (spaCy's English pipelines) as UD v2 trees and labels: the steps, those of clauses, the labels.

he is happy              he ← is (nsubj), happy ← is (acomp)  →  he ← happy (nsubj), is ← happy (cop)
red , white and blue     white ← red, blue ← white, and ← white  →  blue ← red, and ← blue
let him go               him ← go (nsubj), go ← let (ccomp)  →  him ← let (obj), go ← let (xcomp)
it is easy to see        it (nsubj), see (xcomp)  →  it (expl), see (csubj)
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from synthlang.parsing.clearnlp_phrases import dates_and_numbers, fixed_expressions, names, prepositions
from synthlang.parsing.clearnlp_words import (
    ADJECTIVES_WITH_XCOMP,
    FORMS_OF_BE,
    NAME_ADJECTIVES,
    NOUNS_LIKE_ADJECTIVES,
    PLACES,
    SPEECH,
    TAKE_RECIPIENT,
    VERBS_WITH_ADVCL,
)
from synthlang.parsing.draft import TOP, Draft, attach_punctuation

FORMAT = 1


def is_clearnlp(labels: Iterable[str]) -> bool:
    """Whether the label set of a parser is ClearNLP's: it has ``dobj`` and ``pobj``, which UD has not."""
    return {"dobj", "pobj"} <= set(labels)


def convert(draft: Draft) -> None:
    """Change a ClearNLP tree into a UD tree, in place."""
    coordination(draft)
    run_on_sentences(draft)
    name_adjectives(draft)
    prepositions(draft)
    names(draft)
    dates_and_numbers(draft)
    copulas(draft)
    raised_objects(draft)
    recipients(draft)
    clausal_complements(draft)
    fixed_expressions(draft)
    labels(draft)
    part_of_speech(draft)
    attach_punctuation(draft)


SUBJECTS = ("nsubj", "csubj", "nsubjpass", "csubjpass")
FINITE = ("VBD", "VBZ", "VBP", "MD")


def coordination(draft: Draft) -> None:
    """Hang every conjunct on the first one and every conjunction on the conjunct after it."""
    for word in draft.words:
        if draft.label[word] == "cc":
            after = [c for c in draft.children(draft.head[word], "conj") if c > word]
            if after and word > draft.head[word]:
                draft.head[word] = after[0]
    for word in draft.words:
        while draft.label[word] == "conj" and draft.label[draft.head[word]] == "conj":
            draft.head[word] = draft.head[draft.head[word]]


def run_on_sentences(draft: Draft) -> None:
    """*I came , I saw*: ClearNLP hangs the first clause on the second as ``ccomp``, UD the second as ``parataxis``."""
    for word in draft.words:
        head = draft.head[word]
        if draft.label[word] != "ccomp" or head < word or draft.lemma[head] in SPEECH or not _finite(draft, word):
            continue
        subjects = draft.children(head, *SUBJECTS)
        if draft.children(word, "mark") or (subjects and subjects[0] < word):
            continue
        draft.attach(word, draft.head[head], draft.label[head])
        draft.attach(head, word, "parataxis")
        for child in draft.children(head):
            if child < word:
                draft.head[child] = word


def raised_objects(draft: Draft) -> None:
    """The subject of a clause without a finite verb is the object of the verb above it."""
    for word in draft.words:
        if draft.label[word] != "ccomp" or draft.head[word] == TOP or draft.children(word, "mark"):
            continue
        if _finite(draft, word) or draft.head[word] > word or draft.tag[word][:2] == "WP":
            continue
        if any(draft.tag[c] in ("WRB", "WP", "WDT") for c in draft.children(word)):
            continue
        subjects = draft.children(word, *SUBJECTS)
        if subjects:
            draft.attach(subjects[0], draft.head[word], "dobj")
        draft.label[word] = "xcomp"


def _finite(draft: Draft, word: int) -> bool:
    helpers = draft.children(word, "aux", "auxpass", "cop")
    return any(draft.tag[w] in FINITE for w in (word, *helpers))


def recipients(draft: Draft) -> None:
    """The object of *tell*, *ask*, … is the person who is told."""
    for word in draft.words:
        if draft.label[word] == "dobj" and draft.lemma[draft.head[word]] in TAKE_RECIPIENT:
            objects = draft.children(draft.head[word], "dobj", "dative")
            person = draft.tag[word] in ("PRP", "NNP") or bool(draft.children(draft.head[word], "ccomp", "xcomp"))
            if objects[0] == word and person and draft.low[word] not in ("it", "that", "this"):
                draft.label[word] = "dative"


def clausal_complements(draft: Draft) -> None:
    """``xcomp`` of most adjectives is an adverbial clause in UD; after *it is* it is the subject."""
    for word in draft.words:
        head = draft.head[word]
        if draft.label[word] not in ("xcomp", "ccomp") or head == TOP or head > word:
            continue
        expletive = [w for w in draft.children(head, "nsubj", "nsubjpass") if draft.low[w] == "it"]
        if expletive and _extraposes(draft, head, word):
            draft.label[expletive[0]], draft.label[word] = "expl", "csubj"
        elif draft.label[word] == "xcomp" and draft.tag[word][:2] == "VB":
            adjective = draft.tag[head][:2] == "JJ" and draft.low[head] not in ADJECTIVES_WITH_XCOMP
            if adjective or draft.lemma[head] in VERBS_WITH_ADVCL:
                draft.label[word] = "advcl"


def _extraposes(draft: Draft, head: int, clause: int) -> bool:
    """Whether the clause is what *it* stands for: it is good [to …], it seems [that …], it takes long [to …]."""
    if draft.lemma[head] in ("take", "seem", "appear", "happen"):
        return draft.tag[clause] == "VB" or draft.lemma[head] != "take"
    marked = any(draft.low[w] in ("to", "that", "if") for w in draft.children(clause, "mark", "aux"))
    predicate = bool(draft.children(head, "cop")) and draft.low[head] not in ADJECTIVES_WITH_XCOMP
    return predicate and marked


def copulas(draft: Draft) -> None:
    """Let the predicate head its clause, with the form of *be* below it (``cop``)."""
    verbs = (w for w in draft.words if draft.low[w] in FORMS_OF_BE and draft.tag[w][:1] == "V")
    for word in draft.deepest_first(w for w in verbs if not draft.label[w].startswith("aux")):
        predicate = _predicate(draft, word)
        if predicate is not None:
            _below(draft, word, predicate)


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
    adverbs = [w for w in draft.children(word, "advmod", "prt") if draft.low[w] in PLACES]
    places = sorted(w for w in (*phrases, *adverbs) if w > word)
    return next(iter(places or adverbs), None)


def _below(draft: Draft, word: int, predicate: int) -> None:
    if draft.children(predicate, *SUBJECTS):
        for child in draft.children(word, *SUBJECTS):
            draft.label[child] = f"{draft.label[child][:5]}:outer"
    draft.replace_head(word, predicate)
    draft.attach(word, predicate, "cop")


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
