"""How a downstream task is fine-tuned and scored."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from synthlang.config import StrictModel

FORMAT = 2  # raise when the same settings give other scores


class TransferConfig(StrictModel):
    """Fine-tuning of all weights with a linear head (ALIGN-MLM, appendix H for the defaults).

    train_sentences, dev_sentences, test_sentences   at most so many of each split (none: all)
    length   longest sentence in tokens, <s> and </s> included; words beyond it are not
             predicted and count as errors in the scores
    The epoch with the best score on the dev set of the language trained on is kept.
    """

    task: Literal["pos"] = "pos"
    epochs: int = Field(default=10, ge=1)
    rows: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=2e-5, gt=0.0)
    warmup_share: float = Field(default=0.1, ge=0.0, lt=1.0)
    weight_decay: float = Field(default=0.0, ge=0.0)
    dropout: float = Field(default=0.1, ge=0.0, lt=1.0)
    length: int = Field(default=128, ge=8)
    train_sentences: int | None = Field(default=None, ge=1)
    dev_sentences: int | None = Field(default=None, ge=1)
    test_sentences: int | None = Field(default=None, ge=1)
