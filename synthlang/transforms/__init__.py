"""The transforms, one kind a file, and their short names in language specs."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from synthlang.transforms.base import Transform
from synthlang.transforms.code_switch import CodeSwitch
from synthlang.transforms.invert import Invert
from synthlang.transforms.mark import AfterVerb, Mark
from synthlang.transforms.permute import Permute
from synthlang.transforms.reorder import Reorder
from synthlang.transforms.transliterate import Transliterate
from synthlang.transforms.typology import Typology

AnyTransform = Annotated[
    Transliterate | Invert | Permute | Reorder | Typology | Mark | CodeSwitch, Field(discriminator="kind")
]

KINDS: dict[str, type[Transform]] = {
    kind.model_fields["kind"].default: kind
    for kind in (Transliterate, Invert, Permute, Reorder, Typology, Mark, CodeSwitch)
}

# the option that a name may give after @: reorder@ga, typology@SOV, perm@3
SHORT_NAMES: dict[str, tuple[type[Transform], str]] = {
    "trans": (Transliterate, "script"),
    "inv": (Invert, "chunk"),
    "perm": (Permute, "window"),
    "reorder": (Reorder, "model"),
    "typology": (Typology, "order"),
    "switch": (CodeSwitch, "dictionary"),
}

__all__ = [
    "KINDS",
    "SHORT_NAMES",
    "AfterVerb",
    "AnyTransform",
    "CodeSwitch",
    "Invert",
    "Mark",
    "Permute",
    "Reorder",
    "Transform",
    "Transliterate",
    "Typology",
]
