"""The dictionary of a run: pairs of ids that translate each other, drawn once and stored.

The candidates are tokens and their copies, or pairs of words in a file that are one token each. Both ids of a pair
must occur in the training text of their language, because an embedding that is never trained cannot be aligned.

pairs.npy        an id of the first language and its translation, [n, 2] int64
languages.npy    the numbers of the languages of both ids, of which the first is 0, [n, 2] int64
dictionary.tsv   the same as text: token, translation, language of the translation
manifest.json    the origin of the dictionary, and its coverage of each text
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
    DictionarySpec,
    WordDictionary,
    draw_types,
    read_muse,
    read_words,
    told_use,
    trained_types,
)
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, no_such, read_json, user_path, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.sources.base import listed
from synthlang.wording import plural

if TYPE_CHECKING:
    from synthlang.shards import Shards
    from synthlang.store import Store
    from synthlang.vocabularies import IdSpace


def id_pairs(
    dictionary: WordDictionary, source: Tokenizer, target: Tokenizer, specials: ArrayLike
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """Convert a word dictionary to pairs of ids, for words that are one token on both sides.

    Args:
        dictionary: Pairs of words.
        source: Tokenizer of the source words.
        target: Tokenizer of the target words.
        specials: Special ids of both tokenizers, which are not words.

    Returns:
        The sorted distinct pairs (source id, target id), [n, 2] int64, and the numbers of omitted pairs by reason.
    """
    ours, theirs = (
        _single_ids(tokenizer, words, specials)
        for tokenizer, words in ((source, dictionary.source), (target, dictionary.target))
    )
    usable = (ours >= 0) & (theirs >= 0)
    left_out = {
        "source word is several tokens": int(((ours < 0) & (theirs >= 0)).sum()),
        "target word is several tokens": int(((ours >= 0) & (theirs < 0)).sum()),
        "both words are several tokens": int(((ours < 0) & (theirs < 0)).sum()),
    }
    pairs = np.stack([ours[usable], theirs[usable]], axis=1).reshape(-1, 2)
    return np.unique(pairs, axis=0), {reason: n for reason, n in left_out.items() if n}


def _single_ids(tokenizer: Tokenizer, words: tuple[str, ...], specials: ArrayLike) -> NDArray[np.int64]:
    """Return the id of each word that is one ordinary token, else −1, [words]."""
    encodings = tokenizer.encode_batch(list(words), add_special_tokens=False)
    ids = np.asarray([e.ids[0] if len(e.ids) == 1 else -1 for e in encodings], np.int64).reshape(-1)
    return np.where(np.isin(ids, specials), -1, ids)


Counts = NDArray[np.int64]


@dataclass(frozen=True)
class IdCandidates:
    """Pairs of ids that a dictionary of one language may use.

    Attributes:
        language: Number of the language.
        pairs: Id in the first language and id in ``language``, [pairs, 2].
        left_out: Number of omitted pairs by reason.
        use: Message with the number of pairs of a file that are used, or "" without a file.
    """

    language: int
    pairs: NDArray[np.int64]
    left_out: dict[str, int]
    use: str = ""


KEYS = ("dictionary", "path")


def word_files(path: str | Mapping[str, str] | None, names: Sequence[str]) -> dict[int, WordDictionary]:
    """Read the words of each language that has a file, by the number of the language in ``names``.

    Args:
        path: One file for the second of two languages, a file for each language by name, or None for no files.
        names: Names of the languages of the run.

    Raises:
        InputError: A file is missing or cannot be read, a file is given for the first language or an unknown language,
            or a single file is given and the run does not have two languages.
    """
    if path is None:
        return {}
    is_mapping = not isinstance(path, str)
    if isinstance(path, str):
        if len(names) != 2:
            each = ", ".join(f"{name}: FILE" for name in names[1:])
            hint = f"name a file for each language but the first: {{{each}}}" if each else "delete this key"
            reason = f"a single file is for a run of two languages, but this run has {plural(len(names), 'language')}"
            raise InputError(reason, keys=KEYS, hint=hint, code="conflict")
        path = {names[1]: path}
    unknown = [name for name in path if name not in names[1:]]
    if unknown:
        known = ", ".join(names[1:])
        is_first = unknown[0] == names[0]
        reason = "is the first language, from which every file translates" if is_first else "is no language of the run"
        hint = f"use {known}" if known else "delete this key"
        raise InputError(reason, keys=(*KEYS, unknown[0]), hint=hint, code="unknown")
    keys = {name: (*KEYS, *([name] if is_mapping else [])) for name in path}
    return {names.index(name): _words(user_path(file), keys[name]) for name, file in path.items()}


def _words(path: Path, keys: Sequence[str]) -> WordDictionary:
    if path.is_dir():
        return read_words(path)[0]
    if not path.is_file():
        hint = "name a MUSE file or the folder of a dictionary"
        raise no_such(path, hint=hint, keys=keys)
    return WordDictionary.of(read_muse(path))


def all_candidates(
    id_space: IdSpace, counts: Sequence[Counts], words: Mapping[int, WordDictionary], own_rows: bool = False
) -> list[IdCandidates]:
    """Return the candidate pairs of each language except the first.

    The pairs come from dictionary files if there are any, else from the copies of tokens. A language without a file, or
    without copies, is left out.

    Args:
        id_space: The ids of all languages.
        counts: Counts of the ids in the training text of each language, [ids] each.
        words: Dictionary of each language that has a file, by the number of the language.
        own_rows: True if each language has separate embeddings, so that an id also translates itself.
    """
    parent, *others = id_space.languages
    found = []
    for number, language in enumerate(others, start=1):
        pairs, left_out = id_space.translations(number, own_rows), dict[str, int]()
        both = parent.tokenizer, language.tokenizer
        if words:
            if number not in words:
                continue
            pairs, left_out = id_pairs(words[number], *both, id_space.specials.all)
        if pairs is None:
            continue
        ours, theirs = occurs(counts[0], pairs[:, 0]), occurs(counts[number], pairs[:, 1])
        for name, missing in ((parent.name, ~ours), (language.name, ours & ~theirs)):
            if missing.any():
                left_out[f"not in the text of {name}"] = int(missing.sum())
        use = ""
        if words:
            turned, _ = id_pairs(words[number].swapped, *both, id_space.specials.all)
            swapped = occurs(counts[0], turned[:, 0]) & occurs(counts[number], turned[:, 1])
            use = told_use(int((ours & theirs).sum()), len(words[number]), int(swapped.sum()))
        found.append(IdCandidates(number, pairs[ours & theirs], left_out, use))
    return found


def occurs(counts: Counts, ids: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return whether each of ``ids`` [n] has a count above 0, [n]. Ids beyond the end of ``counts`` do not occur."""
    return np.append(counts, 0)[np.minimum(ids, len(counts))] > 0


