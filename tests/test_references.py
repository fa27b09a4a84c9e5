"""References of configs to things outside them, in every typed field."""

from typing import Any

import pydantic
import pytest

from pretrain.adjust.config import AdjustConfig
from pretrain.config import PretrainConfig
from pretrain.config.training import ValidationConfig
from probes.measures.table import ProbeConfig
from probes.transfer.config import TransferConfig
from synthlang.config import parse
from synthlang.language import Language
from synthlang.references import OmitDefaultFromHash, references, resolved
from tests.tiny import PRETRAIN

TEXT = {
    "kind": "text",
    "left": "l.txt",
    "right": "r.txt",
    "links": {"kind": "file", "path": "links", "reverse": "back"},
}
LANGUAGES = [{"name": "x", "source": "conllu:a"}, {"name": "y", "source": "conllu:b", "language": "trans"}]
CASES: dict[str, tuple[type[Any], dict[str, Any], dict[str, str]]] = {
    "pretrain": (
        PretrainConfig,
        {k: v for k, v in PRETRAIN.items() if k not in ("source", "language", "vocabulary", "model")}
        | {"languages": LANGUAGES, "dictionary": {"path": {"y": "muse"}}, "start": {"model": "bert"}}
        | {"parallel": [{"languages": ["x", "y"], "sources": ["lines:l", "lines:r"]}]},
        {
            "languages.0.source": "source conllu:a",
            "languages.0.language": "language parent",
            "languages.1.source": "source conllu:b",
            "languages.1.language": "language trans",
            "parallel.0.sources.0": "source lines:l",
            "parallel.0.sources.1": "source lines:r",
            "start.model": "model bert",
            "dictionary.path.y": "file muse",
        },
    ),
    "adjust": (
        AdjustConfig,
        {"model": "bert", "pairs": {"a": TEXT, "b": {"kind": "derived", "source": "lines:x", "left": "inv"}}},
        {
            "model": "model bert",
            "pairs.a.left": "file l.txt",
            "pairs.a.right": "file r.txt",
            "pairs.a.links.path": "file links",
            "pairs.a.links.reverse": "file back",
            "pairs.b.source": "source lines:x",
            "pairs.b.left": "language inv",
            "pairs.b.right": "language parent",
        },
    ),
    "transfer": (
        TransferConfig,
        {"language": "trans", "train": "bank#dev", "target": {"test": "other"}, "parser": "spacy:en"}
        | {"rotation": {"pairs": {"a": TEXT}, "map": "maps"}},
        {
            "language": "language trans",
            "train": "items bank#dev",
            "target.test": "items other",
            "parser": "parser spacy:en",
            "rotation.pairs.a.left": "file l.txt",
            "rotation.pairs.a.right": "file r.txt",
            "rotation.pairs.a.links.path": "file links",
            "rotation.pairs.a.links.reverse": "file back",
            "rotation.map": "file maps",
        },
    ),
    "transfer of several languages": (
        TransferConfig,
        {"chosen_by": "mean", "dev_also": [{"language": "de", "dev": "bank#dev"}, {"language": "inv"}]}
        | {"tested_on": "both", "continual": {"before": "bert"}},
        {
            "dev_also.0.language": "language de",
            "dev_also.0.dev": "items bank#dev",
            "dev_also.1.language": "language inv",
            "continual.before": "model bert",
        },
    ),
    "probe": (
        ProbeConfig,
        {"language": "fr", "model2": "bert", "words": {"dictionary": "muse"}, "distances": {"before": {"b": "run"}}}
        | {"cka": {"paraphrase": "run2"}, "retrieval": {"parser": "spacy:en"}}
        | {"maps": {"dictionary": "d", "sentences": {"left": "l", "right": "r"}}},
        {
            "language": "language fr",
            "model2": "model bert",
            "words.dictionary": "file muse",
            "retrieval.parser": "parser spacy:en",
            "maps.dictionary": "file d",
            "maps.sentences.left": "file l",
            "maps.sentences.right": "file r",
            "cka.paraphrase": "model run2",
            "distances.before.b": "model run",
        },
    ),
}


def idle_of(config: pydantic.BaseModel) -> set[str]:
    """The fields that came later and have their defaults."""
    fields = type(config).model_fields.items()
    later = {
        name: field.default
        for name, field in fields
        if any(isinstance(mark, OmitDefaultFromHash) for mark in field.metadata)
    }
    return {name for name, default in later.items() if getattr(config, name) == default}


@pytest.mark.parametrize("case", CASES)
def test_every_typed_field_is_found_and_can_be_replaced(case):
    model, data, expected = CASES[case]
    config = parse(model, data)
    found = {
        ".".join(named.place): f"{named.kind} {named.name.name if isinstance(named.name, Language) else named.name}"
        for named in references(config)
    }
    assert found == expected
    settings = resolved(config, lambda named: f"<{named.kind}>")
    assert settings.keys() == type(config).model_fields.keys() - idle_of(config)
    for named in references(config):
        value: Any = settings
        for key in named.place:
            value = value[int(key)] if isinstance(value, list) else value[key]
        assert value == f"<{named.kind}>"


def test_what_is_no_reference_stays_as_json_has_it():
    config = parse(TransferConfig, {"search": {"fine_tune.rows": [8, 16]}})
    told = resolved(config, lambda named: "")
    inside = {part: idle_of(getattr(config, part)) for part in ("fine_tune", "head")}
    assert told == config.model_dump(mode="json", exclude={**dict.fromkeys(idle_of(config), True), **inside})
    assert "epoch_items" in inside["fine_tune"] and "pooler" in inside["head"]
    assert "chosen_by" in idle_of(config) and "task" in told


def test_a_setting_that_came_later_changes_no_fingerprint_where_it_has_its_default():
    plain, changed = (parse(ValidationConfig, data) for data in ({"mask_rate": None}, {"mask_rate": 0.3}))
    assert resolved(plain, str).keys() == type(plain).model_fields.keys() - {"mask_rate", "packing"}
    assert resolved(changed, str) == resolved(plain, str) | {"mask_rate": 0.3}
