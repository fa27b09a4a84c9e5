"""``python -m pretrain.bench``: compare our training step with transformers' Trainer, and print JSON.

The text has random Zipfian ids of two languages, where the second is a copy of the first at an offset.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel

from pretrain.artifacts import Artifacts, Parallel, RunLanguage
from pretrain.build import build_objective, new_model, train_batches
from pretrain.config import ModelConfig, PretrainConfig
from pretrain.cost import peak_of, size_of_run
from synthlang.dictionary.ids import IdDictionary
from synthlang.language import PARENT
from synthlang.rng import uniform
from synthlang.shards import Shards
from synthlang.vocabularies import OURS, IdSpace, LanguageTokenizer
from synthlang_bench.measured import Figures, call, in_turns, medians, parser_of, peak_memory_mb, tell, where

OBJECTIVES = {
    "roberta": ("mlm", "align_mlm", "xlm", "dict_mlm"),
    "gpt2": ("clm", "align_clm", "tlm_clm", "dict_clm"),
}
"""The objectives of each kind of model, the plain objective first."""
PACKINGS = ("stream", "sentences", "sentence")
LONG = 1_000_000  # number of steps that is given to compile: auto
GPU_WORKERS = 4  # workers of the Trainer's data loader; with the default of 0 the GPU would wait for the collator
BLOCKS = 5  # blocks of steps; the median block is reported
SENTENCE = 24  # tokens of the longest sentence; the shortest has half as many
COVERAGE = 4  # every fourth type is in the dictionary, as in ALIGN-MLM
SPECIALS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")


@dataclass(frozen=True)
class Shape:
    """The size of a measurement.

    Attributes:
        ids: Number of token ids of both languages together.
        model: The model, as in a config.
        rows: Number of rows in a batch.
        length: Number of tokens in a row.
        mask_rate: Share of the tokens that MLM predicts.
    """

    ids: int
    model: ModelConfig
    rows: int
    length: int
    mask_rate: float = 0.15

    def flops_per_token(self, all_positions: bool = False, objective: str = "mlm") -> float:
        """Return the number of floating-point operations of a training step per token (``ModelSize.flops_per_token``).

        ``all_positions`` counts the operations of Hugging Face's class, which computes the last layer and the head at
        all positions.
        """
        config = self.config(objective, "float32", "off", 1)
        labelled = self.length if all_positions else config.objective.labelled(self.length)
        return size_of_run(config, self.ids).flops_per_token(self.length, labelled)

    def config(
        self, objective: str, precision: str, compiled: str, steps: int, packing: str = "stream"
    ) -> PretrainConfig:
        """Return the config of a run of this size, without warm-up. ``compiled`` is auto, on or off."""
        kind = next(kind for kind, objectives in OBJECTIVES.items() if objective in objectives)
        settings = {"mask_rate": self.mask_rate, "kind": objective}
        if objective == "dict_clm":
            settings["dict_target"] = "switched"
        return PretrainConfig.model_validate(
            {
                "source": "builtin:mini-english",
                "language": "trans",
                "steps": steps,
                "model": {**self.model.model_dump(), "kind": kind},
                "objective": settings,
                "batch": {"rows": self.rows, "length": self.length, "packing": packing},
                "optimizer": {"learning_rate": 1e-4, "warmup_steps": 0},
                "precision": precision,
                "compile": compiled,
            }
        )

    def tokenizer(self) -> Tokenizer:
        """Return a tokenizer with a made-up word for each id."""
        names = [*SPECIALS, *(f"w{i}" for i in range(len(SPECIALS), self.ids))]
        return Tokenizer(WordLevel({name: i for i, name in enumerate(names)}, unk_token="<unk>"))  # noqa: S106  no password


SHAPES = {
    "v16k": Shape(16_000, ModelConfig(layers=4, heads=4, hidden=256, feed_forward=1024), rows=32, length=128),
    # about the model of the study quickstart: 1,200 tokens and their copies
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


def artifacts_of(shape: Shape, steps: int) -> Artifacts:
    """Return data for ``steps`` steps of a language with ``shape.ids`` / 2 tokens and a copy of it."""
    half, first = shape.ids // 2, len(OURS.all)
    words = np.arange(first, half)
    sentences = 2 + 2 * steps * shape.rows * shape.length // SENTENCE
    shortest = max(1, min(SENTENCE, shape.length // 2 - 2) // 2)
    lengths = shortest + (uniform(1, np.arange(sentences)) * (shortest + 1)).astype(np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    # inverse of the distribution function of p(rank) ∝ 1 / rank
    ranks = np.exp(uniform(2, np.arange(offsets[-1])) * np.log(len(words))).astype(np.int64) - 1
    tokens, tokenizer = words[np.minimum(ranks, len(words) - 1)], shape.tokenizer()
    languages = []
    for name, offset in (("parent", 0), ("copy", half)):
        ids = np.concatenate([np.arange(first), words + offset])
        text = (tokens + offset).astype(np.uint32)
        counts = np.bincount(text, minlength=int(ids[-1]) + 1)
        train = Shards(text, offsets, counts, np.arange(sentences), {"fingerprint": f"bench {name}"})
        source: Any = None  # the benchmark reads only shards
        languages.append(
            RunLanguage(name, "bench", source, PARENT, LanguageTokenizer(name, tokenizer, ids), train, None)
        )
    space = IdSpace("copied", shape.ids, OURS, tuple(m.tokenizer for m in languages), (0, half), half)
    pairs = np.stack([words, words + half], axis=1)[::COVERAGE]
    dictionary = IdDictionary(pairs, np.tile([0, 1], (len(pairs), 1)), {"fingerprint": "bench"})
    rows = np.tile(np.arange(sentences)[:, None], 2)
    parallel = (Parallel(0, 1, languages[0].train, languages[1].train, rows),)
    return Artifacts(space, tuple(languages), dictionary, (), False, parallel, None, {})


class Clock:
    """Stopwatch that times steps in blocks, without the first ``warmup`` steps. It is called after each step.

    The stopwatch waits for a GPU between blocks, so that a block includes all work of its steps. ``steps`` is the
    number of all steps, and ``tokens`` the number of tokens of a step.
    """

    def __init__(self, warmup: int, steps: int, tokens: int) -> None:
        self.warmup, self.tokens, self.size = warmup, tokens, max(1, (steps - warmup) // BLOCKS)
        self.times: list[tuple[float, float]] = []
        self._step = 0

    def __call__(self) -> None:
        self._step += 1
        if self._step >= self.warmup and (self._step - self.warmup) % self.size == 0:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.times.append((time.perf_counter(), time.process_time()))

    def result(self) -> Figures:
        """Return the speed of the median block, and the peak memory in MB of this process and of a GPU.

        The keys are ``tokens_per_second``, ``step_seconds``, ``step_cpu_seconds`` and ``peak_memory_mb``. With a GPU
        there is also ``peak_gpu_memory_mb``.
        """
        wall, cpu = (statistics.median(np.diff(times).tolist()) / self.size for times in zip(*self.times, strict=True))
        found = {"tokens_per_second": self.tokens / wall, "step_seconds": wall, "step_cpu_seconds": cpu}
        found["peak_memory_mb"] = peak_memory_mb()
        if torch.cuda.is_available():
            found["peak_gpu_memory_mb"] = torch.cuda.max_memory_allocated() / 2**20
        return found


def run_ours(options: Namespace) -> Figures:
    """Measure the batches, steps and prefetching of our training run, without log and checkpoints.

    Returns:
        The figures of ``Clock.result``, the first and the last loss, and the share of slots that are not padding.
    """
    from accelerate import Accelerator

    from pretrain.devices import process_state, should_compile
    from pretrain.loop import Prefetch
    from pretrain.step import Step

    shape, steps = SHAPES[options.shape], options.steps
    config = shape.config(options.objective, options.precision, options.compile, steps, options.packing)
    artifacts = artifacts_of(shape, steps)
    accelerator = Accelerator(cpu=process_state().device.type == "cpu")
    model = new_model(config, artifacts).to(accelerator.device)
    if should_compile(config.compile, accelerator.device, LONG):
        model.compile_steps()
    step = Step(config, model, build_objective(config, artifacts, accelerator.device), accelerator)
    batches = train_batches(config, artifacts)
    step.module.train()
    clock, losses, filled = Clock(options.warmup, steps, shape.rows * shape.length), [], []
    with Prefetch(lambda number: [batches.batch(number)], steps) as ahead:
        for number in range(steps):
            read = ahead.get(number)
            filled += [1.0 if batch.valid is None else float(batch.valid.mean()) for batch in read]
            total, _ = step(number, read)["loss"]
            losses.append(total.detach())
            clock()
    ends = [round(loss.item(), 4) for loss in (losses[0], losses[-1])]
    return {**clock.result(), "losses": ends, "without_padding": round(statistics.mean(filled), 4)}


def write_start(options: Namespace) -> Figures:
    """Write the inputs of ``run_theirs``: our initial weights, and the unmasked rows of our batches.

    The folder is ``options.folder``. The returned figures are empty.
    """
    from safetensors.torch import save_file

    from pretrain.model.kinds import to_hf

    shape, folder = SHAPES[options.shape], options.folder
    config = shape.config(options.objective, "float32", "off", options.steps)
    artifacts = artifacts_of(shape, options.steps)
    settings, weights = to_hf(new_model(config, artifacts), 0)
    settings.save_pretrained(folder)
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    batches, rows = train_batches(config, artifacts), []
    for step in range(options.steps):
        batch = batches.batch(step)
        ids = batch.input_ids.copy()
        if options.objective == "mlm":
            np.put_along_axis(ids, batch.masked, np.where(batch.labels >= 0, batch.labels, ids[0, 0]), axis=1)
        rows.append(ids)
    np.save(f"{folder}/rows.npy", np.concatenate(rows))
    return {}


def run_theirs(options: Namespace) -> Figures:
    """Measure transformers' Trainer with DataCollatorForLanguageModeling, as in the scripts run_mlm and run_clm.

    The weights and rows are in ``options.folder``. Model, data, dropout and batch equal ours.

    Returns:
        The figures of ``Clock.result``, the mean loss, and the name of the optimizer.
    """
    import transformers as hf

    shape, gpu, causal = SHAPES[options.shape], torch.cuda.is_available(), options.objective == "clm"
    collator = partial(hf.DataCollatorForLanguageModeling, mlm=not causal, mlm_probability=shape.mask_rate)
    rows = np.load(Path(options.folder) / "rows.npy", mmap_mode="r")
    names = zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), SPECIALS, strict=True)
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=shape.tokenizer(), **dict(names))
    clock = Clock(options.warmup, options.steps, shape.rows * shape.length)

    class AfterStep(hf.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            clock()

    with tempfile.TemporaryDirectory() as out:
        settings = hf.TrainingArguments(
            output_dir=out,
            per_device_train_batch_size=shape.rows,
            max_steps=options.steps,
            learning_rate=1e-4,
            weight_decay=0.0,
            bf16=options.precision == "bfloat16",
            use_cpu=not gpu,
            dataloader_num_workers=GPU_WORKERS if gpu else 0,
            save_strategy="no",
            logging_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = hf.Trainer(
            model=(hf.GPT2LMHeadModel if causal else hf.RobertaForMaskedLM).from_pretrained(
                options.folder, trust_remote_code=False
            ),
            args=settings,
            data_collator=collator(tokenizer),
            train_dataset=Rows(rows),
            callbacks=[AfterStep()],
        )
        mean = trainer.train().training_loss
    return {**clock.result(), "mean_loss": round(float(mean), 4), "optimizer": str(settings.optim)}


class Rows(torch.utils.data.Dataset[dict[str, list[int]]]):
    """Rows of ids in the form of a tokenized data set."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        return {"input_ids": self.rows[number].tolist()}


