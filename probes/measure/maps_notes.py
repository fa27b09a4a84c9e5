"""What a reader of the probe ``maps`` has to know beside its numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from probes.measure.maps_config import MapsConfig


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
