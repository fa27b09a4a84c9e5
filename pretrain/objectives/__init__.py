"""What is learned: a weighted sum of terms, one file for each. Adding a term is a file with a Term and its line below.

term.py         what a term says of itself, and what holds where it says nothing
objective.py    the weighted sum of those that are on

Settings are read from here, so no term loads torch before it is trained.
"""

from __future__ import annotations

from typing import Any

from pretrain.objectives.align import Align
from pretrain.objectives.dict import Dict
from pretrain.objectives.mlm import Mlm
from pretrain.objectives.term import Term
from pretrain.objectives.tlm import Tlm

TERMS: tuple[Term[Any], ...] = (
    Mlm(),
    Tlm(),
    Dict(),
    Align(),
)
"""Every term, in the order of the log; batches name a term by its number here."""
NAMES = tuple(term.name for term in TERMS)
