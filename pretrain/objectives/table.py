"""The table of terms: one line for each of ours, and those of plugins.

Settings are read from here, so no term loads torch before it is trained.
"""

from __future__ import annotations

from typing import Any

from pretrain.objectives.align import Align
from pretrain.objectives.dict import Dict
from pretrain.objectives.mlm import Mlm
from pretrain.objectives.term import Term
from pretrain.objectives.tlm import Tlm
from synthlang.plugins import added

OURS: tuple[type[Term[Any]], ...] = (
    Mlm,
    Tlm,
    Dict,
    Align,
)
PLUGINS = added("terms", Term, [kind.name for kind in OURS], lambda kind: str(kind.name))
TERMS: tuple[Term[Any], ...] = tuple(kind() for kind in (*OURS, *PLUGINS.values()))
"""Every term, in the order of the log. Batches refer to a term by its number here."""
NAMES = tuple(term.name for term in TERMS)
