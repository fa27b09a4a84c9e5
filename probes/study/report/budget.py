"""How many figures a report may still draw: each takes about a tenth of a second and 50 KB of the page."""

from __future__ import annotations

FEW_CELLS = 200
FIGURES, FIGURES_OF_MANY = 40, 8
"""Most figures of a report, and of one of more than FEW_CELLS cells, which is to be done in seconds."""


class Budget:
    """Figures left to draw."""

    def __init__(self, cells: int) -> None:
        self.many = cells > FEW_CELLS
        self.left = FIGURES_OF_MANY if self.many else FIGURES

    def take(self, wanted: int = 1, most: int | None = None) -> int:
        """How many of ``wanted`` figures may be drawn, at most ``most`` (of many cells a quarter of it)."""
        limit = self.left if most is None else min(self.left, max(1, most // 4) if self.many else most)
        given = min(wanted, limit)
        self.left -= given
        return given
