"""A language: transforms in order and a seed; what it does to a corpus and back."""

from __future__ import annotations

import re
from collections import Counter
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from synthlang.config import StrictModel, load_yaml, parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import safe_name
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import Rewrite
from synthlang.rng import key_of
from synthlang.scripts import SCRIPTS, Script
from synthlang.transforms import SHORT_NAMES, AnyTransform, Transliterate

FORMAT = 1  # raise when a transform gives other output for the same spec


class Language(StrictModel):
    """A language derived from a parent. No transforms: the parent itself.

    As YAML: ``{name: trans+inv, seed: 0, transforms: [{kind: transliterate}, {kind: invert}]}``;
    transforms apply from first to last.
    """

    name: str
    seed: int = Field(default=0, ge=0)
    transforms: tuple[AnyTransform, ...] = ()

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "language name")

    @field_validator("transforms")
    @classmethod
    def _one_script(cls, value: tuple[AnyTransform, ...]) -> tuple[AnyTransform, ...]:
        if sum(isinstance(t, Transliterate) for t in value) > 1:
            raise ValueError("a language is transliterated at most once")
        return value

    @model_validator(mode="after")
    def _parent_is_reserved(self) -> Language:
        if self.name == "parent" and self.transforms:
            raise ValueError("the name parent is that of the language without transforms; choose another")
        return self

    @property
    def fingerprint(self) -> str:
        """Of the spec; the name is a label and not part of it."""
        steps = [t.model_dump(mode="json") for t in self.transforms]
        return fingerprint("language", format=FORMAT, seed=self.seed, transforms=steps)

    @property
    def script(self) -> Script | None:
        """The script of the transliterated words, None if there are none."""
        kinds = [t for t in self.transforms if isinstance(t, Transliterate)]
        return SCRIPTS[kinds[0].script] if kinds else None

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The key of each transform: of the seed, its kind and which of that kind it is.

        Strength and the other transforms stay out of it, so a stronger language changes the
        words a weaker one changed and more, and ``trans+inv`` writes words as ``trans`` does.
        """
        seen: Counter[str] = Counter()
        keys = []
        for transform in self.transforms:
            keys.append(key_of("transform", self.seed, transform.kind, seen[transform.kind]))
            seen[transform.kind] += 1
        return tuple(keys)

    def rewrite(self, corpus: Corpus) -> Rewrite:
        """The rewrite of a batch of the parent: all transforms composed."""
        result = Rewrite.identity(corpus)
        current = corpus
        for transform, key in zip(self.transforms, self.keys, strict=True):
            step = transform.rewrite(current, key)
            result, current = result.then(step), step.apply(current)
        return result

    def derive(self, corpus: Corpus) -> Corpus:
        """The batch in this language, with every label on the word it belongs to."""
        return self.rewrite(corpus).apply(corpus)

    def invert(self, corpus: Corpus) -> Corpus:
        """The parent's sentences from derived ones: invert(derive(x)) = x."""
        for transform, key in zip(reversed(self.transforms), reversed(self.keys), strict=True):
            corpus = transform.inverse(corpus, key).apply(corpus)
        return corpus


PARENT = Language(name="parent")


def parse_language(spec: str | dict[str, Any]) -> Language:
    """A language from a name (``trans``, ``trans+inv``, ``trans:0.5+perm``), a YAML file or a mapping.

    ``parent`` is the language without transforms. A number after a colon is the strength.
    """
    if isinstance(spec, dict):
        return parse(Language, spec)
    if spec == PARENT.name:
        return PARENT
    if spec.endswith((".yaml", ".yml")):
        path = Path(spec)
        return parse(Language, load_yaml(path), path)
    return _from_name(spec)


def _from_name(spec: str) -> Language:
    transforms = []
    for part in spec.split("+"):
        match = re.fullmatch(r"([a-z]+)(?::([0-9.]+))?", part)
        if not match or match[1] not in SHORT_NAMES:
            names = ", ".join(SHORT_NAMES)
            raise InputError(
                f"language {spec!r}: {part!r} is none of {names} (as in trans+inv or trans:0.5), nor a .yaml"
            )
        strength = {} if match[2] is None else {"strength": _number(match[2], spec)}
        transforms.append({"kind": SHORT_NAMES[match[1]].model_fields["kind"].default, **strength})
    return parse(Language, {"name": spec.replace(":", "="), "transforms": transforms}, f"language {spec!r}")


def _number(text: str, spec: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"language {spec!r}: the strength {text!r} is not a number") from error
