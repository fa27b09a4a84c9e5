"""How the probe ``maps`` is shown: tables and figures by layer, before the map and after it, and notes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.box import SIMPLE_HEAD
from rich.table import Table

from probes.figures.drawing import Drawing
from probes.figures.lines import Series, retrieval_by_layer
from probes.measures.maps import MapsConfig
from probes.measures.maps.scores import main_number


def notes(values: Mapping[str, Any], config: MapsConfig, width: int) -> list[str]:
    """Sentences; ``width`` is the size of the states."""
    found = ["the best layer of a table is the best one on what is measured, so its number is a little too good"]
    if config.supervision != ("dictionary",):
        found.append(
            "the words of the test dictionary are held out of the dictionary, but they occur in the sentences that the "
            "maps from linked words and from sentences are fitted on"
        )
    if config.test_dictionary is None and config.dictionary is None:
        found.append("translations are the most frequent links of the sentence pairs, not a dictionary of a person")
    found += _coverage(values["measured"])
    if values["measured"]["sentence_pairs"] < 2 or (values["files"] is not None and values["files"] < 2):
        found.append("retrieval among one sentence says nothing, so it is left out")
    rank = min(held["fit"]["rank"] for maps in values["maps"].values() for held in maps["layers"])
    found += few_directions(rank, width)
    embeddings = values["embeddings"] or {}
    for what, held in (
        ("words of one subword", embeddings),
        ("static vectors of these", embeddings.get("static") or {}),
    ):
        if held:
            found += [f"{what}: {note}" for note in few_directions(held["fit"]["rank"], held["fit"]["width"])]
    found += _without_vector("static vectors", values["static"])
    return found + _without_vector("static vectors of words of one subword", embeddings.get("static"))


def few_directions(rank: int, width: int) -> list[str]:
    """Where pairs do not tell a map of vectors of a ``width`` everything."""
    if rank + 1 >= width:  # LayerNorm takes one direction
        return []
    return [
        f"a map was fitted on pairs that say something of {rank} directions only; in the others it turns as little "
        "as it can"
    ]


def _coverage(measured: Mapping[str, Any]) -> list[str]:
    """How much of the dictionary is measured, where that is not all of it."""
    found = []
    for language, key in (("the parent", "translations"), ("the other language", "translations_backward")):
        held = measured[key]
        if held["queries"] < held["words"]:
            found.append(
                f"of the {held['words']:,} words of {language} in the dictionary to measure on {held['queries']:,} "
                f"({held['coverage']:.3g} %) are measured: {held['unknown_source']:,} are not in the sentences that "
                f"maps are fitted on, and of {held['unanswered']:,} no translation is"
            )
    return found


def _without_vector(what: str, static: Mapping[str, Any] | None) -> list[str]:
    """Misses of the static vectors that say nothing of their quality."""
    if static is None:
        return []
    missing = [f"{reason}: {count:,}" for reason, count in static["counts"].items() if count]
    if not missing:
        return []
    return [f"{what}: who has no vector is not found, whatever the others are ({'; '.join(missing)})"]


TITLES = {
    "words": "Translation of words, P@1",
    "context": "Retrieval of words in context",
    "sentences": "Retrieval of the measured sentence pairs",
    "files": "Retrieval of the sentences of maps.sentences",
}
NOTES = {
    "words": "How often the nearest type of the other language is a translation, in both directions, under CSLS.",
    "context": "How often the nearest word of the other language's sentences is the linked one, both ways, under CSLS.",
    "sentences": "How often the nearest sentence of the other language is the translation, both ways, under CSLS.",
}
BANDS = "Bands: 95 % intervals, as if words and sentences were drawn independently."
FITTED = {"dictionary": "dictionary", "parallel": "linked words", "sentences": "parallel sentences"}


def rows_of(values: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    """What is compared: before a map, and after the map of each supervision; a list over layers each."""
    maps = {FITTED[name]: held["layers"] for name, held in values["maps"].items()}
    return {"no map": values["before"], **maps}


def best(values: Sequence[Mapping[str, Any]], measure: str) -> int:
    """The place of the layer with the largest mean accuracy under CSLS, the first of equals."""
    numbers = [main_number(measure, held[measure]) or 0.0 for held in values]
    return numbers.index(max(numbers))


def static_rows(values: Mapping[str, Any], measure: str) -> list[tuple[str, Mapping[str, Any], Sequence[float]]]:
    """(name, scores, interval) of the static vectors; in context also without what their sentence adds."""
    static = values["static"]
    named = {"words": (("words", "static vectors"),), "context": (
        ("context", "static, with sentence"), ("alone", "static, alone"),
    )}.get(measure, ()) if static is not None else ()  # fmt: skip
    return [(name, static[key], static["intervals"][key]) for key, name in named if static.get(key) is not None]


def sizes(values: Mapping[str, Any], measure: str) -> str:
    """How many ask, and among how many they look."""
    held = values["measured"]
    if measure == "words":
        return words_and_types(held)
    if measure == "context":
        if values["candidates"] == "linked":
            return f"{held['linked_words']:,} links, among linked words"
        among = [held["words"][side] for side in ("other", "parent")]
        return f"{held['linked_words']:,} links, among {among[0]:,} and {among[1]:,} words"
    return f"{values['files'] if measure == 'files' else held['sentence_pairs']:,} sentence pairs"


def words_and_types(held: Mapping[str, Any]) -> str:
    """How many words ask, and among how many types they look; ``held`` is ``measured``."""
    asking = [held[key]["queries"] for key in ("translations", "translations_backward")]
    among = [held["types"][side] for side in ("other", "parent")]
    return f"{asking[0]:,} → and {asking[1]:,} ← words ask, among {among[0]:,} and {among[1]:,} types"


def tables(values: Mapping[str, Any]) -> list[Table]:
    """A table for each measure: the best layer and the last one."""
    found = [_table(values, measure, title) for measure, title in TITLES.items() if _measured(values, measure)]
    return found if values["embeddings"] is None else [*found, _embeddings(values["embeddings"])]


def _measured(values: Mapping[str, Any], measure: str) -> bool:
    return values["before"][0][measure] is not None


def _table(values: Mapping[str, Any], measure: str, title: str) -> Table:
    table = _empty(f"{title} (%): {sizes(values, measure)}", "map fitted on", "layer")
    for name, layers in rows_of(values).items():
        for label, place in (("best", best(layers, measure)), ("last", len(layers) - 1)):
            held = layers[place]
            cells = _cells(measure, held[measure], held["intervals"][measure])
            table.add_row(name, f"{held['layer']} {label}", *cells)
    for name, scores, interval in static_rows(values, measure):
        table.add_row(name, "–", *_cells(measure, scores, interval))
    return table


def _embeddings(held: Mapping[str, Any]) -> Table:
    """Rows of the embedding matrix, and static vectors of the same words (figure 4a)."""
    size = words_and_types(held["measured"])
    table = _empty(f"Translation of words of one subword, without context, P@1 (%): {size}", "vectors")
    # the intervals are of rotated vectors; without a rotation hardly any word is found
    table.add_row("embeddings, no map", *_cells("words", held["before"], None))
    table.add_row("embeddings, rotated", *_cells("words", held["words"], held["intervals"]["words"]))
    if (static := held.get("static")) is not None:
        table.add_row("static vectors, rotated", *_cells("words", static["words"], static["intervals"]["words"]))
    return table


def _empty(title: str, *texts: str) -> Table:
    """A table of both directions, the first column left, those after it right."""
    # with so little between the columns the numbers fit into a terminal of 80
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, collapse_padding=True)
    table.title = f"{title}; → from the parent, ← to it; mean: of CSLS"
    table.add_column(texts[0])
    for column in (*texts[1:], "cosine →", "cosine ←", "CSLS →", "CSLS ←", "mean (95 % interval)"):
        table.add_column(column, justify="right", no_wrap=True)
    return table


def _cells(measure: str, held: Mapping[str, Any], interval: Sequence[float] | None) -> list[str]:
    numbers = [held[score][way] for score, way in (
        ("cosine", "forward"), ("cosine", "backward"), ("csls", "forward"), ("csls", "backward"), ("csls", "mean"),
    )]  # fmt: skip
    shown = [f"{number['p@1'] if measure == 'words' else number:.1f}" for number in numbers]
    return [*shown[:-1], shown[-1] if interval is None else f"{shown[-1]} ({interval[0]:.1f} – {interval[1]:.1f})"]


def figures(values: Mapping[str, Any]) -> list[Drawing]:
    """A figure for each measure: lines over layers, one before and one after each map."""
    drawn = []
    for measure, title in TITLES.items():
        if not _measured(values, measure):
            continue
        lines = []
        for name, layers in rows_of(values).items():
            label = name if name == "no map" else f"map from {name}"
            numbers = (
                [held["layer"] for held in layers],
                [main_number(measure, held[measure]) or 0.0 for held in layers],
            )
            low, high = zip(*(held["intervals"][measure] for held in layers), strict=True)
            lines.append(Series(label, *numbers, low=low, high=high))
        for name, scores, _ in static_rows(values, measure):
            lines.append(Series(name, lines[0].x, [main_number(measure, scores) or 0.0] * len(lines[0].x)))
        drawing = retrieval_by_layer(f"maps-{measure}", title, lines)
        note = NOTES["sentences" if measure == "files" else measure]
        drawn.append(replace(drawing, note=f"{note} {sizes(values, measure)}. Layer 0: the embeddings. {BANDS}"))
    return drawn
