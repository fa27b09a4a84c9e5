"""``python -m pretrain.bench``: measure our training step, beside that of others, and print JSON."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from bench.measured import Blocks, Figures, call, in_turns, medians, tell, where
from bench.workload import OBJECTIVES, SHAPES, artifacts_of, peak_of, tokenizer_of
from pretrain.build import build_objective, new_model, train_batches

SIDES = ("ours", "theirs")
LONG = 1_000_000  # steps of a run that compile: auto decides for
GPU_WORKERS = 4  # of their data loader; the default of 0 would have the GPU wait for the collator


def main(arguments: list[str] | None = None) -> int:
    """Measure what the arguments say; returns the exit code."""
    options = _parser().parse_args(arguments)
    if options.side:
        print(json.dumps(_one_side(options)))
        return 0
    if min(options.repeats, options.warmup) < 1 or options.steps <= options.warmup:
        _parser().error("--repeats and --warmup must be at least 1, --steps more than --warmup")
    result: Figures = {"settings": _settings(options)}
    if options.against:
        result |= _against(options, result["settings"])
    if options.objectives or not options.against:
        result["objectives"] = {precision: _objectives(options, precision) for precision in options.precision}
    tell(result, options.out)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pretrain.bench", description=__doc__)
    parser.add_argument("--against", choices=["hf"], help="transformers' Trainer on the same model, data and batch")
    parser.add_argument("--objectives", action="store_true", help="each objective beside MLM")
    parser.add_argument("--shape", choices=[*SHAPES], default="v16k")
    parser.add_argument(
        "--precision",
        nargs="+",
        choices=["float32", "bfloat16"],
        default=["float32", "bfloat16"],
        help="of both sides; of two, the ratio is of our faster one and of their first one",
    )
    parser.add_argument("--compile", choices=["auto", "on", "off"], default="auto", help="torch.compile of our side")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each side, which take turns")
    parser.add_argument("--steps", type=int, default=13, help="of a run")
    parser.add_argument("--warmup", type=int, default=3, help="steps of a run that do not count")
    parser.add_argument("--out", type=Path, help="write the JSON to this file too")
    parser.add_argument("--side", choices=["start", *SIDES], help=argparse.SUPPRESS)
    parser.add_argument("--folder", help=argparse.SUPPRESS)
    parser.add_argument("--objective", default="mlm", help=argparse.SUPPRESS)
    return parser


def _against(options: argparse.Namespace, settings: Figures) -> Figures:
    """Both sides take turns; the ratio is that of the medians, also for each precision by itself."""
    with tempfile.TemporaryDirectory() as folder:
        _side(options, "start", "float32", "--folder", folder)()
        each = [(side, precision) for precision in options.precision for side in SIDES]
        runs = in_turns({key: _side(options, *key, "--folder", folder) for key in each}, options.repeats)
    found = {key: _median(held) | {"precision": key[1]} for key, held in runs.items()}
    for (side, _), figures in found.items():  # each side with its own count of operations
        count = settings["flops_per_token"]["ours" if side == "ours" else "all_positions"]
        figures["flops_per_second"] = figures["tokens_per_second"] * count
        if settings["peak_flops"]:
            figures["share_of_peak"] = figures["flops_per_second"] / settings["peak_flops"]
    # what a user gets: of ours the faster precision, of the stock script its default, unless one was asked for
    ours = max((found["ours", p] for p in options.precision), key=lambda held: float(held["tokens_per_second"]))
    theirs = found["theirs", options.precision[0]]
    both = {p: {side: found[side, p] for side in SIDES} for p in options.precision}
    same = {p: sides | _ratios(sides["ours"], sides["theirs"]) for p, sides in both.items()}
    return {"ours": ours, "theirs": theirs, **_ratios(ours, theirs), "same_precision": same}


def _objectives(options: argparse.Namespace, precision: str) -> Figures:
    """Each objective's step beside that of MLM, which take turns."""
    runs = in_turns({n: _side(options, "ours", precision, "--objective", n) for n in OBJECTIVES}, options.repeats)
    found = {name: _median(held) for name, held in runs.items()}
    for figures in found.values():
        figures["speed_by_that_of_mlm"] = figures["tokens_per_second"] / found["mlm"]["tokens_per_second"]
        figures["cpu_speed_by_that_of_mlm"] = found["mlm"]["step_cpu_seconds"] / figures["step_cpu_seconds"]
    return found


def _side(options: argparse.Namespace, side: str, precision: str, *more: str) -> Callable[[], Figures]:
    """A run of a side in a process of its own."""
    asked = ["--side", side, "--shape", options.shape, "--precision", precision, "--compile", options.compile]
    return partial(
        call, "bench.pretrain", [*asked, "--steps", str(options.steps), "--warmup", str(options.warmup), *more]
    )


def _median(runs: list[Figures]) -> Figures:
    return medians(runs) | {"runs_tokens_per_second": [run["tokens_per_second"] for run in runs]}


def _ratios(ours: Figures, theirs: Figures) -> Figures:
    """Ours by theirs; ``cpu_time_ratio`` is that of processor time, which other programs on the machine touch less."""
    memory = "peak_gpu_memory_mb" if "peak_gpu_memory_mb" in ours else "peak_memory_mb"
    return {
        "ratio": ours["tokens_per_second"] / theirs["tokens_per_second"],
        "cpu_time_ratio": theirs["step_cpu_seconds"] / ours["step_cpu_seconds"],
        "memory_ratio": ours[memory] / theirs[memory],
    }


