"""Text without meaning for both sides of a comparison: sentences of Zipfian ids, and what a run makes of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from pretrain.artifacts import Artifacts, Parallel, RunLanguage
from pretrain.bench.shapes import Shape
from synthlang.dictionary.ids import IdDictionary
from synthlang.language import PARENT
from synthlang.rng import uniform
from synthlang.shards import Shards
from synthlang.vocabularies import OURS, IdSpace, LanguageTokenizer

SENTENCE = 24  # tokens of the longest; the shortest has half as many
COVERAGE = 4  # every so manieth type is in the dictionary: 25 %, as in ALIGN-MLM


def artifacts_of(shape: Shape, steps: int) -> Artifacts:
    """Two languages of ``shape.ids`` / 2 tokens each, of which the second copies the first; enough for ``steps``."""
    half, first = shape.ids // 2, len(OURS.all)
    words = np.arange(first, half)
    ids = (np.arange(half), np.concatenate([np.arange(first), words + half]))
    sentences = 2 + 2 * steps * shape.rows * shape.length // SENTENCE
    shortest = max(1, min(SENTENCE, shape.length // 2 - 2) // 2)
    lengths = shortest + (uniform(1, np.arange(sentences)) * (shortest + 1)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # inverse of the distribution function of p(rank) ∝ 1 / rank
    ranks = np.exp(uniform(2, np.arange(offsets[-1])) * np.log(len(words))).astype(np.int64) - 1
    tokens = words[np.minimum(ranks, len(words) - 1)]
    tokenizer = tokenizer_of(shape)
    members, shards = [], []
    for number, (name, own) in enumerate(zip(("parent", "copy"), ids, strict=True)):
        text = tokens + half * number
        shards.append(_shards(name, text, offsets, int(own[-1]) + 1))
        member = LanguageTokenizer(name, tokenizer, own)
        members.append(RunLanguage(name, "bench", _nothing(), PARENT, member, shards[-1], None))
    space = IdSpace("copied", shape.ids, OURS, tuple(m.tokenizer for m in members), (0, half), half)
    pairs = np.stack([words, words + half], axis=1)[::COVERAGE]
    dictionary = IdDictionary(pairs, np.tile([0, 1], (len(pairs), 1)), {"fingerprint": "bench"})
    rows = np.tile(np.arange(sentences)[:, None], 2)
    parallel = (Parallel(0, 1, shards[0], shards[1], rows),)
    return Artifacts(space, tuple(members), dictionary, (), False, parallel, None, {})


def tokenizer_of(shape: Shape) -> Tokenizer:
    """A tokenizer that has the ids, and the special tokens at theirs."""
    names = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    vocabulary = {name: i for i, name in enumerate(names)}
    vocabulary |= {f"w{i}": i for i in range(len(names), shape.ids)}
    return Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))  # noqa: S106  no password


def _shards(name: str, tokens: NDArray[np.int64], offsets: NDArray[np.int64], size: int) -> Shards:
    counts = np.bincount(tokens, minlength=size)
    ids = np.arange(len(offsets) - 1)
    return Shards(tokens.astype(np.uint32), offsets, counts, ids, {"fingerprint": f"bench {name}"})


def _nothing() -> Any:
    """In the place of a source: what is measured reads shards only."""
    return None
