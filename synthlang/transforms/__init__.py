"""The transforms, a kind a file. A new one is a line in the table here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Union

from pydantic import Field

from synthlang.transforms.base import Transform
from synthlang.transforms.code_switch import CodeSwitch
from synthlang.transforms.mark import Mark
from synthlang.transforms.reorder import Reorder
from synthlang.transforms.transliterate import Transliterate
from synthlang.transforms.typology import Typology
from synthlang.transforms.word_order import Invert, Permute

TRANSFORMS: tuple[type[Transform], ...] = (
    Transliterate,
    Invert,
    Permute,
    Reorder,
    Typology,
    Mark,
    CodeSwitch,
)

KINDS: dict[str, type[Transform]] = {kind.model_fields["kind"].default: kind for kind in TRANSFORMS}
SHORT_NAMES: dict[str, tuple[type[Transform], str]] = {
    kind.short_name[0]: (kind, kind.short_name[1]) for kind in TRANSFORMS if kind.short_name is not None
}
if TYPE_CHECKING:
    AnyTransform = Transform
else:  # a union that the table spells out, told apart by kind
    AnyTransform = Annotated[Union[TRANSFORMS], Field(discriminator="kind")]  # noqa: UP007
