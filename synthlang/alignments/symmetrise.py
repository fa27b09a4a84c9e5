"""One alignment from two: those of an aligner that ran in both directions.

    intersection          links that both have: few and precise
    union                 links that either has
    grow-diag             from the intersection on, links of the union that touch one there is (sideways or
                          diagonally) and whose left or right word has none yet
    grow-diag-final       then the links of forward, then those of reverse, whose left or right word has none
    grow-diag-final-and   the same for links both of whose words have none

Koehn et al. 2005 (IWSLT), "Edinburgh System Description", after Och & Ney 2003. What is added depends on the order:
points are visited by left word, then by right word, again and again until nothing is added; new ones count at once.
"""

from __future__ import annotations

import heapq
from typing import Literal, get_args

from synthlang.alignments.links import Links
from synthlang.errors import InputError

Method = Literal["intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and"]
METHODS: tuple[Method, ...] = get_args(Method)
NEIGHBOURS = ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1))

Point = tuple[int, int]


def symmetrise(forward: Links, reverse: Links, method: Method = "intersection") -> Links:
    """Join two alignments of the same sentence pairs, both as left-right links; all links count as sure.

    Raises InputError if they are of different numbers of sentence pairs.
    """
    if len(forward) != len(reverse):
        raise InputError(f"the two alignments are of {len(forward)} and {len(reverse)} sentence pairs")
    return Links.of([_joined(forward.of_pair(i), reverse.of_pair(i), method) for i in range(len(forward))])


def _joined(forward: list[Point], reverse: list[Point], method: Method) -> set[Point]:
    both, either = set(forward) & set(reverse), set(forward) | set(reverse)
    if method == "intersection":
        return both
    if method == "union":
        return either
    growing = _Growing(both)
    growing.grow(either)
    if method != "grow-diag":
        for links in (forward, reverse):
            growing.add_free(sorted(links), both_free=method == "grow-diag-final-and")
    return growing.points


class _Growing:
    """An alignment of one sentence pair that gets more links."""

    def __init__(self, points: set[Point]) -> None:
        self.points = set(points)
        self.left = {a for a, _ in points}
        self.right = {b for _, b in points}

    def _add(self, point: Point) -> None:
        self.points.add(point)
        self.left.add(point[0])
        self.right.add(point[1])

    def grow(self, union: set[Point]) -> None:
        """Add neighbours out of ``union`` in sweeps over the points, in order."""
        current, later = sorted(self.points), list[Point]()
        while current:
            point = heapq.heappop(current)
            for step in NEIGHBOURS:
                near = (point[0] + step[0], point[1] + step[1])
                if (
                    near in union
                    and near not in self.points
                    and (near[0] not in self.left or near[1] not in self.right)
                ):
                    self._add(near)
                    # the sweep still comes by what lies behind; the rest is for the next one
                    heapq.heappush(current if near > point else later, near)
            if not current:
                current, later = later, []

    def add_free(self, links: list[Point], both_free: bool) -> None:
        """Add links one of whose words (or both) has none yet."""
        for point in links:
            free = (point[0] not in self.left, point[1] not in self.right)
            if all(free) if both_free else any(free):
                self._add(point)
