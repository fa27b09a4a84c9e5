"""Parsing: trees by spaCy or Stanza for sentences without trees (the extra ``parse``)."""

from __future__ import annotations

from synthlang.parsing.engines import Engine, open_engine
from synthlang.parsing.source import ParsedSource

__all__ = ["Engine", "ParsedSource", "open_engine"]