def _settings(options: argparse.Namespace) -> Figures:
    """What was measured where."""
    shape = SHAPES[options.shape]
    return {
        "shape": options.shape,
        "model": {"ids": shape.ids, **shape.model.model_dump(exclude_none=True)},
        "batch": {"rows": shape.rows, "length": shape.length, "mask_rate": shape.mask_rate},
        "compile": options.compile,
        **where(),
        "flops_per_token": {
            "ours": shape.flops_per_token(),
            "all_positions": shape.flops_per_token(all_positions=True),
            "counted": "2mkn of each matrix product of forward, three times (backward has two for one); nothing else",
        },
        "peak_flops": peak_of(torch.cuda.get_device_name()) if torch.cuda.is_available() else None,
    }


def _one_side(options: argparse.Namespace) -> Figures:
    """One run in this process."""
    precision, warmup, steps = options.precision[0], options.warmup, options.steps
    if options.side == "start":
        write_start(options.shape, options.folder, steps)
        return {}
    if options.side == "ours":
        return run_ours(options.shape, options.objective, precision, options.compile, warmup, steps)
    return run_theirs(options.shape, options.folder, precision, warmup, steps)


def run_ours(name: str, objective: str, precision: str, compiled: str, warmup: int, steps: int) -> Figures:
    """The batches, the step and the reading ahead of a run, without its log and checkpoints."""
    from accelerate import Accelerator

    from pretrain.devices import process_state, should_compile
    from pretrain.loop import Prefetch
    from pretrain.step import Step

    shape = SHAPES[name]
    config, artifacts = shape.config(OBJECTIVES[objective], precision, compiled, steps), artifacts_of(shape, steps)
    accelerator = Accelerator(cpu=process_state().device.type == "cpu")
    model = new_model(config, artifacts).to(accelerator.device)
    if should_compile(config.compile, accelerator.device, LONG):
        model.compile_steps()
    step = Step(config, model, build_objective(config, artifacts, accelerator.device), accelerator)
    batches = train_batches(config, artifacts)
    step.module.train()
    blocks, losses = Blocks(warmup, steps, shape.rows * shape.length), []
    with Prefetch(lambda number: [batches.batch(number)], steps) as ahead:
        for number in range(steps):
            total, _ = step(number, ahead.get(number))["loss"]
            losses.append(total.detach())
            blocks()
    return {**blocks.result(), "losses": [round(loss.item(), 4) for loss in (losses[0], losses[-1])]}


def write_start(name: str, folder: str, steps: int) -> None:
    """For the other side: the same weights to start from, and the rows of the same batches, unmasked."""
    from safetensors.torch import save_file

    from pretrain.model.to_hf import to_hf

    shape = SHAPES[name]
    config, artifacts = shape.config(OBJECTIVES["mlm"], "float32", "off", steps), artifacts_of(shape, steps)
    settings, weights = to_hf(new_model(config, artifacts), 0)
    settings.save_pretrained(folder)
    save_file(weights, f"{folder}/model.safetensors", metadata={"format": "pt"})
    batches, rows = train_batches(config, artifacts), []
    for step in range(steps):
        batch = batches.batch(step)
        ids = batch.input_ids.copy()
        np.put_along_axis(ids, batch.masked, np.where(batch.labels >= 0, batch.labels, ids[0, 0]), axis=1)
        rows.append(ids)
    np.save(f"{folder}/rows.npy", np.concatenate(rows))


def run_theirs(name: str, folder: str, precision: str, warmup: int, steps: int) -> Figures:
    """transformers' Trainer with DataCollatorForLanguageModeling, as its run_mlm script sets them up.

    The model of ``folder`` on its rows: same model, data, dropout and batch as ours.
    """
    import transformers as hf

    shape, gpu = SHAPES[name], torch.cuda.is_available()
    rows = np.load(Path(folder) / "rows.npy", mmap_mode="r")
    special = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    names = {f"{role}_token": token for role, token in special.items()}
    tokenizer = hf.PreTrainedTokenizerFast(tokenizer_object=tokenizer_of(shape), **names)
    blocks = Blocks(warmup, steps, shape.rows * shape.length)

    class Clock(hf.TrainerCallback):  # type: ignore[misc]
        def on_step_end(self, *_: Any, **__: Any) -> None:
            blocks()

    with tempfile.TemporaryDirectory() as out:
        settings = hf.TrainingArguments(
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
        trainer = hf.Trainer(
            model=hf.RobertaForMaskedLM.from_pretrained(folder),
            args=settings,
            data_collator=hf.DataCollatorForLanguageModeling(tokenizer, mlm_probability=shape.mask_rate),
            train_dataset=Rows(rows),
            callbacks=[Clock()],
        )
        mean = trainer.train().training_loss
    return {**blocks.result(), "mean_loss": round(float(mean), 4), "optimizer": str(settings.optim)}


class Rows(torch.utils.data.Dataset[dict[str, list[int]]]):
    """Rows of ids as a tokenized data set gives them."""

    def __init__(self, rows: Any) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, number: int) -> dict[str, list[int]]:
        return {"input_ids": self.rows[number].tolist()}


if __name__ == "__main__":
    sys.exit(main())
