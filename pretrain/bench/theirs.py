"""The other side: transformers' Trainer with DataCollatorForLanguageModeling, as its run_mlm script sets them up."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pretrain.bench.data import tokenizer_of
from pretrain.bench.shapes import SHAPES
from pretrain.bench.timing import Blocks

GPU_WORKERS = 4  # of the data loader; the default of 0 would have the GPU wait for the collator


def run_theirs(name: str, folder: str, precision: str, warmup: int, steps: int) -> dict[str, Any]:
    """Train the model of ``folder`` on its rows: same model, data, dropout and batch as ours."""
    from transformers import (
        DataCollatorForLanguageModeling,
        PreTrainedTokenizerFast,
        RobertaForMaskedLM,
        Trainer,
        TrainerCallback,
        TrainingArguments,
    )

    shape, gpu = SHAPES[name], torch.cuda.is_available()
    rows = np.load(Path(folder) / "rows.npy", mmap_mode="r")
    special = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer_of(shape), **{f"{role}_token": token for role, token in special.items()}
    )
    blocks = Blocks(warmup, steps, shape.rows * shape.length)

    class Clock(TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            blocks()

    with tempfile.TemporaryDirectory() as out:
        settings = TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=shape.rows,
            max_steps=steps,
            learning_rate=1e-4,
            weight_decay=0.0,
            bf16=precision == "bfloat16",
            use_cpu=not gpu,
            dataloader_num_workers=GPU_WORKERS if gpu else 0,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = Trainer(
            model=RobertaForMaskedLM.from_pretrained(folder),
            args=settings,
            data_collator=DataCollatorForLanguageModeling(tokenizer, mlm_probability=shape.mask_rate),
            train_dataset=_Rows(rows),
            callbacks=[Clock()],
        )
        mean = trainer.train().training_loss
    return {**blocks.result(), "mean_loss": round(float(mean), 4), "optimizer": str(settings.optim)}


class _Rows(torch.utils.data.Dataset[dict[str, list[int]]]):
    """Rows of ids as a tokenized data set gives them."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        return {"input_ids": self.rows[number].tolist()}
