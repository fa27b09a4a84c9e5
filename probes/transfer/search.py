"""Settings that are tried: every combination of a search, and those that are best on the source's dev set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import product
from typing import Any

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


def rank(scores: Sequence[float], best: int) -> list[int]:
    """The numbers of the ``best`` highest dev scores, the highest first, the first of equals before the others."""
    return sorted(range(len(scores)), key=lambda number: -scores[number])[:best]


def _nested(key: str, value: Any) -> dict[str, Any]:
    """``{"a": {"b": value}}`` of ``a.b``."""
    first, dot, rest = key.partition(".")
    return {first: _nested(rest, value) if dot else value}


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else canonical_json(value)
