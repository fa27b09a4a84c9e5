"""What pretraining is measured on: shapes of models and batches, and text without meaning, of Zipfian ids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from pretrain.artifacts import Artifacts, Parallel, RunLanguage
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.flops import per_token
from synthlang.dictionary.ids import IdDictionary
from synthlang.language import PARENT
from synthlang.rng import uniform
from synthlang.shards import Shards
from synthlang.vocabularies import OURS, IdSpace, LanguageTokenizer


@dataclass(frozen=True)
class Shape:
    """``ids`` of both languages together; ``model`` and the batch as in a config."""

    ids: int
    model: ModelConfig
    rows: int
    length: int
    mask_rate: float = 0.15

    def flops_per_token(self, all_positions: bool = False) -> float:
        """Operations of forward and backward for each token of the batch."""
        return per_token(self.model, self.ids, self.length, self.mask_rate, all_positions)

    def config(self, objective: dict[str, Any], precision: str, compiled: str, steps: int) -> PretrainConfig:
        """A run of this shape on two languages, the second a copy of the first at an offset."""
        return PretrainConfig.model_validate(
            {
                "source": "builtin:mini-english",
                "language": "trans",
                "steps": steps,
                "model": self.model.model_dump(),
                "objective": {"mask_rate": self.mask_rate, **objective},
                "batch": {"rows": self.rows, "length": self.length},
                "optimizer": {"learning_rate": 1e-4, "warmup_steps": 0},
                "precision": precision,
                "compile": compiled,
            }
        )


SHAPES = {
    "v16k": Shape(16_000, ModelConfig(layers=4, heads=4, hidden=256, feed_forward=1024), rows=32, length=128),
    # the model of the study quickstart: 1,200 tokens and their copies
    "quickstart": Shape(
        2_400,
        ModelConfig(layers=2, heads=4, hidden=64, feed_forward=256, dropout=0.0, init_std=0.1),
        rows=128,
        length=32,
        mask_rate=0.3,
    ),
    "align_mlm": Shape(80_000, ModelConfig(), rows=128, length=512),  # ALIGN-MLM, appendix A
    "tiny": Shape(400, ModelConfig(layers=1, heads=2, hidden=16, feed_forward=32), rows=4, length=16),
}
OBJECTIVES: dict[str, dict[str, Any]] = {
    "mlm": {"kind": "mlm"},
    "align_mlm": {"kind": "align_mlm"},
    "xlm": {"kind": "xlm"},
    "dict_mlm": {"kind": "dict_mlm"},
}
# to which shares of a peak are taken, with the operations of our side: work that we leave out earns nothing;
# dense bfloat16 without sparsity, of the manufacturer's data sheets, in operations per second
PEAKS = {"H200": 989.4e12, "H100 PCIe": 756e12, "H100": 989.4e12, "A100": 312e12, "L40S": 362e12, "L4": 121e12}


def peak_of(device_name: str) -> float | None:
    """The peak in bfloat16 of a GPU, if it is known."""
    return next((peak for name, peak in PEAKS.items() if name in device_name), None)


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
