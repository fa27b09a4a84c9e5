"""Each setting of languages, pretraining and adjustment is explained by a docstring below its field."""

from __future__ import annotations

import pydantic
import pytest

from pretrain.adjust.config import AdamConfig, AdjustConfig, LossConfig
from pretrain.config import model, objective, run, sampling, training
from probes.claims.papers import Paper, PaperTable
from probes.claims.spec import Claim, Compare, ComparedSide, Correlate, Fixed, Order
from probes.reference import field_docstrings
from synthlang.config import StrictModel
from synthlang.dictionary.word_dictionary import DictionarySpec
from synthlang.language import Language
from synthlang.transforms.mark import AfterVerb
from synthlang.transforms.table import KINDS
from synthlang.vocabularies import ExtendSpec, VocabularySpec


def configs() -> list[type[pydantic.BaseModel]]:
    parts = [
        value
        for module in (model, objective, run, sampling, training)
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
    own += [Claim, Compare, Order, Correlate, ComparedSide, Fixed, Paper, PaperTable]
    return list(dict.fromkeys([*parts, *own, *KINDS.values()]))


@pytest.mark.parametrize("config", configs(), ids=lambda config: config.__name__)
def test_every_setting_is_explained(config):
    found = field_docstrings(config)
    assert [name for name in config.model_fields if name not in found] == []
    for name, text in found.items():
        first = text.split("\n\n")[0]
        assert first.endswith(".") and "\n" not in first.strip(), (name, first)
        assert not first.startswith(("Of ", "The same", "Its ", "Those", "What ", "Which ", "Whether ", "How ")), (
            name,
            first,
        )
