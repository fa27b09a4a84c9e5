"""The dictionary of a run: pairs of ids that mean the same, drawn once and kept.

pairs.npy        [n, 2] int64, an id of the first member and its translation
languages.npy    [n, 2] int64, the members that the two belong to: 0 and another
dictionary.tsv   the same for people: token, its translation, the translation's language
manifest.json    what it was drawn from, and how much of each text it covers
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from synthlang.dictionary.candidates import IdCandidates, all_candidates, word_files
from synthlang.dictionary.spec import DictionarySpec, draw_types, trained_types
from synthlang.dictionary.words import WordDictionary
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, read_json, write_json
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.sources.base import listed

if TYPE_CHECKING:
    from synthlang.shards import Shards
    from synthlang.store import Store
    from synthlang.vocabularies import IdSpace

FORMAT = 1
_ESCAPES = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})


@dataclass(frozen=True, eq=False)
class IdDictionary:
    """``pairs`` [n, 2] int64 of ids; ``languages`` [n, 2] int64, the member of each side (the left one is 0)."""

    pairs: NDArray[np.int64]
    languages: NDArray[np.int64]
    manifest: dict[str, Any]

    def __len__(self) -> int:
        return len(self.pairs)

    @property
    def fingerprint(self) -> str:
        """The fingerprint that the manifest names."""
        return str(self.manifest["fingerprint"])


def build_id_dictionary(
    spec: DictionarySpec, id_space: IdSpace, train: Sequence[Shards], store: Store, own_rows: bool = False
) -> IdDictionary:
    """The dictionary of the members of ``id_space``, drawn or read from the store.

    ``train`` are the shards of the training text of each member. The same types of the first member
    are drawn for all others; a type keeps all its translations. With ``own_rows`` (separate embeddings) an id of two
    languages pairs with itself. InputError if there is nothing to draw.
    """
    names = [member.name for member in id_space.members]
    if len(names) < 2:
        raise InputError("a dictionary pairs two languages; this run has one")
    words = word_files(spec.path, names)
    parents = _parents(id_space, train, words) | ({"own_rows": True} if own_rows else {})
    name = fingerprint("id-dictionary", format=FORMAT, spec=spec.drawing, parents=parents)

    def build(folder: Path) -> None:
        counts = [shards.counts for shards in train]
        candidates = all_candidates(id_space, counts, words, own_rows)
        drawn = _draw(spec, candidates, counts[0])
        report = {"fingerprint": name, "format": FORMAT, "spec": spec.drawing, "parents": parents}
        _write(drawn, id_space, report | _report(drawn, candidates, id_space, counts), folder)

    return read_id_dictionary(store.obtain("dictionary", name, build))


def _parents(id_space: IdSpace, train: Sequence[Shards], words: Mapping[int, WordDictionary]) -> dict[str, Any]:
    # members by number: what a language is called does not change its pairs
    return {
        "vocabulary": id_space.fingerprint,
        "shards": [shards.fingerprint for shards in train],
        "words": {str(member): dictionary.digest for member, dictionary in sorted(words.items())},
    }


def _draw(spec: DictionarySpec, candidates: Sequence[IdCandidates], counts: NDArray[np.int64]) -> list[IdCandidates]:
    """The candidates whose type of the first member is drawn; ``counts`` is how often each of its ids occurs."""
    types = np.unique(np.concatenate([c.pairs[:, 0] for c in candidates] or [np.zeros(0, np.int64)]))
    if not len(types):
        reasons = "; ".join(listed(c.left_out) for c in candidates if c.left_out)
        why = f" ({reasons})" if reasons else ": no language has copies of the first one's tokens; set dictionary.path"
        raise InputError(f"there is no pair of ids to draw a dictionary from{why}")
    chosen = types[draw_types(spec, types.astype(np.uint64), counts[types])]
    if not len(chosen):
        raise InputError(f"dictionary.coverage {spec.coverage} of {len(types)} types gives an empty dictionary")
    return [IdCandidates(c.member, c.pairs[np.isin(c.pairs[:, 0], chosen)], c.left_out) for c in candidates]


def _report(
    drawn: Sequence[IdCandidates],
    candidates: Sequence[IdCandidates],
    id_space: IdSpace,
    counts: Sequence[NDArray[np.int64]],
) -> dict[str, Any]:
    """What the manifest says about the pairs: how many, which were left out, the share of each text."""
    names = [member.name for member in id_space.members]
    sides = {0: np.concatenate([d.pairs[:, 0] for d in drawn])} | {d.member: d.pairs[:, 1] for d in drawn}
    return {
        "pairs": sum(len(d.pairs) for d in drawn),
        "languages": {
            names[c.member]: {"pairs": len(d.pairs), "candidates": len(c.pairs), "left_out": c.left_out}
            for c, d in zip(candidates, drawn, strict=True)
        },
        "coverage": {
            names[member]: _coverage(np.unique(ids), counts[member], id_space.specials.all)
            for member, ids in sides.items()
        },
    }


def _coverage(ids: NDArray[np.int64], counts: NDArray[np.int64], specials: tuple[int, ...]) -> dict[str, float]:
    """Shares of the types and of the running tokens of a training text."""
    types = trained_types(counts, specials)
    return {
        "types": len(ids) / max(len(types), 1),
        "tokens": int(counts[ids].sum()) / max(int(counts[types].sum()), 1),
    }


def _write(drawn: Sequence[IdCandidates], id_space: IdSpace, report: dict[str, Any], folder: Path) -> None:
    pairs = np.concatenate([d.pairs for d in drawn])
    members = np.concatenate([np.full(len(d.pairs), d.member, np.int64) for d in drawn])
    with atomic_folder(folder) as temporary:
        np.save(temporary / "pairs.npy", pairs)
        np.save(temporary / "languages.npy", np.stack([np.zeros_like(members), members], axis=1))
        with atomic_file(temporary / "dictionary.tsv", "w") as handle:
            for d in drawn:
                name = id_space.members[d.member].name
                left, right = (_texts(id_space.members[m].tokenizer, d.pairs[:, i]) for i, m in ((0, 0), (1, d.member)))
                handle.writelines(f"{a}\t{b}\t{name}\n" for a, b in zip(left, right, strict=True))
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
