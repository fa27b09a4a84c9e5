"""Windows over a text that is longer than a row, and one answer from the candidates of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pretrain.data.packing import ranges
from synthlang.errors import InputError

Ints = NDArray[np.int64]
Candidate = tuple[float, int, int]  # score, first and last token (or column)
STEP_SHARE = 4  # a window moves on by at least a quarter of what the stride leaves


@dataclass(frozen=True)
class Windows:
    """The windows of all items, those of an item together and in order.

    item    [windows] sorted
    start   [windows] the first token of the window, counted in the item's text
    size    [windows] tokens
    """

    item: Ints
    start: Ints
    size: Ints

    @staticmethod
    def over(sizes: Ints, room: Ints, stride: int) -> Windows:
        """Windows of at most ``room`` tokens over texts of ``sizes`` tokens; ``stride`` tokens come again in the next.

        The last one is the first that reaches the end, as with ``stride`` of Hugging Face's tokenizers. An empty text
        has one empty window.
        """
        assert (room > stride).all(), "windows must move on"
        step = room - stride
        count = 1 + np.maximum(-((room - sizes) // step), 0)  # rounded up: the number of steps to the end
        number, item = ranges(np.zeros_like(count), count)
        start = number * step[item]
        return Windows(item, start, np.minimum(room[item], sizes[item] - start))


def longest_question(length: int, stride: int, separators: int) -> int:
    """How many tokens of a question are read: at most half a row, and so few that its windows move on well.

    InputError if ``stride`` leaves no room in rows of ``length`` tokens.
    """
    room = length - separators
    free = room - stride
    limit = min(room // 2, free - max(1, free // STEP_SHARE))
    if limit < 1:
        raise InputError(
            f"stride {stride} leaves no room to move on in rows of length {length}: the stride must be smaller than "
            f"{room - 1}"
        )
    return limit


def best_answer(start: Ints, size: Ints, found: Sequence[Sequence[Candidate]]) -> Candidate:
    """The best span of the windows of one item, in tokens of its text; (−∞, 0, −1) where there is no candidate.

    start, size   [windows] of the windows
    found         [windows] candidates (score, first, last) with tokens of the item's text, best first

    A span counts in the window where it has most context, since the others see it from the edge; if no span does, all
    count. Of equal scores that of the first window counts. The released script for SQuAD (Devlin et al. 2019,
    ``max_context``) looks at the first token only: where windows overlap by less than two answers, that is often a
    window which does not hold all of the answer, and then it could never be given.
    """
    assert len(start) == len(found), "one output for each window"
    every = sorted(
        ((-score, window, first, last) for window, spans in enumerate(found) for score, first, last in spans),
        key=lambda candidate: candidate[:2],
    )
    if not every:
        return -np.inf, 0, -1
    chosen = next((c for c in every if _widest(start, size, c[2], c[3]) == c[1]), every[0])
    return -chosen[0], chosen[2], chosen[3]


def _widest(start: Ints, size: Ints, first: int, last: int) -> int:
    """The window where a span has most context: the smaller of both sides, and a little for a long window."""
    if len(start) == 1:
        return 0
    inside = np.minimum(first - start, start + size - 1 - last)
    return int(np.argmax(np.where(inside >= 0, inside + 0.01 * size, -np.inf)))
