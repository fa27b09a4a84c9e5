"""The table of terms, including plugins. Terms load torch only for training, since settings use this table."""

from __future__ import annotations

from typing import Any

from pretrain.objectives.align import Align
from pretrain.objectives.clm import Clm
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
    Clm,
)
PLUGINS = added("terms", Term, [kind.name for kind in OURS], lambda kind: str(kind.name))
TERMS: tuple[Term[Any], ...] = tuple(kind() for kind in (*OURS, *PLUGINS.values()))
"""All terms, in the order of the log. Batches refer to a term by its index."""
NAMES = tuple(term.name for term in TERMS)
