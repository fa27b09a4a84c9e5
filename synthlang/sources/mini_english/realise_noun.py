"""Put a noun phrase into words."""

from __future__ import annotations

from synthlang.sources.mini_english.closed import POSSESSIVES, Pronoun
from synthlang.sources.mini_english.entries import Noun
from synthlang.sources.mini_english.plan import Entity, NounPhrase
from synthlang.sources.mini_english.tree import Node


def noun_node(phrase: NounPhrase, deprel: str, case: str = "object") -> Node:
    """The tree of a noun phrase; ``case`` of a pronoun: subject or object."""
    head = phrase.head
    if isinstance(head, Pronoun):
        node = Node(head.subject if case == "subject" else head.object, "PRON", deprel)
    elif isinstance(head, Entity):
        node = entity_node(head, deprel)
    else:
        node = Node(head.plural if phrase.plural else head.singular, "NOUN", deprel)
        _before(phrase, node)
    for preposition, inner in phrase.prepositional:
        node.right.append(prepositional_node(preposition, inner, "nmod"))
    if phrase.conjunct is not None:
        word, second = phrase.conjunct
        inner_node = noun_node(second, "conj", case)
        inner_node.left.insert(0, Node(word, "CCONJ", "cc"))
        node.right.append(inner_node)
    return node


def prepositional_node(preposition: str, phrase: NounPhrase, deprel: str) -> Node:
    """A noun phrase under a preposition."""
    node = noun_node(phrase, deprel)
    node.left.insert(0, Node(preposition, "ADP", "case"))
    return node


def adjective_node(form: str, degree: str, deprel: str) -> Node:
    """An adjective, perhaps with "very"."""
    node = Node(form, "ADJ", deprel)
    if degree:
        node.before(degree, "ADV", "advmod")
    return node


def entity_node(entity: Entity, deprel: str) -> Node:
    """A name: flat (head first), a compound (head last), or "of" (head first, nmod)."""
    words = entity.words
    if entity.joined == "of":
        node = Node(words[0], "PROPN", deprel, f"B-{entity.kind}")
        inner = Node(words[-1], "PROPN", "nmod", f"I-{entity.kind}")
        inner.left.append(Node("of", "ADP", "case", f"I-{entity.kind}"))
        node.right.append(inner)
        return node
    tags = [f"{'B' if place == 0 else 'I'}-{entity.kind}" for place in range(len(words))]
    if entity.joined == "compound":
        node = Node(words[-1], "PROPN", deprel, tags[-1])
        node.left = [Node(w, "PROPN", "compound", t) for w, t in zip(words[:-1], tags[:-1], strict=True)]
        return node
    node = Node(words[0], "PROPN", deprel, tags[0])
    node.right = [Node(w, "PROPN", "flat", t) for w, t in zip(words[1:], tags[1:], strict=True)]
    return node


def _before(phrase: NounPhrase, node: Node) -> None:
    """Determiner, owner, numeral, adjectives, compound: the left side of a common noun."""
    if phrase.owner is not None:
        owner = noun_node(phrase.owner, "nmod:poss")
        owner.after("'s", "PART", "case")
        node.left.append(owner)
    elif phrase.determiner in POSSESSIVES:
        node.before(phrase.determiner, "PRON", "nmod:poss")
    elif phrase.determiner:
        node.before(phrase.determiner, "DET", "det")
    if phrase.numeral:
        numeral = node.before(phrase.numeral, "NUM", "nummod")
        if phrase.exactly:
            numeral.before("exactly", "ADV", "advmod")
    for adjective in phrase.adjectives:
        node.left.append(
            adjective_node(adjective.form, phrase.degree if adjective is phrase.adjectives[0] else "", "amod")
        )
    if isinstance(phrase.compound, Noun):
        node.before(phrase.compound.singular, "NOUN", "compound")
