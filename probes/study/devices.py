"""Rates of the devices that a study may run on: a small table of measurements, for forecasts before the first step."""

from __future__ import annotations

from dataclasses import dataclass

from pretrain.cost import PEAKS, peak_of
from probes.study.executors.base import Machine
from probes.study.executors.resources import gpu_name
from probes.study.executors.slurm_options import read_options
from probes.study.options import StudyOptions
from synthlang.workers import cores

SHARE_OF_PEAK = 0.27
"""Share of the peak of an H200 that our step reached with the model of ALIGN-MLM (``docs/pretraining.md``)."""
OF_CORE = {"float32": 64e9, "bfloat16": 121e9}
"""Operations per second of a core of a Xeon with AMX, with 16,000 ids and a width of 256 (``docs/pretraining.md``)."""
NARROW, SHARE_OF_NARROW = 128, 1 / 3
"""Models below this width reach this share of the rate of a core: 21e9 operations per second at width 64 on an EPYC."""
KNOWN_GPU = "NVIDIA H200"


@dataclass(frozen=True)
class Device:
    """A kind of device, and how many of them work side by side.

    Attributes:
        name: The device in words.
        rates: Operations per second by precision.
        number: Number of devices.
        narrow: Share of the rate that models below the width NARROW reach.
    """

    name: str
    rates: dict[str, float]
    number: int = 1
    narrow: float = 1.0

    def seconds(self, flops: float, precision: str, width: int) -> float:
        """Return the time of work that is spread over the devices. Unmeasured precisions have the lowest rate."""
        rate = self.rates.get(precision, min(self.rates.values()))
        return flops / (rate * (self.narrow if width < NARROW else 1.0)) / self.number


def gpu(name: str, number: int = 1) -> Device:
    """Return GPUs with the share of the peak that was measured. An unknown one counts as ``KNOWN_GPU``."""
    peak, like = peak_of(name) or peak_of(name.upper()), ""
    if peak is None:
        peak, like = PEAKS["H200"], f" (as on an {KNOWN_GPU})"
    share = f"{100 * SHARE_OF_PEAK:.0f} % of its peak"
    which = f"one {name}" if number == 1 else f"{number} × {name}"
    return Device(f"{which}{like} at {share}", {"bfloat16": SHARE_OF_PEAK * peak}, number)


def device_of(options: StudyOptions, machine: Machine) -> Device:
    """Return the devices of a study: GPUs if there are any, else processor cores. A Slurm job has one device."""
    number = cores()
    if options.executor == "slurm":
        job = read_options(options.slurm).of("pretrain")
        if job.gpus or job.gres:
            return gpu(job.gres or KNOWN_GPU)
        number = job.cpus
    elif machine.devices:
        return gpu(gpu_name() or KNOWN_GPU, max(1, min(machine.workers, len(machine.devices))))
    rates = {precision: number * rate for precision, rate in OF_CORE.items()}
    return Device(f"{number} processor core{'s' * (number > 1)}", rates, narrow=SHARE_OF_NARROW)
