"""ClearNLP → UD: sentences by hand, properties on random trees, and the score on EWT's gold trees."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthlang.parsing.clearnlp import convert, is_clearnlp
from synthlang.parsing.draft import Draft, attach_punctuation
from synthlang.parsing.score import score
from synthlang.sources.conllu import tree_problem

UPOS = {"NN": "NOUN", "NNS": "NOUN", "NNP": "PROPN", "PRP": "PRON", "PRP$": "PRON", "WP": "PRON", "WDT": "PRON",
        "DT": "DET", "PDT": "DET", "JJ": "ADJ", "RB": "ADV", "WRB": "SCONJ", "IN": "ADP", "TO": "PART", "RP": "ADP",
        "CC": "CCONJ", "CD": "NUM", "MD": "AUX", "POS": "PART", "EX": "PRON", "UH": "INTJ", "$": "SYM"}  # fmt: skip
OBAMA = "Mr./NNP/3/compound Barack/NNP/3/compound Obama/NNP/4/nsubj spoke/VBD/0/ROOT"
# word/tag/head/label of the ClearNLP tree, head:label of each word in the UD tree, names if they are found
CASES: dict[str, tuple[str, ...]] = {
    "preposition": ("he/PRP/2/nsubj sat/VBD/0/ROOT on/IN/2/prep the/DT/5/det mat/NN/3/pobj ././2/punct",
                    "2:nsubj 0:root 5:case 5:det 2:obl 2:punct"),
    "preposition of a noun": ("the/DT/2/det end/NN/0/ROOT of/IN/2/prep time/NN/3/pobj", "2:det 0:root 4:case 2:nmod"),
    "two prepositions": ("ran/VBD/0/ROOT out/IN/1/prep of/IN/2/prep town/NN/3/pobj", "0:root 4:case 4:case 1:obl"),
    "because of": ("fell/VBD/0/ROOT because/IN/1/prep of/IN/2/pcomp rain/NN/3/pobj", "0:root 4:case 2:fixed 1:obl"),
    "according to": ("true/JJ/0/ROOT according/VBG/1/prep to/IN/2/prep him/PRP/3/pobj", "0:root 4:case 2:fixed 1:obl"),
    "fragment": ("in/IN/0/ROOT the/DT/3/det city/NN/1/pobj ././1/punct", "3:case 3:det 0:root 3:punct"),
    "stranded": ("nothing/NN/0/ROOT to/TO/3/aux work/VB/1/relcl with/IN/3/prep", "0:root 3:mark 1:acl 3:obl"),
    "preposition of a clause": ("slept/VBD/0/ROOT after/IN/1/prep eating/VBG/2/pcomp it/PRP/3/dobj",
                                "0:root 3:mark 1:advcl 3:obj"),
    "adjective": ("she/PRP/2/nsubj is/VBZ/0/ROOT not/RB/2/neg happy/JJ/2/acomp ././2/punct",
                  "4:nsubj 4:cop 4:advmod 0:root 4:punct"),
    "noun": ("is/VBZ/0/ROOT he/PRP/1/nsubj a/DT/4/det king/NN/1/attr ?/./1/punct",
             "4:cop 4:nsubj 4:det 0:root 4:punct"),
    "place": ("he/PRP/2/nsubj is/VBZ/0/ROOT in/IN/2/prep Rome/NNP/3/pobj", "4:nsubj 4:cop 4:case 0:root"),
    "where": ("where/WRB/2/advmod is/VBZ/0/ROOT he/PRP/2/nsubj", "0:root 1:cop 1:nsubj"),
    "there is": ("there/EX/2/expl is/VBZ/0/ROOT a/DT/4/det way/NN/2/attr", "2:expl 0:root 4:det 2:nsubj"),
    "clause as predicate": ("fact/NN/2/nsubj is/VBZ/0/ROOT that/IN/5/mark he/PRP/5/nsubj left/VBD/2/ccomp",
                            "5:nsubj:outer 5:cop 5:mark 5:nsubj 0:root"),
    "passive": ("he/PRP/3/nsubjpass was/VBD/3/auxpass seen/VBN/0/ROOT by/IN/3/agent us/PRP/4/pobj",
                "3:nsubj:pass 3:aux:pass 0:root 5:case 3:obl:agent"),
    "auxiliary be": ("he/PRP/3/nsubj is/VBZ/3/aux going/VBG/0/ROOT", "3:nsubj 3:aux 0:root"),
    "copulas joined": ("he/PRP/2/nsubj is/VBZ/0/ROOT old/JJ/2/acomp and/CC/2/cc she/PRP/6/nsubj is/VBZ/2/conj"
                       " young/JJ/6/acomp", "3:nsubj 3:cop 0:root 7:cc 7:nsubj 7:cop 3:conj"),
    "coordination": ("red/JJ/0/ROOT ,/,/1/punct white/JJ/1/conj and/CC/3/cc blue/JJ/3/conj",
                     "0:root 3:punct 1:conj 5:cc 1:conj"),
    "both and": ("both/CC/2/preconj cats/NNS/0/ROOT and/CC/2/cc dogs/NNS/2/conj", "2:cc:preconj 0:root 4:cc 2:conj"),
    "prepositions joined": ("in/IN/4/prep Rome/NNP/1/pobj he/PRP/4/nsubj stays/VBZ/0/ROOT to/IN/4/prep"
                            " May/NNP/5/pobj and/CC/6/cc June/NNP/6/conj",
                            "2:case 4:obl 4:nsubj 0:root 6:case 4:obl 8:cc 6:conj"),
    "purpose": ("wants/VBZ/0/ROOT to/TO/3/aux go/VB/1/xcomp", "0:root 3:mark 1:xcomp"),
    "raised object": ("let/VB/0/ROOT him/PRP/3/nsubj go/VB/1/ccomp", "0:root 1:obj 1:xcomp"),
    "no raising": ("think/VBP/0/ROOT he/PRP/3/nsubj goes/VBZ/1/ccomp", "0:root 3:nsubj 1:ccomp"),
    "expletive": ("it/PRP/2/nsubj is/VBZ/0/ROOT easy/JJ/2/acomp to/TO/5/aux see/VB/2/xcomp",
                  "3:expl 3:cop 0:root 5:mark 3:csubj"),
    "no expletive": ("it/PRP/2/nsubj is/VBZ/0/ROOT able/JJ/2/acomp to/TO/5/aux see/VB/3/xcomp",
                     "3:nsubj 3:cop 0:root 5:mark 3:xcomp"),
    "run-on": ("I/PRP/2/nsubj came/VBD/5/ccomp ,/,/5/punct I/PRP/5/nsubj won/VBD/0/ROOT ././5/punct",
               "2:nsubj 0:root 5:punct 5:nsubj 2:parataxis 2:punct"),
    "quotation": ("I/PRP/2/nsubj came/VBD/5/ccomp ,/,/5/punct he/PRP/5/nsubj said/VBD/0/ROOT ././5/punct",
                  "2:nsubj 5:ccomp 2:punct 5:nsubj 0:root 5:punct"),
    "two objects": ("give/VB/0/ROOT her/PRP/1/dative all/PDT/5/predet the/DT/5/det books/NNS/1/dobj",
                    "0:root 1:iobj 5:det:predet 5:det 1:obj"),
    "told": ("told/VBD/0/ROOT me/PRP/1/dobj ././1/punct", "0:root 1:iobj 1:punct"),
    "particle": ("gave/VBD/0/ROOT up/RP/1/prt ././1/punct", "0:root 1:compound:prt 1:punct"),
    "possessive": ("John/NNP/3/poss 's/POS/1/case hat/NN/0/ROOT", "3:nmod:poss 1:case 0:root"),
    "measure": ("three/CD/2/nummod years/NNS/3/npadvmod ago/RB/4/advmod left/VBD/0/ROOT",
                "2:nummod 3:obl:unmarked 4:advmod 0:root"),
    "relative": ("man/NN/0/ROOT who/WP/3/nsubj left/VBD/1/relcl", "0:root 3:nsubj 1:acl:relcl"),
    "date": ("on/IN/0/ROOT May/NNP/1/pobj 3/CD/2/nummod ,/,/2/punct 2001/CD/2/nummod",
             "3:case 3:nmod:unmarked 0:root 5:punct 3:nmod:unmarked"),
    "clock": ("at/IN/0/ROOT 5/CD/3/nummod pm/NN/1/pobj", "2:case 0:root 2:nmod:unmarked"),
    "amount": ("$/$/3/quantmod 5/CD/3/compound million/CD/0/ROOT", "0:root 3:compound 1:nummod"),
    "numbered": ("Section/NN/0/ROOT 5/CD/1/nummod", "0:root 1:flat"),
    "name with adjective": ("National/NNP/2/compound Guard/NNP/0/ROOT", "2:amod 0:root"),
    "brackets": ("he/PRP/2/nsubj ran/VBD/0/ROOT (/-LRB-/2/punct fast/RB/2/advmod )/-RRB-/2/punct ././2/punct",
                 "2:nsubj 0:root 4:punct 2:advmod 4:punct 2:punct"),
    "name of a person, its title": (OBAMA, "2:nmod:desc 4:nsubj 2:flat 0:root", "O", "B-PERSON", "I-PERSON", "O"),
    "name that was not found": (OBAMA, "3:nmod:desc 3:compound 4:nsubj 0:root"),
}  # fmt: skip


def draft_of(text: str, ner: list[str] | None = None) -> Draft:
    rows = [part.rsplit("/", 3) for part in text.split(" ")]
    form, tag, head, label = (list(column) for column in zip(*rows, strict=True))
    lemma = {"is": "be", "was": "be", "told": "tell", "said": "say", "saw": "see", "came": "come", "thinks": "think"}
    upos = ["AUX" if f in ("is", "was") else UPOS.get(t, "VERB" if t[0] == "V" else "PUNCT")
            for f, t in zip(form, tag, strict=True)]  # fmt: skip
    return Draft(form, tag, [lemma.get(f, f) for f in form], upos, [int(h) for h in head], label, ner)


@pytest.mark.parametrize("case", CASES)
def test_by_hand(case):
    before, after, *ner = CASES[case]
    draft = draft_of(before, ner or None)
    convert(draft)
    assert " ".join(f"{draft.head[w]}:{draft.label[w]}" for w in draft.words) == after


def test_parts_of_speech_follow_the_labels():
    draft = draft_of("where/WRB/2/advmod is/VBZ/0/ROOT he/PRP/2/nsubj if/IN/6/mark he/PRP/6/nsubj went/VBD/2/advcl")
    convert(draft)
    assert draft.upos[1:] == ["ADV", "AUX", "PRON", "SCONJ", "PRON", "VERB"]
    exists = draft_of("there/EX/2/expl is/VBZ/0/ROOT one/CD/2/attr")
    convert(exists)
    assert exists.upos[2] == "VERB"  # EWT: existential be is no auxiliary


def test_a_label_set_is_known_by_its_objects():
    assert is_clearnlp(["ROOT", "dobj", "pobj", "prep"])
    assert not is_clearnlp(["ROOT", "obj", "obl", "case"])
    assert not is_clearnlp([])


LABELS = (
    "acl acomp advcl advmod agent amod appos attr aux auxpass case cc ccomp compound conj csubj csubjpass dative"
    " dep det dobj expl intj mark meta neg nmod npadvmod nsubj nsubjpass nummod oprd parataxis pcomp pobj poss"
    " preconj predet prep prt punct quantmod relcl xcomp"
)
WORDS = (
    "is be 's it there May 3 2001 pm $ due to of as well so that \" ( ) - , . let tell Dr. each other x more than kind"
)
TAGS = "NNP NN CD IN TO VB VBD VBZ JJ RB RP DT WDT WRB , . HYPH CC PRP $"


@st.composite
def drafts(draw: st.DrawFn) -> Draft:
    size = draw(st.integers(1, 10))
    order = draw(st.permutations(range(1, size + 1)))
    head = [0] * size
    for at in range(1, size):
        head[order[at] - 1] = order[draw(st.integers(0, at - 1))]
    columns = [[draw(st.sampled_from(values)) for _ in range(size)]
               for values in (WORDS.split(), TAGS.split(), LABELS.split(), ["O", "B-PERSON", "I-PERSON"])]  # fmt: skip
    upos = [UPOS.get(tag, "VERB") for tag in columns[1]]
    return Draft(columns[0], columns[1], columns[0], upos, head, columns[2], columns[3])


@given(drafts())
def test_any_tree_becomes_a_tree_with_ud_labels(draft):
    words = list(draft.form)
    convert(draft)
    assert tree_problem(draft.head[1:]) is None
    assert draft.form == words
    assert [draft.head[w] == 0 for w in draft.words] == [draft.label[w] == "root" for w in draft.words]
    ours = {"ROOT", "dobj", "pobj", "prep", "attr", "acomp", "auxpass", "nsubjpass", "neg", "poss", "npadvmod", "relcl"}
    assert not ours & set(draft.label)


@given(drafts())
def test_punctuation_moves_nothing_but_marks_and_what_hung_on_them(draft):
    before = list(draft.head)
    marks = {w for w in draft.words if draft.label[w] == "punct" and draft.head[w] != 0}
    attach_punctuation(draft)
    assert tree_problem(draft.head[1:]) is None
    assert all(draft.head[w] == before[w] for w in draft.words if w not in marks and before[w] not in marks)
    assert not marks & set(draft.head)


def test_scores_against_counts_by_hand():
    gold: dict[str, list[Any]] = {"form": list("abcd"), "upos": list("NVNP"), "head": [2, 0, 2, 2],
            "deprel": ["nsubj:pass", "root", "obl", "punct"]}  # fmt: skip
    ours: dict[str, list[Any]] = {"form": list("abcd"), "upos": list("NVVP"), "head": [2, 0, 1, 1],
            "deprel": ["nsubj", "root", "obl", "punct"]}  # fmt: skip
    assert score([gold], [ours]) == (4, 3 / 4, 2 / 4, 1 / 4, 2 / 4)
    assert score([gold], [ours], punctuation=False) == (3, 2 / 3, 2 / 3, 1 / 3, 2 / 3)
    assert score([gold], [gold])[1:] == (1, 1, 1, 1)
