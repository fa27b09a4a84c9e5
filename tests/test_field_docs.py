"""Settings explain themselves: each field has a docstring below it, which is its description in the JSON schema."""

from __future__ import annotations

from typing import Any

import pydantic
import pytest
from pydantic import Field

from pretrain.adjust.config import AdamConfig, AdjustConfig, LossConfig
from pretrain.config import model, objective, run, training
from synthlang.config import StrictModel
from synthlang.dictionary.word_dictionary import DictionarySpec
from synthlang.field_docs import field_docs
from synthlang.language import Language
from synthlang.transforms.mark import AfterVerb
from synthlang.transforms.table import KINDS
from synthlang.vocabularies import ExtendSpec, VocabularySpec


class Outer(StrictModel):
    """A config."""

    plain: int = 1
    """The first field.

    It has two paragraphs.
    """
    other: int = Field(default=2, alias="else")
    """The second field."""
    without: int = 3


class Inner(Outer):
    """A config with the fields of another one."""

    plain: int = 5
    """The same field with another text."""
    more: Outer = Outer()
    """A section."""


def configs() -> list[type[pydantic.BaseModel]]:
    parts = [
        value
        for module in (model, objective, run, training)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StrictModel) and value not in (StrictModel, DictionarySpec)
    ]
    own: list[type[pydantic.BaseModel]] = [
        Language,
        AfterVerb,
        ExtendSpec,
        VocabularySpec,
        AdjustConfig,
        AdamConfig,
        LossConfig,
    ]
    return list(dict.fromkeys([*parts, *own, *KINDS.values()]))


def test_docs_of_a_class_and_its_bases():
    assert field_docs(Outer) == {"plain": "The first field.\n\nIt has two paragraphs.", "other": "The second field."}
    same = "The same field with another text."
    assert field_docs(Inner) == {"plain": same, "other": "The second field.", "more": "A section."}


def test_the_schema_has_them():
    schema: dict[str, Any] = Inner.model_json_schema()
    found = {key: value.get("description") for key, value in schema["properties"].items()}
    same = "The same field with another text."
    assert found == {"plain": same, "else": "The second field.", "without": None, "more": "A section."}


@pytest.mark.parametrize("config", configs(), ids=lambda config: config.__name__)
def test_every_setting_is_explained(config):
    found = field_docs(config)
    assert [name for name in config.model_fields if name not in found] == []
    for name, text in found.items():
        first = text.split("\n\n")[0]
        assert first.endswith(".") and "\n" not in first.strip(), (name, first)
        assert not first.startswith(("Of ", "The same", "Its ", "Those", "What ", "Which ", "Whether ", "How ")), (
            name,
            first,
        )
