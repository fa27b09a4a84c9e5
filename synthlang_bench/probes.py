"""``python -m probes.bench``: compare fine-tuning with transformers' Trainer on equal models and data, as JSON.

With ``--probe`` it measures a probe at full size on random data, and the bare matrix products in it.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pretrain.alignment import pair_credits
from pretrain.nearest import nearest
from pretrain.nearest_lists import TILE, Matrix
from probes.measures.cka.similarity import CKA, MEMORY
from probes.models.opening import open_pretrained
from probes.transfer.config import TransferConfig
from probes.transfer.run import Transfer
from probes.transfer.splits import load_data
from probes.transfer.tasks.base import NO_LABEL, Examples, task_of
from synthlang.config import parse
from synthlang.vocabulary import save_tokenizer, train_tokenizer
from synthlang_bench.measured import Figures, call, in_turns, measured, medians, parser_of, peak_memory_mb, tell, where

DATA = "builtin:mini-english?types=2000&sentences=20000"
NOISE = 3.0
WRITTEN = 8192  # rows that are drawn and written at once
BATCH, BLOCK = 128, 1024  # sentences of a batch, and rows of a bare product


def planted(options: Namespace, seed: int = 0, rows: int | None = None) -> tuple[Tensor, Tensor]:
    """Return rows [n, d] and noisy copies of them, by the options ``n`` and ``d``. ``rows`` replaces ``n``."""
    torch.set_num_threads(options.threads or torch.get_num_threads())
    generator, shape = torch.Generator().manual_seed(seed), (rows or options.n, options.d)
    first = torch.randn(shape, generator=generator)
    return first, torch.randn(shape, generator=generator).mul_(NOISE).add_(first)


def run_alignment(options: Namespace) -> Figures:
    """Measure the search of the alignment score: nearest neighbours in both directions, by cosine and CSLS."""
    rows, copies = planted(options)

    def work() -> Figures:
        pairs = torch.arange(len(rows)).unsqueeze(1).expand(-1, 2)
        found = pair_credits(rows, copies, pairs).scores(torch.zeros(len(rows), dtype=torch.bool)).all
        assert found is not None, "there are rows"
        return {"cosine": found.cosine.mean, "csls": found.csls.mean}

    return measured(work)


def run_retrieval(options: Namespace) -> Figures:
    """Measure the search of retrieval: contextual words in memory-mapped float16 files, by cosine and CSLS.

    Every fourth word has no alignment.
    """
    with tempfile.TemporaryDirectory() as folder:
        written: Any = [
            np.lib.format.open_memmap(f"{folder}/{side}.npy", "w+", np.float16, (options.n, options.d))
            for side in (0, 1)
        ]
        for start in range(0, options.n, WRITTEN):
            for side, rows in zip(written, planted(options, start, min(WRITTEN, options.n - start)), strict=True):
                side[start : start + WRITTEN] = rows.numpy()
        sides: list[Matrix] = [np.load(f"{folder}/{side}.npy", mmap_mode="r", allow_pickle=False) for side in (0, 1)]
        linked = torch.arange(options.n)[torch.arange(options.n) % 4 > 0]

        def work() -> Figures:
            found = nearest(sides[0], sides[1], torch.stack([linked, linked], 1))
            ways = found.forward, found.backward
            return {
                "cosine": 50 * sum(float(way.cosine.credit.mean()) for way in ways),
                "csls": 50 * sum(float(way.csls.credit.mean()) for way in ways),
            }

        return measured(work)


def run_products(options: Namespace) -> Figures:
    """Measure the bare products X Yᵀ and Y Xᵀ, in tiles of the size that the search uses."""
    x, y = planted(options)
    tile = torch.empty(min(TILE, options.n) ** 2)

    def product(left: Tensor, right: Tensor) -> Figures:
        for rows in torch.split(left, TILE):
            for columns in torch.split(right, TILE):
                torch.mm(rows, columns.T, out=tile[: len(rows) * len(columns)].view(len(rows), len(columns)))
        return {}

    def work() -> Figures:
        one = measured(lambda: product(x, y))
        product(y, x)
        return {"seconds_one": one["seconds"], "cpu_seconds_one": one["cpu_seconds"]}

    return measured(work)


def _against_products(found: Mapping[str, Figures]) -> Figures:
    ours, bare = found["ours"], found["bare"]
    return {
        "ratio": ours["seconds"] / bare["seconds"],
        "cpu_time_ratio": ours["cpu_seconds"] / bare["cpu_seconds"],
        "ratio_to_one_product": ours["seconds"] / bare["seconds_one"],
        "cpu_time_ratio_to_one_product": ours["cpu_seconds"] / bare["cpu_seconds_one"],
        "peak_memory_mb": ours["peak_memory_mb"],
    }


def run_cka(options: Namespace) -> Figures:
    """Return the seconds of CKA on random states, ratios to the bare products, and peak memory in MB.

    The bare products are Σ X_lᵀ Y_r of all layers² pairs, uncentred, with one matrix product a block, in float32 and in
    float64. CKA needs 2 · layers more products, of every layer with itself, so its ratio to the products in float64 is
    at least 1 + 2 / layers. ``cpu`` has ratios of processor time, which depends less on other load. Times exclude the
    generation of the states, and the peak memory excludes the bare products.
    """
    torch.set_num_threads(options.threads or torch.get_num_threads())
    layers, width, memory = options.cka_layers, options.cka_width, options.cka_memory * 2**20
    ours = {"wall": 0.0, "cpu": 0.0}
    gather = CKA(layers, layers, width, width, memory=memory)
    for left, right in _states(options, BATCH):
        with _timed(ours):
            gather.update(left, right)
    with _timed(ours):
        result = gather.result()
    peak = peak_memory_mb()
    del gather
    ratios = {}
    for dtype in (torch.float32, torch.float64):
        bare, products = {"wall": 0.0, "cpu": 0.0}, torch.zeros(layers * width, layers * width, dtype=dtype)
        for sides in _states(options, BLOCK):
            left, right = (side.transpose(0, 1).flatten(1).to(dtype) for side in sides)
            with _timed(bare):
                products.addmm_(left.T, right)
        ratios[str(dtype).removeprefix("torch.")] = {kind: round(ours[kind] / bare[kind], 2) for kind in ours}
    return {
        "layers": layers,
        "sentences": options.cka_sentences,
        "width": width,
        "memory_mb": options.cka_memory,
        "seconds": round(ours["wall"], 2),
        "ratio_to_products": ratios,
        "peak_memory_mb": round(peak, 1),
        "biased_average": float(result.biased.diagonal().mean()),
        "debiased_average": None if result.debiased is None else float(result.debiased.diagonal().mean()),
    }


def _states(options: Namespace, rows: int) -> Iterator[tuple[Tensor, Tensor]]:
    """Yield the same states in each call, [layers, n, width] of both sides, half of which is a common signal."""
    generator = torch.Generator().manual_seed(0)
    for start in range(0, options.cka_sentences, rows):
        shape = (options.cka_layers, min(rows, options.cka_sentences - start), options.cka_width)
        common = torch.randn(shape[1:], generator=generator)
        left, right = (torch.randn(shape, generator=generator).add_(common).add_(5.0) for _ in range(2))
        yield left, right


@contextmanager
def _timed(taken: dict[str, float]) -> Iterator[None]:
    """Add the elapsed and the processor time of the block in seconds to ``taken``."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    taken["wall"] += time.perf_counter() - wall
    taken["cpu"] += time.process_time() - cpu


