"""The tokenizer of a checkpoint as the ids of a run, with or without new subwords of one language.

New subwords follow E-mBERT (Wang et al. 2020). Every old id stays. All languages share the tokenizer, so words of the
other languages may be cut in a new way. Such words are counted on the training text of each language.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from synthlang.corpus import count_words
from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.store import Store
from synthlang.vocabularies.build import (
    SourcedLanguage,
    Text,
    batches_of_text,
    bind_words,
    check_languages,
    text_fingerprint,
    texts_of,
)
from synthlang.vocabularies.checkpoint import Checkpoint, read_checkpoint
from synthlang.vocabularies.grow import Grown, GrowTask, encoded, grow_bpe, grow_unigram, grow_wordpiece
from synthlang.vocabularies.space import ExtendSpec, IdSpace, LanguageTokenizer
from synthlang.vocabulary import read_tokenizer
from synthlang.wording import plural


@dataclass(frozen=True)
class Effect:
    """Counts before and after new tokens are added, in the training text of a language.

    Attributes:
        types: Number of word types.
        words: Number of running words.
        types_changed: Number of word types whose token ids changed.
        words_changed: Number of running words whose token ids changed.
        pieces_before: Number of tokens of all running words before.
        pieces_after: Number of tokens of all running words after.
        unknown_before: Number of running words with an unknown token before.
        unknown_after: Number of running words with an unknown token after.
    """

    types: int
    words: int
    types_changed: int
    words_changed: int
    pieces_before: int
    pieces_after: int
    unknown_before: int
    unknown_after: int


def measure_effect(old: Tokenizer, new: Tokenizer, counts: Mapping[str, int], unknown: int) -> Effect:
    """Encode each word type with both tokenizers and count the differences.

    Args:
        old: The tokenizer before new tokens were added.
        new: The tokenizer with the new tokens.
        counts: Number of occurrences of each word of the text.
        unknown: Id of the unknown token.
    """
    totals: Counter[str] = Counter()
    for (a, count), (b, _) in zip(encoded(old, counts), encoded(new, counts), strict=True):
        totals.update(types=1, words=count, pieces_before=count * len(a.ids), pieces_after=count * len(b.ids))
        totals.update(types_changed=a.ids != b.ids, words_changed=count * (a.ids != b.ids))
        totals.update(unknown_before=count * (unknown in a.ids), unknown_after=count * (unknown in b.ids))
    return Effect(**{name: int(totals[name]) for name in Effect.__dataclass_fields__})


FORMAT = 1
GROW: dict[str, Callable[[GrowTask], Grown]] = {"WordPiece": grow_wordpiece, "BPE": grow_bpe, "Unigram": grow_unigram}


@dataclass(frozen=True, eq=False)
class Extension:
    """Tokens that were added to a checkpoint, each with the old ids that it was cut into.

    The embeddings of the old ids can initialise the embedding of the new token.

    Attributes:
        ids: The new ids, which are the last rows of the embedding, [n] int64.
        tokens: The new tokens as the tokenizer writes them.
        pieces: Old ids of all new tokens, [m] int64. Token i has pieces[offsets[i] : offsets[i + 1]], which is empty
            if the old tokenizer cannot represent the token.
        offsets: Bounds in ``pieces``, [n + 1] int64.
        effects: Changes in the training text of each language.
    """

    ids: NDArray[np.int64]
    tokens: tuple[str, ...]
    pieces: NDArray[np.int64]
    offsets: NDArray[np.int64]
    effects: Mapping[str, Effect] = field(default_factory=dict)

    def pieces_of(self, which: int) -> NDArray[np.int64]:
        """Return the old ids that new token number ``which``, from 0, was cut into, [k]."""
        return self.pieces[self.offsets[which] : self.offsets[which + 1]]


def extend_tokenizer(
    checkpoint: Checkpoint, spec: ExtendSpec, texts: Mapping[str, Text], store: Store
) -> tuple[Tokenizer, Extension]:
    """Return the checkpoint's tokenizer with new subwords of one language, from the store or learned.

    Args:
        checkpoint: The tokenizer to extend.
        spec: Settings of the new subwords.
        texts: Training texts of all languages, by name.
        store: The store of artifacts.

    Raises:
        InputError: The language is unknown, the tokenizer is not WordPiece, BPE or Unigram, no new subword is frequent
            enough, a text cannot be read or derived, or the stored extension is damaged.
        DiskError: The extension cannot be stored.
    """
    if spec.language not in texts:
        reason = f"{spec.language!r} is not a language of the run"
        raise InputError(reason, keys="start.extend.language", hint=f"name one of {', '.join(texts)}", code="unknown")
    settings = spec.model_dump(mode="json", include={"size", "min_frequency"})
    text = text_fingerprint(texts[spec.language])
    name = fingerprint("extension", format=FORMAT, tokenizer=checkpoint.fingerprint, text=text, **settings)
    path = store.obtain("extension", name, lambda p: _build(checkpoint, spec, texts[spec.language], p))
    tokenizer = read_tokenizer(path / "tokenizer.json")
    saved = read_json(path / "extension.json")
    offsets = np.concatenate([[0], np.cumsum([len(p) for p in saved["pieces"]])]).astype(np.int64)
    pieces = np.asarray([i for p in saved["pieces"] for i in p], np.int64)
    ids = checkpoint.rows + np.arange(len(saved["tokens"]), dtype=np.int64)
    effects = {language: _effect(checkpoint, tokenizer, name, t, store) for language, t in texts.items()}
    return tokenizer, Extension(ids, tuple(saved["tokens"]), pieces, offsets, effects)


def _build(checkpoint: Checkpoint, spec: ExtendSpec, text: Text, path: Path) -> None:
    whole = json.loads(checkpoint.tokenizer.to_str())
    kind = whole["model"]["type"]
    if kind not in GROW:
        reason = f"a tokenizer of kind {kind} cannot be extended"
        hint = f"use a model whose tokenizer is of the kind {' or '.join(GROW)}, or leave start.extend out"
        raise InputError(reason, checkpoint.name, hint=hint, code="unsupported")
    model = filled(whole, checkpoint.rows)
    old = Tokenizer.from_str(json.dumps({**whole, "model": model}))
    grown = GROW[kind](GrowTask(old, model, checkpoint.rows, _counts(text), spec.size, spec.min_frequency))
    if not grown.tokens:
        reason = (
            f"the vocabulary of {checkpoint.name} already has every subword that occurs at least "
            f"{plural(spec.min_frequency, 'time')} in the text of {spec.language}"
        )
        hint = "leave start.extend out, or lower start.extend.min_frequency"
        raise InputError(reason, keys="start.extend", hint=hint, code="no_effect")
    tokenizer = Tokenizer.from_str(json.dumps({**whole, "model": grown.model}))
    now, before = tokenizer.get_vocab(with_added_tokens=True), checkpoint.tokenizer.get_vocab()
    assert all(now[token] == i for token, i in before.items()), "an old id has moved"
    assert all(now[token] == checkpoint.rows + i for i, token in enumerate(grown.tokens)), "a new id is not in order"
    with atomic_folder(path) as folder:
        write_json(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
        write_json(folder / "extension.json", {"tokens": grown.tokens, "pieces": grown.pieces})


def filled(whole: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """Return the model of a tokenizer (as JSON) with a name for every id below ``rows``.

    When the library reads a file, it numbers added tokens from the size of the model on. Their ids would move, so
    added tokens become part of the model. Rows without a token get a name with a space, which no text can produce.
    """
    model = dict(whole["model"])
    added = {token["id"]: token["content"] for token in whole["added_tokens"]}
    if model["type"] == "Unigram":
        vocab = list(model["vocab"])
        vocab += [[added.get(i, f"<unused {i}>"), 0.0] for i in range(len(vocab), rows)]
        return {**model, "vocab": vocab}
    named = {token: index for index, token in added.items()} | dict(model["vocab"])
    taken = set(named.values())
    return {**model, "vocab": named | {f"<unused {i}>": i for i in range(rows) if i not in taken}}


def _counts(text: Text) -> Counter[str]:
    counts: Counter[str] = Counter()
    for batch in batches_of_text(text):
        count_words(counts, batch)
    return counts


def _effect(checkpoint: Checkpoint, new: Tokenizer, extension: str, text: Text, store: Store) -> Effect:
    name = fingerprint("extension-effect", format=FORMAT, extension=extension, text=text_fingerprint(text))

    def build(path: Path) -> None:
        with atomic_folder(path) as folder:
            found = measure_effect(checkpoint.tokenizer, new, _counts(text), checkpoint.specials.unk)
            write_json(folder / "effect.json", asdict(found))

    return Effect(**read_json(store.obtain("extension-effect", name, build) / "effect.json"))


def hf_id_space(
    model: str, languages: Sequence[SourcedLanguage], store: Store, extend: ExtendSpec | None = None
) -> tuple[IdSpace, tuple[Language, ...], Extension | None]:
    """Return the id space of a checkpoint for languages (name, source, language), and the bound languages.

    The size of the space covers the rows of the checkpoint's embedding and the new rows.

    Args:
        model: Folder or name of the checkpoint.
        languages: The languages with their names and sources.
        store: The store of artifacts.
        extend: Settings of new subwords, or None for the tokenizer as it is.

    Returns:
        The id space, the bound languages, and the added subwords, or None without ``extend``.

    Raises:
        InputError: The tokenizer is not supported (see ``read_checkpoint``), or the extension is not possible (see
            ``extend_tokenizer``). Two languages have one name, a source lacks the training split or a column, or a
            language has a transform of tokens.
        DiskError: The extension or word counts cannot be stored.
    """
    check_languages(languages)
    bound = bind_words(languages, store, "start.model", model)
    checkpoint = read_checkpoint(model)
    tokenizer, size, made = checkpoint.tokenizer, checkpoint.rows, None
    ids = np.unique(np.fromiter(tokenizer.get_vocab(with_added_tokens=True).values(), np.int64))
    names = [name for name, _, _ in languages]
    if extend is not None:
        texts = dict(zip(names, texts_of(languages, bound), strict=True))
        tokenizer, made = extend_tokenizer(checkpoint, extend, texts, store)
        ids, size = np.concatenate([ids, made.ids]), size + len(made.ids)
    settings, specials = checkpoint.settings, checkpoint.specials
    own = tuple(LanguageTokenizer(n, tokenizer, ids, settings=settings, specials=specials) for n in names)
    return IdSpace("checkpoint", size, specials, own), bound, made
