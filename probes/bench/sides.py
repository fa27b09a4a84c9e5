"""The two sides: our fine-tuning, and transformers' Trainer on the same weights, rows, labels and padding rule."""

from __future__ import annotations

import argparse
import tempfile
import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.bench.timing import peak_memory_mb
from probes.bench.job import Job, open_job, use_threads
from probes.transfer.batch import NO_LABEL, Examples


def run_ours(options: argparse.Namespace) -> dict[str, Any]:
    """Fine-tune with a dev score each epoch, then predict the test set."""
    from probes.transfer.fit import fine_tune, predict

    use_threads(options.threads)
    job = open_job(options)
    transfer = job.transfer
    train, dev, test = (job.examples(split) for split in ("train", "dev", "test"))
    model = transfer.build(job.config, "source", 0)
    began = time.perf_counter(), time.process_time()
    fine_tune(model, train, dev, transfer.main, job.config.fine_tune, 0)
    said = predict(model, test)
    return _measured(began, job, transfer.main(test.gold, said))


def run_theirs(options: argparse.Namespace) -> dict[str, Any]:
    """The Trainer with its padding collator; it scores dev each epoch, as ours does, and ends with the last epoch."""
    use_threads(options.threads)
    job = open_job(options)
    rows = {split: _rows(job.examples(split)) for split in ("train", "dev", "test")}
    trainer, folder = _trainer(options, job, rows)
    began = time.perf_counter(), time.process_time()
    with folder:
        trainer.train()
        logits = trainer.predict(rows["test"]).predictions
    said = _predictions(job.examples("test"), np.asarray(logits).argmax(-1))
    return _measured(began, job, job.transfer.main(job.examples("test").gold, said))


def _measured(began: tuple[float, float], job: Job, score: float) -> dict[str, Any]:
    seconds, cpu = time.perf_counter() - began[0], time.process_time() - began[1]
    items = len(job.examples("train")) * job.config.fine_tune.epochs
    return {
        "items_per_second": items / seconds,
        "seconds": seconds,
        "cpu_seconds": cpu,
        "peak_memory_mb": peak_memory_mb(),
        "score": score,
    }


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
        train_dataset=_Rows(rows["train"]),
        eval_dataset=_Rows(rows["dev"]),
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


class _Rows(torch.utils.data.Dataset[dict[str, list[int]]]):
    """Rows as a tokenized data set gives them."""

    def __init__(self, rows: list[dict[str, list[int]]]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        return self.rows[number]
