"""Tables, figures and notes of the probe ``maps``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from probes.figures.drawing import Drawing
from probes.figures.lines import Series, retrieval_by_layer
from probes.measures.maps import MapsConfig
from probes.measures.maps.scores import main_number
from probes.measures.result import few_directions, with_bounds
from probes.report.page import Table

Values = Mapping[str, Any]
TITLES = {
    "words": "Translation of words, P@1",
    "context": "Retrieval of words in context",
    "sentences": "Retrieval of the measured sentence pairs",
    "files": "Retrieval of the sentences of maps.sentences",
}
SENTENCES = "Share of sentences whose nearest sentence is the translation (CSLS, mean of both directions)."
NOTES = {
    "words": "Share of words whose nearest word type is a translation (CSLS, mean of both directions).",
    "context": "Share of words whose nearest word in context is the aligned one (CSLS, mean of both directions).",
    "sentences": SENTENCES,
    "files": SENTENCES,
}
BANDS = "Bands are 95 % intervals that treat words and sentences as independent."
FITTED = {"dictionary": "dictionary", "parallel": "aligned words", "sentences": "parallel sentences"}
SUMMED = {"dictionary": "a dictionary", "parallel": "aligned words", "sentences": "sentences"}
STATIC = {
    "words": {"words": "static vectors"},
    "context": {"context": "static, with sentence", "alone": "static, alone"},
}
COLUMNS = ("cosine →", "cosine ←", "CSLS →", "CSLS ←", "mean (95 % interval)")


def notes(values: Values, config: MapsConfig, width: int) -> list[str]:
    """Return notes on the limits of the scores, and on words and sentences that were not measured.

    ``values`` is the part of probes.json for this probe, and ``width`` is the size of the states.
    """
    found = ["the best layer is chosen on the measured data, so its number is slightly optimistic"]
    if config.supervision != ("dictionary",):
        found.append(
            "words of the test dictionary are held out from the dictionary, but they occur in the sentences that maps "
            "of aligned words and of sentences are fitted on"
        )
    if config.test_dictionary is None and config.dictionary is None:
        found.append(
            "translations are the most frequent word alignments of the sentence pairs, and not from a dictionary"
        )
    found += _coverage(values["measured"])
    if values["measured"]["sentence_pairs"] < 2 or (values["files"] is not None and values["files"] < 2):
        found.append("sentence retrieval is left out, because it needs at least two sentences")
    ranks = (layer["fit"]["rank"] for maps in values["maps"].values() for layer in maps["layers"])
    found += few_directions(min(ranks), width)
    embeddings = values["embeddings"] or {}
    for what, part in (("words of one subword", embeddings), ("static vectors of these", embeddings.get("static"))):
        if part:
            found += [f"{what}: {note}" for note in few_directions(part["fit"]["rank"], part["fit"]["width"])]
    found += _without_vector("static vectors", values["static"])
    return found + _without_vector("static vectors of words of one subword", embeddings.get("static"))


def _coverage(measured: Values) -> Iterator[str]:
    """Yield a note for each language with dictionary words that cannot be measured."""
    for language, key in (("the source language", "translations"), ("the other language", "translations_backward")):
        found = measured[key]
        if found["queries"] < found["words"]:
            yield (
                f"{found['queries']:,} of the {found['words']:,} test words of {language} ({found['coverage']:.3g} %) "
                f"are measured: {found['unknown_source']:,} do not occur in the sentences that maps are fitted on, "
                f"and {found['unanswered']:,} have no translation there"
            )


def _without_vector(what: str, static: Values | None) -> list[str]:
    """Return a note on words that have no static vector."""
    missing = [] if static is None else [f"{reason}: {n:,}" for reason, n in static["counts"].items() if n]
    if not missing:
        return []
    return [f"{what}: words without a vector count as not found ({'; '.join(missing)})"]


def _layers_of(values: Values) -> dict[str, Sequence[Values]]:
    """Return the scores by layer, without a map and with the map of each supervision."""
    return {"no map": values["before"]} | {FITTED[name]: maps["layers"] for name, maps in values["maps"].items()}


def _shown(values: Values) -> list[str]:
    return [measure for measure in TITLES if values["before"][0][measure] is not None]


def _static_rows(values: Values, measure: str) -> list[tuple[str, Values, Sequence[float]]]:
    """Return (name, scores, interval) for each kind of static vectors."""
    static = values["static"]
    named = {} if static is None else STATIC.get(measure, {})
    return [(name, static[key], static["intervals"][key]) for key, name in named.items()]


def sizes(values: Values, measure: str) -> str:
    """Return the numbers of queries and of candidates of a measure, as text for a title.

    ``values`` is the part of probes.json for this probe, and ``measure`` is a key of TITLES.
    """
    measured = values["measured"]
    if measure == "words":
        return words_and_types(measured)
    if measure == "context":
        words, linked = measured["words"], values["candidates"] == "linked"
        among = "aligned words" if linked else f"{words['other']:,} and {words['parent']:,} words"
        return f"{measured['linked_words']:,} word alignments, among {among}"
    return f"{values['files'] if measure == 'files' else measured['sentence_pairs']:,} sentence pairs"


def words_and_types(measured: Values) -> str:
    """Return the numbers of query words and of candidate types in word translation, as text for a title.

    ``measured`` is the value of the key ``measured`` in the results.
    """
    asking = [measured[key]["queries"] for key in ("translations", "translations_backward")]
    among = [measured["types"][side] for side in ("other", "parent")]
    return f"{asking[0]:,} (→) and {asking[1]:,} (←) query words, among {among[0]:,} and {among[1]:,} types"


def tables(values: Values) -> list[Table]:
    """Return a table for each measure, with the best and the last layer, and a table of rows of the embedding matrix.

    A measure without scores has no table. The last table exists only if the settings request ``maps.embeddings``.
    ``values`` is the part of probes.json for this probe.
    """
    found = []
    for measure in _shown(values):
        rows = []
        for name, layers in _layers_of(values).items():
            numbers = [main_number(measure, layer[measure]) for layer in layers]
            for label, place in (("best", numbers.index(max(numbers))), ("last", len(layers) - 1)):
                layer = layers[place]
                cells = _cells(measure, layer[measure], layer["intervals"][measure])
                rows.append([name, f"{layer['layer']} {label}", *cells])
        for name, scores, interval in _static_rows(values, measure):
            rows.append([name, "–", *_cells(measure, scores, interval)])
        title = f"{TITLES[measure]} (%): {sizes(values, measure)}"
        found.append(_table(title, ("map fitted on", "layer"), rows))
    return found if values["embeddings"] is None else [*found, _embeddings(values["embeddings"])]


def _embeddings(found: Values) -> Table:
    """Return the table of embeddings, with static vectors of the same words (figure 4a)."""
    rows = [
        # only rotated vectors have an interval, because hardly any word is found without a rotation
        ["embeddings, no map", *_cells("words", found["before"], None)],
        ["embeddings, rotated", *_cells("words", found["words"], found["intervals"]["words"])],
    ]
    if (static := found.get("static")) is not None:
        rows.append(["static vectors, rotated", *_cells("words", static["words"], static["intervals"]["words"])])
    size = words_and_types(found["measured"])
    return _table(f"Translation of words of one subword, without context, P@1 (%): {size}", ("vectors",), rows)


def _table(title: str, first: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """Return a table with columns for both directions."""
    title = f"{title}; → from the source language, ← to the source language; the mean is of CSLS"
    return Table(title, [*first, *COLUMNS], rows)


def _cells(measure: str, scores: Values, interval: Sequence[float] | None) -> list[str]:
    found = [scores[score][way] for score, way in (
        ("cosine", "forward"), ("cosine", "backward"), ("csls", "forward"), ("csls", "backward"), ("csls", "mean"),
    )]  # fmt: skip
    *others, mean = (number["p@1"] if measure == "words" else number for number in found)
    return [*(f"{number:.1f}" for number in others), with_bounds(mean, *(interval or (None, None)))]


def figures(values: Values) -> list[Drawing]:
    """Draw a figure for each measure, with a line over layers before a map and after each map.

    A measure without scores has no figure. ``values`` is the part of probes.json for this probe.
    """
    drawn = []
    for measure in _shown(values):
        lines = []
        for name, layers in _layers_of(values).items():
            x = [layer["layer"] for layer in layers]
            y = [main_number(measure, layer[measure]) for layer in layers]
            low, high = zip(*(layer["intervals"][measure] for layer in layers), strict=True)
            lines.append(Series(name if name == "no map" else f"map from {name}", x, y, low=low, high=high))
        for name, scores, _ in _static_rows(values, measure):
            lines.append(Series(name, lines[0].x, [main_number(measure, scores)] * len(lines[0].x)))
        drawing = retrieval_by_layer(f"maps-{measure}", TITLES[measure], lines)
        note = f"{NOTES[measure]} {sizes(values, measure)}. Layer 0 is the embeddings. {BANDS}"
        drawn.append(replace(drawing, note=note))
    return drawn


def maps_sentence(values: Values) -> str:
    """Describe the share of words translated correctly at the last layer, without a map and with each map.

    ``values`` is the part of probes.json for the probe ``maps``.
    """
    last = values["before"][-1]
    shares = {name: main_number("words", one["layers"][-1]["words"]) for name, one in values["maps"].items()}
    maps = ", ".join(f"{share:.1f} % with a map fitted on {SUMMED[name]}" for name, share in shares.items())
    before = main_number("words", last["words"])
    return f"Words translated correctly at layer {last['layer']} (P@1, CSLS): {before:.1f} % without a map, {maps}."
