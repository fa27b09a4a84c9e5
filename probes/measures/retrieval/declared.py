"""Measures of the probe ``retrieval``."""

from __future__ import annotations

from dataclasses import replace

from probes.results.declared import ANY, AT_LEAST_ZERO, DIFFERENCE, PERCENT, Entries, Measure, Tree

FOUND = Measure("percent", "linked words", PERCENT)
ACCURACY: Tree = {"forward": FOUND, "backward": FOUND, "mean": replace(FOUND, main=True)}
SIMILARITIES: Tree = {"csls": ACCURACY, "cosine": ACCURACY}
ZEROS = Measure("words", "words", AT_LEAST_ZERO)
GROUP: Tree = {"average": Measure("percent", "parts of speech", PERCENT), "pooled": ACCURACY, "tags": {ANY: ACCURACY}}
MEASURES: Tree = {
    "variants": {
        ANY: {
            "chance": FOUND,
            "layers": Entries({"pairs": {ANY: SIMILARITIES}, "zero_vectors": {"left": ZEROS, "right": ZEROS}}),
        }
    },
    "headline": SIMILARITIES,
    "tags": {
        "variants": {
            ANY: {"groups": {ANY: GROUP}, "left_out": {ANY: Measure("links", "linked words", AT_LEAST_ZERO)}},
        }
    },
    "ranks": {"drop": Measure("points", "linked words", DIFFERENCE)},
}
