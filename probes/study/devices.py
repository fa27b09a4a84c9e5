"""Measured rates of devices, from which the time of a study is forecast before it starts."""

from __future__ import annotations

from dataclasses import dataclass

from pretrain.cost import PEAKS, peak_of
from probes.study.executors.base import Machine
from probes.study.executors.resources import gpu_name
from probes.study.executors.slurm_options import read_options
from probes.study.options import StudyOptions
from synthlang.workers import cores

SHARE_OF_PEAK = 0.27
"""Share of the peak of an H200 that a training step of the ALIGN-MLM model reaches (``docs/pretraining.md``)."""
OF_CORE = {"float32": 64e9, "bfloat16": 121e9}
"""Operations per second of one core by precision. Measured on a Xeon with AMX (``docs/pretraining.md``).

The model has 16,000 token ids and a width of 256.
"""
NARROW, SHARE_OF_NARROW = 128, 1 / 3
"""Width below which a model is narrow, and the share of the rate of a core that a narrow model reaches.

An EPYC reaches 21e9 operations per second at a width of 64.
"""
KNOWN_GPU = "NVIDIA H200"
"""GPU whose share of the peak was measured."""


@dataclass(frozen=True)
class Device:
    """A number of equal devices that work in parallel.

    Attributes:
        name: Description of the devices.
        rates: Operations per second of one device: precision → rate.
        number: Number of devices.
        narrow: Share of the rate that models below the width NARROW reach.
    """

    name: str
    rates: dict[str, float]
    number: int = 1
    narrow: float = 1.0

    def seconds(self, flops: float, precision: str, width: int) -> float:
        """Return the seconds for floating-point operations that are spread over the devices.

        The time is flops / (rate · number), where a model below the width NARROW reaches ``narrow`` of the rate.

        Args:
            flops: Number of floating-point operations.
            precision: Number format. A precision that was not measured has the lowest rate.
            width: Hidden size of the model.
        """
        rate = self.rates.get(precision, min(self.rates.values()))
        return flops / (rate * (self.narrow if width < NARROW else 1.0)) / self.number


def gpu(name: str, number: int = 1) -> Device:
    """Return a device of ``number`` GPUs with the name ``name``, at the measured share of their peak in bfloat16.

    An unknown GPU has the peak of ``KNOWN_GPU``.
    """
    peak, like = peak_of(name) or peak_of(name.upper()), ""
    if peak is None:
        peak, like = PEAKS["H200"], f" (as on an {KNOWN_GPU})"
    share = f"{100 * SHARE_OF_PEAK:.0f} % of its peak"
    which = f"one {name}" if number == 1 else f"{number} × {name}"
    return Device(f"{which}{like} at {share}", {"bfloat16": SHARE_OF_PEAK * peak}, number)


def device_of(options: StudyOptions, machine: Machine) -> Device:
    """Return the devices of a study: GPUs if it has any, else processor cores.

    With Slurm these are the devices of one job that pretrains: one GPU, or the processors of the job. Otherwise they
    are at most one GPU for each worker, or all cores.

    Raises:
        InputError: An option of Slurm is wrong.
    """
    number = cores()
    if options.executor == "slurm":
        job = read_options(options.slurm).of("pretrain")
        if job.gpus or job.gres:
            return gpu(job.gres or KNOWN_GPU)
        number = job.cpus
    elif machine.devices:
        return gpu(gpu_name() or KNOWN_GPU, max(1, min(machine.workers, len(machine.devices))))
    return processor(number)


def processor(cores: int) -> Device:
    """Return a device of ``cores`` processor cores that share the work, at their measured rate."""
    rates = {precision: cores * rate for precision, rate in OF_CORE.items()}
    return Device(f"{cores} processor core{'s' * (cores > 1)}", rates, narrow=SHARE_OF_NARROW)
