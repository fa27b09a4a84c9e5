"""Figures of word pairs in a plane: the selection of pairs, their vectors in each model, and the drawings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.figures.drawing import Drawing
from probes.figures.projection import Method, picture, word_pairs
from probes.measures.distances.pairs import Linked, SharedText, linked_states
from probes.measures.probe_input import ProbeInput
from probes.models.aligned import Aligned
from probes.rotation.dictionary import translations
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation, uniform

OPEN = ("ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB")  # Universal Dependencies, "Open class words"
POOL = 10  # size of the pool, in multiples of the drawn pairs
POINTS = 2  # minimum number of pairs in a picture


@dataclass(frozen=True, eq=False)
class ChosenPairs:
    """The n word pairs of a picture, most frequent first, with one occurrence of each.

    Attributes:
        links: [n] indices of the word alignments of the occurrences.
        types: [n] codes of the right words, all different.
        left: [n] the left words.
        right: [n] the right words.
    """

    links: NDArray[np.int64]
    types: NDArray[np.int64]
    left: tuple[str, ...]
    right: tuple[str, ...]


def choose(shared: SharedText, pairs: int, seed: int) -> ChosenPairs:
    """Draw word pairs from the most frequent pairs, and one word alignment for each pair.

    A right word is paired with the left word that it is aligned with most often, and each word occurs in one pair.
    Right words without a letter are left out. If the right side has parts of speech, right words that mostly belong to
    a closed class are left out, too.

    Args:
        shared: The measured sentence pairs with their word alignments.
        pairs: Number of pairs to draw. The result has fewer pairs if the text has fewer suitable pairs.
        seed: Seed of the draw.
    """
    text, data = shared.text, next(iter(shared.data.values()))
    best = translations(Aligned(text, replace(data, train=shared.rows)), len(text.right.form.names or ()))
    names = text.left.form.names or (), text.right.form.names or ()
    good = _open_class(text.right)
    pool: dict[int, int] = {}  # left type → right type
    for left, right in best.tolist():
        if len(pool) == POOL * pairs:
            break
        if left not in pool and good[right] and any(letter.isalpha() for letter in names[1][right]):
            pool[left] = right
    drawn = np.sort(permutation(key_of("picture-pairs", seed), len(pool))[:pairs])
    types = np.asarray([*pool.items()], np.int64).reshape(-1, 2)[drawn]
    written = [tuple(names[side][code] for code in types[:, side].tolist()) for side in (0, 1)]
    return ChosenPairs(_one_link(shared, types, seed), types[:, 1], written[0], written[1])


def _open_class(corpus: Corpus) -> NDArray[np.bool_]:
    """Return the mask [types] of words with mostly open-class tags, or of all words if there are no tags."""
    size = len(corpus.form.names or ())
    column = corpus.columns.get("upos")
    if column is None or column.names is None or not set(column.names) & set(OPEN):
        return np.ones(size, bool)
    is_open = np.isin(np.asarray(column.names), OPEN)[column.codes]
    return np.asarray(np.bincount(corpus.form.codes, np.where(is_open, 1.0, -1.0), size) > 0, dtype=bool)


def _one_link(shared: SharedText, types: NDArray[np.int64], seed: int) -> NDArray[np.int64]:
    """Draw one word alignment [n] of the measured sentences for each pair of types [n, 2]."""
    text = shared.text
    sentence = text.links.sentence
    measured = np.flatnonzero(np.isin(sentence, shared.rows))
    left, right = (
        corpus.form.codes[corpus.offsets[sentence[measured]] + column[measured]].astype(np.int64)
        for corpus, column in ((text.left, text.links.left), (text.right, text.links.right))
    )
    size = len(text.left.form.names or ())
    key = right * size + left
    order = np.argsort(key, kind="stable")
    wanted = types[:, 1] * size + types[:, 0]
    first, stop = (np.searchsorted(key[order], wanted, side=side) for side in ("left", "right"))
    draw = uniform(key_of("picture-words", seed), types[:, 1])
    found: NDArray[np.int64] = measured[order[first + (draw * (stop - first)).astype(np.int64)]]
    return found


def chosen_vectors(given: ProbeInput, chosen: ChosenPairs, layer: tuple[int, int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the vectors of the left and the right words of the n pairs ``chosen``, [n, d] float32 on the CPU.

    ``layer`` has the layer to read in the model of the left side, and the layer to read in the model of the right side.

    Raises:
        InputError: The sentence pairs of ``given`` cannot be read.
    """
    data = given.data
    mask = np.zeros(len(data.links.left), bool)
    mask[chosen.links] = True
    few = replace(given, text=Aligned(given.aligned.text, replace(data, links=data.links.select(mask))))
    left, right = given.side("target", layers=layer[:1]), given.side("source", layers=layer[1:])
    links = Linked.joined(list(linked_states(few, left, right, np.unique(data.links.sentence[chosen.links]))))
    assert links.word is not None
    words = links.word.numpy()
    order = np.argsort(words)
    place = torch.from_numpy(order[np.searchsorted(words[order], chosen.types)])
    return links.left[0].float()[place], links.right[0].float()[place]


def pictures(
    vectors: Mapping[str, tuple[torch.Tensor, torch.Tensor]],
    layers: Mapping[str, int],
    languages: tuple[str, str],
    chosen: ChosenPairs,
    method: Method,
    seed: int,
) -> tuple[dict[str, Any], list[Drawing], list[str]]:
    """Return JSON values by model, the figures, and notes on pictures that cannot be drawn.

    A model whose picture cannot be drawn has the value None.

    Args:
        vectors: Name of a model → vectors [n, d] of the left and of the right words.
        layers: Name of a model → layer of its vectors.
        languages: Names of the left and of the right language.
        chosen: The n word pairs.
        method: Method that maps the vectors to a plane.
        seed: Seed of the method.
    """
    values: dict[str, Any] = {}
    drawings: list[Drawing] = []
    notes: list[str] = []
    for number, (name, sides) in enumerate(vectors.items(), 1):
        try:
            drawn = picture(*sides, chosen.left, chosen.right, method, seed)
        except InputError as error:
            values[name] = None
            notes.append(f"{name} has no picture of word pairs: {error}")
            continue
        values[name] = drawn.to_json()
        title = f"Word pairs in layer {layers[name]} of {name}"
        drawings.append(word_pairs(f"distances-words-{number}", title, drawn, *languages))
    return values, drawings, notes