FORMAT = 1
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


@dataclass(frozen=True, eq=False)
class IdDictionary:
    """A drawn dictionary as pairs of ids.

    Attributes:
        pairs: Id in the first language and id of its translation, [n, 2] int64.
        languages: Numbers of the languages of both ids, [n, 2] int64. The first language is 0.
        manifest: Content of ``manifest.json``.
    """

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
    """Draw the dictionary of the languages of ``id_space``, or read it from the store.

    The same types of the first language are drawn for all other languages, and a type keeps all its translations.

    Args:
        spec: Settings of the draw.
        id_space: The ids of all languages.
        train: Shards of the training text of each language.
        store: The store of artifacts.
        own_rows: True if each language has separate embeddings, so that an id also translates itself.

    Raises:
        InputError: The run has one language, a dictionary file cannot be used, no pair can be drawn, or the stored
            dictionary is damaged.
        DiskError: The dictionary cannot be stored.
    """
    names = [language.name for language in id_space.languages]
    if len(names) < 2:
        reason = "a dictionary needs two languages, but this run has one"
        hint = "add a language, or leave out the terms of the objective that read a dictionary"
        raise InputError(reason, keys=KEYS[:1], hint=hint, code="conflict")
    words = word_files(spec.path, names)
    parents: dict[str, Any] = {  # languages by number, since the name of a language does not change its pairs
        "vocabulary": id_space.fingerprint,
        "shards": [shards.fingerprint for shards in train],
        "words": {str(language): dictionary.digest for language, dictionary in sorted(words.items())},
        **({"own_rows": True} if own_rows else {}),
    }
    name = fingerprint("id-dictionary", format=FORMAT, spec=spec.drawing, parents=parents)

    def build(folder: Path) -> None:
        counts = [shards.counts for shards in train]
        candidates = all_candidates(id_space, counts, words, own_rows)
        drawn = _draw(spec, candidates, counts[0])
        report = {"fingerprint": name, "format": FORMAT, "spec": spec.drawing, "parents": parents}
        _write(drawn, id_space, report | _report(drawn, candidates, id_space, counts), folder)

    return read_id_dictionary(store.obtain("dictionary", name, build))


def _draw(spec: DictionarySpec, candidates: Sequence[IdCandidates], counts: Counts) -> list[IdCandidates]:
    """Draw ids of the first language, and return the candidates with these ids."""
    types = np.unique(np.concatenate([np.zeros(0, np.int64), *(c.pairs[:, 0] for c in candidates)]))
    if not len(types):
        reasons = "; ".join(listed(c.left_out) for c in candidates if c.left_out)
        why, hint = f" ({reasons})", "use larger texts, or other word pairs in dictionary.path"
        if not reasons:
            why = " because no language has copies of the tokens of the first language"
            hint = "set dictionary.path to a file of word pairs"
            if spec.path is not None:
                why, hint = " because the files of dictionary.path have no pair", "name files with pairs of words"
        raise InputError(f"no pair of tokens is left to draw from{why}", keys=KEYS[:1], hint=hint, code="empty")
    chosen = types[draw_types(spec, types.astype(np.uint64), counts[types])]
    if not len(chosen):
        reason = f"{spec.coverage} of {plural(len(types), 'type')} is less than one type"
        raise InputError(reason, keys=("dictionary", "coverage"), hint="use a larger share", code="empty")
    return [IdCandidates(c.language, c.pairs[np.isin(c.pairs[:, 0], chosen)], c.left_out) for c in candidates]


