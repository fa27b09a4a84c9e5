"""A dependency tree and its words in order."""

from __future__ import annotations

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
