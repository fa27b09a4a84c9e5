"""The dictionary of a run: pairs of ids that mean the same, drawn once and kept.

The candidates are copies of tokens, or the words of a file that are one token. A pair counts only if each of its ids
occurs in the training text of its language: a row that is never trained has nothing to be aligned with, and of a
partially transliterated language most ids occur in one form only.

pairs.npy        [n, 2] int64, an id of the first language and its translation
languages.npy    [n, 2] int64, the languages that the two belong to: 0 and another
dictionary.tsv   the same for people: token, its translation, the translation's language
manifest.json    what it was drawn from, and how much of each text it covers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from tokenizers import Tokenizer

from synthlang.dictionary.word_dictionary import (
    SPECIAL_IDS,
    DictionarySpec,
    WordDictionary,
    draw_types,
    read_muse,
    read_words,
    trained_types,
)
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.sources.base import listed

if TYPE_CHECKING:
    from synthlang.shards import Shards
    from synthlang.store import Store
    from synthlang.vocabularies import IdSpace


def id_pairs(
    dictionary: WordDictionary,
    source: Tokenizer,
    target: Tokenizer,
    offset: int = 0,
    specials: ArrayLike = SPECIAL_IDS,
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The pairs [n, 2] of (source id, target id + ``offset``), sorted, of words that are one token on both sides.

    For a natural pair of languages in one vocabulary both tokenizers are the same one. ``specials`` are ids
    of no word (default: ours, 0–4). The counts say how many lines of the dictionary are pairs, and why the
    others are none.
    """
    left, right = (
        _single_ids(tokenizer, words, specials)
        for tokenizer, words in ((source, dictionary.source), (target, dictionary.target))
    )
    usable = (left >= 0) & (right >= 0)
    pairs = np.stack([left[usable], right[usable] + offset], axis=1).reshape(-1, 2)
    counts = {
        "pairs": int(usable.sum()),
        "source word is several tokens": int(((left < 0) & (right >= 0)).sum()),
        "target word is several tokens": int(((left >= 0) & (right < 0)).sum()),
        "both words are several tokens": int(((left < 0) & (right < 0)).sum()),
    }
    return np.unique(pairs, axis=0), counts


def _single_ids(tokenizer: Tokenizer, words: tuple[str, ...], specials: ArrayLike) -> NDArray[np.int64]:
    """[words] the id of each word that is one token and no special one, else −1."""
    encodings = tokenizer.encode_batch(list(words), add_special_tokens=False)
    ids = np.asarray([e.ids[0] if len(e.ids) == 1 else -1 for e in encodings], np.int64).reshape(-1)
    return np.where(np.isin(ids, specials), -1, ids)


Counts = NDArray[np.int64]


@dataclass(frozen=True)
class IdCandidates:
    """Pairs [n, 2] of an id of the first language and one of ``language``; reason → those that are none."""

    language: int
    pairs: NDArray[np.int64]
    left_out: dict[str, int]


def word_files(path: str | Mapping[str, str] | None, names: Sequence[str]) -> dict[int, WordDictionary]:
    """The words of each language that has a file, by its number; ``names`` are those of all languages.

    InputError for a file that is not there, and for several languages but one file.
    """
    if path is None:
        return {}
    if isinstance(path, str):
        if len(names) != 2:
            files = ", ".join(f"{name}: FILE" for name in names[1:])
            raise InputError(f"dictionary.path: one file pairs two languages; here name it as {{{files}}}", path)
        path = {names[1]: path}
    unknown = [name for name in path if name not in names[1:]]
    if unknown:
        known = ", ".join(names[1:])
        raise InputError(f"dictionary.path: {unknown[0]!r} is no language beside the first; there is {known}")
    return {names.index(name): _words(user_path(file)) for name, file in path.items()}


def _words(path: Path) -> WordDictionary:
    if path.is_dir():
        return read_words(path)[0]
    if not path.is_file():
        raise InputError("dictionary.path: no such file; name a MUSE file or the folder of a dictionary", path)
    return WordDictionary.of(read_muse(path))


