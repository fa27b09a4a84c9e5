"""Tables, figures and notes of the probe ``distances``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from probes.figures.drawing import Drawing
from probes.figures.histograms import NAMES, Panel, histogram_panels
from probes.figures.lines import Series, auc_by_layer, interval_series
from probes.figures.projection import Method, picture, word_pairs
from probes.measures.distances import BINS, DISTANCES, Distance, DistancesConfig
from probes.measures.distances.dimensions import Dominance
from probes.measures.distances.pairs import Linked, SharedText, linked_states
from probes.measures.distances.separation import Change, Separation, histograms
from probes.measures.probe_input import ProbeInput
from probes.models.aligned import Aligned
from probes.report.page import Table
from probes.rotation.dictionary import translations
from probes.statistics import Interval
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.rng import key_of, permutation, uniform


@dataclass(frozen=True, eq=False)
class Measured:
    """The distances and the largest dimensions in one model.

    Attributes:
        name: Name of the model.
        separations: The distances by layer, then by kind of distance.
        dominance: The largest dimensions, in the same order.
        shown: The layer of the histograms.
    """

    name: str
    separations: Sequence[Separation]
    dominance: Sequence[Dominance]
    shown: int

    @property
    def layers(self) -> list[int]:
        """The layer of each entry of ``separations``, so that a layer occurs once for each kind of distance."""
        return [found.layer for found in self.separations]

    def of(self, distance: Distance) -> list[Separation]:
        """Return the separations of a distance, by layer."""
        return [found for found in self.separations if found.distance == distance]

    def at(self, distance: Distance) -> Separation:
        """Return the separation of a distance at the layer of the histograms."""
        return next(found for found in self.of(distance) if found.layer == self.shown)


def distance_histograms(name: str, title: str, found: Sequence[tuple[str, Separation]], bins: int = BINS) -> Drawing:
    """Draw the histograms of each model, one panel below the other, with common bins.

    Args:
        name: Name of the file of the figure.
        title: Title of the figure.
        found: (name of the model, distances), all of one kind of distance. There is at least one.
        bins: Number of bins.
    """
    panels = []
    for (label, one), counts in zip(found, histograms([one for _, one in found], bins), strict=True):
        medians = float(np.median(one.related)), float(np.median(one.unrelated))
        lists = counts.edges.tolist(), counts.related.tolist(), counts.unrelated.tolist()
        panels.append([Panel(label, *lists, medians, one.auc)])
    return histogram_panels(name, title, found[0][1].distance, panels)


def figures(measured: Sequence[Measured], bins: int) -> list[Drawing]:
    """Draw the histograms of each distance, the AUC by layer, and the AUC without the largest dimensions.

    The probed model is the last one in ``measured``. With several models, there is a figure of the AUC for each kind of
    distance, and otherwise one figure. The AUC without the largest dimensions is drawn for the probed model only, and
    only if it was measured. ``bins`` is the number of bins of the histograms.
    """
    main = measured[-1]
    layers = ", ".join(dict.fromkeys(str(model.shown) for model in measured))
    drawings = []
    for distance in DISTANCES:
        title = f"{NAMES[distance]} distance of related and unrelated words, layer {layers}"
        panels = [(model.name, model.at(distance)) for model in measured]
        drawings.append(distance_histograms(f"distances-{distance}", title, panels, bins))
    if len(measured) == 1:
        lines = [_line(NAMES[distance], main.of(distance)) for distance in DISTANCES]
        drawings.append(auc_by_layer("distances-auc", "Separation of related and unrelated words by layer", lines))
    else:
        for distance in DISTANCES:
            lines = [_line(model.name, model.of(distance)) for model in measured]
            title = f"Separation of related and unrelated words by layer, {NAMES[distance]} distance"
            drawings.append(auc_by_layer(f"distances-auc-{distance}", title, lines))
    return [*drawings, *_without_dimensions(main)]


def _line(name: str, found: Sequence[Separation | Dominance]) -> Series:
    return interval_series(name, [one.layer for one in found], [one.auc for one in found])


def _without_dimensions(main: Measured) -> Iterator[Drawing]:
    """Draw the AUC of each distance with all dimensions and without the largest dimensions."""
    for distance in DISTANCES:
        found = [one for one in main.dominance if one.distance == distance]
        if not found or not found[0].tops:
            continue
        lines = [_line("all dimensions", found)]
        for i, top in enumerate(found[0].tops):
            name = f"without the largest {top.count}" if top.count > 1 else "without the largest one"
            x, without = [one.layer for one in found], [one.tops[i].auc_without for one in found]
            lines.append(interval_series(name, x, without))
        title = f"AUC of the {NAMES[distance]} distance without its largest dimensions, {main.name}"
        yield auc_by_layer(f"distances-dimensions-{distance}", title, lines)


def tables(measured: Sequence[Measured], changes: Mapping[str, Sequence[Change]]) -> list[Table]:
    """Return tables of the probed model by layer, of its changes from other models, and of the largest dimensions.

    The probed model is the last one in ``measured``, and ``changes`` has the changes from each other model by its name.
    They are shown at the layer of the probed model's histograms only. The largest dimensions of each model are shown at
    the layer of its histograms. A table without content is left out.
    """
    main = measured[-1]
    of_layers = Table(
        f"Distances of related and unrelated words, {main.name} (medians)",
        ("layer", "distance", "related", "unrelated", "AUC", "95 % interval"),
        [_layer_row(one) for one in main.separations],
        texts=2,
    )
    of_changes = Table(
        f"From each model to {main.name}, layer {main.shown} (differences of means, paired intervals)",
        ("from", "distance", "AUC", "interval", "related", "interval", "unrelated", "interval"),
        [_change_row(name, one) for name, found in changes.items() for one in found if one.layer == main.shown],
        texts=2,
    )
    # one row per count of dimensions, since columns would make the table too wide
    of_dimensions = Table(
        "The largest dimensions over unrelated words",
        ("model", "layer", "distance", "AUC", "largest", "share", "AUC without"),
        [row for model in measured for one in model.dominance if one.layer == model.shown for row in _tops(model, one)],
        texts=3,
    )
    has_tops = any(model.dominance and model.dominance[0].tops for model in measured)
    return [of_layers, *([of_changes] if changes else []), *([of_dimensions] if has_tops else [])]


def _layer_row(one: Separation) -> list[str]:
    medians = (f"{np.median(values):.3f}" for values in (one.related, one.unrelated))
    return [str(one.layer), NAMES[one.distance], *medians, f"{one.auc.mean:.3f}", bounds(one.auc)]


def _change_row(name: str, change: Change) -> list[str]:
    three = (change.auc, change.related, change.unrelated)
    return [name, NAMES[change.distance], *(c for one in three for c in (f"{one.mean:+.3f}", bounds(one, "+.3f")))]


def _tops(model: Measured, one: Dominance) -> Iterator[list[str]]:
    start = [model.name, str(one.layer), NAMES[one.distance], f"{one.auc.mean:.3f}"]
    for top in one.tops:
        yield [*start, str(top.count), f"{100 * top.share:.1f} %", f"{top.auc_without.mean:.3f}"]


def bounds(interval: Interval, form: str = ".3f") -> str:
    """Return the bounds of an interval as the text of a table cell, or a dash without bounds.

    ``form`` is the format of each bound.
    """
    return "–" if interval.low is None or interval.high is None else f"{interval.low:{form}} … {interval.high:{form}}"


def notes(settings: DistancesConfig, measured: Sequence[Measured], same_model: bool) -> list[str]:
    """Return notes on the pairs, on differences between the models, on zero vectors, and on skipped ``dimensions``.

    The probed model is the last one in ``measured``. ``same_model`` is True if it reads both languages.
    """
    said = [
        "Related words are the aligned words of the measured sentence pairs. For each left word, one unrelated right "
        "word is drawn at random from about two thousand aligned words of other sentences."
    ]
    if not same_model:
        said.append(
            "Each language is read by another model. Distances between the vectors of two models mean nothing unless "
            "the models share one space."
        )
    main = measured[-1]
    said += [
        f"{model.name} and {main.name} have different layers, so only layers {model.shown} and {main.shown} are "
        "compared."
        for model in measured[:-1]
        if model.layers != main.layers
    ]
    if len(measured) > 1:
        said.append(
            "All models read the same pairs. If a model was adjusted on this text, the pairs are held out only if the "
            "adjustment had the data.dev and data.test of this probe."
        )
    zero = {model.name: sum(one.zero for one in model.of("l2")) for model in measured}
    said += [
        f"{name}: {count} word vectors are zero. Their cosine distance counts as 1."
        for name, count in zero.items()
        if count
    ]
    if settings.dimensions and len(main.dominance[0].tops) < len(settings.dimensions):
        said.append("Numbers in distances.dimensions that reach the size of the vectors are left out.")
    return said


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


def distances_sentence(values: Mapping[str, Any]) -> str:
    """Describe the AUC of translations against unrelated words in a sentence.

    The sentence has the AUC of the probed model under the L2 distance, at the layer of the figures. ``values`` is the
    part of probes.json for the probe ``distances``.
    """
    model = values["models"][values["model"]]
    auc = next(one["auc"]["mean"] for one in model["layers"] if one["layer"] == model["layer"])
    return (
        f"At layer {model['layer']} a translation is closer than an unrelated word in {100 * auc:.1f} % of comparisons."
    )
