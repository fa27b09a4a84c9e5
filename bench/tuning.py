"""Fine-tuning: ours, and transformers' Trainer on the same weights, rows, labels and padding rule."""

from __future__ import annotations

import argparse
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.measured import Figures, measured
from probes.transfer.batch import NO_LABEL, Examples
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
    use_threads(options.threads)
    config = parse(TransferConfig, settings_of(options), "bench")
    pretrained: Pretrained = open_pretrained(options.folder, "parent")
    return Job(Transfer(pretrained, load_data(config, pretrained), config))


def write_model(options: argparse.Namespace) -> Figures:
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
    return {}


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


def run_ours(options: argparse.Namespace) -> Figures:
    """Fine-tune with a dev score each epoch, then predict the test set."""
    from probes.transfer.fit import fine_tune, predict

    job = open_job(options)
    transfer = job.transfer
    train, dev, test = (job.examples(split) for split in ("train", "dev", "test"))
    model = transfer.build(job.config, "source", 0)

    def work() -> Figures:
        fine_tune(model, train, dev, transfer.main, job.config.fine_tune, 0)
        return {"score": transfer.main(test.gold, predict(model, test))}

    return _speed(job, measured(work))


def run_theirs(options: argparse.Namespace) -> Figures:
    """The Trainer with its padding collator; it scores dev each epoch, as ours does, and ends with the last epoch."""
    job = open_job(options)
    rows = {split: _rows(job.examples(split)) for split in ("train", "dev", "test")}
    trainer, folder = _trainer(options, job, rows)
    test = job.examples("test")

    def work() -> Figures:
        trainer.train()
        logits = trainer.predict(rows["test"]).predictions
        return {"score": job.transfer.main(test.gold, _predictions(test, np.asarray(logits).argmax(-1)))}

    with folder:
        return _speed(job, measured(work))


def _speed(job: Job, found: Figures) -> Figures:
    items = len(job.examples("train")) * job.config.fine_tune.epochs
    return {"items_per_second": items / found["seconds"], **found}


def _rows(examples: Examples) -> list[dict[str, list[int]]]:
    """Each row as a data set of the hub has it: ids and labels without padding."""
    rows = []
    for number in range(len(examples)):
        batch = examples.batch(np.asarray([number]))
        size = int(examples.lengths[number])
        row: dict[str, Any] = {"input_ids": batch.text.input_ids[0, :size].tolist(), "attention_mask": [1] * size}
        if "label" in batch.targets:
            row["label"] = int(batch.targets["label"][0])
        else:
            assert batch.words is not None, "a task of words"
            labels = torch.full((size,), NO_LABEL)
            labels[batch.words[0, :, 0][batch.mask[0]]] = batch.targets["tags"][0][batch.mask[0]]
            row["labels"] = labels.tolist()
        rows.append(row)
    return rows


def _trainer(
    options: argparse.Namespace, job: Job, rows: dict[str, list[dict[str, list[int]]]]
) -> tuple[Any, tempfile.TemporaryDirectory[str]]:
    import transformers as hf

    tokenizer = hf.AutoTokenizer.from_pretrained(options.folder)
    pair = options.task == "nli"
    kind = hf.AutoModelForSequenceClassification if pair else hf.AutoModelForTokenClassification
    collator = (hf.DataCollatorWithPadding if pair else hf.DataCollatorForTokenClassification)(tokenizer)
    folder: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory()
    tuning = job.config.fine_tune
    settings = hf.TrainingArguments(
        output_dir=folder.name,
        num_train_epochs=tuning.epochs,
        per_device_train_batch_size=tuning.rows,
        per_device_eval_batch_size=128,
        learning_rate=tuning.learning_rate,
        warmup_steps=int(tuning.warmup_share * tuning.epochs * -(-len(rows["train"]) // tuning.rows)),
        weight_decay=0.0,
        eval_strategy="epoch",
        save_strategy="no",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        bf16=tuning.precision == "bfloat16",
        use_cpu=not torch.cuda.is_available(),
        seed=0,
    )
    model = kind.from_pretrained(options.folder, num_labels=job.classes)
    trainer = hf.Trainer(
        model=model,
        args=settings,
        data_collator=collator,
        train_dataset=rows["train"],
        eval_dataset=rows["dev"],
    )
    return trainer, folder


def _predictions(examples: Examples, chosen: NDArray[np.int64]) -> list[Any]:
    """Their classes in the form of ours."""
    outputs: list[Any] = []
    for number in range(len(examples)):
        batch = examples.batch(np.asarray([number]))
        if batch.words is None or "label" in batch.targets:
            outputs.append(int(chosen[number]))
        else:
            outputs.append([int(chosen[number, c]) for c in batch.words[0, :, 0][batch.mask[0]].tolist()])
    return examples.predictions(outputs)


SIDES = {"start": write_model, "ours": run_ours, "theirs": run_theirs}
