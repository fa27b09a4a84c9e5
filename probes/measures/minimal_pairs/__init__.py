"""Settings of the probe ``minimal_pairs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from probes.measures.base import ProbeSettings
from probes.measures.sentences import Masking
from probes.results.declared import ANY, AT_LEAST_ZERO, DIFFERENCE, PERCENT, Entries, Measure, Tree
from synthlang.references import ItemsSpec

PAIRS = "minimal pairs"
ACCURACY: Tree = {"mean": Measure("percent", PAIRS, PERCENT)}
SURPRISAL = Measure("bits", PAIRS)


def position_name(entry: Mapping[str, Any]) -> str:
    """Return the name of a position: the number of words after the marked or first different word, with its sign.

    ``entry`` is an entry of the list ``positions`` in the results.

    >>> position_name({"position": 2}), position_name({"position": -1})
    ('+2', '-1')
    """
    return f"{entry['position']:+d}"


LANGUAGE: Tree = {
    "pairs": Measure("pairs", PAIRS, AT_LEAST_ZERO),
    "accuracy": {"mean": Measure("percent", PAIRS, PERCENT, "accuracy on minimal pairs", main=True)},
    "mean_of_paradigms": Measure("percent", "paradigms", PERCENT),
    "phenomena": {ANY: ACCURACY},
    "paradigms": {ANY: ACCURACY},
    "positions": Entries({"good": SURPRISAL, "bad": SURPRISAL, "difference": {"mean": SURPRISAL}}, position_name),
}
"""The measures of one language."""


class MinimalPairsConfig(ProbeSettings):
    """Settings of the probe ``minimal_pairs``: the pairs in each language, and the table of surprisal."""

    smoke: ClassVar[Mapping[str, Any]] = {"most": 24}

    title: ClassVar[str] = "Minimal pairs"
    about: ClassVar[str] = (
        "Percentage of pairs of a grammatical and an ungrammatical sentence in which the model gives the grammatical "
        "one the higher score. Equal scores count half. Chance is 50 % if both sentences have as many tokens, and "
        "otherwise the shorter one is favoured. A derived language has the same pairs, with both sides derived alike."
    )
    run: ClassVar[str] = "probes.measures.minimal_pairs.probe:minimal_pairs_probe"
    check: ClassVar[str] = "probes.measures.minimal_pairs.items:check_items"
    measures: ClassVar[Tree] = {
        "languages": {"source": LANGUAGE, "target": LANGUAGE},
        "difference": {"mean": Measure("points", PAIRS, DIFFERENCE)},
    }
    reads_sentences: ClassVar[bool] = False

    items: ItemsSpec | None = None
    """Pairs in the source language, such as ``minimal:blimp/data`` (null: pairs of the built-in grammar).

    ``#dev`` or ``#train`` after the pairs names a split (default: the only one, or ``test``).
    """
    other: ItemsSpec | None = None
    """Pairs in the other language (null: the derived pairs). A natural language needs pairs of its own."""
    most: int | None = Field(default=None, ge=1)
    """Maximum number of pairs, from the beginning of the split (null: all)."""
    masking: Masking = "within-word"
    """Masked tokens when an encoder predicts a token, as in ``sentences.masking``."""
    before: int = Field(default=2, ge=0, le=20)
    """Number of words before position 0 in the table of surprisal, the marked or first different word."""
    after: int = Field(default=4, ge=0, le=20)
    """Number of words after position 0 in the table of surprisal."""
