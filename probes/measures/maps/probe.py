"""The probe ``maps``: an orthogonal map between two languages at each layer, and retrieval before and after it.

With two monolingual models, the probe measures how similar their spaces are ("Emerging Cross-lingual Structure",
section 5.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from probes.measures.maps import MapsConfig, Supervision
from probes.measures.maps.dictionary import Dictionary, read_dictionary
from probes.measures.maps.scores import Values, context_scores, intervals, sentence_scores, word_scores
from probes.measures.maps.show import figures, maps_sentence, notes, tables
from probes.measures.maps.vectors import MeasuredText, Vectors, layer_groups, measured_text, read_vectors
from probes.measures.maps.without_context import embedding_scores, static_of, static_scores
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult
from probes.measures.rotated import MovingMap, Sides, fit_moving, fit_read
from probes.rotation.fitted import NormalisedMap
from probes.rotation.saved import About, check_place, save_maps
from synthlang.files import user_path
from synthlang.progress import Report, silent

WITHOUT_CONTEXT = {"static": "static vectors", "embeddings": "rows of the embedding matrix"}
Maps = dict[Supervision, list[NormalisedMap]]


@dataclass(frozen=True, eq=False)
class _Measured:
    """The inputs of the probe that all layers share.

    Attributes:
        given: The input of the probe.
        config: The settings of the probe.
        layers: The layers of the target and of the source model. Layers at the same index are mapped to each other.
        dictionary: The translations to fit on and to measure on.
        text: The words and sentences to measure on.
    """

    given: ProbeInput
    config: MapsConfig
    layers: tuple[tuple[int, ...], tuple[int, ...]]
    dictionary: Dictionary
    text: MeasuredText

    @property
    def asking(self) -> dict[str, int]:
        """The number of queries of each measure, in the direction with fewer queries."""
        words = min(len(answers.queries) for answers in (self.dictionary.forward, self.dictionary.backward))
        linked = min((len(np.unique(column)) for column in self.text.links.T), default=0)
        sentences, lines = len(self.text.rows), len(self.text.lines)
        return {"words": words, "context": linked, "alone": linked, "sentences": sentences, "files": lines}


def maps_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Fit maps, and measure word translation and the retrieval of words in context and of sentences.

    Scores are in percent (0 to 100). ``forward`` is the direction from the source to the other language. ``before`` has
    the scores without a map and without normalisation.

    Raises:
        InputError: The models differ in hidden size or in the number of layers that are read. The sentence pairs or a
            file cannot be read. The dictionary has no pair of words of the text. States contain NaN or infinity. A map
            cannot be fitted (see `fit_layers`). Static vectors or embeddings cannot be measured (see `static_of`,
            `static_scores` and `embedding_scores`). The folder ``maps.save`` has other content than maps.
        DiskError: The maps cannot be written.
    """
    given.check_alike()
    config, width = given.config.of(MapsConfig), given.body("source").shape.hidden
    layers = given.layers("target"), given.layers("source")
    measured = _Measured(given, config, layers, read_dictionary(given), measured_text(given, config.sentences))
    for name in config.supervision if config.save is not None else ():
        check_place(user_path(config.save or "") / name)
    before: list[Values] = []
    maps: Maps = {name: [] for name in config.supervision}
    after: dict[Supervision, list[Values]] = {name: [] for name in config.supervision}
    extra = _without_context(measured, report)  # first, because it is quick, so that its errors appear early
    for group in layer_groups(len(layers[0]), width, measured.dictionary, measured.text):
        left, right = (tuple(numbers[place] for place in group) for numbers in layers)
        sides = given.side("target", layers=left), given.side("source", layers=right)
        vectors = read_vectors(sides, measured.dictionary, given.fitted, measured.text, report)
        before += _scores(measured, group, vectors, None, report)
        for name in config.supervision:
            fitted = _fit(measured, name, sides, vectors, report)
            maps[name] += fitted
            after[name] += _scores(measured, group, vectors, fitted, report)
    _save(measured, maps)
    values = _values(measured, before, after, extra)
    return ProbeResult(values, tables(values), figures(values), notes(values, config, width), maps_sentence(values))