def all_candidates(
    id_space: IdSpace, counts: Sequence[Counts], words: Mapping[int, WordDictionary], own_rows: bool = False
) -> list[IdCandidates]:
    """Of each language but the first that has any candidates: from its file if there are files, else from copies.

    ``counts`` say for each language how often each id occurs in its training text; with ``own_rows`` (separate
    embeddings) an id is a copy of itself.
    """
    parent, *others = id_space.languages
    found = []
    for number, language in enumerate(others, start=1):
        pairs, left_out = id_space.translations(number, own_rows), dict[str, int]()
        if words:
            if number not in words:
                continue
            pairs, reasons = id_pairs(
                words[number], parent.tokenizer, language.tokenizer, specials=id_space.specials.all
            )
            left_out = {reason: n for reason, n in reasons.items() if reason != "pairs" and n}
        if pairs is None:
            continue
        left, right = occurs(counts[0], pairs[:, 0]), occurs(counts[number], pairs[:, 1])
        for name, missing in ((parent.name, ~left), (language.name, left & ~right)):
            if missing.any():
                left_out[f"not in the text of {name}"] = int(missing.sum())
        found.append(IdCandidates(number, pairs[left & right], left_out))
    return found


def occurs(counts: Counts, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """[n] whether each id occurs; ``counts`` may end before the last id of the space."""
    return np.append(counts, 0)[np.minimum(ids, len(counts))] > 0


FORMAT = 1
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


@dataclass(frozen=True, eq=False)
class IdDictionary:
    """``pairs`` [n, 2] int64 of ids; ``languages`` [n, 2] int64, the language of each side (the left one is 0)."""

    pairs: NDArray[np.int64]
    languages: NDArray[np.int64]
    manifest: dict[str, Any]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def fingerprint(self) -> str:
        return str(self.manifest["fingerprint"])


def build_id_dictionary(
    spec: DictionarySpec, id_space: IdSpace, train: Sequence[Shards], store: Store, own_rows: bool = False
) -> IdDictionary:
    """The dictionary of the languages of ``id_space``, drawn or read from the store.

    ``train`` are the shards of the training text of each language. The same types of the first language
    are drawn for all others; a type keeps all its translations. With ``own_rows`` (separate embeddings) an id of two
    languages pairs with itself. InputError if there is nothing to draw.
    """
    names = [language.name for language in id_space.languages]
    if len(names) < 2:
        raise InputError("a dictionary pairs two languages; this run has one")
    words = word_files(spec.path, names)
    parents: dict[str, Any] = {  # languages by number: what one is called does not change its pairs
        "vocabulary": id_space.fingerprint,
        "shards": [shards.fingerprint for shards in train],
        "words": {str(language): dictionary.digest for language, dictionary in sorted(words.items())},
        **({"own_rows": True} if own_rows else {}),
    }
    name = fingerprint("id-dictionary", format=FORMAT, spec=spec.drawing, parents=parents)

    def build(folder: Path) -> None:
        counts = [shards.counts for shards in train]
        candidates = all_candidates(id_space, counts, words, own_rows)
        limit = id_space.languages[0].tokenizer.get_vocab_size() // 2 if spec.ids == "lower-half" else None
        drawn = _draw(spec, candidates, counts[0], limit)
        report = {"fingerprint": name, "format": FORMAT, "spec": spec.drawing, "parents": parents}
        _write(drawn, id_space, report | _report(drawn, candidates, id_space, counts), folder)

    return read_id_dictionary(store.obtain("dictionary", name, build))


def _draw(
    spec: DictionarySpec, candidates: Sequence[IdCandidates], counts: Counts, limit: int | None = None
) -> list[IdCandidates]:
    """The candidates whose type of the first language, an id below the ``limit``, is drawn; ``counts`` is how often
    each of its ids occurs."""
    types = np.unique(np.concatenate([np.zeros(0, np.int64), *(c.pairs[:, 0] for c in candidates)]))
    if limit is not None:
        types = types[types < limit]
    if not len(types):
        reasons = "; ".join(listed(c.left_out) for c in candidates if c.left_out)
        why = f" ({reasons})" if reasons else ": no language has copies of the first one's tokens; set dictionary.path"
        raise InputError(f"there is no pair of ids to draw a dictionary from{why}")
    chosen = types[draw_types(spec, types.astype(np.uint64), counts[types])]
    if not len(chosen):
        raise InputError(f"dictionary.coverage {spec.coverage} of {len(types)} types gives an empty dictionary")
    return [IdCandidates(c.language, c.pairs[np.isin(c.pairs[:, 0], chosen)], c.left_out) for c in candidates]


def _report(
    drawn: Sequence[IdCandidates], candidates: Sequence[IdCandidates], id_space: IdSpace, counts: Sequence[Counts]
) -> dict[str, Any]:
    """What the manifest says about the pairs: how many, which were left out, the share of each text."""
    names = [language.name for language in id_space.languages]
    sides = {0: np.concatenate([d.pairs[:, 0] for d in drawn])} | {d.language: d.pairs[:, 1] for d in drawn}
    coverage = {}
    for language, ids in sides.items():
        own, covered = counts[language], np.unique(ids)
        types = trained_types(own, id_space.specials.all)
        tokens = int(own[covered].sum()) / max(int(own[types].sum()), 1)
        coverage[names[language]] = {"types": len(covered) / max(len(types), 1), "tokens": tokens}
    languages = {
        names[c.language]: {"pairs": len(d.pairs), "candidates": len(c.pairs), "left_out": c.left_out}
        for c, d in zip(candidates, drawn, strict=True)
    }
    return {"pairs": sum(len(d.pairs) for d in drawn), "languages": languages, "coverage": coverage}


def _write(drawn: Sequence[IdCandidates], id_space: IdSpace, report: dict[str, Any], folder: Path) -> None:
    with atomic_folder(folder) as temporary:
        np.save(temporary / "pairs.npy", np.concatenate([d.pairs for d in drawn]))
        languages = np.repeat([d.language for d in drawn], [len(d.pairs) for d in drawn]).astype(np.int64)
        np.save(temporary / "languages.npy", np.stack([np.zeros_like(languages), languages], axis=1))
        with atomic_file(temporary / "dictionary.tsv", "w") as handle:
            for d in drawn:
                parent, language = id_space.languages[0], id_space.languages[d.language]
                left, right = _texts(parent.tokenizer, d.pairs[:, 0]), _texts(language.tokenizer, d.pairs[:, 1])
                handle.writelines(f"{a}\t{b}\t{language.name}\n" for a, b in zip(left, right, strict=True))
        checksums = {path.name: sha256_file(path) for path in sorted(temporary.iterdir())}
        write_json(temporary / "manifest.json", report | {"sha256": checksums})


def _texts(tokenizer: Any, ids: NDArray[np.int64]) -> list[str]:
    """Each token as people read it; one that is a part of a letter as the tokenizer writes it."""
    texts = tokenizer.decode_batch([[i] for i in ids.tolist()], skip_special_tokens=False)
    both = zip(texts, ids.tolist(), strict=True)
    readable = (tokenizer.id_to_token(i) if "\ufffd" in text or not text else text for text, i in both)
    return [text.translate(_ESCAPES) for text in readable]


def read_id_dictionary(folder: Path) -> IdDictionary:
    """A saved dictionary; InputError if it differs from its manifest."""
    manifest = read_json(folder / "manifest.json")
    for name, expected in manifest["sha256"].items():
        if not (folder / name).is_file() or sha256_file(folder / name) != expected:
            raise InputError("differs from its manifest; delete the folder and run again", folder / name)
    pairs, languages = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("pairs", "languages"))
    return IdDictionary(pairs, languages, manifest)


