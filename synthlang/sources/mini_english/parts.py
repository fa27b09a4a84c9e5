"""The parts of a clause in its tree: arguments by their relation, and the words they cover."""

from __future__ import annotations

from collections.abc import Iterator

from synthlang.sources.mini_english.tree import Node

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
