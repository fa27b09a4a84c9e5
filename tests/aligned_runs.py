"""Runs with random weights as models for transfers, and a plain reader of their sentences, one at a time."""

from pathlib import Path
from typing import Any

import torch

from pretrain.build import new_model
from pretrain.config import PretrainConfig
from pretrain.model.language_model import LanguageModel
from pretrain.prepare import prepare
from probes.models.opening import of_run
from probes.models.pretrained import Pretrained, Reader
from synthlang.config import parse
from synthlang.store import Store
from tests.tiny import PRETRAIN, changed

SEPARATE = {"sharing": {"embeddings": "separate", "layers": [1]}}


def random_run(folder: Path, **settings: Any) -> Pretrained:
    """A run of trans+inv that was only prepared: two layers with random weights."""
    data = changed(PRETRAIN, model__layers=2, model__init_std=0.3, **settings)
    if "sharing" in settings:
        data["objective"] = {"kind": "mlm", "mask_rate": 0.3}
    config = parse(PretrainConfig, data)
    artifacts = prepare(config, Store(folder))
    return of_run(config, artifacts, new_model(config, artifacts), "record")


def plain_ids(reader: Reader, words: list[str]) -> tuple[list[int], list[range]]:
    """The ids of a sentence with its sentence tokens, and the columns of each word."""
    ids, columns = [reader.specials.bos], []
    for word in words:
        piece = reader.tokenizer.tokenizer.encode(word, add_special_tokens=False).ids
        columns.append(range(len(ids), len(ids) + len(piece)))
        ids += piece
    return [*ids, reader.specials.eos], columns


def plain_states(body: LanguageModel, reader: Reader, words: list[str], layer: int, subword: str) -> list[torch.Tensor]:
    """Return the vector of each word, then those of <s> and </s>. The sentence is read alone."""
    from pretrain.model.text import Text

    ids, columns = plain_ids(reader, words)
    (states,) = body.read(Text.of(torch.tensor([ids]), reader.number), layers=[layer])
    row = states[0]
    pooled = {
        "mean": lambda at: row[at.start : at.stop].mean(0),
        "first": lambda at: row[at.start],
        "last": lambda at: row[at.stop - 1],
    }[subword]
    return [*(pooled(at) for at in columns), row[0], row[-1]]