@dataclass(frozen=True, eq=False)
class Synonyms:
    """What a dictionary says in both directions: the entry of a token is all its translations, side by side.

    A token is (language, id), since with a joint vocabulary two languages have the same ids.

    first, amount     [languages, ids] int32: where the entry of a token begins in ``ids``, and how long it is
    ids, languages    [2 · pairs] int64: the translations, and their languages
    """

    first: NDArray[np.int32]
    amount: NDArray[np.int32]
    ids: NDArray[np.int64]
    languages: NDArray[np.int64]

    @staticmethod
    def of(dictionary: IdDictionary, count: int, size: int) -> Synonyms:
        """The index of a dictionary of ``count`` languages over ``size`` ids."""
        pairs, languages = (np.concatenate([a, a[:, ::-1]]) for a in (dictionary.pairs, dictionary.languages))
        tokens = languages[:, 0] * size + pairs[:, 0]
        # by token, then by translation: the order of the file does not matter
        order = np.lexsort((pairs[:, 1], languages[:, 1], tokens))
        amount = np.bincount(tokens, minlength=count * size)
        first = np.cumsum(amount) - amount
        shape = (count, size)
        tables = (first.astype(np.int32).reshape(shape), amount.astype(np.int32).reshape(shape))
        return Synonyms(*tables, pairs[order, 1], languages[order, 1])

    def draw(
        self, languages: NDArray[np.int64], ids: NDArray[np.int64], random: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """One translation of each token, uniformly among those of its entry by ``random`` in [0, 1).

        Arrays of one shape: whether there is an entry, the translation's id and its language; without an
        entry the token itself.
        """
        amount = self.amount[languages, ids].astype(np.int64)
        place = self.first[languages, ids] + np.minimum((random * amount).astype(np.int64), amount - 1)
        known = amount > 0
        place = np.where(known, place, 0)
        return known, np.where(known, self.ids[place], ids), np.where(known, self.languages[place], languages)
