"""Our weights as those of Hugging Face's RoBERTa, XLM-RoBERTa and BERT, and theirs as ours.

Three things differ by more than their names. Queries, keys and values are one matrix with us. RoBERTa's position
table starts with rows 0 … pad that no token has. And a token type is with us the language: its embedding becomes
token type 0 of the export; token type 0 of an import is added to every position, which is the same sum.

names.py    what the parts are called
export.py   ours → theirs
start.py    theirs → ours
"""

from pretrain.weights.export import to_hf
from pretrain.weights.start import check_start, from_hf

__all__ = ["check_start", "from_hf", "to_hf"]
