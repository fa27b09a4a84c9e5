"""Words without context in the probe ``maps``: static word vectors, and rows of the embedding matrix.

Static vectors are normalised, rotated and put beside those of their sentence, measured as the model's states are (Cao
et al. 2020, section 3.4). Rows of the embedding matrix are those of words that are one subword (Emerging Cross-lingual
Structure, section 5.1.1, figure 4a).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from probes.measures.maps import MapsConfig
from probes.measures.maps.dictionary import Dictionary
from probes.measures.maps.scores import Both, context_scores, intervals, word_scores
from probes.measures.maps.vectors import Occurrences
from probes.measures.probe_input import ProbeInput
from probes.measures.words.named import single_tokens, special_tokens
from probes.rotation.dictionary import TranslationSet
from probes.rotation.fitted import fit_map
from probes.static.rotated import StaticText, linked_codes, static_pair, static_vectors
from probes.static.settings import Pool, StaticBaseline
from probes.static.vectors import StaticVectors, augmented
from probes.transfer.batch import Role
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.progress import Report


@dataclass(frozen=True, eq=False)
class Static:
    """Vectors of the other language and of the parent, as they are read or trained, and the text that they are for."""

    config: StaticBaseline
    text: StaticText
    vectors: tuple[StaticVectors, StaticVectors]


def read_static(given: ProbeInput, dictionary: Dictionary, report: Report) -> Static | None:
    """What ``maps.static`` asks for; InputError without gensim and for files that are none."""
    config = given.config.of(MapsConfig).static
    if config is None:
        return None
    text = _text(given, config, dictionary)
    return Static(config, text, static_vectors(given, config, text, report))


def static_scores(
    given: ProbeInput,
    static: Static,
    dictionary: Dictionary,
    words: tuple[Occurrences, Occurrences],
    links: NDArray[np.int64],
    report: Report,
) -> dict[str, Any]:
    """``words`` and ``context`` as the maps have them, ``alone``: context without the sentence's vectors, the ``fit``,
    and how many words have no vector. InputError for vectors that have not the same size."""
    config = given.config.of(MapsConfig)
    pair = static_pair(static.vectors, static.config, static.text, config.moves, "maps.static")
    linked_only = config.candidates == "linked"
    sides = pair.left, pair.right
    left, right = type_vectors(sides, dictionary)
    found: dict[str, Any] = {**pair.facts, "words": word_scores(right, left, dictionary, report)}
    missed = missed_words(dictionary, left, right)
    pools: dict[str, tuple[Pool, ...]] = {"context": static.config.pools, "alone": ()}
    for name, some in pools.items():
        left, right = (
            _occurrences(held, corpus.take(one.rows), some)
            for held, corpus, one in zip(sides, dictionary.corpora, words, strict=True)
        )
        found[name] = context_scores(right, left, links, linked_only, report)
    missed |= {
        f"linked words without a vector ({name})": int((rows[torch.from_numpy(links[:, at])] == 0).all(1).sum())
        for name, at, rows in (("parent", 0, right), ("other language", 1, left))
    }
    found["counts"] = {**pair.facts["counts"], **missed}
    return found


def missed_words(dictionary: Dictionary, left: Tensor, right: Tensor) -> dict[str, int]:
    """How many words that are measured have no vector, or no translation with one; of ``left``, the other language,
    and of the parent [types, d]."""
    found: dict[str, int] = {}
    for name, held, asking, answering in (
        ("parent", dictionary.forward, right, left), ("other language", dictionary.backward, left, right),
    ):  # fmt: skip
        (
            found[f"measured words without a vector ({name})"],
            found[f"measured words whose translations have no vector ({name})"],
        ) = _missed(held, asking, answering)
    return found


def _missed(held: TranslationSet, asking: Tensor, answering: Tensor) -> tuple[int, int]:
    """How many queries have no vector, and of how many others no right answer has one."""
    there = (asking != 0).any(1).numpy()[held.queries]
    answered = np.logical_or.reduceat((answering != 0).any(1).numpy()[held.answers], held.offsets[:-1])
    return int((~there).sum()), int((there & ~answered).sum())


def _text(given: ProbeInput, config: StaticBaseline, dictionary: Dictionary) -> StaticText:
    """Words as the dictionary has them, and the pairs that the rotation is fitted on."""
    most, corpora, types = given.config.of(MapsConfig).words, dictionary.corpora, dictionary.types
    if config.supervision == "dictionary":
        known = dictionary.fitted.pairs()[:most]
        pairs = types[0][known[:, 1]], types[1][known[:, 0]]
    else:
        left, right = linked_codes(given, corpora)
        pairs = left[:most], right[:most]
    # the words that are measured in context, and those that are measured alone but may be too rare to be trained
    wanted = tuple(
        np.union1d(corpus.take(given.measured).form.codes, own) for corpus, own in zip(corpora, types, strict=True)
    )
    return StaticText(corpora, (wanted[0], wanted[1]), pairs)


def type_vectors(sides: tuple[StaticVectors, StaticVectors], dictionary: Dictionary) -> tuple[Tensor, Tensor]:
    """[types, d] of both languages, the vector of each candidate; zeros for one without, which finds nothing."""
    left, right = (_rows_of(held, dictionary.words(side)) for side, held in enumerate(sides))
    return left, right


def _rows_of(held: StaticVectors, words: Sequence[str]) -> Tensor:
    rows = held.rows_of(words)
    found = held.vectors[torch.from_numpy(np.maximum(rows, 0))]
    return found.masked_fill(torch.from_numpy(rows < 0)[:, None], 0.0)


def _occurrences(held: StaticVectors, corpus: Corpus, pools: Sequence[Pool]) -> Tensor:
    return torch.cat([part.vectors for part in augmented(held, [corpus], pools)])


WHAT = "words of one subword"


@dataclass(frozen=True, eq=False)
class _Side:
    """One language: of each of its types the id of the word, −1 for one that is not one subword, and the rows [n, d] of
    the others; how many types are several subwords, or none that the tokenizer knows."""

    ids: NDArray[np.int64]
    rows: Tensor
    several: int
    unknown: int

    @property
    def kept(self) -> NDArray[np.bool_]:
        """[types] which have a row."""
        return self.ids >= 0


def embedding_scores(
    given: ProbeInput, dictionary: Dictionary, static: Static | None, report: Report
) -> dict[str, Any]:
    """Translation of the words of a dictionary that are one subword on both sides, among all types that are.

    ``words`` after a rotation that is fitted on such words alone, ``before`` without it, ``static``: word vectors of
    the same types, normalised and rotated in the same way. A word in small letters is its most frequent form in the
    sentences that is one subword. InputError where fewer than two pairs to fit on, or none to measure on, are one
    subword on both sides and have static vectors.
    """
    config = given.config.of(MapsConfig)
    left, right = _side(given, "target", dictionary, 0), _side(given, "source", dictionary, 1)
    held = dictionary.only((left.kept, right.kept), WHAT)
    found: dict[str, Any] = {
        "measured": {
            "types": {"parent": len(right.rows), "other": len(left.rows)},
            "translations": held.forward.to_json(),
            "translations_backward": held.backward.to_json(),
        },
        "fitted": {"translations": held.fitted.to_json()},
        "before": word_scores(right.rows, left.rows, held, report),
        **_rotated((left.rows, right.rows), held, config, "maps.embeddings", report),
        "counts": {
            f"{what} ({name})": count
            for name, side in (("other language", left), ("parent", right))
            for what, count in (
                ("types of several subwords", side.several), ("types unknown to the tokenizer", side.unknown),
            )
        },
    }  # fmt: skip
    if static is not None:
        vectors = type_vectors(static.vectors, held)
        found["static"] = _rotated(vectors, held, config, "maps.static", report)
        found["static"]["counts"] = missed_words(held, *vectors)
    return found


def _side(given: ProbeInput, role: Role, dictionary: Dictionary, side: int) -> _Side:
    reader = given.pretrained.target if role == "target" else given.pretrained.source
    types, forms, names = _forms(given, dictionary, side)
    ids = single_tokens(reader, names)
    known = ids >= 0
    ids[np.isin(ids, special_tokens(reader))] = -1
    found = np.full(len(dictionary.types[side]), -1, np.int64)
    # of the forms of a type, the most frequent first, the first that is one subword
    usable = np.flatnonzero(ids[forms] >= 0)
    at, first = np.unique(types[usable], return_index=True)
    found[at] = ids[forms[usable[first]]]
    single = np.zeros(len(found), bool)
    single[types[known[forms]]] = True
    body = given.body(role)
    asked = torch.from_numpy(found[found >= 0]).to(body.norm.weight.device)
    rows = body.word_rows(asked, reader.number).float().cpu()
    return _Side(found, rows, int((~single).sum()), int((single & (found < 0)).sum()))


def _forms(
    given: ProbeInput, dictionary: Dictionary, side: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], list[str]]:
    """How the types of a side are written in the sentences that maps are fitted on: the place of a type and the number
    of a form, each pair once, by type and then by how often, and all forms by their numbers."""
    text = given.aligned.text
    written, lowered = (text.left, text.right)[side], dictionary.corpora[side]
    place = np.full(len(lowered.form.names or ()), -1, np.int64)
    place[dictionary.types[side]] = np.arange(len(dictionary.types[side]))
    words = Occurrences.of(written, given.fitted).number
    pairs = np.stack([place[lowered.form.codes[words]], written.form.codes[words]], axis=1)
    distinct, counts = np.unique(pairs[pairs[:, 0] >= 0], axis=0, return_counts=True)
    order = np.lexsort((distinct[:, 1], -counts, distinct[:, 0]))
    return distinct[order, 0], distinct[order, 1], list(written.form.names or ())


def _rotated(
    vectors: tuple[Tensor, Tensor], held: Dictionary, config: MapsConfig, name: str, report: Report
) -> dict[str, Any]:
    """``words``, ``fit`` and ``intervals``; the vectors [types, d] are the other language's, then the parent's."""
    known = torch.from_numpy(held.fitted.pairs()[: config.words])
    left, right = vectors[0][known[:, 1]], vectors[1][known[:, 0]]
    there = (left != 0).any(1) & (right != 0).any(1)
    if int(there.sum()) < 2:
        raise InputError(
            f"{name}: of the pairs of {WHAT} {int(there.sum())} can be fitted on; name a larger dictionary, or more "
            "sentence pairs"
        )
    x, y = (left[there], right[there]) if config.moves == "target" else (right[there], left[there])
    fitted = fit_map(x, y, config.normalise, rounds=config.rounds)
    words = word_scores(*Both(fitted, config.moves).apply(vectors), held, report)
    asking = {"words": min(len(held.forward.queries), len(held.backward.queries))}
    fit = {**fitted.to_json(), "width": x.shape[1]}
    return {"words": words, "fit": fit, "intervals": intervals({"words": words}, asking)}
