"""Languages: an ordered list of transforms with a seed, which derives a corpus and inverts the derivation.

A language file may name an order model, a dictionary or a word list by a relative path. The path is looked up in the
folder of the language file first, then in the working folder. ``write_spec`` copies the named files together with the
language.
"""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, PrivateAttr, field_validator, model_validator

from synthlang import plugins
from synthlang.catalogue import find, load_yaml, names
from synthlang.config import StrictModel, parse
from synthlang.config_errors import show_value
from synthlang.corpus import Corpus
from synthlang.errors import InputError, did_you_mean
from synthlang.files import atomic_file, safe_name, user_path
from synthlang.fingerprint import fingerprint
from synthlang.references import Kind
from synthlang.rewrite import SPAN_COLUMNS, Rewrite
from synthlang.rng import key_of
from synthlang.scripts import SCRIPTS, Script, byte_characters
from synthlang.sources.base import Source, require_columns, with_columns, word_counts
from synthlang.strict_yaml import write_yaml
from synthlang.transforms.table import KINDS, SHORT_NAMES, AnyTransform
from synthlang.transforms.transliterate import Transliterate

if TYPE_CHECKING:  # tokenizers is heavy, and most languages need none
    from synthlang.vocabulary import Encoded, Subwords, Vocabulary

FOLDER = "language"  # the folder beside language.yaml that holds the files named there
FORMAT = 2  # raise when a transform gives other output for the same spec


