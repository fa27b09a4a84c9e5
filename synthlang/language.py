"""A language: transforms in order and a seed; what it does to a corpus and back, and how it is read and written.

A path in a language file (of an order model, a dictionary, a word list) is looked up beside that file first, then in
the working folder. Where a language is written down for others, its files go with it.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from synthlang import plugins
from synthlang.catalogue import find, load_yaml, names
from synthlang.config import StrictModel, parse
from synthlang.corpus import Corpus
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file, safe_name, user_path
from synthlang.fingerprint import fingerprint
from synthlang.references import Kind
from synthlang.rewrite import SPAN_COLUMNS, Rewrite
from synthlang.rng import key_of
from synthlang.scripts import SCRIPTS, Script
from synthlang.sources.base import Source, require_columns, word_counts
from synthlang.strict_yaml import write_yaml
from synthlang.transforms.table import KINDS, SHORT_NAMES, AnyTransform
from synthlang.transforms.transliterate import Transliterate

if TYPE_CHECKING:  # tokenizers is heavy, and most languages need none
    from synthlang.vocabulary import Encoded, Subwords, Vocabulary

FOLDER = "language"  # beside language.yaml: the files that it names
FORMAT = 2  # raise when a transform gives other output for the same spec


class Language(StrictModel):
    """A language derived from a parent. No transforms: the parent itself.

    As YAML: ``{name: trans+inv, seed: 0, transforms: [{kind: transliterate}, {kind: invert}]}``;
    transforms apply from first to last. An entity or slot that a transform tears apart becomes
    ``several`` ones, or its sentence is left out (``drop``); either way it is counted.
    """

    reference: ClassVar[Kind] = "language"  # what a config that holds one names by it
    name: str
    seed: int = Field(default=0, ge=0)
    transforms: tuple[AnyTransform, ...] = ()
    torn_entities: Literal["several", "drop"] = "several"
    _bound_to: str | None = PrivateAttr(default=None)
    _subwords: Subwords | None = PrivateAttr(default=None)

    @field_validator("name")
    @classmethod
    def _safe(cls, value: str) -> str:
        return safe_name(value, "language name")

    @model_validator(mode="after")
    def _fits_together(self) -> Language:
        units = [_unit(t) for t in self.transforms]
        if sum(isinstance(t, Transliterate) for t in self.transforms) > 1:
            raise ValueError("a language is transliterated at most once")
        if "token" in units and "word" in units[units.index("token") :]:
            raise ValueError("a transform of words stands after one of tokens; put those with unit: token last")
        if self.name == "parent" and self.transforms:
            raise ValueError("the name parent is that of the language without transforms; choose another")
        return self

    @property
    def fingerprint(self) -> str:
        """Of the spec; the name is a label and not part of it."""
        steps = [t.identity() for t in self.transforms]
        subwords = self._subwords.vocabulary.fingerprint if self._subwords and self.on_tokens else None
        parts: dict[str, Any] = {
            "torn_entities": self.torn_entities,
            "bound_to": self._bound_to,
            "vocabulary": subwords,
        }
        parts |= plugins.parts("transforms", {t.kind for t in self.transforms})
        return fingerprint("language", format=FORMAT, seed=self.seed, transforms=steps, **parts)

    @property
    def requires(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(column for t in self.transforms for column in t.requires))

    @property
    def invertible(self) -> bool:
        """Whether ``invert`` restores the parent's sentences."""
        return all(t.invertible for t in self.transforms)

    @property
    def on_tokens(self) -> bool:
        """Whether it moves or changes tokens of a vocabulary: then its words *are* tokens."""
        return any(_unit(t) == "token" for t in self.transforms)

    @property
    def needs_counts(self) -> bool:
        """Whether a transform depends on how often words occur: see ``bind_language``."""
        return any(t.needs_counts for t in self.transforms)

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

    def redrawn(self, number: int) -> Language:
        """The same language with other draws of what is drawn for each word of a text (``code_switch``), numbered from
        1; itself for 0, and where nothing is."""
        steps = tuple(transform.redrawn(number) for transform in self.transforms) if number else self.transforms
        changed = any(new is not old for new, old in zip(steps, self.transforms, strict=True))
        return self.model_copy(update={"transforms": steps}) if changed else self

    def rewrite(self, corpus: Corpus) -> Rewrite:
        """The rewrite of a batch of the parent: all transforms composed.

        Transforms see one more column, ``parent``: the word of the parent that each word was.
        """
        current = replace(corpus, columns={**corpus.columns, "parent": corpus.form})
        result = step = None
        for make in self._steps():
            current = current if step is None else step.apply(current)
            step = make(current)
            result = step if result is None else result.then(step)
        return self._without_torn(Rewrite.identity(corpus) if result is None else result, corpus)

    def _steps(self) -> Iterator[Callable[[Corpus], Rewrite]]:
        """The transforms with their keys; before the first one of tokens the step from words to tokens."""
        are_words = True
        for transform, key in zip(self.transforms, self.keys, strict=True):
            if are_words and _unit(transform) == "token":
                are_words = False
                yield self._tokens().split
            yield partial(transform.rewrite, key=key)

    def _without_torn(self, result: Rewrite, corpus: Corpus) -> Rewrite:
        columns = [name for name in SPAN_COLUMNS if name in corpus.columns and self.transforms]
        torn = [result.split_mentions(corpus, name) for name in columns]
        counts = {f"{name}: mentions torn apart": mentions for name, mentions in zip(columns, torn, strict=True)}
        whole = np.all([np.ones(len(result), bool), *(mentions == 0 for mentions in torn)], axis=0)
        if self.torn_entities == "drop" and not whole.all():
            counts["sentences dropped, a mention torn apart"] = ~whole
            result = result.take(np.flatnonzero(whole))
        return result.counted({**result.counts, **counts})

    def derive(self, corpus: Corpus) -> Corpus:
        """The batch in this language, with every label on the word it belongs to.

        Sentences that the language leaves out are not there; the ids say which are.
        """
        return self.rewrite(corpus).apply(corpus)

    def encode(self, derived: Corpus, vocabulary: Vocabulary) -> Encoded:
        """The token ids of a batch in this language; a control token that it spells is the unknown one."""
        from synthlang.vocabulary import encode_corpus

        if self.on_tokens:
            return self._tokens().encode(derived).as_text()
        return encode_corpus(vocabulary.tokenizer(self.script), derived).as_text()

    def invert(self, corpus: Corpus) -> Corpus:
        """The parent's sentences from derived ones: invert(derive(x)) = x; InputError if there is no inverse."""
        are_words = not self.on_tokens
        for transform, key in zip(reversed(self.transforms), reversed(self.keys), strict=True):
            if not are_words and _unit(transform) == "word":
                corpus, are_words = self._tokens().join(corpus), True
            corpus = transform.inverse(corpus, key).apply(corpus)
        return corpus if are_words else self._tokens().join(corpus)

    def _tokens(self) -> Subwords:
        if self._subwords is None:
            raise InputError(f"language {self.name}: a transform has unit: token, which needs a vocabulary")
        return self._subwords