def _without_context(measured: _Measured, report: Report) -> dict[str, dict[str, Any]]:
    """Return the scores of static vectors and of embeddings, if the settings request them."""
    given, dictionary, found = measured.given, measured.dictionary, dict[str, dict[str, Any]]()
    static = static_of(given, dictionary, report)
    if static is not None:
        found["static"] = static_scores(given, static, dictionary, measured.text, report)
        found["static"]["intervals"] = intervals(found["static"], measured.asking)
    if measured.config.embeddings:
        found["embeddings"] = embedding_scores(given, dictionary, static, report)
    return found


def _fit(
    measured: _Measured, supervision: Supervision, sides: Sides, vectors: Vectors, report: Report
) -> tuple[NormalisedMap, ...]:
    """Fit a map for each layer, from the language that moves to the other language."""
    if supervision != "dictionary":
        return fit_read(measured.given, supervision, sides, measured.config, report)
    known = torch.from_numpy(measured.dictionary.fitted.pairs()[: measured.config.words])
    left, right = vectors["words"]
    return fit_moving([(left[:, known[:, 1]], right[:, known[:, 0]])], sides, measured.config)


def _scores(
    measured: _Measured, group: range, vectors: Vectors, maps: Sequence[NormalisedMap] | None, report: Report
) -> list[Values]:
    """Return the scores of each layer in a group, without a map or with ``maps`` and their measures of the fit."""
    config, found = measured.config, []
    device = measured.given.body("source").norm.weight.device
    for place, at in enumerate(group):
        fitted = None if maps is None else maps[place]
        moving = MovingMap(fitted, config.moves)
        compared = {name: moving.apply((x[place].to(device), y[place].to(device))) for name, (x, y) in vectors.items()}
        scores = {
            "words": word_scores(*compared["words"], measured.dictionary, report),
            "context": context_scores(*compared["context"], measured.text.links, config.candidates, report),
            "sentences": sentence_scores(*compared["sentences"], report),
            "files": sentence_scores(*compared["files"], report) if "files" in compared else None,
        }
        layer = {"layer": measured.layers[1][at], "layer_target": measured.layers[0][at]}
        fit = {} if fitted is None else {"fit": fitted.to_json()}
        found.append({**layer, **fit, **scores, "intervals": intervals(scores, measured.asking)})
        report("retrieval with maps", at + 1, len(measured.layers[0]), "")
    return found


def _values(
    measured: _Measured,
    before: list[Values],
    after: Mapping[Supervision, list[Values]],
    extra: Mapping[str, dict[str, Any]],
) -> dict[str, Any]:
    given, config, dictionary, text = measured.given, measured.config, measured.dictionary, measured.text
    counts = {**given.data.counts, **dictionary.counts, **text.counts}
    for key, scores in extra.items():
        counts |= {f"{WITHOUT_CONTEXT[key]}: {reason}": count for reason, count in scores["counts"].items()}
    return {
        "moves": config.moves,
        "normalise": config.normalise,
        "candidates": config.candidates,
        "same_model": given.same_model,
        "fitted": {"sentence_pairs": len(given.fitted), "translations": dictionary.fitted.to_json()},
        "measured": {
            "sentence_pairs": len(given.measured),
            "linked_words": len(text.links),
            "words": {"parent": len(text.words[1]), "other": len(text.words[0])},
            **dictionary.measured(),
        },
        "before": before,
        "maps": {name: {"layers": layers} for name, layers in after.items()},
        "files": None if text.files is None else len(text.lines),
        "counts": counts,
    } | {key: extra.get(key) for key in WITHOUT_CONTEXT}


def _save(measured: _Measured, maps: Maps) -> None:
    config, given = measured.config, measured.given
    if config.save is None:
        return
    for name, layers in maps.items():
        about = About(
            moves=config.moves, source=measured.layers[1], target=measured.layers[0],
            subword=given.config.subword, supervision=name, model=given.pretrained.fingerprint,
            language=given.name("target"),
        )  # fmt: skip
        save_maps(user_path(config.save) / name, layers, about)
