"""A vocabulary without anchors: the tokens of each language under its own prefix, in one id space.

Two languages that share no token cannot be aligned by shared ones (Conneau et al. 2020, "Emerging
Cross-lingual Structure in Pretrained Language Models", no anchors). Only the five specials are shared:

    0–4 <s> <pad> </s> <unk> <mask> | ids of the first language as they were | the other languages' | fillers

A tokenizer stays a plain byte-level BPE. Its normaliser writes ``en:`` after the space before each word, BPE's
continuing-subword prefix marks every symbol, and the first merges join the space and the prefix:

    the cats  →  Ġen:the Ġen:cat en:s

What those merges pass through (``Ġ``, ``Ġe``, ``Ġen``) are the fillers; no text has their ids.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tokenizers import Tokenizer

from synthlang.errors import InputError
from synthlang.scripts import SPACE, SPECIAL_TOKENS
from synthlang.vocabulary import merges_of_text

NAME = re.compile(r"[A-Za-z0-9-]{1,32}")


def prefixed(tokenizers: Mapping[str, Tokenizer]) -> dict[str, Tokenizer]:
    """The tokenizer of each language in the joint id space; ids of the first language are as they were.

    ``tokenizers`` are byte-level BPEs as ``train_tokenizer`` makes them, by language name. Raises
    InputError for a name that is not letters, digits and hyphens, or another kind of tokenizer.
    """
    specs = {name: _plain_spec(name, tokenizer) for name, tokenizer in tokenizers.items()}
    joint = {token: index for index, token in enumerate(SPECIAL_TOKENS)}
    for name, spec in specs.items():
        own = sorted(spec["model"]["vocab"].items(), key=lambda item: int(item[1]))
        for token, _ in own[len(SPECIAL_TOKENS) :]:
            joint[_renamed(name, token)] = len(joint)
    for name in specs:
        for filler in _steps(name)[:-1]:
            joint.setdefault(filler, len(joint))
    return {name: Tokenizer.from_str(json.dumps(_with_prefix(name, spec, joint))) for name, spec in specs.items()}


def check_prefix(name: str) -> None:
    """Raise InputError for a name that cannot be the prefix of a language's tokens."""
    if not NAME.fullmatch(name):
        raise InputError(f"the language {name!r} must be 1 to 32 letters, digits or hyphens to be a prefix of tokens")


def _plain_spec(name: str, tokenizer: Tokenizer) -> dict[str, Any]:
    """The tokenizer as data, checked to be one whose tokens can take a prefix."""
    check_prefix(name)
    spec: dict[str, Any] = json.loads(tokenizer.to_str())
    vocab = spec["model"].get("vocab", {})
    plain = (
        spec["model"]["type"] == "BPE"
        and not spec["model"].get("continuing_subword_prefix")
        and [vocab.get(token) for token in SPECIAL_TOKENS] == list(range(len(SPECIAL_TOKENS)))
        and sorted(vocab.values()) == list(range(len(vocab)))
        and all(SPACE not in token[1:] for token in vocab)
        and (spec["normalizer"] or {}).get("normalizers", [{}])[-1] == {"type": "Prepend", "prepend": " "}
    )
    if not plain:
        raise InputError(f"the tokenizer of {name} is not a byte-level BPE of a language without a script")
    return spec


def _renamed(name: str, token: str) -> str:
    """The token under the prefix: ``Ġthe`` → ``Ġen:the``, ``re`` → ``en:re``."""
    return f"{SPACE}{name}:{token[1:]}" if token.startswith(SPACE) else f"{name}:{token}"


def _steps(name: str) -> list[str]:
    """What the first merges make of the space and the prefix, one after another: Ġ, Ġe, Ġen, Ġen:."""
    return [SPACE + f"{name}:"[:end] for end in range(len(name) + 2)]


def _with_prefix(name: str, spec: dict[str, Any], joint: Mapping[str, int]) -> dict[str, Any]:
    prefix = f"{name}:"
    steps = _steps(name)
    merges = [[left, prefix + char] for left, char in zip(steps, prefix, strict=False)]
    merges += [[_renamed(name, left), _renamed(name, right)] for left, right in merges_of_text(spec["model"]["merges"])]
    model = {**spec["model"], "vocab": dict(joint), "merges": merges, "continuing_subword_prefix": prefix}
    normalizers = [
        *spec["normalizer"]["normalizers"],
        {"type": "Replace", "pattern": {"String": " "}, "content": f" {prefix}"},
    ]
    escaped = re.escape(prefix)
    decoders = [
        {"type": "Replace", "pattern": {"Regex": f"^{SPACE}{escaped}"}, "content": SPACE},
        {"type": "Replace", "pattern": {"Regex": f"^{escaped}"}, "content": ""},
        *spec["decoder"]["decoders"],
    ]
    return {
        **spec,
        "model": model,
        "normalizer": {**spec["normalizer"], "normalizers": normalizers},
        "decoder": {**spec["decoder"], "decoders": decoders},
    }
