"""Probe ``maps``: an orthogonal map of each layer between two languages' states, and retrieval before and after it.

With two monolingual models it shows how alike their spaces are (Emerging Cross-lingual Structure, section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from probes.measures.maps import MapsConfig, Supervision
from probes.measures.maps.dictionary import Dictionary, read_dictionary
from probes.measures.maps.scores import Both, Values, intervals, layer_scores
from probes.measures.maps.show import figures, notes, tables
from probes.measures.maps.vectors import (
    Occurrences,
    SentencePairs,
    Sides,
    Vectors,
    bytes_of_layer,
    fit_maps,
    layer_groups,
    linked_pairs,
    read_sentence_files,
    read_vectors,
)
from probes.measures.maps.without_context import embedding_scores, read_static, static_scores
from probes.measures.probe_input import ROLES, ProbeInput
from probes.measures.result import ProbeResult
from probes.rotation.fitted import NormalisedMap
from probes.rotation.saved import FORMAT, About, check_place, save_maps
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.progress import Report, silent

WITHOUT_CONTEXT = {"static": "static vectors", "embeddings": "rows of the embedding matrix"}
Maps = dict[Supervision, list[NormalisedMap]]


@dataclass(frozen=True, eq=False)
class _Job:
    """What does not depend on the layer. ``layers`` are those of both models, place by place."""

    given: ProbeInput
    layers: tuple[tuple[int, ...], tuple[int, ...]]
    dictionary: Dictionary
    words: tuple[Occurrences, Occurrences]
    links: NDArray[np.int64]
    files: SentencePairs | None

    @property
    def asking(self) -> dict[str, int]:
        """How many words or sentences each measure asks for, in the direction with fewer."""
        sets, sentences = (self.dictionary.forward, self.dictionary.backward), len(self.given.measured)
        files = 0 if self.files is None else len(self.files.corpora[0])
        words = min(len(held.queries) for held in sets)
        linked = min((len(np.unique(column)) for column in self.links.T), default=0)
        return {"words": words, "context": linked, "alone": linked, "sentences": sentences, "files": files}

    def sides(self, group: range) -> Sides:
        """Both languages, read at some of the layers."""
        left, right = (tuple(held[place] for place in group) for held in self.layers)
        return self.given.side("target", layers=left), self.given.side("source", layers=right)


def maps_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Fit maps and measure translation of words, retrieval of words in context and of sentences, in percent.

    ``forward`` is from the parent to the other language; ``before`` is without a map and without normalisation.
    InputError for models of different size or, where layers are
    not named, depth; for dictionaries without a word of the text; for files that cannot be read; for NaN.
    """
    config, job = given.config.of(MapsConfig), _prepare(given)
    for name in config.supervision if config.save is not None else ():
        check_place(user_path(config.save or "") / name)
    before: list[Values] = []
    maps: Maps = {name: [] for name in config.supervision}
    after: dict[Supervision, list[Values]] = {name: [] for name in config.supervision}
    counts = {**given.data.counts, **job.dictionary.counts, **({} if job.files is None else job.files.counts)}
    sizes = bytes_of_layer(given.body("source").shape.hidden, job.dictionary, job.words, job.files)
    extra = _without_context(job, report)  # first, since it is quick and what it lacks is said at once
    for group in layer_groups(len(job.layers[0]), sizes):
        sides = job.sides(group)
        files = None if job.files is None else job.files.sides(sides)
        vectors = read_vectors(sides, files, job.dictionary, given.fitted, job.words, report)
        before += _scores(job, group, vectors, None, report)
        for name in config.supervision:
            fitted = fit_maps(given, name, sides, vectors, job.dictionary, report)
            maps[name] += fitted
            after[name] += _scores(job, group, vectors, fitted, report)
    for key, held in extra.items():
        counts |= {f"{WITHOUT_CONTEXT[key]}: {reason}": count for reason, count in held["counts"].items()}
    _save(job, maps)
    values = _values(job, before, maps, after, counts) | {key: extra.get(key) for key in WITHOUT_CONTEXT}
    return ProbeResult(
        values, tables(values), figures(values), notes(values, config, given.body("source").shape.hidden)
    )


