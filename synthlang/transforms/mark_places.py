"""Where the markers of ``mark`` go: which words get which, as arrays over the words of a batch.

A choice [words] is the index of a marker for each word, −1 for none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.transforms.base import parent_words
from synthlang.transforms.layout import attach_inserted
from synthlang.transforms.relations import base, lookup, modern
from synthlang.trees import Forest

Rows = NDArray[np.int64]
Flags = NDArray[np.bool_]
CASE_TAGS = ("NOUN", "PROPN", "PRON")
VERB_TAGS = ("VERB", "AUX")


def case_choice(corpus: Corpus, case: Mapping[str, str], marked: Flags) -> Rows:
    """The case marker of each noun: of its relation, else of the relation without its subtype."""
    index = {relation: i for i, relation in enumerate(case)}

    def of(label: str) -> int:
        return index.get(label, index.get(modern(label), index.get(base(label), -1)))

    nouns = marked & lookup(corpus.columns["upos"], lambda name: name in CASE_TAGS)
    return np.where(nouns, lookup(corpus.columns["deprel"], of, np.int64), -1)


def number_choice(corpus: Corpus, marked: Flags) -> Rows:
    """0 at plural nouns."""
    plural = lookup(corpus.columns["feats"], lambda name: "Number=Plur" in name.split("|"))
    nouns = lookup(corpus.columns["upos"], lambda name: name == "NOUN")
    return np.where(marked & plural & nouns, 0, -1).astype(np.int64)


def agreement_choice(corpus: Corpus, agreement: Mapping[str, str], marked: Flags) -> Rows:
    """The marker of each verb: the first key that fits the first of its subjects."""
    forest = Forest.of(attach_inserted(corpus))
    is_subject = lookup(corpus.columns["deprel"], lambda name: base(name) == "nsubj") & (forest.parent >= 0)
    subjects = np.flatnonzero(is_subject)
    first = np.full(len(marked), len(marked), np.int64)
    np.minimum.at(first, forest.parent[subjects], subjects)
    verbs = np.flatnonzero(
        marked & (first < len(marked)) & lookup(corpus.columns["upos"], lambda name: name in VERB_TAGS)
    )
    choice = np.full(len(marked), -1, np.int64)
    for index, wanted in reversed(list(enumerate(agreement))):  # so the first that fits is written last
        choice[verbs[_fits(corpus, wanted)[first[verbs]]]] = index
    return choice


def _fits(corpus: Corpus, wanted: str) -> Flags:
    """[words] whether a word has a UPOS tag, or all of some features."""
    if "=" not in wanted:
        return lookup(corpus.columns["upos"], lambda name: name == wanted)
    features = set(wanted.split("|"))
    return lookup(corpus.columns["feats"], lambda name: features <= set(name.split("|")))


def dropped(corpus: Corpus, kinds: Sequence[str], articles: Sequence[str]) -> Flags:
    """[words] articles and subject pronouns to leave out: those that nothing depends on, so no word loses its head."""
    if not kinds:
        return np.zeros(len(corpus.form.codes), bool)
    forms = {form.lower() for form in articles}
    deprel, upos = corpus.columns["deprel"], corpus.columns["upos"]
    article = lookup(deprel, lambda name: base(name) == "det") & lookup(upos, lambda name: name == "DET")
    article &= lookup(parent_words(corpus), lambda name: name.lower() in forms)
    pronoun = lookup(deprel, lambda name: base(name) == "nsubj") & lookup(upos, lambda name: name == "PRON")
    wanted = (article if "articles" in kinds else False) | (pronoun if "pronouns" in kinds else False)
    head = corpus.columns["head"].codes
    has_head = head > 0
    is_head = np.zeros(len(head), bool)
    is_head[(corpus.offsets[:-1][corpus.sentence_of_word] + head - 1)[has_head]] = True
    return np.asarray(wanted & ~is_head & has_head)


def words_after_verbs(corpus: Corpus, marked: Flags, keep: Flags, distance: int) -> Rows:
    """For each verb the row ``distance`` words after it, or of the last word of its sentence; no punctuation counts."""
    upos = corpus.columns["upos"]
    words = np.flatnonzero(keep & ~lookup(upos, lambda name: name == "PUNCT"))
    verbs = np.flatnonzero(marked & keep & lookup(upos, lambda name: name == "VERB"))
    sentence = corpus.sentence_of_word
    last = np.searchsorted(words, corpus.offsets[1:][sentence[verbs]]) - 1
    return np.asarray(words[np.minimum(np.searchsorted(words, verbs) + distance, last)], dtype=np.int64)
