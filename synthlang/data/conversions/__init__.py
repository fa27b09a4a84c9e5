"""Conversions of downloaded files to the layouts of the readers (see ``Conversion``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from synthlang.data.conversions.files import CopiedFiles, FirstVectors
from synthlang.data.conversions.labels import LabelColumns, LabelTable
from synthlang.data.conversions.massive import Massive
from synthlang.data.conversions.pairs import PairFiles, PairTable
from synthlang.data.conversions.tables import ClassifiedPairs, MinimalPairs, QuestionTable, RunningText

Conversion = Annotated[
    CopiedFiles
    | ClassifiedPairs
    | FirstVectors
    | LabelColumns
    | LabelTable
    | Massive
    | MinimalPairs
    | PairFiles
    | PairTable
    | QuestionTable
    | RunningText,
    Field(discriminator="kind"),
]
FORMAT = 1
"""Version of the conversions. Raise it when a conversion writes other files from the same input."""

__all__ = ["FORMAT", "Conversion"]
