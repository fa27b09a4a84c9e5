"""The number of samples of each source of rows after any number of steps, in exact integers.

``Quotas`` mix all sources in each step without randomness. ``Draws`` draw one source for each step. ``Stages`` are
quotas or draws whose weights change at given steps.

With ``Quotas``, after n samples ⌊n·p_i⌋ or ⌈n·p_i⌉ of them are from source i with the weight p_i, where the weights
sum to 1. Sample j of a source is a job with a window: it may be drawn once n·p_i > j − 1, and it must have been drawn
when n·p_i ≥ j. Taking the job with the earliest deadline meets all windows, because jobs have one size and the rates
sum to 1 (Baruah et al. 1996, "Proportionate progress", Algorithmica 15). Time is counted in steps, of ``rows`` jobs
each.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import floor, gcd, lcm
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from synthlang.rng import key_of, uniform

BLOCK = 1024  # steps in one table


@dataclass
class _State:
    """State of each source before a step.

    n·p of a source is whole + rest / total. The source has had whole + ahead samples, where ``ahead`` is 0 or 1.
    """

    whole: list[int]
    rest: list[int]
    ahead: list[int]

    def copy(self) -> _State:
        return _State(self.whole.copy(), self.rest.copy(), self.ahead.copy())


class Quotas:
    """Exact quotas of the sources.

    Args:
        weights: Positive weights of the sources, of any scale.
        rows: Number of samples of a step.
    """

    def __init__(self, weights: Sequence[Fraction | int], rows: int) -> None:
        assert weights and min(weights) > 0, "weights must be positive"
        scale = lcm(*(Fraction(w).denominator for w in weights))
        shares = [int(w * scale) for w in weights]
        common = gcd(*shares)
        self.rows = rows
        self._shares = [share // common for share in shares]
        self._total = sum(self._shares)
        self._gain = [divmod(rows * share, self._total) for share in self._shares]
        self._period = self._total // gcd(self._total, rows)  # steps after which every n·p is whole again
        self._known = _State([0] * len(shares), [0] * len(shares), [0] * len(shares))
        self._states = [self._known.copy()]  # before every BLOCK-th step
        self._block = lru_cache(maxsize=2)(self._make_block)

    def before(self, step: int) -> NDArray[np.int64]:
        """Return the number of samples of each source before a step (counted from 0), [sources] int64."""
        periods, step = divmod(step, self._period)
        done = [periods * self._period * self.rows * share // self._total for share in self._shares]
        counts: NDArray[np.int64] = self._block(step // BLOCK)[step % BLOCK]
        return counts + np.asarray(done, np.int64)

    def _make_block(self, block: int) -> NDArray[np.int64]:
        while len(self._states) <= block:
            for _ in range(BLOCK):
                self._step(self._known)
            self._states.append(self._known.copy())
        state, table = self._states[block].copy(), []
        for _ in range(min(BLOCK, self._period)):
            table.append([whole + ahead for whole, ahead in zip(state.whole, state.ahead, strict=True)])
            self._step(state)
        return np.asarray(table, np.int64)

    def _step(self, state: _State) -> None:
        whole, rest, ahead, total = state.whole, state.rest, state.ahead, self._total
        for i, (more, more_rest) in enumerate(self._gain):
            over = rest[i] + more_rest
            if over >= total:
                over, more = over - total, more + 1  # noqa: PLW2901  a carry
            whole[i] += more
            rest[i] = over
            if more:
                ahead[i] = 0
        # The rests sum to the number of sources that must be ahead. Some of these may be ahead already.
        due = sum(rest) // total - sum(ahead)
        if due:
            waiting = [i for i, over in enumerate(rest) if over and not ahead[i]]
            assert 0 < due <= len(waiting), "the windows have a schedule"
            for i in sorted(waiting, key=lambda i: self._deadline(i, rest[i]))[:due]:
                ahead[i] = 1

    def _deadline(self, source: int, rest: int) -> int:
        """Return the number of steps, rounded up, until n·p of a source reaches the next whole number."""
        return -((rest - self._total) // (self.rows * self._shares[source]))


class Draws:
    """Quotas with one source in each step, which is drawn by the weights.

    See Conneau et al. 2020, "Emerging Cross-lingual Structure in Pretrained Language Models", section 3.1. The draw is
    a function of the key and the step, so all processes and resumed runs draw the same source.

    Args:
        weights: Positive weights of the sources, of any scale.
        rows: Number of samples of a step.
        key: Key of the draws.
    """

    def __init__(self, weights: Sequence[Fraction | int], rows: int, key: int) -> None:
        assert weights and min(weights) > 0, "weights must be positive"
        total = sum(map(Fraction, weights))
        self.rows, self.key = rows, key
        self._bounds = np.cumsum([float(weight / total) for weight in weights])[
            :-1
        ]  # bounds of all sources but the last
        self._blocks = [np.zeros(len(weights), np.int64)]  # steps of each source before every BLOCK-th step

    def before(self, step: int) -> NDArray[np.int64]:
        """Return the number of samples of each source before a step (counted from 0), [sources] int64."""
        block, place = divmod(step, BLOCK)
        while len(self._blocks) <= block:
            self._blocks.append(self._blocks[-1] + self._steps(len(self._blocks) - 1, BLOCK))
        return (self._blocks[block] + self._steps(block, place)) * self.rows

    def _steps(self, block: int, count: int) -> NDArray[np.int64]:
        """Count the draws of each source in the first ``count`` steps of a block."""
        drawn = uniform(self.key, block * BLOCK + np.arange(count))
        sources = np.searchsorted(self._bounds, drawn, side="right")
        return np.bincount(sources, minlength=len(self._bounds) + 1).astype(np.int64)


class Stages:
    """Quotas whose weights change at given steps.

    Without a key, a stage of n samples has ⌊n·p_i⌋ or ⌈n·p_i⌉ of source i. The largest remainders are rounded up. A
    remainder is n·p_i − ⌊n·p_i⌋ plus the number of samples that the source lacks from earlier stages, so many short
    stages follow the sum of their shares. Within a stage, the number grows evenly from step to step, as in ``Quotas``.

    Args:
        firsts: First step of each stage, rising from 0.
        weights: Weights of the sources in each stage. A source with the weight 0 has no sample in the stage.
        steps: Number of steps of the run. Later steps continue the last stage.
        rows: Number of samples of a step.
        key: Key of ``Draws`` in each stage. None mixes all sources in each step.
    """

    def __init__(
        self,
        firsts: Sequence[int],
        weights: Sequence[Sequence[Fraction | int]],
        steps: int,
        rows: int,
        key: int | None = None,
    ) -> None:
        assert firsts[0] == 0 and all(a < b for a, b in pairwise([*firsts, steps])), "stages rise from step 0"
        self.rows, self._firsts = rows, list(firsts)
        self._lock = Lock()  # the thread of the next batch and that of the log both count
        lengths = [stop - first for first, stop in pairwise([*firsts, steps])]
        if key is None:
            weights = _totals(weights, [length * rows for length in lengths])
        self._sources = [np.flatnonzero([weight > 0 for weight in stage]) for stage in weights]
        self._parts: list[Quotas | Draws] = []
        self._done = [np.zeros(len(weights[0]), np.int64)]  # samples of each source before each stage
        for stage, (length, own) in enumerate(zip(lengths, weights, strict=True)):
            drawn = [weight for weight in own if weight > 0]
            self._parts.append(Quotas(drawn, rows) if key is None else Draws(drawn, rows, key_of("stage", key, stage)))
            self._done.append(self._counts(stage, length))

    def before(self, step: int) -> NDArray[np.int64]:
        """Return the number of samples of each source before a step (counted from 0), [sources] int64."""
        stage = bisect_right(self._firsts, step) - 1
        with self._lock:
            return self._counts(stage, step - self._firsts[stage])

    def _counts(self, stage: int, steps: int) -> NDArray[np.int64]:
        """Return the number of samples of each source after ``steps`` steps of a stage."""
        counts = self._done[stage].copy()
        counts[self._sources[stage]] += self._parts[stage].before(steps)
        return counts


def _totals(weights: Sequence[Sequence[Fraction | int]], sizes: Sequence[int]) -> list[list[int]]:
    """Return the number of samples of each source in each stage. ``sizes`` has the number of samples of each stage."""
    lacking, result = [Fraction(0)] * len(weights[0]), []
    for own, size in zip(weights, sizes, strict=True):
        total = sum(map(Fraction, own))
        wanted = [size * Fraction(weight) / total for weight in own]
        given = [floor(number) for number in wanted]
        remainders = {i: lacking[i] + wanted[i] - given[i] for i in range(len(own)) if wanted[i] != given[i]}
        for i in sorted(remainders, key=lambda i: -remainders[i])[: size - sum(given)]:
            given[i] += 1
        lacking = [more + number - got for more, number, got in zip(lacking, wanted, given, strict=True)]
        result.append(given)
    return result
