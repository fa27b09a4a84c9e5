"""Build the ids of a run from settings and languages, for the kinds of vocabulary that are trained here.

copied    the tokens of one source, and exact copies of them for each script at V, 2V, …
joint     one BPE for all languages
joined    the union of one BPE for each language
prefixed  one BPE for each language, with its tokens under the prefix of the language

With ``copied`` the BPE is trained on the source alone, so a form that a transform adds (a case marker) would be cut to
bytes. Each such form gets a separate token after the trained ones. The other kinds are trained on derived text.

With ``prefixed``, languages share no token that could align them (Conneau et al. 2020, "Emerging Cross-lingual
Structure in Pretrained Language Models", no anchors). Only the five specials are shared:

    0–4 <s> <pad> </s> <unk> <mask> | unchanged ids of the first language | the other languages' | fillers

A tokenizer stays a plain byte-level BPE. Its normaliser writes ``en:`` after the space before each word, BPE's
continuing-subword prefix marks every symbol, and the first merges join the space and the prefix:

    the cats  →  Ġen:the Ġen:cat en:s

The intermediate results of those merges (``Ġ``, ``Ġe``, ``Ġen``) are the fillers. No text has their ids.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from tokenizers import Tokenizer

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, bind_language, checked_source
from synthlang.scripts import SPACE, SPECIAL_TOKENS, Script
from synthlang.sources.base import TRAINING, Source, check_split, word_counts
from synthlang.store import Store
from synthlang.transforms.transliterate import Transliterate
from synthlang.vocabularies.grow import with_forms
from synthlang.vocabularies.space import OURS, IdSpace, LanguageTokenizer, VocabularySpec
from synthlang.vocabulary import FORMAT, Subwords, Vocabulary, merges_of_text, parallel_tokenizer, train_vocabulary

SourcedLanguage = tuple[str, Source, Language]
Text = tuple[Source, Language | None]  # None: the source as it is
COUNTS_FORMAT = 1  # raise when the same source has other counts, or the file is read differently


def texts_of(languages: Sequence[SourcedLanguage], bound: Sequence[Language]) -> list[Text]:
    """Return the training texts of languages that are bound to their sources.

    ``bound`` holds the bound languages in the order of ``languages``. A text is a pair of a source and a bound
    language, or of a source and None for the source as it is.
    """
    return [(source, own if own.transforms else None) for (_, source, _), own in zip(languages, bound, strict=True)]


def text_fingerprint(text: Text) -> dict[str, str | None]:
    """Return the fingerprints of a training text, as part of another fingerprint."""
    source, language = text
    return {"source": source.fingerprint, "language": language.fingerprint if language else None, "split": "train"}


def batches_of_text(text: Text) -> Iterator[Corpus]:
    """Yield the batches of a training text, derived by its language if it has one.

    Raises:
        InputError: The text cannot be read or derived.
    """
    source, language = text
    for batch in source.batches("train"):
        yield batch if language is None else language.derive(batch)


def trained(spec: VocabularySpec, texts: Sequence[Text], store: Store) -> Vocabulary:
    """Return one BPE of all texts, which is trained if the store lacks it. Memory grows with the word types only.

    Raises:
        InputError: A text cannot be read or derived, or the stored BPE is damaged.
        DiskError: The BPE cannot be stored.
    """
    parts = {"size": spec.size, "min_frequency": spec.min_frequency, "texts": [text_fingerprint(t) for t in texts]}
    name = fingerprint("vocabulary-training", format=FORMAT, **parts)

    def build(path: Path) -> None:
        batches = (batch for text in texts for batch in batches_of_text(text))
        vocabulary = train_vocabulary(batches, spec.size, spec.min_frequency)
        with atomic_folder(path) as folder:
            vocabulary.save(folder)

    return Vocabulary.load(store.obtain("vocabulary", name, build))


def with_added_forms(
    vocabulary: Vocabulary, languages: Sequence[Language], counts: Callable[[], Mapping[str, int]], least: int = 1
) -> Vocabulary:
    """Return the vocabulary of a source with one token for each form that a language adds to it.

    The added tokens come after the tokens of ``vocabulary``.

    Args:
        vocabulary: The vocabulary.
        languages: The languages.
        counts: Function that returns the word counts of the source. It is called if a language adds forms.
        least: Smallest number of occurrences of a word of the source that adds forms.

    Raises:
        InputError: The words cannot be counted.
    """
    if not any(language.adds_forms for language in languages):
        return vocabulary
    words = [word for word, count in counts().items() if count >= least]
    forms = dict.fromkeys(form for language in languages for form in language.added_forms(words))
    return with_forms(vocabulary, forms)


def copied_space(names: Sequence[str], languages: Sequence[Language], vocabulary: Vocabulary) -> IdSpace:
    """Return the id space of a source's vocabulary and its copies. Languages in the same script share one copy.

    ``languages`` are bound to the counts and the vocabulary that they need, in the order of ``names``.
    """
    V = vocabulary.size
    scripts: dict[str, Script] = {}
    for language in languages:
        if language.script is not None:
            scripts.setdefault(language.script.name, language.script)
    offsets = {name: V * place for place, name in enumerate(scripts, 1)}
    made = {name: parallel_tokenizer(vocabulary.parent, script, offsets[name]) for name, script in scripts.items()}
    tokenizers = []
    for name, language in zip(names, languages, strict=True):
        script = language.script
        offset = offsets[script.name] if script else 0
        tokenizer = made[script.name] if script else vocabulary.parent
        subwords = Subwords(vocabulary, script) if language.on_tokens else None
        # The ids are the specials, and the tokens of the source, their copies at ``offset``, or both.
        own = np.arange(V if not (offset and written_whole(language)) else len(OURS.all), dtype=np.int64)
        ids = np.concatenate([own, np.arange(len(OURS.all), V, dtype=np.int64) + offset]) if offset else own
        tokenizers.append(LanguageTokenizer(name, tokenizer, ids, subwords, moved=offset - V if offset else 0))
    places = tuple(offsets[language.script.name] if language.script else 0 for language in languages)
    return IdSpace("copied", V * (1 + len(scripts)), OURS, tuple(tokenizers), places, V)


def written_whole(language: Language) -> bool:
    """Return whether every word of the language is in its script, so that no token of the source can occur."""
    at = next((i for i, t in enumerate(language.transforms) if isinstance(t, Transliterate)), None)
    if at is None:
        return False
    step, *after = language.transforms[at:]
    assert isinstance(step, Transliterate)
    return step.strength >= 1.0 and step.types is None and all(t.keeps_forms for t in after)


NAME = re.compile(r"[A-Za-z0-9-]{1,32}")


def prefixed(tokenizers: Mapping[str, Tokenizer]) -> dict[str, Tokenizer]:
    """Return the tokenizer of each language in the joint id space, where the first language keeps its ids.

    ``tokenizers`` maps language names to byte-level BPEs of ``train_tokenizer``.
    """
    specs: dict[str, dict[str, Any]] = {name: json.loads(tokenizer.to_str()) for name, tokenizer in tokenizers.items()}
    joint = {token: index for index, token in enumerate(SPECIAL_TOKENS)}
    for name, spec in specs.items():
        own = sorted(spec["model"]["vocab"].items(), key=lambda item: int(item[1]))
        for token, _ in own[len(SPECIAL_TOKENS) :]:
            joint[_renamed(name, token)] = len(joint)
    for name in specs:
        for filler in _steps(name)[:-1]:
            joint.setdefault(filler, len(joint))
    return {name: Tokenizer.from_str(json.dumps(_with_prefix(name, spec, joint))) for name, spec in specs.items()}


def check_prefix(name: str) -> None:
    """Check that a name can be the prefix of a language's tokens.

    Raises:
        InputError: The name cannot be a prefix.
    """
    if not NAME.fullmatch(name):
        reason = f"the name {name!r} of a language cannot be a prefix of tokens, which vocabulary.kind prefixed needs"
        raise InputError(reason, hint="use 1 to 32 of the characters A-Z, a-z, 0-9 and -", code="format")


def _renamed(name: str, token: str) -> str:
    """Return the token under the prefix: ``Ġthe`` → ``Ġen:the``, ``re`` → ``en:re``."""
    return f"{SPACE}{name}:{token[1:]}" if token.startswith(SPACE) else f"{name}:{token}"


def _steps(name: str) -> list[str]:
    """Return the results of the first merges, which join the space and the prefix: Ġ, Ġe, Ġen, Ġen:."""
    return [SPACE + f"{name}:"[:end] for end in range(len(name) + 2)]


def _with_prefix(name: str, spec: dict[str, Any], joint: Mapping[str, int]) -> dict[str, Any]:
    prefix = f"{name}:"
    steps = _steps(name)
    merges = [[left, prefix + char] for left, char in zip(steps, prefix, strict=False)]
    merges += [[_renamed(name, left), _renamed(name, right)] for left, right in merges_of_text(spec["model"]["merges"])]
    model = {**spec["model"], "vocab": dict(joint), "merges": merges, "continuing_subword_prefix": prefix}
    normalizers = [
        *spec["normalizer"]["normalizers"],
        {"type": "Replace", "pattern": {"String": " "}, "content": f" {prefix}"},
    ]
    escaped = re.escape(prefix)
    decoders = [
        {"type": "Replace", "pattern": {"Regex": f"^{SPACE}{escaped}"}, "content": SPACE},
        {"type": "Replace", "pattern": {"Regex": f"^{escaped}"}, "content": ""},
        *spec["decoder"]["decoders"],
    ]
    return {
        **spec,
        "model": model,
        "normalizer": {**spec["normalizer"], "normalizers": normalizers},
        "decoder": {**spec["decoder"], "decoders": decoders},
    }


def joined_space(names: Sequence[str], tokenizers: Sequence[Tokenizer]) -> IdSpace:
    """Return the union of the vocabularies, in which equal strings have one id and each language keeps its merges.

    The first language keeps its ids. The new tokens of each further language follow in its order. ``tokenizers`` are
    byte-level BPEs of ``train_tokenizer``, in the order of ``names``.
    """
    specs = [json.loads(tokenizer.to_str()) for tokenizer in tokenizers]
    union: dict[str, int] = {}
    for spec in specs:
        for token, _ in sorted(spec["model"]["vocab"].items(), key=lambda item: int(item[1])):
            union.setdefault(token, len(union))
    languages = []
    for name, spec in zip(names, specs, strict=True):
        ids = np.asarray(sorted(union[token] for token in spec["model"]["vocab"]), np.int64)
        # The tokens of other languages are names only, since no merge of this language makes them.
        whole = {**spec, "model": {**spec["model"], "vocab": union}}
        languages.append(LanguageTokenizer(name, Tokenizer.from_str(json.dumps(whole)), ids))
    return IdSpace("joined", len(union), OURS, tuple(languages))


def prefixed_space(names: Sequence[str], tokenizers: Sequence[Tokenizer]) -> IdSpace:
    """Return the id space with every token under its language's prefix, so that only the specials are shared.

    ``tokenizers`` are byte-level BPEs of ``train_tokenizer``, in the order of ``names``.
    """
    made = prefixed(dict(zip(names, tokenizers, strict=True)))
    languages = []
    start = len(SPECIAL_TOKENS)
    for name, parent in zip(names, tokenizers, strict=True):
        stop = start + int(parent.get_vocab_size()) - len(SPECIAL_TOKENS)
        ids = np.asarray([*OURS.all, *range(start, stop)], np.int64)
        languages.append(LanguageTokenizer(name, made[name], ids))
        start = stop
    return IdSpace("prefixed", int(made[names[0]].get_vocab_size()), OURS, tuple(languages))


def build_id_space(
    spec: VocabularySpec, languages: Sequence[SourcedLanguage], store: Store
) -> tuple[IdSpace, tuple[Language, ...]]:
    """Return the id space of languages (name, source, language), from the store or trained, and the bound languages.

    Args:
        spec: Settings of the vocabulary.
        languages: The languages with their names and sources.
        store: The store of artifacts.

    Raises:
        InputError: Two languages have one name, a source has no training split or lacks a column of its language, a
            text cannot be read or derived, the languages do not fit the kind of vocabulary, or a stored artifact is
            damaged.
        DiskError: The vocabulary or word counts cannot be stored.
    """
    check_languages(languages)
    if spec.kind == "copied":
        first, source, _ = languages[0]
        for name, other, _ in languages:
            if other.fingerprint != source.fingerprint:
                reason = f"copied needs one source for all languages, but {first} and {name} have different sources"
                hint = "set vocabulary.kind to joint, joined or prefixed"
                raise InputError(reason, keys="vocabulary.kind", hint=hint, code="conflict")
        vocabulary = trained(spec, [(source, None)], store)
        counts = partial(stored_counts, source, store)
        vocabulary = with_added_forms(vocabulary, [own for _, _, own in languages], counts, spec.min_frequency)
        bound = tuple(bind_language(language, source, vocabulary, counts=counts) for _, source, language in languages)
        return copied_space([name for name, _, _ in languages], bound, vocabulary), bound
    names = [name for name, _, _ in languages]
    for name in names if spec.kind == "prefixed" else ():
        check_prefix(name)  # before any training
    bound = bind_words(languages, store, "vocabulary.kind", spec.kind)
    texts = texts_of(languages, bound)
    if spec.kind == "joint":
        tokenizer = trained(spec, texts, store).parent
        size = int(tokenizer.get_vocab_size())
        own = (LanguageTokenizer(name, tokenizer, np.arange(size, dtype=np.int64)) for name in names)
        return IdSpace("joint", size, OURS, tuple(own)), bound
    parents = [trained(spec, [text], store).parent for text in texts]
    return (joined_space if spec.kind == "joined" else prefixed_space)(names, parents), bound


def check_languages(languages: Sequence[SourcedLanguage]) -> None:
    """Check that the names differ and that each source has the split and columns that its language reads.

    Raises:
        InputError: Two languages have one name, or a source lacks the training split or a column.
    """
    names = [name for name, _, _ in languages]
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        reason = f"two languages of the run have the name {twice!r}"
        raise InputError(reason, hint="rename one of the languages", code="duplicate")
    for name, source, language in languages:
        check_split(source, "train", f"the source of {name}", hint=TRAINING)
        checked_source(language, source, f"the source of {name}")


def bind_words(languages: Sequence[SourcedLanguage], store: Store, keys: str, value: str) -> tuple[Language, ...]:
    """Bind languages without transforms of tokens to the word counts of their sources.

    Args:
        languages: The languages with their names and sources.
        store: The store of artifacts.
        keys: The setting that chooses the vocabulary, for errors.
        value: The value of the setting.

    Raises:
        InputError: A language has a transform of tokens, which only the kind copied allows, a source lacks a column or
            the training split, or a source cannot be read.
        DiskError: The word counts cannot be stored.
    """
    for name, _, language in languages:
        if language.on_tokens:
            reason = f"{value} does not allow the transform with unit: token of the language {name}"
            hint = "use unit: word" + (", or vocabulary.kind: copied" if keys.startswith("vocabulary") else "")
            raise InputError(reason, keys=keys, hint=hint, code="conflict")
    return tuple(
        bind_language(language, source, counts=partial(stored_counts, source, store))
        for _, source, language in languages
    )


def stored_counts(source: Source, store: Store) -> Counter[str]:
    """Return the number of occurrences of each form in the training split, in the order of first occurrence.

    The words are counted if the store lacks the counts.

    Raises:
        InputError: The source lacks a training split, the split cannot be read, or the stored counts are damaged.
        DiskError: The counts cannot be stored.
    """

    def build(path: Path) -> None:
        counts = word_counts(source)
        with atomic_folder(path) as folder:
            write_json(folder / "counts.json", {"words": list(counts), "counts": list(counts.values())}, indent=None)

    name = fingerprint("word-counts", format=COUNTS_FORMAT, source=source.fingerprint)
    found = read_json(store.obtain("counts", name, build) / "counts.json")
    return Counter(dict(zip(found["words"], found["counts"], strict=True)))
