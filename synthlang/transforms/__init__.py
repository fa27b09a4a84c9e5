"""The transforms, one kind a file, and their short names in language specs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from synthlang.transforms.base import Transform
from synthlang.transforms.invert import Invert
from synthlang.transforms.permute import Permute
from synthlang.transforms.transliterate import Transliterate

AnyTransform = Annotated[Transliterate | Invert | Permute, Field(discriminator="kind")]

SHORT_NAMES: dict[str, type[Transliterate] | type[Invert] | type[Permute]] = {
    "trans": Transliterate,
    "inv": Invert,
    "perm": Permute,
}

__all__ = ["SHORT_NAMES", "AnyTransform", "Invert", "Permute", "Transform", "Transliterate"]
