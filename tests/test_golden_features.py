"""No feature goes without a word: every option of every command and every key of every config is kept.

The golden file is for reading: a review of a change to it sees what went and what came. docs/features.md lists the
features; here it is checked to name each command with its options and each top-level key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pydantic
import pytest
import typer

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from probes.claims.papers import _PaperFile
from probes.claims.spec import Claim
from probes.cli import app
from probes.measures.table import ProbeConfig
from probes.study.config import StudyConfig
from probes.study.executors.slurm_options import SlurmOptions
from probes.transfer.config import TransferConfig
from synthlang.language import Language
from tests.golden import check_golden

CONFIGS: dict[str, type[pydantic.BaseModel]] = {
    "language": Language,
    "pretrain": PretrainConfig,
    "adjust": AdjustConfig,
    "probe": ProbeConfig,
    "transfer": TransferConfig,
    "study": StudyConfig,
    "slurm": SlurmOptions,
    "claim": Claim,
    "printed tables": _PaperFile,
}
"""Section of docs/features.md → the config it is about."""
FEATURES = Path(__file__).parents[1] / "docs" / "features.md"
WORDS = {"title", "description"}
"""Keys of a JSON schema that say nothing about which values are allowed."""


def commands(command: Any = None, name: str = "") -> Iterator[tuple[str, Any]]:
    """Each command by its name, that of a group before it."""
    command = command or typer.main.get_command(app)
    yield name or "synthlang", command
    for part, one in getattr(command, "commands", {}).items():
        yield from commands(one, f"{name} {part}".strip())


def parameters(command: Any) -> dict[str, str]:
    """Option names, or the name of an argument → whether it is required or repeatable, and its default."""
    found = {}
    for parameter in command.params:
        default = None if callable(parameter.default) else parameter.default
        told = ["required"] if parameter.required else [f"default {json.dumps(default, default=str)}"]
        told += ["repeatable"] if parameter.multiple or parameter.nargs == -1 else []
        found[" ".join(parameter.opts)] = ", ".join(told)
    return found


def fields(model: type[pydantic.BaseModel]) -> dict[str, list[str]]:
    """Dotted key → what its value may be, each with its default, as JSON schema without words.

    ``*`` is any name, ``[]`` an entry of a list. Of a union each member has the value of its ``kind`` before its
    keys. A language within another config is only named, since it is listed by itself.
    """
    schema = model.model_json_schema()
    found: dict[str, list[str]] = {}
    for path, told in _fields(schema, schema, "", ..., schema.get("$defs", {}), model is Language):
        found.setdefault(path, []).append(told)
    return {path: sorted(set(told)) for path, told in found.items()}


def _fields(
    node: Mapping[str, Any], top: Mapping[str, Any], path: str, default: Any, known: Mapping[str, Any], inside: bool
) -> Iterator[tuple[str, str]]:
    """Path and description of everything under a node; ``default`` is what holds where nothing is said."""
    if "$ref" in node:
        name = node["$ref"].rpartition("/")[2]
        if name == Language.__name__ and not inside:
            yield path, "a language"
        else:
            yield from _fields(known[name], top, path, default, known, inside)
        return
    for choice in node.get("anyOf") or node.get("oneOf") or ():
        yield from _fields(choice, top, path, default, known, inside)
    if "anyOf" in node or "oneOf" in node:
        return
    properties = node.get("properties")
    if properties is not None:
        kind = properties.get("kind", {}).get("const")
        if isinstance(default, Mapping) and default.get("kind", kind) != kind:
            default = ...  # that of another member of the union
        place = path + (f"<{kind}>" if kind else "") + ("." if path else "")
        if path:
            yield path, "a mapping" + ("" if isinstance(default, Mapping) else _told(default))
        for key, value in properties.items():
            of_key = default[key] if isinstance(default, Mapping) and key in default else value.get("default", ...)
            if key in node.get("required", ()) and of_key is ...:
                yield place + key, "required"
            yield from _fields(value, top, place + key, of_key, known, inside)
        return
    plain = {key: value for key, value in node.items() if key not in {*WORDS, "default", "items", "prefixItems"}}
    inner = plain.pop("additionalProperties", None)
    yield path, json.dumps(plain, sort_keys=True, ensure_ascii=False) + _told(default)
    if isinstance(inner, Mapping):
        yield from _fields(inner, top, f"{path}.*", ..., known, inside)
    entries = [node["items"]] if isinstance(node.get("items"), Mapping) else []
    for entry in entries + list(node.get("prefixItems", ())):
        yield from _fields(entry, top, f"{path}[]", ..., known, inside)


def _told(default: Any) -> str:
    return "" if default is ... else f" default {json.dumps(default, sort_keys=True, ensure_ascii=False)}"


def test_no_option_and_no_key_is_lost():
    options = {name: parameters(command) for name, command in commands()}
    keys = {name: fields(model) for name, model in CONFIGS.items()}
    assert len(options) > 15
    assert "objective.alpha" in keys["pretrain"]
    check_golden("features", {"commands": options, "configs": keys})


@pytest.fixture(scope="module")
def sections() -> dict[str, str]:
    """Heading → text of docs/features.md."""
    parts = re.split(r"^## (.+)$", FEATURES.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_the_list_names_every_command_with_its_options(sections):
    missing = [
        f"{name}: {option}"
        for name, command in commands()
        for option in ["", *(o for parameter in command.params for o in parameter.opts if o.startswith("--"))]
        if name not in sections or (option and f"`{option}`" not in sections[name])
    ]
    assert not missing, missing


def test_the_list_names_every_key(sections):
    missing = [
        f"{section}: {key}"
        for section, model in CONFIGS.items()
        for key in model.model_fields
        if not re.search(rf"`{re.escape(key)}[`.\[]", sections.get(section, ""))
    ]
    assert not missing, missing