def _report(
    drawn: Sequence[IdCandidates], candidates: Sequence[IdCandidates], id_space: IdSpace, counts: Sequence[Counts]
) -> dict[str, Any]:
    """Return the facts for the manifest: number of pairs, omitted pairs, and coverage of each text."""
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
                ours, theirs = _texts(parent.tokenizer, d.pairs[:, 0]), _texts(language.tokenizer, d.pairs[:, 1])
                handle.writelines(f"{a}\t{b}\t{language.name}\n" for a, b in zip(ours, theirs, strict=True))
        checksums = {path.name: sha256_file(path) for path in sorted(temporary.iterdir())}
        write_json(temporary / "manifest.json", report | {"sha256": checksums})


def _texts(tokenizer: Any, ids: NDArray[np.int64]) -> list[str]:
    """Return the tokens as text. A token that is part of a character keeps its form in the tokenizer."""
    texts = tokenizer.decode_batch([[i] for i in ids.tolist()], skip_special_tokens=False)
    both = zip(texts, ids.tolist(), strict=True)
    readable = (tokenizer.id_to_token(i) if "\ufffd" in text or not text else text for text, i in both)
    return [text.translate(_ESCAPES) for text in readable]


def read_id_dictionary(folder: Path) -> IdDictionary:
    """Read a dictionary of ids from its folder, and check its files against the manifest.

    Raises:
        InputError: A file is missing or differs from the manifest, or the manifest is not JSON.
    """
    manifest = read_json(folder / "manifest.json")
    for name, expected in manifest["sha256"].items():
        if not (folder / name).is_file() or sha256_file(folder / name) != expected:
            fault = "differs from its checksum" if (folder / name).is_file() else "is missing"
            hint = f"delete the folder {folder} and run the same command again"
            raise InputError(f"this file of a stored dictionary {fault}", folder / name, hint=hint, code="damaged")
    pairs, languages = (np.load(folder / f"{name}.npy", allow_pickle=False) for name in ("pairs", "languages"))
    return IdDictionary(pairs, languages, manifest)


@dataclass(frozen=True, eq=False)
class Synonyms:
    """Index of a dictionary in both directions. The translations of a token are next to each other.

    A token is (language, id), since languages with a joint vocabulary have the same ids.

    Attributes:
        first: Index of the first translation of each token, [languages, ids] int32.
        amount: Number of translations of each token, [languages, ids] int32.
        ids: Ids of the translations, [2 · pairs] int64.
        languages: Languages of the translations, [2 · pairs] int64.
    """

    first: NDArray[np.int32]
    amount: NDArray[np.int32]
    ids: NDArray[np.int64]
    languages: NDArray[np.int64]

    @staticmethod
    def of(dictionary: IdDictionary, count: int, size: int) -> Synonyms:
        """Index a dictionary of ``count`` languages over ``size`` ids."""
        pairs, languages = (np.concatenate([a, a[:, ::-1]]) for a in (dictionary.pairs, dictionary.languages))
        tokens = languages[:, 0] * size + pairs[:, 0]
        # sorted by token, then by translation, so that the order of the file does not matter
        order = np.lexsort((pairs[:, 1], languages[:, 1], tokens))
        amount = np.bincount(tokens, minlength=count * size)
        first = np.cumsum(amount) - amount
        shape = (count, size)
        tables = (first.astype(np.int32).reshape(shape), amount.astype(np.int32).reshape(shape))
        return Synonyms(*tables, pairs[order, 1], languages[order, 1])

    def draw(
        self, languages: NDArray[np.int64], ids: NDArray[np.int64], random: NDArray[np.float64]
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
        """Draw one translation of each token uniformly.

        Of the n translations of a token, number ⌊n · random⌋ is drawn.

        Args:
            languages: Numbers of the languages of the tokens, in any shape.
            ids: Ids of the tokens, in the shape of ``languages``.
            random: Random numbers in [0, 1) that decide the draws, in the same shape.

        Returns:
            Three arrays of the shape of ``ids``: True if there is a translation, its id and its language. Without a
            translation, the last two hold the token itself.
        """
        amount = self.amount[languages, ids].astype(np.int64)
        place = self.first[languages, ids] + np.minimum((random * amount).astype(np.int64), amount - 1)
        known = amount > 0
        place = np.where(known, place, 0)
        return known, np.where(known, self.ids[place], ids), np.where(known, self.languages[place], languages)
