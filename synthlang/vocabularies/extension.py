"""The tokenizer of a checkpoint as the ids of a run, as it is or with new subwords of one language.

New subwords: E-mBERT (Wang et al. 2020). Every old id stays. The tokenizer is one for all languages, so words of the
others may be cut otherwise than before: that is counted, for each language on its training text.
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

from synthlang.errors import InputError
from synthlang.files import atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.overlap import count_words
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


@dataclass(frozen=True)
class Effect:
    """Counts over the training text of a language: word types, running words, pieces.

    ``types_changed`` and ``words_changed`` are those whose ids are others than before; ``unknown_before`` and
    ``unknown_after`` count running words with an unknown token.
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
    """Encode each word type with both tokenizers; ``unknown`` is the id of the unknown token."""
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
    """What was added, and the old ids each new token was cut into, from which its embedding may start.

    ids       [n] int64, the new ids, consecutive: the last rows of the embedding
    tokens    the new tokens as the tokenizer writes them
    pieces    [m] int64 old ids, those of token i are pieces[offsets[i] : offsets[i + 1]]; none where the old
              tokenizer had nothing but the unknown token
    offsets   [n + 1] int64
    effects   for each language what changed in its training text
    """

    ids: NDArray[np.int64]
    tokens: tuple[str, ...]
    pieces: NDArray[np.int64]
    offsets: NDArray[np.int64]
    effects: Mapping[str, Effect] = field(default_factory=dict)

    def pieces_of(self, which: int) -> NDArray[np.int64]:
        """The old ids that new token number ``which`` was cut into."""
        return self.pieces[self.offsets[which] : self.offsets[which + 1]]


def extend_tokenizer(
    checkpoint: Checkpoint, spec: ExtendSpec, texts: Mapping[str, Text], store: Store
) -> tuple[Tokenizer, Extension]:
    """The checkpoint's tokenizer with new subwords of one language, read from the store or learned.

    ``texts`` are the training texts of all languages by name. Raises InputError for a name that is none of them,
    for a tokenizer that is neither WordPiece nor BPE nor Unigram, and if there is nothing to add.
    """
    if spec.language not in texts:
        raise InputError(f"extend.language {spec.language!r} is none of the languages: {', '.join(texts)}")
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
        raise InputError(f"{checkpoint.name}: a tokenizer of kind {kind} cannot be extended; {', '.join(GROW)} can")
    model = filled(whole, checkpoint.rows)
    old = Tokenizer.from_str(json.dumps({**whole, "model": model}))
    grown = GROW[kind](GrowTask(old, model, checkpoint.rows, _counts(text), spec.size, spec.min_frequency))
    if not grown.tokens:
        raise InputError(
            f"extend: the text of {spec.language} gives no new subword: what occurs {spec.min_frequency} times in it "
            f"is in the vocabulary of {checkpoint.name} already; leave extend out, or lower extend.min_frequency"
        )
    tokenizer = Tokenizer.from_str(json.dumps({**whole, "model": grown.model}))
    now, before = tokenizer.get_vocab(with_added_tokens=True), checkpoint.tokenizer.get_vocab()
    assert all(now[token] == i for token, i in before.items()), "an old id has moved"
    assert all(now[token] == checkpoint.rows + i for i, token in enumerate(grown.tokens)), "a new id is not in order"
    with atomic_folder(path) as folder:
        write_json(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
        write_json(folder / "extension.json", {"tokens": grown.tokens, "pieces": grown.pieces})


def filled(whole: Mapping[str, Any], rows: int) -> dict[str, Any]:
    """The model of a tokenizer (as JSON) with a name for every id below ``rows``.

    Added tokens get their place in it: the library counts on from the size of the model when it reads a file, so
    that those above it would move. Rows that no token has get a name with a space, which no text can make.
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
    """The ids of the checkpoint ``model``, a folder or a name, for every language (name, source, language).

    ``size`` is the number of rows of its embedding, and of the new rows after them. Raises InputError for a
    tokenizer that does not fit (see ``read_checkpoint``), languages of tokens, and an extension that adds nothing.
    """
    check_languages(languages)
    bound = bind_words(languages, f"start from {model}")
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
