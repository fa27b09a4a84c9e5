"""The terms that masked slots belong to: mlm, tlm and dict, each Σ −log p(label).

mlm    words of rows of one language (Devlin et al. 2019, section 3.1)
tlm    words of rows that hold a sentence and its translation (Lample & Conneau 2019, section 3.3)
dict   dictionary slots (Chaudhary et al. 2020, "DICT-MLM", section 2; pretrain/data/masking.py says what they are)

All three divide by one number, the labelled slots of the step, so that a slot weighs the same whatever its term.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pretrain.data.batch import TERMS


def slot_sums(losses: Tensor, terms: Tensor, names: Sequence[str]) -> dict[str, Tensor]:
    """The sum of each term. ``losses`` [rows, k] in nats, 0 where there is no label; ``terms`` [rows, k]."""
    return {name: torch.where(terms == TERMS.index(name), losses, 0.0).sum() for name in names}