SIDES = {"ours": run_ours, "theirs": run_theirs}


def _settings(options: Namespace) -> Figures:
    """Return the settings of the measurement, the device and the versions."""
    shape = SHAPES[options.shape]
    return {
        "shape": options.shape,
        "model": {"ids": shape.ids, **shape.model.model_dump(exclude_none=True), "kind": options.model},
        "batch": {"rows": shape.rows, "length": shape.length, "mask_rate": shape.mask_rate},
        "compile": options.compile,
        **where(),
        "flops_per_token": {
            "ours": shape.flops_per_token(objective=options.objective),
            "all_positions": shape.flops_per_token(all_positions=True, objective=options.objective),
            "counted": "2mkn of each matrix product of forward, three times (backward has two for one); nothing else",
        },
        "peak_flops": peak_of(torch.cuda.get_device_name()) if torch.cuda.is_available() else None,
    }


def _against(options: Namespace, settings: Figures) -> Figures:
    """Measure both sides in turns, and return the ratio of the medians, also for each precision."""
    with tempfile.TemporaryDirectory() as folder:
        more = {"folder": folder}
        call(write_start, options, **more)
        each = [(side, precision) for precision in options.precision for side in SIDES]
        sides = {(s, p): partial(call, SIDES[s], options, precision=p, **more) for s, p in each}
        found = {key: _median(runs) for key, runs in in_turns(sides, options.repeats).items()}
    for (side, precision), figures in found.items():  # each side with its own count of operations
        count = settings["flops_per_token"]["ours" if side == "ours" else "all_positions"]
        figures |= {"precision": precision, "flops_per_second": figures["tokens_per_second"] * count}
        if settings["peak_flops"]:
            figures["share_of_peak"] = figures["flops_per_second"] / settings["peak_flops"]
    # Compare what a user gets: our faster precision, and the default precision of the stock script.
    ours = max((found["ours", p] for p in options.precision), key=lambda side: float(side["tokens_per_second"]))
    theirs = found["theirs", options.precision[0]]
    both = {p: (found["ours", p], found["theirs", p]) for p in options.precision}
    same = {p: {"ours": a, "theirs": b, **_ratios(a, b)} for p, (a, b) in both.items()}
    return {"ours": ours, "theirs": theirs, **_ratios(ours, theirs), "same_precision": same}


