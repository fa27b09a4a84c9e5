"""The job that both sides do: a task, a model in a folder, and settings of fine-tuning."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from probes.transfer.batch import Examples
from probes.transfer.config import TransferConfig
from probes.transfer.model import Pretrained, open_pretrained
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks.base import task_of
from synthlang.config import parse
from synthlang.corpus import Corpus
from synthlang.vocabulary import save_tokenizer, train_tokenizer


@dataclass(frozen=True)
class Job:
    """What is fine-tuned; ``language`` is the parent itself."""

    transfer: Transfer

    @property
    def config(self) -> TransferConfig:
        """Of our side."""
        return self.transfer.config

    def examples(self, split: str) -> Examples:
        """The parent's items of a split."""
        return self.transfer.examples(f"source {split}")

    @property
    def classes(self) -> int:
        """How many classes the head has."""
        return max(len(names) for names in self.transfer.labels["source"].values())


def settings_of(options: argparse.Namespace) -> dict[str, Any]:
    """The config of a transfer."""
    data = {"task": options.task, "train": options.data, "length": options.length, "train_items": options.items}
    tuning = {"epochs": options.epochs, "rows": options.rows, "learning_rate": options.rate}
    return {
        **data,
        "dev_items": max(1, options.items // 10),
        "test_items": max(1, options.items // 5),
        "fine_tune": {**tuning, "precision": options.precision},
    }


def open_job(options: argparse.Namespace) -> Job:
    """The job of the command's arguments on the model in its folder."""
    config = parse(TransferConfig, settings_of(options), "bench")
    pretrained: Pretrained = open_pretrained(options.folder, "parent")
    return Job(Transfer(pretrained, load_data(config, pretrained), config))


def write_model(options: argparse.Namespace) -> None:
    """A model with random weights and a tokenizer of the data, as a folder of Hugging Face."""
    from transformers import RobertaConfig, RobertaForMaskedLM, set_seed

    folder = Path(options.folder)
    texts = _texts(options)
    tokenizer = train_tokenizer(texts, options.vocabulary)
    save_tokenizer(tokenizer, folder)
    set_seed(0)
    shape = RobertaConfig(
        vocab_size=tokenizer.get_vocab_size(),
        hidden_size=options.hidden,
        num_hidden_layers=options.layers,
        num_attention_heads=max(1, options.hidden // 64),
        intermediate_size=4 * options.hidden,
        max_position_embeddings=options.length + 2,
        initializer_range=0.05,
        type_vocab_size=1,
        pad_token_id=1,
        bos_token_id=0,
        eos_token_id=2,
    )
    RobertaForMaskedLM(shape).save_pretrained(folder)


def _texts(options: argparse.Namespace) -> list[str]:
    """The text of the items that are trained on."""
    task = task_of(parse(TransferConfig, settings_of(options), "bench")).open(options.data)
    batches: list[Corpus] = []
    for batch in task.as_source().batches("train"):
        batches.append(batch)
        if sum(map(len, batches)) >= 2 * options.items:
            break
    return [text for batch in batches for text in batch.texts()]


def use_threads(count: int | None) -> None:
    """Let torch use so many threads (None: its default)."""
    if count is not None:
        torch.set_num_threads(count)
