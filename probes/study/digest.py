"""The fingerprint of a config, computed once for each object: cells share their configs, and tasks ask often."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import pydantic

from synthlang.fingerprint import fingerprint

REMEMBERED = 1 << 14


class _Same:
    """A config by its identity; it is held, so that no other one can get its place in memory."""

    def __init__(self, config: pydantic.BaseModel) -> None:
        self.config = config

    def __hash__(self) -> int:
        return id(self.config)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.config is other.config


@lru_cache(maxsize=REMEMBERED)
def _digest(held: _Same) -> str:
    return fingerprint("settings", of=type(held.config).__name__, settings=json_of_config(held.config))


def digest_of(config: pydantic.BaseModel) -> str:
    """Of every setting of a frozen config."""
    return _digest(_Same(config))


def json_of_config(config: pydantic.BaseModel) -> dict[str, Any]:
    """The settings as JSON values, from which ``synthlang.config.parse`` makes the same config again."""
    return config.model_dump(mode="json", round_trip=True)
