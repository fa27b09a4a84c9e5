"""The reference pages list every command, option, kind and key, also those of a plugin, and each part on one page."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from probes.reference import PLACE, commands, configs, field_docstrings, filled, keys, main, parts, table
from synthlang.config import StrictModel

DOCS = Path(__file__).parents[1] / "docs"


def test_every_part_stands_on_one_page():
    found = Counter(name for page in DOCS.glob("*.md") for name in PLACE.findall(page.read_text(encoding="utf-8")))
    assert found == Counter(list(parts()))


def test_every_command_and_option_is_listed():
    text = parts()["commands"]()
    for name, command in commands():
        assert f"`{name}`" in text or f"`synthlang {name}`" in text
        assert command.help
        for option in command.params:
            assert option.help and (option.opts[0] in text or (option.metavar or option.name.upper()) in text), option


@pytest.mark.parametrize("name", configs())
def test_every_key_is_listed_with_its_default(name):
    model, text = configs()[name], parts()[name]()
    top = text.split("\n###")[0]
    for key, field in model.model_fields.items():
        assert f"| `{field.alias or key}` |" in top
    assert top.count("| required |") == sum(field.is_required() for field in model.model_fields.values())


def test_keys_of_inner_models_stand_under_their_place():
    text = keys(configs()["pretrain"])
    section = text.split("### `objective`")[1].split("###")[0]
    assert (
        "| `kind` | `mlm`, `xlm`, `dict_mlm`, `align_mlm`, `tlm_clm`, `dict_clm`, `align_clm`, `clm`, `sum` | `mlm` |"
        in section
    )
    assert "| `alpha` | number" in section and "| `10.0` |" in section
    assert "### `languages[]`" in text and "### `start.extend`" in text
    assert "### `transforms[]` of kind `invert`" in keys(configs()["language"])


class Base(StrictModel):
    """A base."""

    first: int = 1
    """Number of | things."""


class Model(Base):
    """A model."""

    second: float = 0.5
    third: str = ""
    """A name.

    It may be empty.
    """


def test_the_docstring_under_a_field_is_the_meaning_of_its_key():
    assert field_docstrings(Model) == {"first": "Number of | things.", "third": "A name.\n\nIt may be empty."}
    rows = keys(Model).splitlines()[2:]
    assert rows[0].endswith(r"| `1` | Number of \| things. |") and rows[1].endswith("| `0.5` |  |")
    assert rows[2].endswith("| A name. It may be empty. |")


def test_a_part_is_filled_in_where_a_page_names_it():
    page = filled("# Page\n\n<!-- reference: terms -->\n\nand `<!-- reference: terms -->` in a text\n")
    assert "| `align` | `align_mlm` | `alpha` |" in page and page.endswith("in a text\n")
    assert table(["a"], [["x | y\nz"]]).splitlines()[-1] == r"| x \| y z |"


def test_the_command_prints_a_part_or_the_list(capsys):
    assert main(["probes"]) == 0 and "| `cka` |" in capsys.readouterr().out
    assert main([]) == 0 and set(capsys.readouterr().out.split()) == set(parts())
    assert main(["nothing"]) == 2 and "not a part of the reference; choose from" in capsys.readouterr().err
