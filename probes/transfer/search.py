"""Settings that are tried: every combination of a search, and those that are best on the source's dev set."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from itertools import product
from typing import Any

from pretrain.config.model import numbered
from probes.report.numbers import plural
from probes.transfer.config import TransferConfig
from synthlang.config import merged, parse
from synthlang.errors import InputError
from synthlang.fingerprint import canonical_json


def combinations(config: TransferConfig) -> list[tuple[str, TransferConfig]]:
    """(label, settings) of every combination of the values in ``search``, the last key changing fastest.

    Equal ones come once. Without a search the settings as they are, under the label "". InputError names a key or value
    that is not allowed.
    """
    base = config.model_dump(mode="json", round_trip=True) | {"search": {}}
    found: dict[str, TransferConfig] = {}
    for values in product(*config.search.values()):
        chosen = dict(zip(config.search, values, strict=True))
        label = " ".join(f"{key}={_shown(value)}" for key, value in chosen.items())
        changes: dict[str, Any] = reduce(merged, (_nested(key, value) for key, value in chosen.items()), {})
        try:
            found.setdefault(label, parse(TransferConfig, merged(base, changes)))
        except InputError as error:
            raise InputError(f"search: {label}: {error}") from error
    return list(found.items())


def check_tried(config: TransferConfig, counts: Iterable[int]) -> None:
    """Raise InputError for what no combination can be, and for a layer that a model does not have.

    ``counts`` are the numbers of layers of the models that read.
    """
    tried = combinations(config)
    if config.best > len(tried):
        raise InputError(f"best {config.best}: the search has {plural(len(tried), 'combination')}")
    also = () if config.continual is None else config.continual.loss.layers
    for count in counts:
        for _, settings in tried:
            numbered(settings.features.layers, count, "features.layers")
        numbered(also, count, "continual.loss.layers")


def rank(scores: Sequence[float], best: int) -> list[int]:
    """The numbers of the ``best`` highest dev scores, the highest first, the first of equals before the others."""
    return sorted(range(len(scores)), key=lambda number: -scores[number])[:best]


def _nested(key: str, value: Any) -> dict[str, Any]:
    """``{"a": {"b": value}}`` of ``a.b``."""
    first, dot, rest = key.partition(".")
    return {first: _nested(rest, value) if dot else value}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