def _beside(options: Namespace, precision: str, key: str, names: Sequence[str]) -> Figures:
    """Measure a step with each value of an option, ``objective`` or ``packing``, in turns.

    The first value is the plain one, with which the others are compared. Padding of a packing does not count as tokens.
    """
    sides = {name: partial(call, run_ours, options, precision=precision, **{key: name}) for name in names}
    found = {name: _median(runs) for name, runs in in_turns(sides, options.repeats).items()}
    plain = found[names[0]]
    for figures in found.values():
        share = figures["without_padding"] if key == "packing" else 1.0
        speed, cpu = figures["tokens_per_second"], figures["step_cpu_seconds"]
        figures[f"speed_by_that_of_{names[0]}"] = share * speed / plain["tokens_per_second"]
        figures[f"cpu_speed_by_that_of_{names[0]}"] = share * plain["step_cpu_seconds"] / cpu
    return found


def _median(runs: list[Figures]) -> Figures:
    return medians(runs) | {"runs_tokens_per_second": [run["tokens_per_second"] for run in runs]}


def _ratios(ours: Figures, theirs: Figures) -> Figures:
    """Return our figures divided by theirs. ``cpu_time_ratio`` depends less on other load on the machine."""
    memory = "peak_gpu_memory_mb" if "peak_gpu_memory_mb" in ours else "peak_memory_mb"
    return {
        "ratio": ours["tokens_per_second"] / theirs["tokens_per_second"],
        "cpu_time_ratio": theirs["step_cpu_seconds"] / ours["step_cpu_seconds"],
        "memory_ratio": ours[memory] / theirs[memory],
    }


