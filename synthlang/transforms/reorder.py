"""Syntactic reordering: the dependents of nouns and verbs in the order of another language.

Each node of a dependency tree draws an order of its items from the order model of the superstrate. A small share of
the substrate's model may be mixed in (Wang & Eisner 2016).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator, model_validator

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.order.items import MOST_ITEMS, NodeClass, Scheme
from synthlang.order.model import load_model
from synthlang.order.nodes import find_nodes, heads_of, item_count
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of, uniform
from synthlang.transforms.base import Transform, check_columns, chosen_sentences
from synthlang.transforms.layout import attach_inserted
from synthlang.trees import Forest

Flags = NDArray[np.bool_]


class Reorder(Transform):
    """Draw an order for every node, in a share ``strength`` of the sentences.

    The probability of an order with the features f is p ∝ exp(w · f / T), with the weights
    w = (1 − m) · superstrate + m · substrate (Wang & Eisner 2016, equation 1 and section 6).

    A word without a head is not an item of a node. Such a word was inserted, or its head was left out. It stays beside
    the word to which ``attach_inserted`` attaches it, and does not affect the order of other words.
    """

    keeps_forms: ClassVar[bool] = True
    invertible: ClassVar[bool] = False  # only ``source_index`` records the order of the source
    requires: ClassVar[tuple[str, ...]] = ("upos", "head", "deprel")
    file_fields: ClassVar[tuple[str, ...]] = ("model", "substrate")
    short_name: ClassVar[tuple[str, str] | None] = ("reorder", "model")

    kind: Literal["reorder"] = "reorder"
    model: str = "fr"
    """Order model of the superstrate: one that comes with the package, such as ``fr``, or a file."""
    substrate: str | None = None
    """Order model of the substrate. With null, the superstrate is used alone."""
    substrate_weight: float = Field(default=0.05, ge=0.0, le=1.0)
    """Weight m of the substrate: w = (1 − m) · superstrate + m · substrate."""
    temperature: float = Field(default=1.0, ge=1e-3, le=1e3)
    """Temperature T of the distribution: p ∝ exp(w · f / T)."""
    choose: Literal["sample", "best"] = "sample"
    """Order of a node: a ``sample`` of the distribution, or its ``best`` order."""
    labels: Literal["faithful", "mapped"] = "mapped"
    """Lookup of labels in the model's scheme (``mapped``), or use of the unchanged labels (``faithful``)."""
    corpus_labels: Scheme = "ud2"
    """Label scheme of the corpus."""
    policy: Literal["skip-node", "drop-sentence"] = "skip-node"
    """Treatment of a tree that is not projective and of a node with more than ``max_items`` items.

    ``skip-node`` leaves the tree or node unchanged, and ``drop-sentence`` leaves out the whole sentence, as the paper
    does.
    """
    max_items: int = Field(default=7, ge=2, le=MOST_ITEMS)
    """Largest number of items of a node that is reordered."""
    nouns: bool = True
    """Reorder the nodes with heads NOUN, PROPN and PRON."""
    verbs: bool = True
    """Reorder the nodes with VERB heads."""

    @field_validator("model", "substrate")
    @classmethod
    def _loads(cls, value: str | None) -> str | None:
        if value is not None:
            load_model(value)
        return value

    @model_validator(mode="after")
    def _something(self) -> Reorder:
        if not (self.nouns or self.verbs):
            reason = "nouns and verbs are both false, so nothing would be reordered"
            raise InputError(reason, hint="set one of them to true", code="no_effect")
        return self

    def identity(self) -> dict[str, Any]:
        named = {"model": self.model, "substrate": self.substrate}
        return super().identity() | {name: value and load_model(value).content for name, value in named.items()}

    def rewrite(self, corpus: Corpus, key: int) -> Rewrite:
        """Lay out the trees in the drawn orders, and count the nodes and sentences that were reordered or not.

        Raises:
            InputError: The batch lacks a column, or an order model cannot be read.
        """
        if not len(corpus):
            return Rewrite.identity(corpus)
        check_columns(corpus, self)
        forest = Forest.of(attach_inserted(corpus))
        headless = corpus.columns["head"].codes < 0
        glued = headless if headless.any() else None
        chosen = chosen_sentences(corpus, key, self.strength)
        size = item_count(forest, glued)
        sentence = corpus.sentence_of_word
        ready = chosen & forest.is_projective
        long_node = size > self.max_items
        counts = {}
        whole = np.ones(len(corpus), bool)
        verb = "left"
        if self.policy == "drop-sentence":
            verb = "dropped"
            too_long = np.bincount(sentence[long_node], minlength=len(corpus)) > 0
            counts[f"reorder: sentences dropped, a node of more than {self.max_items} items"] = too_long & ready
            ready &= ~too_long
            whole = ~chosen | ready
        counts[f"reorder: sentences {verb}, no tree"] = chosen & ~forest.is_tree
        counts[f"reorder: sentences {verb}, not projective"] = chosen & forest.is_tree & ~forest.is_projective
        nodes = ready[sentence] & (size > 1) & heads_of(corpus, *self._classes())
        counts[f"reorder: nodes left, more than {self.max_items} items"] = nodes & long_node
        nodes &= ~long_node
        counts["reorder: nodes reordered"] = nodes
        # No layout of whole subtrees restores the order of a tree that is not projective.
        index = np.where(ready[sentence], self._index(corpus, forest, nodes, glued, key), np.arange(len(sentence)))
        result = Rewrite.reorder(corpus, index).counted(counts)
        return result if whole.all() else result.take(np.flatnonzero(whole))

    def _classes(self) -> tuple[NodeClass, ...]:
        included = {"N": self.nouns, "V": self.verbs}
        return tuple(c for c in load_model(self.model).classes if included[c])

    def _index(self, corpus: Corpus, forest: Forest, nodes: Flags, glued: Flags | None, key: int) -> NDArray[np.int64]:
        """Return for each output word the row of its source word."""
        # SciPy is slow to import, and --help does not need it.
        from synthlang.order.distribution import shared_distribution
        from synthlang.order.permutations import all_orders

        rank = np.arange(len(nodes), dtype=np.float64)
        own_rank = rank.copy()
        ids, position = corpus.ids[corpus.sentence_of_word], _position(corpus, glued)
        models = shared_distribution(self.model, self.substrate, self.substrate_weight, self.labels, self.corpus_labels)
        for node in self._classes():
            heads = nodes & heads_of(corpus, node)
            for n, group in find_nodes(corpus, forest, heads, glued).items():
                if self.choose == "best":
                    order = models[node].best(group)
                else:
                    u = uniform(key_of("order", key), ids[group.head], position[group.head])
                    order = models[node].sample(group, u, self.temperature)
                places = all_orders(n).places[order]
                own_rank[group.head] = places[:, 0]
                rank[group.rows[:, 1:]] = places[:, 1:]
        if glued is not None:  # items with equal ranks stay in their order
            rank = np.where(glued & (forest.parent >= 0), own_rank[forest.parent], rank)
        return forest.linearise(rank, own_rank)


def _position(corpus: Corpus, glued: Flags | None) -> NDArray[np.int64]:
    """Return the position of each word in its sentence, counting items only, [words]."""
    if glued is None:
        return corpus.position
    before = np.concatenate([[0], np.cumsum(~glued)]).astype(np.int64)
    return before[:-1] - before[corpus.offsets[:-1]][corpus.sentence_of_word]
