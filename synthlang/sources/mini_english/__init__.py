"""Mini-English: a seeded dependency grammar with gold annotation."""

from __future__ import annotations

from synthlang.sources.mini_english.source import MiniEnglish

__all__ = ["MiniEnglish"]