def _unit(transform: AnyTransform) -> str:
    return str(getattr(transform, "unit", "word"))


PARENT = Language(name="parent")


def check_source(language: Language, source: Source, name: str) -> None:
    require_columns(source, language.requires, name, f"the language {language.name}")


def bind_language(
    language: Language, source: Source, vocabulary: Vocabulary | None = None, split: str | None = None
) -> Language:
    """The language with what its transforms need: word counts of the source's training split, a vocabulary.

    A language that needs nothing is returned as it is. The fingerprint of a bound one covers what it
    is bound to, so that data of another source is derived by the counts of the training text. Raises
    InputError if the source lacks a column or, where no other ``split`` is named, a training split to
    count words in, or if there is no vocabulary for transforms of tokens.
    """
    check_source(language, source, "the source")
    bound = language.model_copy()
    if language.on_tokens and vocabulary is not None and language._subwords is None:
        from synthlang.vocabulary import Subwords

        bound._subwords = Subwords(vocabulary, language.script)
    if language.on_tokens:
        bound._tokens()
    if language.needs_counts and language._bound_to is None:
        counts = {"word": word_counts(source, split)}
        if bound._subwords is not None:
            counts["token"] = bound._subwords.token_counts(counts["word"])
        transforms = tuple(t.bind(counts[_unit(t)]) for t in language.transforms)
        bound = bound.model_copy(update={"transforms": transforms})
        bound._bound_to = source.fingerprint + ("" if split in (None, "train") else f" {split}")
    return bound


