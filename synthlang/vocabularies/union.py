"""Tokens of several members in one space: one BPE for all, or the union of one for each."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from synthlang.prefix_vocabulary import prefixed
from synthlang.scripts import SPECIAL_TOKENS
from synthlang.vocabularies.space import OURS, IdSpace, MemberTokenizer


def joint_space(names: Sequence[str], tokenizer: Tokenizer) -> IdSpace:
    """Everyone's tokenizer is the same, and so are the ids."""
    size = int(tokenizer.get_vocab_size())
    ids = np.arange(size, dtype=np.int64)
    return IdSpace("joint", size, OURS, tuple(MemberTokenizer(name, tokenizer, ids) for name in names))


def joined_space(names: Sequence[str], tokenizers: Sequence[Tokenizer]) -> IdSpace:
    """The union of the vocabularies: a string that several have is one id; each keeps its own merges.

    The first member's ids are as they were; the tokens that the next one adds follow in its order, and so on.
    """
    specs = [json.loads(tokenizer.to_str()) for tokenizer in tokenizers]
    union: dict[str, int] = {}
    for spec in specs:
        for token, _ in sorted(spec["model"]["vocab"].items(), key=lambda item: int(item[1])):
            union.setdefault(token, len(union))
    members = []
    for name, spec in zip(names, specs, strict=True):
        ids = _sorted(union[token] for token in spec["model"]["vocab"])
        # the tokens of the others are names only: no merge of this member makes one
        whole = {**spec, "model": {**spec["model"], "vocab": union}}
        members.append(MemberTokenizer(name, Tokenizer.from_str(json.dumps(whole)), ids))
    return IdSpace("joined", len(union), OURS, tuple(members))


def prefixed_space(names: Sequence[str], tokenizers: Sequence[Tokenizer]) -> IdSpace:
    """Every token under its member's prefix, so that only the specials are shared (prefix_vocabulary.py)."""
    made = prefixed(dict(zip(names, tokenizers, strict=True)))
    members = []
    start = len(SPECIAL_TOKENS)
    for name, parent in zip(names, tokenizers, strict=True):
        stop = start + int(parent.get_vocab_size()) - len(SPECIAL_TOKENS)
        members.append(MemberTokenizer(name, made[name], _sorted([*OURS.all, *range(start, stop)])))
        start = stop
    return IdSpace("prefixed", int(made[names[0]].get_vocab_size()), OURS, tuple(members))


def _sorted(ids: Iterable[int]) -> NDArray[np.int64]:
    return np.asarray(sorted(ids), dtype=np.int64)
