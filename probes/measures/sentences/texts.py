"""The text of the probe ``sentences`` in each language, with its source spelling."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from probes.measures.probe_input import ProbeInput
from probes.measures.sentences import SentencesConfig
from probes.models.pretrained import Role
from synthlang.corpus import Corpus, concatenate
from synthlang.errors import InputError
from synthlang.language import Language, bind_language, checked_source
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split

ORDER = ("dev", "test", "train")
"""Order in which the split is chosen. A split that the model was trained on comes last."""


@dataclass(frozen=True, eq=False)
class LanguageText:
    """The sentences to score in one language, with their source spelling.

    Attributes:
        corpus: The sentences.
        spelling: The same sentences as they are spelled in the source language, or ``corpus`` itself.
        split: The split of the text.
        counts: Number of sentences that the language left out or changed, by reason.
    """

    corpus: Corpus
    spelling: Corpus
    split: str
    counts: Mapping[str, int]


def read_texts(given: ProbeInput) -> dict[Role, LanguageText]:
    """Read the text of the source language, and the text of the other language if it differs.

    Call `check_text` first, which checks that the texts are known.

    Raises:
        InputError: A text cannot be read, has no sentence, or lacks a split or a column that a language needs. The
            error is also raised if a language cannot be derived (see `bind_language`), or if only affected sentences
            are wanted and a language does not flag them.
    """
    settings, pretrained = given.config.of(SentencesConfig), given.pretrained
    spec = settings.text or pretrained.text
    assert spec is not None, "as was checked"
    opened = _opened(spec, "text", settings)
    first, language = pretrained.source.language, pretrained.target.language
    is_derived = settings.other is None and not pretrained.natural and given.is_other
    for one in (first, language) if is_derived else (first,):
        opened = checked_source(one, opened, spec)
    own = _read(opened, spec, settings)
    found: dict[Role, LanguageText] = {"source": _derived(own, first, opened, settings)}
    if settings.other is not None:
        found["target"] = _read(_opened(settings.other, "other", settings), settings.other, settings)
    elif pretrained.natural:
        other = given.other_text
        assert other is not None, "as was checked"
        found["target"] = _read(_opened(other, "other", settings), other, settings)
    elif is_derived:
        found["target"] = _derived(own, language, opened, settings)
    return found


def _derived(text: LanguageText, language: Language, source: Source, settings: SentencesConfig) -> LanguageText:
    """Return a text of ``source`` in a language. A language without transforms gives the same text."""
    if not language.transforms:
        return text
    rewrite = bind_language(language, source).rewrite(text.corpus)
    if settings.affected:
        if rewrite.affected is None:
            reason = f"no transform of {language.name} flags affected sentences"
            hint = "set this key to false, or use a language of shuffle, reverse or hop"
            raise InputError(reason, keys="sentences.affected", hint=hint, code="unsupported")
        rewrite = rewrite.take(np.flatnonzero(rewrite.affected))
    corpus, counts = rewrite.apply(text.corpus), {f"{language.name}: {r}": n for r, n in rewrite.counts.items()}
    if not len(corpus):
        reason = f"no {'affected ' * settings.affected}sentence of the text is left in {language.name}"
        raise InputError(reason, keys="sentences", hint="choose another text or another language", code="empty")
    return LanguageText(corpus, rewrite.source(text.corpus), text.split, counts)


def check_text(settings: SentencesConfig, text: str | None, other: str | None, natural: bool) -> None:
    """Check the texts of both languages, without reading them (see ``ProbeSettings.check``).

    Args:
        settings: The settings of the probe.
        text: The spec of the pretraining text in the source language, or None if it is not known.
        other: The spec of the pretraining text in a natural other language, or None if there is none.
        natural: True if the other language is natural.

    Raises:
        InputError: A text is not known, cannot be opened, or lacks the split.
    """
    hint = "give a text, such as text:FILE, or remove the probe sentences"
    specs = {"text": settings.text or text, "other": settings.other or (other if natural else None)}
    for key, spec in specs.items():
        if spec is not None:
            _opened(spec, key, settings)
        elif key == "text" or natural:
            whose = "the pretraining text of the model" if key == "text" else "the text of the natural language"
            raise InputError(f"{whose} is not known", keys=key, hint=hint, code="missing")


def _opened(spec: str, key: str, settings: SentencesConfig) -> Source:
    """Open the text in the key ``key`` of the settings, and check that it has the split."""
    at = key
    try:
        source, at = open_source(spec), "split"
        check_split(source, settings.split or source.splits[0], spec)
    except InputError as error:
        raise error.inside(at) from error
    return source


def _read(source: Source, spec: str, settings: SentencesConfig) -> LanguageText:
    """Read the first sentences of the split, at most as many as ``most`` in the settings."""
    split: str = settings.split or next(split for split in ORDER if split in source.splits)
    parts: list[Corpus] = []
    for batch in source.batches(split):
        parts.append(batch.between(0, settings.most - sum(map(len, parts))))
        if sum(map(len, parts)) >= settings.most:
            break
    corpus = concatenate(parts)
    if not len(corpus):
        hint = "choose another split (sentences.split) or another text"
        raise InputError(f"has no sentence in the split {split!r}", spec, hint=hint, code="empty")
    return LanguageText(corpus, corpus, split, {})
