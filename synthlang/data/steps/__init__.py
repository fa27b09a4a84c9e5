"""Steps that data sets need after their download: one kind in each file (see ``Step``)."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from synthlang.data.steps.align import Align
from synthlang.data.steps.parse import Parse
from synthlang.data.steps.segment import Segment

Step = Annotated[Align | Parse | Segment, Field(discriminator="kind")]

__all__ = ["Align", "Parse", "Segment", "Step"]