def _without_context(job: _Job, report: Report) -> dict[str, dict[str, Any]]:
    """Those that are asked for: static word vectors, and rows of the embedding matrix."""
    given, found = job.given, dict[str, dict[str, Any]]()
    held = read_static(given, job.dictionary, report)
    if held is not None:
        found["static"] = static_scores(given, held, job.dictionary, job.words, job.links, report)
        found["static"]["intervals"] = intervals(found["static"], job.asking)
    if given.config.of(MapsConfig).embeddings:
        found["embeddings"] = embedding_scores(given, job.dictionary, held, report)
    return found


def _prepare(given: ProbeInput) -> _Job:
    widths = sorted({given.body(role).shape.hidden for role in ROLES})
    if len(widths) > 1:
        raise InputError(f"maps: the states of both models must have the same size; they have {widths}")
    layers = given.layers("target"), given.layers("source")
    if len(layers[0]) != len(layers[1]):
        depths = [len(held) - 1 for held in layers]
        raise InputError(f"maps: the models have {depths[1]} and {depths[0]} layers; name those to compare (layers)")
    measured, text = given.measured, given.aligned.text
    words = Occurrences.of(text.left, measured), Occurrences.of(text.right, measured)
    dictionary = read_dictionary(given)
    links = linked_pairs(given, words)
    wanted = given.config.of(MapsConfig).sentences
    files = None if wanted is None else read_sentence_files(given, wanted)
    return _Job(given, layers, dictionary, words, links, files)


def _scores(
    job: _Job, group: range, vectors: Vectors, maps: tuple[NormalisedMap, ...] | None, report: Report
) -> list[Values]:
    """What is measured at each layer of a group, and the numbers of the fit."""
    config, found = job.given.config.of(MapsConfig), []
    device = job.given.body("source").norm.weight.device
    for place, at in enumerate(group):
        held = None if maps is None else maps[place]
        both = Both(held, config.moves)
        scores = layer_scores(
            vectors, place, both, job.dictionary, job.links, config.candidates == "linked", device, report
        )
        layer = {"layer": job.layers[1][at], "layer_target": job.layers[0][at]}
        fit = {} if held is None else {"fit": held.to_json()}
        found.append({**layer, **fit, **scores, "intervals": intervals(scores, job.asking)})
        report("retrieval with maps", at + 1, len(job.layers[0]), "")
    return found


def _values(
    job: _Job,
    before: list[Values],
    maps: Maps,
    after: Mapping[Supervision, list[Values]],
    counts: dict[str, int],
) -> dict[str, Any]:
    config, dictionary = job.given.config.of(MapsConfig), job.dictionary
    return {
        "moves": config.moves,
        "normalise": config.normalise,
        "candidates": config.candidates,
        "same_model": job.given.same_model,
        "fitted": {"sentence_pairs": len(job.given.fitted), "translations": dictionary.fitted.to_json()},
        "measured": {
            "sentence_pairs": len(job.given.measured),
            "linked_words": len(job.links),
            "words": {"parent": len(job.words[1].number), "other": len(job.words[0].number)},
            "types": {"parent": len(dictionary.types[1]), "other": len(dictionary.types[0])},
            "translations": dictionary.forward.to_json(),
            "translations_backward": dictionary.backward.to_json(),
        },
        "before": before,
        "maps": {name: {"layers": after[name]} for name in maps},
        "files": None if job.files is None else len(job.files.corpora[0]),
        "counts": counts,
    }


def _save(job: _Job, maps: Maps) -> None:
    """Where a folder is named."""
    config, given = job.given.config.of(MapsConfig), job.given
    if config.save is None:
        return
    for name, held in maps.items():
        about = About(
            format=FORMAT, moves=config.moves, source=job.layers[1], target=job.layers[0],
            subword=given.config.subword, supervision=name, model=given.pretrained.fingerprint,
            language=given.name("target"),
        )  # fmt: skip
        save_maps(user_path(config.save) / name, held, about)
