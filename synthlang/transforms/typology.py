"""Typology: deterministic word orders of Universal Dependencies trees by values as in WALS.

The World Atlas of Language Structures (Dryer & Haspelmath 2013) describes word order by features such as 81A,
the order of subject, object and verb. Here a value moves the dependents it speaks of to a side of their head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite
from synthlang.transforms.base import Transform, check_columns, chosen_sentences, parent_words
from synthlang.transforms.layout import (
    AFTER,
    BEFORE,
    COORDINATION,
    OBJECTS,
    SUBJECTS,
    UNITS,
    Flags,
    Layout,
    Rows,
    attached_anew,
    layout_forest,
    modern,
)

Side = Literal["before", "after"]
SIDES = {"before": BEFORE, "after": AFTER, "preposition": BEFORE, "postposition": AFTER}
NOMINAL = ("NOUN", "PROPN", "PRON", "NUM")
VERBAL = ("VERB", "AUX", "ADJ")
BASES = {  # option → universal relations it moves
    "adposition": ("case",),
    "adjective": ("amod",),
    "relative_clause": ("acl",),
    "numeral": ("nummod",),
    "auxiliary": ("aux",),
    "copula": ("cop",),
    "subordinator": ("mark",),
}


class Typology(Transform):
    """Word order by values; what has none (None) stays as the parent has it.

    order             81A: of subject (nsubj, csubj), object (obj, iobj) and verb, in every clause
    oblique           84A: obl of verbs and adjectives (in v1 labels nmod), before or after
    adposition        85A: case            genitive     86A: nmod and nmod:poss of nouns
    adjective         87A: amod            demonstrative 88A: det among ``demonstratives``
    numeral           89A: nummod          relative_clause 90A: acl
    subordinator      94A: mark            article: det among ``articles``
    auxiliary copula  aux and cop
    head_direction    all dependents to one side (``final``: before the head) but punctuation, coordination
                      and the parts of fixed phrases and names; values of single features come first

    Subtrees move as blocks (see layout.py); the punctuation that ends a sentence stays. A sentence that is no
    tree or not projective stays as it is and is counted. ``strength`` is the share of the sentences.
    """

    invertible: ClassVar[bool] = False  # which side a dependent came from is in ``origin`` only
    requires: ClassVar[tuple[str, ...]] = ("upos", "head", "deprel")
    short_name: ClassVar[tuple[str, str] | None] = ("typology", "order")

    kind: Literal["typology"] = "typology"
    order: Literal["SOV", "SVO", "VSO", "VOS", "OVS", "OSV"] | None = None
    oblique: Side | None = None
    adposition: Literal["preposition", "postposition"] | None = None
    genitive: Side | None = None
    adjective: Side | None = None
    demonstrative: Side | None = None
    numeral: Side | None = None
    relative_clause: Side | None = None
    subordinator: Side | None = None
    article: Side | None = None
    auxiliary: Side | None = None
    copula: Side | None = None
    head_direction: Literal["initial", "final"] | None = None
    demonstratives: tuple[str, ...] = Field(default=("this", "that", "these", "those"), min_length=1)
    articles: tuple[str, ...] = Field(default=("the", "a", "an"), min_length=1)

    @model_validator(mode="after")
    def _something(self) -> Typology:
        features = [name for name in type(self).model_fields if name not in NO_FEATURES]
        if all(getattr(self, name) is None for name in features):
            raise ValueError(f"give a value to at least one of {', '.join(features)}")
        return self

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        forest = layout_forest(corpus)
        chosen = chosen_sentences(corpus, key, self.strength)
        ready = chosen & forest.is_projective
        layout = Layout(corpus, forest)
        side = self._sides(corpus, layout)
        keys = layout.keys(side)
        if self.order:
            outer, inner = (SUBJECTS, OBJECTS) if self._subject_is_outer(self.order) else (OBJECTS, SUBJECTS)
            layout.put_outside(keys, side, layout.is_base(*outer), layout.is_base(*inner))
        rows = np.arange(len(corpus.form.codes))
        index = np.where(ready[corpus.sentence_of_word], layout.order(keys, side), rows)
        counts = {
            "typology: sentences laid out": ready,
            "typology: sentences left, no tree": chosen & ~forest.is_tree,
            "typology: sentences left, not projective": chosen & forest.is_tree & ~forest.is_projective,
        }
        return attached_anew(Rewrite.reorder(corpus, index), corpus, ready).counted(counts)

    @staticmethod
    def _subject_is_outer(order: str) -> bool:
        """Where subject and object stand on the same side of the verb: which is farther from it."""
        return abs(order.index("S") - order.index("V")) > abs(order.index("O") - order.index("V"))

    def _sides(self, corpus: Corpus, layout: Layout) -> Rows:
        """[items] the side of each dependent in the new order."""
        side = layout.side.copy()
        if self.head_direction:
            fixed = layout.is_base("punct", *COORDINATION, *UNITS, "list")
            side[~fixed] = AFTER if self.head_direction == "initial" else BEFORE
        for value, items in self._moves(corpus, layout):
            side[items] = SIDES[value]
        return side

    def _moves(self, corpus: Corpus, layout: Layout) -> Iterator[tuple[str, Flags]]:
        """(value, the items it speaks of) for each feature that has a value."""
        if self.order:
            for letter, core in (("S", SUBJECTS), ("O", OBJECTS)):
                before = self.order.index(letter) < self.order.index("V")
                yield "before" if before else "after", layout.is_base(*core)
        for name, relations in BASES.items():
            if value := getattr(self, name):
                yield value, layout.is_base(*relations)
        relation, upos = layout.relation, corpus.columns["upos"].take(layout.head)
        if self.genitive:
            genitive = relation.lookup(lambda name: modern(name) in ("nmod", "nmod:poss"))
            yield self.genitive, genitive & upos.lookup(lambda name: name in NOMINAL)
        if self.oblique:
            of_verb = upos.lookup(lambda name: name in VERBAL)
            yield self.oblique, layout.is_base("obl") | (layout.is_base("nmod") & of_verb)
        words = parent_words(corpus).take(layout.items)
        for value, listed in ((self.demonstrative, self.demonstratives), (self.article, self.articles)):
            if value:
                forms = {form.lower() for form in listed}
                of_list = [name.lower() in forms for name in words.names or ()]
                yield value, layout.is_base("det") & np.asarray(of_list or [False])[words.codes]


NO_FEATURES = ("kind", "strength", "demonstratives", "articles")
