"""The documents on transfer and probes show every key with its default."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from probes.measures import ProbeConfig
from probes.transfer.config import TransferConfig
from synthlang.strict_yaml import parse_yaml

DOCS = Path(__file__).parents[1] / "docs"


def order(data: Any) -> Any:
    """The keys as they stand, at every depth."""
    return [(key, order(value)) for key, value in data.items()] if isinstance(data, dict) else None


@pytest.mark.parametrize(("name", "model"), [("transfer", TransferConfig), ("probes", ProbeConfig)])
def test_every_key_is_shown_with_its_default_in_order(name, model):
    [text] = re.findall(r"^```yaml all\n(.*?)^```$", (DOCS / f"{name}.md").read_text(), re.DOTALL | re.MULTILINE)
    shown, defaults = parse_yaml(text, "the document"), model().model_dump(mode="json")
    assert order(shown) == order(defaults)
    assert shown == defaults