class Language(StrictModel):
    """A language derived from a source language. Without transforms it is the source language itself.

    As YAML: ``{name: trans+inv, seed: 0, transforms: [{kind: transliterate}, {kind: invert}]}``. Transforms apply
    from first to last.
    """

    renamed_keys: ClassVar[Mapping[str, str]] = {"torn_entities": "split_entities"}
    reference: ClassVar[Kind] = "language"  # the kind of a reference in a config that is a whole language
    name: str
    """Label of the language, which must be a valid file name."""
    seed: int = Field(default=0, ge=0)
    """Seed of all random choices."""
    transforms: tuple[AnyTransform, ...] = ()
    """Transforms, in the order in which they apply."""
    split_entities: Literal["several", "drop"] = "several"
    """Treatment of an entity or slot that a transform splits.

    ``several`` keeps the pieces as entities, and ``drop`` leaves the sentence out. Both cases are counted.
    """
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
            reason = "a language can be transliterated only once"
            raise InputError(
                reason, keys="transforms", hint="delete all transforms of kind transliterate but one", code="conflict"
            )
        if "token" in units and "word" in units[(first := units.index("token")) :]:
            of_words, of_tokens = (self.transforms[units.index(unit, first)].kind for unit in ("word", "token"))
            reason = f"{of_words} works on words, so it cannot follow {of_tokens}, which works on tokens (unit: token)"
            hint = "put the transforms with unit: token after all others"
            raise InputError(reason, keys="transforms", hint=hint, code="conflict")
        for place, transform in enumerate(self.transforms):
            changed = [before.kind for before in self.transforms[:place] if not before.keeps_forms]
            if "lemma" in transform.requires and changed:
                reason = f"{transform.kind} writes lemmas of the source, so it cannot follow {changed[0]}"
                hint = f"put {transform.kind} before {changed[0]}"
                raise InputError(reason, keys="transforms", hint=hint, code="conflict")
        if self.name == "parent" and self.transforms:
            reason = "the name parent is reserved for the language without transforms"
            raise InputError(reason, keys="name", hint="choose another name", code="conflict")
        return self

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the settings, and of the counts and the vocabulary that the language is bound to.

        The name is a label and is not part of the fingerprint.
        """
        steps = [t.identity() for t in self.transforms]
        subwords = self._subwords.vocabulary.fingerprint if self._subwords and self.on_tokens else None
        parts: dict[str, Any] = {
            "torn_entities": self.split_entities,  # the first name of the setting
            "bound_to": self._bound_to,
            "vocabulary": subwords,
        }
        parts |= plugins.parts("transforms", {t.kind for t in self.transforms})
        return fingerprint("language", format=FORMAT, seed=self.seed, transforms=steps, **parts)

    @property
    def requires(self) -> tuple[str, ...]:
        """Names of the columns that the transforms read besides the forms, each once."""
        return tuple(dict.fromkeys(column for t in self.transforms for column in t.requires))

    @property
    def invertible(self) -> bool:
        """True if ``invert`` restores the sentences of the source."""
        return all(t.invertible for t in self.transforms)

    @property
    def on_tokens(self) -> bool:
        """True if a transform moves or changes tokens of a vocabulary. The words are then tokens."""
        return any(_unit(t) == "token" for t in self.transforms)

    @property
    def needs_counts(self) -> bool:
        """True if a transform depends on word counts (see ``bind_language``)."""
        return any(t.needs_counts for t in self.transforms)

    @property
    def script(self) -> Script | None:
        """The script of the transliterated words, or None if there are none."""
        kinds = [t for t in self.transforms if isinstance(t, Transliterate)]
        return SCRIPTS[kinds[0].script] if kinds else None

    @cached_property
    def keys(self) -> tuple[int, ...]:
        """The random key of each transform, a function of the seed, the kind and the rank among transforms of the kind.

        A key does not depend on the strength or on transforms of other kinds. A stronger language therefore changes all
        the words that a weaker one changes, and ``trans+inv`` writes words as ``trans`` does.
        """
        seen: Counter[str] = Counter()
        keys = []
        for transform in self.transforms:
            keys.append(key_of("transform", self.seed, transform.kind, seen[transform.kind]))
            seen[transform.kind] += 1
        return tuple(keys)

    @property
    def adds_forms(self) -> bool:
        """True if a transform writes forms that the source does not have, which ``added_forms`` lists."""
        return any(t.adds_forms for t in self.transforms)

    @property
    def flags_sentences(self) -> bool:
        """True if every rewrite flags the sentences that the language affects (``Rewrite.affected``)."""
        return any(t.flags_sentences for t in self.transforms)

    def added_forms(self, words: Sequence[str]) -> tuple[str, ...]:
        """Return the forms that the transforms may add to a text of these source words.

        A form that starts a word has a space before it. Any other form is a part of a word.
        """
        steps = zip(self.transforms, self.keys, strict=True)
        return tuple(dict.fromkeys(form for step, key in steps for form in step.added_forms(words, key)))

    def redrawn(self, number: int) -> Language:
        """Return the language with another set of random draws for running words, such as the draws of ``code_switch``.

        ``number`` is the number of the set, which is 0 for the language itself. A language without such draws is
        returned unchanged.
        """
        steps = tuple(transform.redrawn(number) for transform in self.transforms) if number else self.transforms
        changed = any(new is not old for new, old in zip(steps, self.transforms, strict=True))
        return self.model_copy(update={"transforms": steps}) if changed else self

    def rewrite(self, corpus: Corpus) -> Rewrite:
        """Return the rewrite of a batch of the source: all transforms composed.

        For the transforms, the batch has one more column, ``parent``, with the source word of each word.

        Raises:
            InputError: The batch lacks a column, the language is not bound to the counts or the vocabulary that it
                needs, or a word cannot be rewritten.
        """
        current = replace(corpus, columns={**corpus.columns, "parent": corpus.form})
        result = step = None
        for make in self._steps():
            current = current if step is None else step.apply(current)
            step = make(current)
            result = step if result is None else result.then(step)
        return self._with_split_mentions(Rewrite.identity(corpus) if result is None else result, corpus)

    def _steps(self) -> Iterator[Callable[[Corpus], Rewrite]]:
        """Yield the steps in order, with a step from words to tokens before the first transform of tokens."""
        are_words = True
        for transform, key in zip(self.transforms, self.keys, strict=True):
            if are_words and _unit(transform) == "token":
                are_words = False
                yield self._tokens().split
            yield partial(transform.rewrite, key=key)

    def _with_split_mentions(self, result: Rewrite, corpus: Corpus) -> Rewrite:
        """Count split mentions, and drop their sentences if ``split_entities`` is ``drop``."""
        columns = [name for name in SPAN_COLUMNS if name in corpus.columns and self.transforms]
        split = [result.split_mentions(corpus, name) for name in columns]
        counts = {f"{name}: mentions torn apart": mentions for name, mentions in zip(columns, split, strict=True)}
        whole = np.all([np.ones(len(result), bool), *(mentions == 0 for mentions in split)], axis=0)
        if self.split_entities == "drop" and not whole.all():
            counts["sentences dropped, a mention torn apart"] = ~whole
            result = result.take(np.flatnonzero(whole))
        return result.counted({**result.counts, **counts})

    def derive(self, corpus: Corpus) -> Corpus:
        """Return the batch in this language. Every label stays with its word.

        Sentences that a transform drops are missing. The other sentences keep their ids.

        Raises:
            InputError: As for ``rewrite``.
        """
        return self.rewrite(corpus).apply(corpus)

    def encode(self, derived: Corpus, vocabulary: Vocabulary) -> Encoded:
        """Return the token ids of a batch in this language.

        A word that spells a control token becomes the unknown token. A language of tokens uses the vocabulary that it
        is bound to, and not ``vocabulary``.

        Raises:
            InputError: A language of tokens is not bound to a vocabulary.
        """
        from synthlang.vocabulary import encode_corpus

        if self.on_tokens:
            return self._tokens().encode(derived).as_text()
        return encode_corpus(vocabulary.tokenizer(self.script), derived).as_text()

    def invert(self, corpus: Corpus) -> Corpus:
        """Restore the source sentences of a derived batch: invert(derive(x)) = x.

        Raises:
            InputError: A transform has no inverse or lacks a column, letters of a script do not decode to UTF-8, or a
                language of tokens is not bound to a vocabulary.
        """
        are_words = not self.on_tokens
        for transform, key in zip(reversed(self.transforms), reversed(self.keys), strict=True):
            if not are_words and _unit(transform) == "word":
                corpus, are_words = self._tokens().join(corpus), True
            corpus = transform.inverse(corpus, key).apply(corpus)
        return corpus if are_words else self._tokens().join(corpus)

    def _tokens(self) -> Subwords:
        if self._subwords is None:
            reason = f"the language {self.name} has a transform with unit: token, which needs a vocabulary"
            hint = "use unit: word, or give a vocabulary for a source of sentences (synthlang derive --vocabulary)"
            raise InputError(reason, hint=hint, code="missing")
        return self._subwords


def _unit(transform: AnyTransform) -> str:
    return str(getattr(transform, "unit", "word"))


PARENT = Language(name="parent")


def checked_source(language: Language, source: Source, name: str) -> Source:
    """Return a source with all columns that a language reads. Features and lemmas are added if the source has them.

    Raises:
        InputError: The source lacks a column. The error gives ``name`` as the source.
    """
    source = with_columns(source, language.requires)
    require_columns(source, language.requires, name, f"the language {language.name}")
    return source


def bind_language(
    language: Language,
    source: Source,
    vocabulary: Vocabulary | None = None,
    split: str | None = None,
    counts: Callable[[], Counter[str]] | None = None,
    name: str = "the source",
) -> Language:
    """Return a language bound to the word counts and the vocabulary that its transforms need.

    The fingerprint of a bound language covers the counts and the vocabulary. A bound language derives any other source
    by the same counts. Counts and a vocabulary that the language is bound to already are kept.

    Args:
        language: The language.
        source: Source whose words are counted, if a transform needs counts.
        vocabulary: Vocabulary of the source language, for transforms of tokens.
        split: Split whose words are counted (default: the training split).
        counts: Function that returns the word counts of the split (default: the words are counted). It is called if a
            transform needs counts.
        name: The source as the user wrote it, for errors.

    Raises:
        InputError: The source lacks a column or the split to count, or this split cannot be read. A transform of tokens
            has no vocabulary, or the vocabulary lacks a token that a transform inserts.
    """
    source = checked_source(language, source, name)
    bound = language.model_copy()
    if language.on_tokens and vocabulary is not None and language._subwords is None:
        from synthlang.vocabulary import Subwords

        bound._subwords = Subwords(vocabulary, language.script)
    if language.on_tokens:
        _check_tokens(bound, bound._tokens().vocabulary)
    if language.needs_counts and language._bound_to is None:
        of_unit = {"word": word_counts(source, split, name) if counts is None else counts()}
        if bound._subwords is not None:
            of_unit["token"] = bound._subwords.token_counts(of_unit["word"])
        transforms = tuple(t.bind(of_unit[_unit(t)]) for t in language.transforms)
        bound = bound.model_copy(update={"transforms": transforms})
        bound._bound_to = source.fingerprint + ("" if split in (None, "train") else f" {split}")
    return bound


def _check_tokens(language: Language, vocabulary: Vocabulary) -> None:
    """Check that a vocabulary has every token that the transforms insert."""
    needed = (token for transform in language.transforms for token in transform.added_tokens)
    missing = next((token for token in needed if vocabulary.parent.token_to_id(token) is None), None)
    if missing is not None:
        word = bytes(map(byte_characters().index, missing)).decode().strip()
        reason = f"the vocabulary has no token for the word {word!r}, which the language {language.name} inserts"
        hint = "give the size of a vocabulary in place of a folder, or tokenizer/parent of a data set of this language"
        raise InputError(reason, hint=hint, code="missing")


class UnknownLanguageError(InputError):
    """Error for a name that is neither made of short names nor an entry of the catalogue.

    Attributes:
        remedy: The hint without the suggestion of a similar name.
    """

    remedy = ""


def parse_language(spec: str | dict[str, Any]) -> Language:
    """Return a language by its name, from a YAML file or from a mapping.

    A name is an entry of the catalogue, or is made of short names of transforms (``trans``, ``trans:0.5+perm``,
    ``trans+reorder@ga``). ``parent`` is the language without transforms. A number after a colon is the strength. A
    word after an @ is the main option: a script, an order model, a window. Either may come first.

    Raises:
        UnknownLanguageError: The name is unknown.
        InputError: The file cannot be read, or a setting is wrong.
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
    if isinstance(value, str | dict):
        return parse_language(value)
    if not isinstance(value, Language):
        hint = "write a name such as trans, or {name: NAME, transforms: [{kind: KIND}]}"
        raise InputError(f"{show_value(value)} must be a text or a section of keys", hint=hint, code="type")
    return value