def _parser() -> argparse.ArgumentParser:
    """Return the parser of the arguments."""
    parser = parser_of("pretrain", __doc__)
    both = ["float32", "bfloat16"]
    precision = (
        "Precisions to measure (default: both). The ratio compares our faster one with the first one of the Trainer."
    )
    parser.add_argument("--precision", nargs="+", choices=both, default=both, help=precision)
    choices: dict[str, tuple[Sequence[str], str | None, str]] = {
        "against": (["hf"], None, "Training step to compare with: hf, the Trainer of transformers (default: none)."),
        "model": ([*OBJECTIVES], "roberta", "Kind of the model: roberta (encoder) or gpt2 (decoder)"),
        "shape": (
            [*SHAPES],
            "v16k",
            "Sizes of the model and the batch: v16k (16,000 tokens, width 256), quickstart (as in that study), "
            "align_mlm (as in the paper) or tiny",
        ),
        "compile": (["auto", "on", "off"], "auto", "Use of torch.compile in our step: auto (on CUDA), on or off"),
    }
    for name, (allowed, default, text) in choices.items():
        told = text if default is None else f"{text} (default: %(default)s)."
        parser.add_argument(f"--{name}", choices=allowed, default=default, help=told)
    parser.add_argument("--steps", type=int, default=13, help="Number of steps in a run (default: %(default)s).")
    warmup = "Number of steps of a run that are not measured (default: %(default)s)."
    parser.add_argument("--warmup", type=int, default=3, help=warmup)
    parser.add_argument("--objectives", action="store_true", help="Comparison of each objective with MLM or CLM.")
    parser.add_argument("--packings", action="store_true", help="Comparison of each packing with streams.")
    parser.set_defaults(packing="stream")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Measure speed and memory by the arguments, and return the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    options.objective = OBJECTIVES[options.model][0]
    if min(options.repeats, options.warmup) < 1 or options.steps <= options.warmup:
        counts = f"--repeats ({options.repeats}) and --warmup ({options.warmup}) must be at least 1"
        parser.error(f"{counts}, and --steps ({options.steps}) must be more than --warmup")
    result: Figures = {"settings": _settings(options)}
    if options.against:
        result |= _against(options, result["settings"])
    if options.packings:
        result["packings"] = {one: _beside(options, one, "packing", PACKINGS) for one in options.precision}
    if options.objectives or not (options.against or options.packings):
        names = OBJECTIVES[options.model]
        result["objectives"] = {one: _beside(options, one, "objective", names) for one in options.precision}
    tell(result, options.out)
    return 0