def parse_language(spec: str | dict[str, Any]) -> Language:
    """A language from a name (``trans``, ``trans:0.5+perm``, ``trans+reorder@ga``), a YAML file or a mapping.

    Or from the name of one in the catalogue.

    ``parent`` is the language without transforms. A number after a colon is the strength, a word
    after an @ the option that matters most: a script, an order model, a window. Either may come first.
    """
    if isinstance(spec, dict):
        return parse(Language, spec)
    if spec == PARENT.name:
        return PARENT
    if spec.endswith((".yaml", ".yml")):
        path = user_path(spec)
        return parse(Language, beside(load_yaml(path), path.parent), path)
    return _from_name(spec)


def _named(value: Any) -> Any:
    return parse_language(value) if isinstance(value, str | dict) else value  # the rest is left to pydantic


NamedLanguage = Annotated[Language, BeforeValidator(_named)]
"""The type of a field of a config that holds a language: by its name, a YAML file or its settings."""


_NUMBER = r"[0-9]+\.?[0-9]*|\.[0-9]+"
# the strength stands before the option or after it: trans:0.5@hangul, trans@hangul:0.5
SHORT = re.compile(
    rf"(?P<kind>[a-z]+)(?::(?P<before>{_NUMBER})(?=@))?(?:@(?P<option>[^@:+]+))?(?::(?P<after>{_NUMBER}))?"
)


def _from_name(spec: str) -> Language:
    transforms, labels = [], list[str]()
    for part in spec.split("+"):
        match = SHORT.fullmatch(part)
        if not match or match["kind"] not in SHORT_NAMES or (match["before"] and match["after"]):
            return _from_catalogue(spec, part)
        kind, key = SHORT_NAMES[match["kind"]]
        given: dict[str, Any] = {"kind": kind.model_fields["kind"].default}
        option, strength = match["option"], match["before"] or match["after"]
        if option is not None:
            given[key] = int(option) if re.fullmatch("[0-9]{1,9}", option) else option
        if strength is not None:
            given["strength"] = float(strength)
        transforms.append(given)
        label = "" if option is None else f"-{option.rpartition('/')[2]}"  # of a path its last part
        labels.append(f"{match['kind']}{label}" + ("" if strength is None else f"={strength}"))
    name = "+".join(labels)
    return parse(Language, {"name": name, "transforms": transforms}, f"language {spec!r}")


def _from_catalogue(spec: str, part: str) -> Language:
    if spec in names("derived"):
        return parse(Language, find("derived", spec).data, spec)
    raise InputError(
        f"language {spec!r}: {part!r} is none of {', '.join(SHORT_NAMES)} (as in trans+inv or trans:0.5), nor a .yaml; "
        f"{did_you_mean(spec, names('derived'))}all kinds and options can be given in a YAML file"
    )


def beside(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The data of a language file with the paths of files that are in ``folder``, its own."""
    transforms = data.get("transforms")
    if not isinstance(transforms, list):
        return data
    return {**data, "transforms": [_with_paths(step, folder) for step in transforms]}


def _with_paths(step: Any, folder: Path) -> Any:
    if not isinstance(step, dict) or step.get("kind") not in KINDS:
        return step
    found = {}
    for field in KINDS[step["kind"]].file_fields:
        value = step.get(field)
        # a bare name is that of something we have: fr, parent
        if isinstance(value, str) and Path(value).suffix and (path := folder / user_path(value)).is_file():
            found[field] = str(path)
    return {**step, **found}


def portable(language: Language) -> tuple[dict[str, Any], dict[str, Path]]:
    """The spec with its files named as ``write_spec`` names them, and which file each name is."""
    data = language.model_dump(mode="json", round_trip=True)
    files: dict[str, Path] = {}
    for step, transform in zip(data["transforms"], language.transforms, strict=True):
        for field, path in transform.files().items():
            same = [name for name, known in files.items() if known == path]
            taken = {Path(name).name for name in files}
            name = path.name if path.name not in taken else f"{len(files)}-{path.name}"
            step[field] = same[0] if same else f"{FOLDER}/{name}"
            files[step[field]] = path
    return data, files


def spec_yaml(language: Language) -> str:
    return write_yaml(portable(language)[0])


def write_spec(language: Language, out: Path) -> list[Path]:
    """Write language.yaml and the files it names into a folder; returns them all."""
    _, files = portable(language)
    with atomic_file(out / "language.yaml", "w") as handle:
        handle.write(spec_yaml(language))
    for name, path in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        with path.open("rb") as source, atomic_file(out / name) as target:
            shutil.copyfileobj(source, target)
    return [out / "language.yaml", *(out / name for name in files)]
