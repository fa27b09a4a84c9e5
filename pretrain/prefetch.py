"""Batches made one step ahead in a thread, while the model computes."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Generic, TypeVar

T = TypeVar("T")


class Prefetch(Generic[T]):
    """``get(step)`` is ``make(step)``; that of the next step is begun at once."""

    def __init__(self, make: Callable[[int], T], steps: int) -> None:
        self.make, self.steps = make, steps
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="batches")
        self._next: tuple[int, Future[T]] | None = None

    def __enter__(self) -> Prefetch[T]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)

    def get(self, step: int) -> T:
        """What belongs to a step; an error in making it is raised here."""
        ahead = self._next
        future = ahead[1] if ahead is not None and ahead[0] == step else self._pool.submit(self.make, step)
        self._next = (step + 1, self._pool.submit(self.make, step + 1)) if step + 1 < self.steps else None
        return future.result()
