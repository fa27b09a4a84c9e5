"""A dependency tree and its words in order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Node:
    """A word with its dependents on each side, in order; every tree is projective."""

    __slots__ = ("deprel", "form", "left", "ner", "place", "right", "upos")

    def __init__(self, form: str, upos: str, deprel: str = "root", ner: str = "O") -> None:
        self.form = form
        self.upos = upos
        self.deprel = deprel
        self.ner = ner
        self.left: list[Node] = []
        self.right: list[Node] = []
        self.place = 0  # 1-based, set by linearise

    def before(self, form: str, upos: str, deprel: str) -> Node:
        """Add a word left of this one, nearest to it."""
        node = Node(form, upos, deprel)
        self.left.append(node)
        return node

    def after(self, form: str, upos: str, deprel: str) -> Node:
        """Add a word right of this one, after its other dependents."""
        node = Node(form, upos, deprel)
        self.right.append(node)
        return node


Columns = dict[str, list[Any]]


def linearise(root: Node) -> Columns:
    """The columns form, upos, head, deprel, ner of a tree.

    >>> cat = Node("cat", "NOUN"); _ = cat.before("the", "DET", "det")
    >>> linearise(cat)["head"]
    [2, 0]
    """
    nodes: list[Node] = []
    parents: list[Node | None] = []

    def visit(node: Node, parent: Node | None) -> None:
        for child in node.left:
            visit(child, node)
        nodes.append(node)
        parents.append(parent)
        node.place = len(nodes)
        for child in node.right:
            visit(child, node)

    visit(root, None)
    return {
        "form": [node.form for node in nodes],
        "upos": [node.upos for node in nodes],
        "head": [parent.place if parent is not None else 0 for parent in parents],
        "deprel": [node.deprel for node in nodes],
        "ner": [node.ner for node in nodes],
    }


Span = tuple[int, int]  # words start … stop − 1 of a sentence, from 0


def children(node: Node) -> Iterator[Node]:
    """The dependents of a word, left ones first."""
    yield from node.left
    yield from node.right


def case_of(node: Node) -> str:
    """The preposition of a phrase, or nothing."""
    return next((child.form for child in node.left if child.deprel == "case"), "")


def relation(node: Node) -> str:
    """ "obj", "obl to", "advmod today", "advcl because": what tells the dependents of a clause apart."""
    if node.deprel == "obl":
        return f"obl {case_of(node)}"
    if node.deprel == "advcl":
        return f"advcl {node.left[0].form}"
    return f"advmod {node.form}" if node.deprel == "advmod" else node.deprel


def dependent(node: Node, *relations: str) -> Node | None:
    """The first dependent that has one of the relations, None if there is none."""
    return next((child for child in children(node) if relation(child) in relations), None)


def extent(node: Node, without: tuple[str, ...] = ()) -> Span:
    """The words under a node that ``linearise`` has placed, but for its own dependents of these relations.

    What is left out must stand at the edge, as "to" does before what it marks.
    """
    inner = [child for child in children(node) if child.deprel not in without]
    spans = [extent(child) for child in inner]
    start = min((span[0] for span in spans), default=node.place - 1)
    stop = max((span[1] for span in spans), default=node.place)
    return min(start, node.place - 1), max(stop, node.place)
