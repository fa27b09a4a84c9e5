"""Measures of word-embedding alignment, for the probe ``words`` and for the alignment that every run logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probes.results.declared import ANY, AT_LEAST_ZERO, PERCENT, Entries, Measure, Tree

FOUND = Measure("percent", "word types", PERCENT)
TYPES = Measure("word types", "word types", AT_LEAST_ZERO)
DIRECTIONS: Tree = {"forward": FOUND, "backward": FOUND, "mean": replace(FOUND, main=True)}
SCORES: Tree = {ANY: {"cosine": DIRECTIONS, "csls": DIRECTIONS}}
"""The scores of each subset of words: all words, dictionary words and held-out words."""


def _ranks(band: Mapping[str, Any]) -> str:
    """Return the frequency ranks of a band, such as "101-1000", or "5001-" for the last."""
    return f"{band['from']}-{band['to'] or ''}"


OF_LANGUAGE: Tree = {"types": TYPES, "scores": SCORES, "bands": Entries({"types": TYPES, "scores": SCORES}, _ranks)}
ALIGNMENT: Tree = {**OF_LANGUAGE, "languages": {ANY: OF_LANGUAGE}}
"""The measures of the alignment of a run: at the top level for one language, and in ``languages`` for each."""
WORDS: Tree = {**ALIGNMENT, "checkpoints": Entries({"languages": {ANY: OF_LANGUAGE}})}
"""The measures of the probe ``words``, which also measures checkpoints."""