Sides = dict[str, Callable[[Namespace], Figures]]
ABOUT = "ours: both directions, cosine and CSLS; bare: the products X Yᵀ and Y Xᵀ alone, which two directions need"
PROBES: dict[str, tuple[Sides, int, str]] = {  # sides, default number of rows (0: not used), description
    "alignment": ({"ours": run_alignment, "bare": run_products}, 40_000, ABOUT),
    "retrieval": ({"ours": run_retrieval, "bare": run_products}, 200_000, ABOUT),
    "cka": ({"ours": run_cka}, 0, "ours: every layer against every layer, with its ratios to products"),
}


def _probe(options: Namespace) -> Figures:
    """Measure the sides of a probe and compare them."""
    sides, rows, about = PROBES[options.probe]
    options.n = options.n or rows
    runs = in_turns({side: partial(call, work, options) for side, work in sides.items()}, options.repeats)
    found = {side: medians(repeats) for side, repeats in runs.items()}
    settings = {key: getattr(options, key) for key in ("probe", "n", "d", "threads", "repeats")}
    ratios = _against_products(found) if "bare" in found else {}
    return {"about": about, "settings": settings | where(options.threads), **ratios, **found, "runs": runs}


def config_of(options: Namespace) -> TransferConfig:
    """Return the config of the transfer that the options describe. A tenth of ``items`` is the dev set."""
    data = {"task": options.task, "train": options.data, "length": options.length, "train_items": options.items}
    held_out = {"dev_items": max(1, options.items // 10), "test_items": max(1, options.items // 5)}
    tuning = {"epochs": options.epochs, "rows": options.rows, "learning_rate": options.rate}
    settings = {**data, **held_out, "fine_tune": {**tuning, "precision": options.precision}}
    return parse(TransferConfig, settings, "bench")


def open_transfer(options: Namespace) -> tuple[Transfer, dict[str, Examples]]:
    """Return the transfer from the model in ``folder``, and its items of each split."""
    torch.set_num_threads(options.threads or torch.get_num_threads())
    config, pretrained = config_of(options), open_pretrained(options.folder, "parent")
    transfer = Transfer(pretrained, load_data(config, pretrained), config)
    return transfer, {split: transfer.examples(f"source {split}") for split in ("train", "dev", "test")}


def write_model(options: Namespace) -> Figures:
    """Write a Hugging Face folder with random weights and a tokenizer that is trained on the training items.

    The folder is ``options.folder``. The returned figures are empty.
    """
    from transformers import RobertaConfig, RobertaForMaskedLM, set_seed

    texts: list[str] = []
    task = task_of(config_of(options)).open(options.data)
    for batch in task.as_source().batches("train"):
        texts += batch.texts()
        if len(texts) >= 2 * options.items:
            break
    tokenizer = train_tokenizer(texts, options.vocabulary)
    save_tokenizer(tokenizer, Path(options.folder))
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
    RobertaForMaskedLM(shape).save_pretrained(options.folder)
    return {}


def run_ours(options: Namespace) -> Figures:
    """Measure our fine-tuning with a dev score each epoch, and the prediction of the test set."""
    from probes.transfer.fit import fine_tune, predict

    transfer, examples = open_transfer(options)
    model, test = transfer.build(transfer.config, "source", 0), examples["test"]

    def work() -> Figures:
        fine_tune(model, examples["train"], [examples["dev"]], transfer.main, transfer.config.fine_tune, 0)
        return {"score": transfer.main(test.gold, predict(model, test))}

    return _speed(options, examples, measured(work))


def run_theirs(options: Namespace) -> Figures:
    """Measure the Trainer with its padding collator and a dev score each epoch, and the prediction of the test set."""
    transfer, examples = open_transfer(options)
    rows, test = {split: _rows(each) for split, each in examples.items()}, examples["test"]
    classes = max(len(names) for names in transfer.labels["source"].values())
    with tempfile.TemporaryDirectory() as folder:
        trainer = _trainer(options, transfer.config, classes, rows, folder)

        def work() -> Figures:
            trainer.train()
            chosen = np.asarray(trainer.predict(rows["test"]).predictions).argmax(-1)
            return {"score": transfer.main(test.gold, _predictions(test, chosen))}

        return _speed(options, examples, measured(work))


def _speed(options: Namespace, examples: Mapping[str, Examples], found: Figures) -> Figures:
    return {"items_per_second": len(examples["train"]) * options.epochs / found["seconds"], **found}


def _rows(examples: Examples) -> list[dict[str, Any]]:
    """Return each row in the form of a tokenized data set: ids and labels without padding."""
    rows: list[dict[str, Any]] = []
    for number in range(len(examples)):
        batch, size = examples.batch(np.asarray([number])), int(examples.lengths[number])
        rows.append({"input_ids": batch.text.input_ids[0, :size].tolist(), "attention_mask": [1] * size})
        if "label" in batch.targets:
            rows[-1]["label"] = int(batch.targets["label"][0])
        else:
            assert batch.words is not None, "a task of words"
            labels = torch.full((size,), NO_LABEL)
            labels[batch.words[0, :, 0][batch.mask[0]]] = batch.targets["tags"][0][batch.mask[0]]
            rows[-1]["labels"] = labels.tolist()
    return rows


def _trainer(
    options: Namespace, config: TransferConfig, classes: int, rows: dict[str, list[dict[str, Any]]], folder: str
) -> Any:
    import transformers as hf

    tokenizer = hf.AutoTokenizer.from_pretrained(options.folder, trust_remote_code=False)
    pair, tuning = options.task == "nli", config.fine_tune
    kind = hf.AutoModelForSequenceClassification if pair else hf.AutoModelForTokenClassification
    settings = hf.TrainingArguments(
        output_dir=folder,
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
    return hf.Trainer(
        model=kind.from_pretrained(options.folder, num_labels=classes, trust_remote_code=False),
        args=settings,
        data_collator=(hf.DataCollatorWithPadding if pair else hf.DataCollatorForTokenClassification)(tokenizer),
        train_dataset=rows["train"],
        eval_dataset=rows["dev"],
    )


def _predictions(examples: Examples, chosen: NDArray[np.int64]) -> list[Any]:
    """Return the predicted classes of the Trainer in our form."""
    outputs: list[Any] = []
    for number in range(len(examples)):
        batch = examples.batch(np.asarray([number]))
        if batch.words is None or "label" in batch.targets:
            outputs.append(int(chosen[number]))
        else:
            outputs.append([int(chosen[number, c]) for c in batch.words[0, :, 0][batch.mask[0]].tolist()])
    return examples.predictions(outputs)


def _task(options: Namespace) -> Figures:
    """Measure our fine-tuning and that of the Trainer, and return figures, ratios and settings."""
    with tempfile.TemporaryDirectory() as folder:
        call(write_model, options, folder=folder)
        sides = {"ours": run_ours, "theirs": run_theirs}
        runs = in_turns({s: partial(call, run, options, folder=folder) for s, run in sides.items()}, options.repeats)
    found = {side: medians(repeats) for side, repeats in runs.items()}
    ours, theirs = found["ours"], found["theirs"]
    return {
        "settings": {**{key: value for key, value in vars(options).items() if key != "out"}, **where(options.threads)},
        **found,
        "ratio": ours["items_per_second"] / theirs["items_per_second"],
        "cpu_time_ratio": theirs["cpu_seconds"] / ours["cpu_seconds"],
        "runs": {side: [round(run["items_per_second"], 1) for run in repeats] for side, repeats in runs.items()},
    }


NUMBERS = {
    "d": (512, "Dimension of the vectors for --probe alignment and retrieval"),
    "cka-layers": (9, "Number of layers of each model for --probe cka"),
    "cka-sentences": (10_000, "Number of sentences for --probe cka"),
    "cka-width": (768, "Hidden size of each model for --probe cka"),
    "cka-memory": (MEMORY // 2**20, "Memory limit of the matrix products for --probe cka, in MiB"),
    "items": (2000, "Number of training items. A tenth is the dev set, a fifth the test set"),
    "epochs": (3, "Number of epochs"),
    "rows": (32, "Number of rows in a batch"),
    "length": (128, "Maximum length of a row in tokens"),
    "layers": (4, "Number of layers"),
    "hidden": (256, "Hidden size"),
    "vocabulary": (8000, "Size of the vocabulary"),
}
"""The options that are whole numbers, with their defaults and descriptions."""


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments, with the full size as default."""
    parser = parser_of("probes", __doc__)
    parser.add_argument("--probe", choices=[*PROBES], help="Probe to measure (default: none, fine-tuning is measured).")
    n = "Number of vectors per language for --probe (default: 40,000 for alignment, 200,000 for retrieval)."
    parser.add_argument("--n", type=int, help=n)
    task = "Task to fine-tune on: pos (tags), ner (entities) or nli (inference) (default: %(default)s)."
    parser.add_argument("--task", choices=["pos", "ner", "nli"], default="pos", help=task)
    data = "Training items, as for synthlang transfer --train (default: %(default)s)."
    parser.add_argument("--data", default=DATA, help=data)
    for name, (default, text) in NUMBERS.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{text} (default: %(default)s).")
    parser.add_argument("--rate", type=float, default=5e-4, help="Learning rate (default: %(default)s).")
    precision = "Precision of our fine-tuning and the Trainer's (default: %(default)s)."
    parser.add_argument("--precision", choices=["float32", "bfloat16"], default="float32", help=precision)
    parser.add_argument("--threads", type=int, help="Number of CPU threads (default: chosen by torch).")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Measure speed and memory by the arguments, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for name in ("repeats", "items", "epochs", "rows", "n", "d"):
        if (value := getattr(options, name)) is not None and value < 1:
            parser.error(f"--{name} must be at least 1, not {value}")
    tell(_probe(options) if options.probe else _task(options), options.out)
    return 0
