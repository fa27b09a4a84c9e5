"""measures.csv and measures.parquet: a row for each cell, probe and measured number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from pretrain.config import PretrainConfig
from pretrain.folder import selected_row
from probes.study.config import OF_RUNS

COLUMNS = {
    "cell": pa.string(),
    "labels": pa.string(),
    "pretrain_seed": pa.int64(),
    "probe": pa.string(),
    "measure": pa.string(),
    "layer": pa.int64(),
    "step": pa.int64(),
    "value": pa.float64(),
}
ALIGNMENT, PRETRAIN = OF_RUNS
"""The names of the quick alignment of a run, and of what it logged, among the probes of a cell, and the first part of
their measures."""
PERPLEXITIES = f"{PRETRAIN}.perplexity."
"""What the measures of perplexity start with; the name of the language follows."""
NO_MEASURES = frozenset(
    {
        *("counts", "asking", "candidates", "fitted", "links", "lost", "measured", "n"),  # what was measured on
        *("histograms", "pictures", "quantiles"),  # to be drawn
        "vectors",  # of words, and how they came about
        *("low", "high", "level"),  # of one model: what another seed would give is told by the seeds of a study
        *("fit", "layer", "right_layers", "step", "k"),
    }
)
"""Keys whose values are no measure of their own."""
LAYERS = ("layers", "left_layers")
"""Keys of lists of layer numbers, which lists of values beside and below them run over."""
BAND = {"from", "to"}
OF_ENTRY = BAND | {"left_layer", "layer_target"}
"""Keys that say which entry of a list it is."""

Measured = tuple[str, int | None, int | None, float]
"""Measure, layer, step, value."""


def probe_measures(record: Mapping[str, Any]) -> Iterator[Measured]:
    """(measure, layer, step, value) of the finite numbers of a probes.json.

    A measure is the dotted path below ``probes``, as ``words.scores.all.cosine.mean``. Lists over layers or steps give
    a row for each; an entry that says more of itself in texts (``distance``: l2) has these in its path, and a band of
    frequency its ranks (``words.bands.101-1000.scores…``). Lists of anything else are left out. The name of the model
    that was probed, different in each cell, is ``model`` in a path.
    """
    node = {**record.get("probes", {}), "cka_against_retrieval": record.get("cka_against_retrieval") or {}}
    yield from _Numbers(record.get("model")).of(node, ())


def alignment_measures(result: Mapping[str, Any]) -> Iterator[Measured]:
    """The same of the quick alignment, as ``alignment.scores.all.cosine.mean``."""
    yield from _Numbers(None).of(result, (ALIGNMENT,))


def perplexities(run: Path, config: PretrainConfig) -> dict[str, float]:
    """Language → its masked perplexity on the dev set at the step whose checkpoint is selected, as the run logged it.

    Languages are called the same in all cells: ``parent``, ``other`` (the first after it), and where there are several
    others each of them ``languages.NAME``. Nothing of a run that measured none, or whose log ends before its last step.
    """
    keys = [f"validation/{language.name}" for language in config.all_languages]
    others, selected = keys[1:], selected_row(run, config)
    called = list(zip(("parent", "other"), keys, strict=False))
    called += [(f"languages.{key.removeprefix('validation/')}", key) for key in others if len(others) > 1]
    return {name: float(selected[key]) for name, key in called if key in selected}


@dataclass(frozen=True)
class _Numbers:
    """The numbers below a node, found at a ``layer`` and a ``step``; ``layers`` are what a list of values runs over."""

    model: str | None
    layer: int | None = None
    step: int | None = None
    layers: list[int] | None = None

    def of(self, value: Any, path: tuple[str, ...]) -> Iterator[Measured]:
        if isinstance(value, Mapping):
            inside = replace(self, layers=next((value[key] for key in LAYERS if _whole(value.get(key))), self.layers))
            for key, inner in value.items():
                if key not in NO_MEASURES and inner is not inside.layers:
                    yield from inside.of(inner, (*path, "model" if key == self.model else str(key)))
        elif isinstance(value, list):
            yield from self._of_list(value, path)
        elif _is_number(value) and math.isfinite(value):
            yield ".".join(path), self.layer, self.step, float(value)

    def _of_list(self, values: list[Any], path: tuple[str, ...]) -> Iterator[Measured]:
        layers = self.layers or []
        if len(values) == len(layers) and all(value is None or _is_number(value) for value in values):
            for layer, value in zip(layers, values, strict=True):
                yield from replace(self, layer=layer).of(value, path)
            return
        for entry in values:
            if not isinstance(entry, Mapping):
                continue
            band = [f"{entry['from']}-{entry['to'] or ''}"] if entry.keys() >= BAND else []
            if band or "layer" in entry or "step" in entry:
                said = [text for text in entry.values() if isinstance(text, str)]
                inside = _Numbers(self.model, entry.get("layer", self.layer), entry.get("step", self.step))
                rest = {key: inner for key, inner in entry.items() if key not in OF_ENTRY}
                yield from inside.of(rest, (*path, *band, *said))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _whole(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(type(number) is int for number in value)
