"""Measures of word-embedding alignment, of the probe ``words`` and of the alignment of every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from probes.results.declared import ANY, AT_LEAST_ZERO, PERCENT, Entries, Measure, Tree

FOUND = Measure("percent", "word types", PERCENT)
TYPES = Measure("word types", "word types", AT_LEAST_ZERO)
DIRECTIONS: Tree = {"forward": FOUND, "backward": FOUND, "mean": replace(FOUND, main=True)}
SCORES: Tree = {ANY: {"cosine": DIRECTIONS, "csls": DIRECTIONS}}
"""The scores of all words, of those in the dictionary and of those held out."""


def _ranks(band: Mapping[str, Any]) -> str:
    """Return the frequency ranks of a band, such as "101-1000", or "5001-" for the last."""
    return f"{band['from']}-{band['to'] or ''}"


OF_LANGUAGE: Tree = {"types": TYPES, "scores": SCORES, "bands": Entries({"types": TYPES, "scores": SCORES}, _ranks)}
ALIGNMENT: Tree = {**OF_LANGUAGE, "languages": {ANY: OF_LANGUAGE}}
"""The measures of the alignment of a run, first of its second language and then of each language."""
WORDS: Tree = {**ALIGNMENT, "checkpoints": Entries({"languages": {ANY: OF_LANGUAGE}})}
"""The measures of the probe."""