NamedLanguage = Annotated[Language, BeforeValidator(_named)]
"""Type of a config field that holds a language. A config gives the language as a name, a YAML file or settings."""


_NUMBER = r"[0-9]+\.?[0-9]*|\.[0-9]+"
# The strength comes before the option or after it: trans:0.5@hangul, trans@hangul:0.5.
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
            given[key] = int(option) if re.fullmatch("[0-9]{1,99}", option) else option
        if strength is not None:
            given["strength"] = float(strength)
        transforms.append(given)
        label = "" if option is None else f"-{option.rpartition('/')[2]}"  # the last part of a path
        labels.append(f"{match['kind']}{label}" + ("" if strength is None else f"={strength}"))
    name = "+".join(labels)
    try:
        return parse(Language, {"name": name, "transforms": transforms}, f"language {spec}")
    except InputError as error:
        for fault in (error, *error.others):
            if fault.keys == ("name",):
                fault.hint = "write a YAML file with a name for this language"
            fault.keys = fault.keys[2:]  # without transforms.0, which the user did not write
        raise


def _from_catalogue(spec: str, part: str) -> Language:
    if spec in names("derived"):
        return parse(Language, find("derived", spec).data, spec)
    if (entry := part.partition(":")[0]) in names("derived") and entry not in SHORT_NAMES:
        reason = f"{entry} is an entry of the catalogue, which takes no strength and cannot be joined with +"
        hint = f"write a YAML file with all transforms; synthlang configs derived {entry} prints those of {entry}"
        raise InputError(reason, f"language {spec}", hint=hint, code="unsupported")
    reason = f"{part!r} is neither a short name ({', '.join(SHORT_NAMES)}), an entry of the catalogue nor a YAML file"
    similar = did_you_mean(spec, names("derived"))
    remedy = "write a name such as trans+inv or trans:0.5, or name a .yaml file"
    if (kind := re.split("[:@]", part)[0]) in KINDS:
        similar, remedy = "", f"write a YAML file with a transform of kind {kind}"
    error = UnknownLanguageError(reason, f"language {spec}", hint=f"{similar}{remedy}", code="unknown")
    error.remedy = remedy
    raise error


def beside(data: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the settings of a language, with each name of a file in ``folder`` replaced by the path of the file."""
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
        # A name without an ending is not a file: it comes with the package (fr), or is parent.
        if isinstance(value, str) and Path(value).suffix and (path := folder / user_path(value)).is_file():
            found[field] = str(path)
    return {**step, **found}


def portable(language: Language) -> tuple[dict[str, Any], dict[str, Path]]:
    """Return the settings of a language with the file names of ``write_spec``, and the file behind each name."""
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


def write_spec(language: Language, out: Path) -> list[Path]:
    """Write language.yaml into a folder, together with the files named there, and return all paths.

    Raises:
        OSError: A file that the language names cannot be opened.
        DiskError: A file cannot be written.
    """
    data, files = portable(language)
    with atomic_file(out / "language.yaml", "w") as handle:
        handle.write(write_yaml(data))
    for name, path in files.items():
        (out / name).parent.mkdir(exist_ok=True)
        with path.open("rb") as source, atomic_file(out / name) as target:
            shutil.copyfileobj(source, target)
    return [out / "language.yaml", *(out / name for name in files)]
