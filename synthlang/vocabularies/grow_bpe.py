"""New subwords of a BPE: training goes on where the checkpoint's ended.

The words are cut as the checkpoint cuts them, and further merges are learned on its tokens. They come after
the old ones, so an old cut is first made and then made coarser: no word gets more pieces than before.
"""

from __future__ import annotations

import re

from synthlang.vocabularies.grow import Grown, Task, token_runs
from synthlang.vocabularies.merges import Symbols, learn_merges

BYTE = re.compile("<0x[0-9A-F]{2}>")  # a byte of a character that has no token: its decoder needs it alone


def grow_bpe(task: Task) -> Grown:
    """The BPE with at most ``size`` more tokens."""
    vocab: dict[str, int] = dict(task.model["vocab"])
    unknown = task.model.get("unk_token")
    apart = set(task.tokenizer.get_added_tokens_decoder())
    apart |= {i for token, i in vocab.items() if token == unknown or BYTE.fullmatch(token)}
    runs = token_runs(task.tokenizer, task.counts, apart)
    prefix = task.model.get("continuing_subword_prefix") or ""

    def spell(symbols: Symbols) -> str:
        return symbols[0] + "".join(symbol.removeprefix(prefix) for symbol in symbols[1:])

    cut: dict[str, Symbols] = {}
    merges = []
    # some merges only lead to tokens that are there already, or in another way to the same new one
    for left, right in learn_merges(runs, 2 * task.size, task.min_frequency):
        token = spell(left + right)
        if token not in vocab and token not in cut:
            if len(cut) == task.size:
                break
            cut[token] = left + right
        merges.append([spell(left), spell(right)])
    pieces = tuple(tuple(vocab[symbol] for symbol in symbols) for symbols in cut.values())
    whole = vocab | {token: task.first + i for i, token in enumerate(cut)}
    model = {**task.model, "vocab": whole, "merges": [*task.model["merges"], *merges]}
    return Grown(tuple(cut), pieces, model)
