"""CKA of two sides with their names and layers: the values of same-number layers, their mean, and what limits them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from probes.measures.cka import Estimator, Pooling
from probes.measures.cka.pairs import Pairing, paired_states
from probes.measures.cka.similarity import CKA, CKAResult
from synthlang.progress import Report, silent

CHANCE = 0.05
"""The biased CKA that unrelated states may have before a note says so."""
ESTIMATORS: tuple[Estimator, Estimator] = ("biased", "debiased")


@dataclass(frozen=True, eq=False)
class Compared:
    """The layers of one side against those of the other.

    key            in the results
    label          for readers
    names          of left and right
    layers         numbers of the layers of left and right, 0 for the embeddings
    widths         dimensions of the states of left and right
    result         the similarities, in the order of ``layers``
    """

    key: str
    label: str
    names: tuple[str, str]
    layers: tuple[tuple[int, ...], tuple[int, ...]]
    widths: tuple[int, int]
    result: CKAResult

    def table(self, estimator: Estimator) -> torch.Tensor | None:
        """[L, R], NaN where it is not defined; None: there are too few sentences for the debiased one."""
        return self.result.biased if estimator == "biased" else self.result.debiased

    def same_layer(self, estimator: Estimator) -> list[float | None] | None:
        """CKA of layer l of one side with layer l of the other; None if the sides have other numbers of layers."""
        table = self.table(estimator)
        if table is None or self.layers[0] != self.layers[1]:
            return None
        numbers = self.result.to_json()[estimator]
        return [row[i] for i, row in enumerate(numbers)]

    def mean(self, estimator: Estimator) -> float | None:
        """Of ``same_layer``, over those that are defined (the last row of figure 7)."""
        known = [value for value in self.same_layer(estimator) or [] if value is not None]
        return float(f"{sum(known) / len(known):.6g}") if known else None

    def to_json(self) -> dict[str, Any]:
        """All numbers; null where one is not defined, and why in "undefined"."""
        same = {name: self.same_layer(name) for name in ESTIMATORS}
        numbers: dict[str, Any] = {"left": self.names[0], "right": self.names[1], "label": self.label}
        numbers |= {"items": self.result.n, "left_layers": list(self.layers[0]), "right_layers": list(self.layers[1])}
        held = self.result.to_json()
        return numbers | {
            "biased": held["biased"],
            "debiased": held["debiased"],
            "same_layer": same,
            "mean": {name: self.mean(name) for name in ESTIMATORS},
            "undefined": held["undefined"],
        }

    def notes(self) -> list[str]:
        """What a reader of the numbers has to know."""
        found = [f"cka, {self.label}: left out: {'; '.join(self.result.undefined)}"] if self.result.undefined else []
        n, width = self.result.n, max(self.widths)
        # unrelated rows spread evenly over d dimensions: E‖YᵀX‖² / (E‖XᵀX‖ E‖YᵀY‖) = n d² / (n² d + n d²)
        chance = width / (n + width)
        if self.result.debiased is None:
            found.append(f"cka, {self.label}: {n} are too few for the debiased estimator, which needs 4")
        if chance > CHANCE:
            found.append(
                f"cka: {n:,} for {width} dimensions are few: the biased CKA of unrelated states is up to {chance:.2f}; "
                "read the debiased one"
            )
        if self.layers[0] != self.layers[1]:
            found.append(
                f"cka, {self.label}: the models have different numbers of layers, so there is no mean over them"
            )
        return found


def compare(key: str, label: str, pairing: Pairing, pooling: Pooling, report: Report = silent) -> Compared:
    """Read both sides once; the sums are bounded in memory (``similarity.CKA``).

    InputError for states that are not finite, and for fewer than 2 sentences or words.
    """
    left, right = pairing.left, pairing.right
    layers = left.reader.layers, right.reader.layers
    widths = left.reader.body.shape.hidden, right.reader.body.shape.hidden
    names = tuple([f"{side.name}, layer {number}" for number in side.reader.layers] for side in (left, right))
    device = left.reader.body.norm.weight.device
    sums = CKA(len(layers[0]), len(layers[1]), *widths, device=device, names=(names[0], names[1]))
    for of_left, of_right in paired_states(pairing, pooling, report, f"CKA, {label}"):
        sums.update(of_left, of_right)
    return Compared(key, label, (left.name, right.name), layers, widths, sums.result(report))
