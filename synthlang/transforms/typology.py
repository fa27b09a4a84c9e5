"""Typology: deterministic word orders of Universal Dependencies trees, given by values as in WALS.

The World Atlas of Language Structures (Dryer & Haspelmath 2013) describes word order by features such as 81A, the
order of subject, object and verb. Here the value of a feature moves dependents to one side of their head.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

import numpy as np
from pydantic import Field, model_validator

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rewrite import Rewrite
from synthlang.transforms.base import Transform, check_columns, chosen_sentences, is_listed, parent_words
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
    """Set word order by features. A feature without a value (null) stays as in the source.

    Subtrees move as blocks (see ``layout``), and the punctuation that ends a sentence stays. A sentence that is not a
    projective tree is unchanged and is counted. ``strength`` is the share of the sentences.
    """

    keeps_forms: ClassVar[bool] = True
    invertible: ClassVar[bool] = False  # only ``source_index`` records which side a dependent came from
    requires: ClassVar[tuple[str, ...]] = ("upos", "head", "deprel")
    short_name: ClassVar[tuple[str, str] | None] = ("typology", "order")

    kind: Literal["typology"] = "typology"
    order: Literal["SOV", "SVO", "VSO", "VOS", "OVS", "OSV"] | None = None
    """Order of subject (nsubj, csubj), object (obj, iobj) and verb in every clause (WALS 81A)."""
    oblique: Side | None = None
    """Side of obliques of verbs and adjectives (obl, or nmod in labels of version 1; WALS 84A)."""
    adposition: Literal["preposition", "postposition"] | None = None
    """Side of adpositions (case; WALS 85A)."""
    genitive: Side | None = None
    """Side of genitives of nouns (nmod, nmod:poss; WALS 86A)."""
    adjective: Side | None = None
    """Side of adjectives of nouns (amod; WALS 87A)."""
    demonstrative: Side | None = None
    """Side of determiners (det) that are in ``demonstratives`` (WALS 88A)."""
    numeral: Side | None = None
    """Side of numerals (nummod; WALS 89A)."""
    relative_clause: Side | None = None
    """Side of relative clauses (acl; WALS 90A)."""
    subordinator: Side | None = None
    """Side of subordinators (mark; WALS 94A)."""
    article: Side | None = None
    """Side of determiners (det) that are in ``articles``."""
    auxiliary: Side | None = None
    """Side of auxiliaries (aux)."""
    copula: Side | None = None
    """Side of copulas (cop)."""
    head_direction: Literal["initial", "final"] | None = None
    """Side of all dependents but punctuation, coordination, lists, inserted words and parts of fixed phrases and names.

    ``final`` puts them before the head. Values of single features take precedence.
    """
    demonstratives: tuple[str, ...] = Field(default=("this", "that", "these", "those"), min_length=1)
    """Words that are demonstratives, in upper or lower case."""
    articles: tuple[str, ...] = Field(default=("the", "a", "an"), min_length=1)
    """Words that are articles, in upper or lower case."""

    @model_validator(mode="after")
    def _something(self) -> Typology:
        features = [name for name in type(self).model_fields if name not in NO_FEATURES]
        if all(getattr(self, name) is None for name in features):
            raise InputError(
                "must have a value for some feature", hint=f"set one of {', '.join(features)}", code="no_effect"
            )
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
        """Return whether the subject is farther from the verb than the object, where both are on the same side."""
        return abs(order.index("S") - order.index("V")) > abs(order.index("O") - order.index("V"))

    def _sides(self, corpus: Corpus, layout: Layout) -> Rows:
        """Return the side of each dependent in the new order, [items]."""
        side = layout.side.copy()
        if self.head_direction:
            fixed = layout.is_base("punct", *COORDINATION, *UNITS, "list")
            side[~fixed] = AFTER if self.head_direction == "initial" else BEFORE
        for value, items in self._moves(corpus, layout):
            side[items] = SIDES[value]
        return side

    def _moves(self, corpus: Corpus, layout: Layout) -> Iterator[tuple[str, Flags]]:
        """Yield the value of each feature that is set, and flags of the items that it moves, [items]."""
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
                yield value, layout.is_base("det") & is_listed(words, listed)


NO_FEATURES = ("kind", "strength", "demonstratives", "articles")
