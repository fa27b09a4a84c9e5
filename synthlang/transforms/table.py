"""The table of transforms, including plugins."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Field

from synthlang.errors import InputError
from synthlang.plugins import added
from synthlang.transforms.base import Transform
from synthlang.transforms.code_switch import CodeSwitch
from synthlang.transforms.hop import Delay, Hop
from synthlang.transforms.mark import Mark
from synthlang.transforms.reorder import Reorder
from synthlang.transforms.reverse import Reverse
from synthlang.transforms.shuffle import Shuffle
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
    Shuffle,
    Reverse,
    Hop,
    Delay,
)


def kind_of(transform: type[Transform]) -> Any:
    """Return the ``kind`` by which a language selects a transform."""
    return transform.model_fields["kind"].default


def short_names(kinds: dict[str, type[Transform]]) -> dict[str, tuple[type[Transform], str]]:
    """Map each short name to its transform and to the option after the @.

    Raises:
        InputError: Two transforms have the same short name.
    """
    found: dict[str, tuple[type[Transform], str]] = {}
    for name, kind in kinds.items():
        if kind.short_name is not None:
            short, option = kind.short_name
            if short in found:
                other = kind_of(found[short][0])
                reason = f"the transforms {other} and {name} have the same short name {short!r}"
                raise InputError(reason, hint="rename one, or uninstall the package that adds it", code="duplicate")
            found[short] = kind, option
    return found


KINDS: dict[str, type[Transform]] = {kind_of(kind): kind for kind in TRANSFORMS}
KINDS |= added("transforms", Transform, KINDS, kind_of)
SHORT_NAMES = short_names(KINDS)
if TYPE_CHECKING:
    AnyTransform = Transform
else:  # a union of the classes in the table, discriminated by kind
    AnyTransform = Annotated[Union[tuple(KINDS.values())], Field(discriminator="kind")]  # noqa: UP007
