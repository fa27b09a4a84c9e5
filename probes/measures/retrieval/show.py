"""Tables, figures and notes of the probe ``retrieval``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from pretrain.nearest import nearest
from pretrain.nearest_lists import Matrix
from probes.figures.bars import Bar, retrieval_by_tag
from probes.figures.drawing import Drawing
from probes.figures.lines import Series, accuracy_by_rank, interval_series, retrieval_by_layer
from probes.measures.result import few_directions, with_bounds
from probes.measures.retrieval import RetrievalConfig, Variant
from probes.measures.retrieval.scores import SIMILARITIES, Items
from probes.report.page import Table
from probes.statistics import Interval
from synthlang.corpus import FORM, Corpus
from synthlang.progress import Report, silent

Numbers = NDArray[np.int64]
SHOWN = 5
"""Maximum number of occurrences shown for a word."""


def asking(corpus: Corpus, candidates: Numbers, words: Sequence[str]) -> Numbers:
    """Return the first SHOWN occurrences of each of ``words`` among ``candidates``. Case is ignored.

    Occurrences [n] and candidates [m] are indices of words in ``corpus``. Candidates must be in ascending order.
    """
    names = [name.casefold() for name in corpus.form.names or ()]
    found = []
    for word in words:
        codes = [code for code, name in enumerate(names) if name == word.casefold()]
        found.append(candidates[np.isin(corpus.form.codes[candidates], codes)][:SHOWN])
    return np.concatenate([np.zeros(0, np.int64), *found])


def examples_of(
    corpora: tuple[Corpus, Corpus],
    one: Items,
    vectors: tuple[Matrix, Matrix],
    rows: tuple[Numbers, Numbers],
    words: Sequence[str],
    k: int,
    report: Report = silent,
) -> list[dict[str, Any]]:
    """Return occurrences of ``words`` of the source language, each with the nearest word of the other language.

    An example has the words ``word`` and ``nearest``. Their sentences are ``sentence`` and ``in``, with the word in
    guillemets. The key ``csls`` has the similarity, and ``linked`` is true if the two words are aligned. Without a
    nearest word, ``nearest``, ``in`` and ``csls`` are None. At most SHOWN occurrences of each word are returned.

    Args:
        corpora: The sentences of the left and the right side.
        one: The candidates and word alignments.
        vectors: [n, d] and [m, d], the vectors of the left and of the right side.
        rows: The row of each candidate of each side in ``vectors``.
        words: The words of the source language.
        k: Number of neighbours in the densities of CSLS.
        report: Receives the progress.

    Raises:
        InputError: A vector has NaN or infinity, or ``k`` is less than 1.
    """
    asked = asking(corpora[1], one.right, words)
    at = torch.from_numpy(rows[1][np.searchsorted(one.right, asked)])
    if not len(asked):
        return []
    listed = nearest(vectors[1], vectors[0], top=1, queries=(at, at[:0]), k=k, report=report).forward.csls
    word_at = np.full(len(vectors[0]), -1)
    word_at[rows[0]] = one.left
    links = set(map(tuple, one.links.tolist()))
    found = []
    for word, nearest_row, score in zip(
        asked.tolist(), listed.indices[:, 0].tolist(), listed.scores[:, 0], strict=True
    ):
        other = -1 if nearest_row < 0 else int(word_at[nearest_row])
        found.append(
            {
                **dict(zip(("word", "sentence"), in_context(corpora[1], word), strict=True)),
                **dict(zip(("nearest", "in"), in_context(corpora[0], other), strict=True)),
                "csls": None if other < 0 else float(score),
                "linked": (other, word) in links,
            }
        )
    return found


def in_context(corpus: Corpus, word: int) -> tuple[str | None, str | None]:
    """Return the word with the index ``word`` and its sentence, in which it has guillemets. −1 gives (None, None)."""
    if word < 0:
        return None, None
    sentence = int(np.searchsorted(corpus.offsets, word, side="right")) - 1
    words = corpus.take(np.asarray([sentence], np.int64)).columns[FORM].values()
    place = word - int(corpus.offsets[sentence])
    return words[place], " ".join(f"«{name}»" if i == place else name for i, name in enumerate(words))


def example_table(found: Sequence[dict[str, Any]], names: tuple[str, str], read: str) -> Table:
    """Return the examples as a table, with a row for each occurrence of a word.

    ``found`` is the result of `examples_of`. ``names`` are the names of the source and the other language. ``read`` is
    the name of the vectors in the title.
    """
    header = [f"word of {names[0]}", f"nearest word of {names[1]}", "linked", "CSLS"]
    rows = [[one["sentence"], one["in"] or "–", "yes" if one["linked"] else "no", _score(one["csls"])] for one in found]
    return Table(f"Words in context and their nearest words, {names[0]} → {names[1]}, {read}", header, rows, texts=3)


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.2f}"


LEVEL = 0.95
FEW = 50
"""Minimum number of word pairs for a figure. With fewer, the interval of an accuracy of 50 % exceeds 26 points."""

VARIANTS = {"context": "words in context", "types": "types (their first occurrence)"}
SHORT = {"context": "in context", "types": "types"}
NAMES = {"csls": "CSLS", "cosine": "cosine"}
Names = tuple[str, str]
Kinds = Mapping[str, str]
Values = Mapping[str, Any]


def kinds_of(settings: RetrievalConfig) -> Kinds:
    """Return the display name of each set of word pairs."""
    alike = " not written alike" if settings.exact_matches == "drop" else ""
    unseen = "unseen pairs" if settings.seen == "drop" else "pairs"
    named = {"linked": "pairs", "unlike": f"pairs{alike}", "counted": f"{unseen}{alike}"}
    return {kind: "all linked pairs" if name == "pairs" else name for kind, name in named.items()}


def tables(values: Values, names: Names, kinds: Kinds) -> list[Table]:
    """Return the tables of accuracy by layer (one for each variant) and by part of speech, and the table of examples.

    The table of parts of speech is left out if there are no tags, and the table of examples if there are no examples.

    Args:
        values: The part of probes.json for this probe.
        names: The names of the source and the other language.
        kinds: The display names of the sets of word pairs, from `kinds_of`.
    """
    made = [_by_layer(values, variant, names, kinds) for variant in values["variants"]]
    if values["tags"] is not None:
        made.append(_by_tag(values["tags"], names, kinds, read_of(values, values["tags"]["layer"])))
    if values.get("examples"):
        made.append(example_table(values["examples"], names, read_of(values, values["headline"]["layer"])))
    return made


def read_of(values: Values, layer: int) -> str:
    """Return the display name of the vectors of a layer, such as ``layer 12, rotated`` or ``static vectors``.

    ``values`` is the part of probes.json for this probe.
    """
    if values["static"] is not None:
        return "static vectors"
    return f"layer {layer}" if values["rotation"] is None else f"layer {layer}, rotated"


def _by_layer(values: Values, variant: str, names: Names, kinds: Kinds) -> Table:
    found = values["variants"][variant]
    sizes = f"{found['candidates']['right']:,} and {found['candidates']['left']:,} words"
    rows = [["links", f"{found['links']['counted']:,}", "", "", ""]]
    rows[0] += [f"{found['links'][kind]:,}" for kind in ("unlike", "linked")]
    for layer in found["layers"]:
        counted, others = layer["pairs"]["counted"], [layer["pairs"][kind]["csls"] for kind in ("unlike", "linked")]
        cells = [_bounds(counted["csls"]), _one(counted["csls"], "forward"), _one(counted["csls"], "backward")]
        cells += [_one(score) for score in (counted["cosine"], *others)]
        rows.append([read_of(values, layer["layer"]), *cells])
    return Table(
        f"Word retrieval, {names[0]} ↔ {names[1]}, {VARIANTS[variant]}: % that find their translation, of {sizes}",
        [
            *("vectors", f"CSLS, {kinds['counted']} (95 % interval)", f"queries in {names[0]}"),
            *(f"queries in {names[1]}", f"cosine, {kinds['counted']}"),
            *(f"CSLS, {kinds['unlike']}", f"CSLS, {kinds['linked']}"),
        ],
        rows,
    )


def _by_tag(found: Values, names: Names, kinds: Kinds, read: str) -> Table:
    header, variants = ["part of speech"], found["variants"]
    for variant in variants:
        header += ["links", f"{SHORT[variant]} (95 % interval)"]
    rows = []
    every = list(variants.values())
    for group, tags in every[0]["groups"].items():
        row = [f"mean of {group}"]
        for one in every:
            average, pooled = (one["groups"][group][key] for key in ("average", "pooled"))
            row += [_links(pooled), "–" if average is None else f"{average:.1f}"]
        rows.append(row)
        for tag in tags["tags"]:
            of_tag = [one["groups"][group]["tags"][tag] for one in every]
            if any(value is not None for value in of_tag):
                rows.append([f"  {tag}", *(cell for value in of_tag for cell in (_links(value), _bounds(value)))])
    whose = f" of the words of {found['words']}" if "words" in found else ""
    title = (
        f"Word retrieval by part of speech{whose}, {names[0]} ↔ {names[1]}, {read}, {kinds[found['pairs']]} (CSLS, %)"
    )
    return Table(title, header, rows)


def _links(score: Values | None) -> str:
    return "0" if score is None else f"{score['links']:,}"


def _one(score: Values | None, key: str = "mean") -> str:
    return "–" if score is None else f"{score[key]:.1f}"


def _bounds(score: Values | None) -> str:
    return "–" if score is None else with_bounds(score["mean"], score["low"], score["high"])


def _interval(score: Values) -> Interval:
    return Interval(score["mean"], score["low"], score["high"], min(score["asking"].values()), LEVEL)


def drawings(values: Values, ranks: Series | None, names: Names, kinds: Kinds) -> list[Drawing]:
    """Draw the accuracy by layer, by part of speech and by difference of frequency rank.

    A figure without values is left out. There is no figure by layer for static vectors, and no figure by rank for a
    single bin.

    Args:
        values: The part of probes.json for this probe.
        ranks: The accuracy by difference of frequency rank, or None if no word pair has ranks.
        names: The names of the source and the other language.
        kinds: The display names of the sets of word pairs, from `kinds_of`.
    """
    both = f"{names[0]} and {names[1]}"
    made = []
    kind = drawn_kind(values)
    lines = [
        interval_series(f"{SHORT[variant]}, {NAMES[similarity]}", [x for x, _ in points], [y for _, y in points])
        for variant, found in values["variants"].items()
        for similarity in SIMILARITIES
        if (points := _points(found, kind, similarity))
    ]
    if lines and values["static"] is None:
        rotated = "" if values["rotation"] is None else ", rotated"
        title = f"Word retrieval by layer{rotated}, {both}: {kinds[kind]}"
        made.append(retrieval_by_layer("retrieval-by-layer", title, lines))
    bars = _bars(values["tags"])
    if bars:
        title = f"Word retrieval by part of speech, {both}: {kinds[values['tags']['pairs']]}"
        made.append(retrieval_by_tag("retrieval-by-tag", title, bars))
    if ranks is not None and len(ranks.x) > 1:
        title = f"Word retrieval by difference of frequency rank, {both}: {kinds[values['ranks']['pairs']]}"
        read = read_of(values, values["ranks"]["layer"])
        note = _rank_note(values["ranks"], read[0].upper() + read[1:])
        made.append(accuracy_by_rank("retrieval-by-rank", title, [ranks], note))
    return made


def _rank_note(ranks: Values, read: str) -> str:
    return (
        f"{read}, {VARIANTS[ranks['variant']]}, CSLS, mean of both directions. A point has about "
        f"{ranks['links'] / len(ranks['bins']):,.0f} aligned pairs, at the median of their differences in frequency "
        "rank. Ranks are from the sentences read. Pairs with the same difference share a point. Bands are 95 % "
        "intervals. A falling line means that words used equally often in both languages are found more often "
        "(Cao et al. 2020, figure 3)."
    )


PAIRS = {"counted": "pairs that count", "unlike": "pairs not written alike", "linked": "all linked pairs"}


def drawn_kind(values: Values) -> str:
    """Return the smallest set of word pairs with at least FEW pairs in each variant. Figures show this set.

    If every smaller set has too few pairs, the result is ``linked``, the set of all pairs. ``values`` is the part of
    probes.json for this probe.
    """
    for kind in ("counted", "unlike"):
        if all(found["links"][kind] >= FEW for found in values["variants"].values()):
            return kind
    return "linked"


def _points(found: Values, kind: str, similarity: str) -> list[tuple[float, Interval]]:
    scores = ((layer["layer"], layer["pairs"][kind][similarity]) for layer in found["layers"])
    return sorted(((layer, _interval(score)) for layer, score in scores if score is not None), key=lambda p: p[0])


def _bars(found: Values | None) -> list[Bar]:
    """Return a bar for each variant, by group and tag."""
    bars = [
        Bar(group, tag, SHORT[variant], _interval(score), score["links"])
        for variant, one in (found["variants"].items() if found is not None else ())
        for group, tags in one["groups"].items()
        for tag, score in tags["tags"].items()
        if score is not None
    ]
    places = list(dict.fromkeys((bar.group, bar.tag) for bar in bars))
    groups = list(dict.fromkeys(group for group, _ in places))
    return sorted(bars, key=lambda bar: (groups.index(bar.group), places.index((bar.group, bar.tag))))


def notes_of(values: Values, settings: RetrievalConfig, unit: str, same_model: bool, width: int) -> Sequence[str]:
    """Return notes on word pairs that do not count, on missing results, and on maps of few directions.

    Args:
        values: The part of probes.json for this probe.
        settings: The settings of the probe.
        unit: The unit of the word alignments: word or subword.
        same_model: True if one model reads both languages.
        width: The size of the vectors.
    """
    notes = [*_few_pairs(values, settings), *_zero_vectors(values), *_missing(values, settings, unit)]
    if not same_model and not settings.fits:
        notes.append("retrieval: vectors of two models are compared without a map between their spaces")
    if values["rotation"] is not None:
        notes += few_directions(min(fit["rank"] for fit in values["rotation"]["fit"]), width)
    # words without a static vector are misses for another reason than the quality of the vectors
    return notes + [
        f"retrieval, {SHORT[variant]}: {lost:,} of the {found['links']['counted']:,} counted word pairs have a word "
        "without a static vector, and count as not found"
        for variant, found in values["variants"].items()
        if (lost := found["lost"]["counted"])
    ]


def _few_pairs(values: Values, settings: RetrievalConfig) -> Iterator[str]:
    """Yield a note on each variant in which few word pairs count."""
    dropped = ["written alike (exact_matches)"] * (settings.exact_matches == "drop")
    dropped += ["aligned in the fitted sentences (seen)"] * (settings.seen == "drop")
    for variant, found in values["variants"].items():
        links = found["links"]
        if links["counted"] < FEW and links["linked"] > links["counted"]:
            yield (
                f"retrieval, {SHORT[variant]}: only {links['counted']:,} of {links['linked']:,} word pairs count, "
                f"because pairs {' or '.join(dropped)} are dropped; read the columns of the larger sets of pairs "
                "instead, or set retrieval.seen: keep"
            )


def zero_vectors(by_layer: Mapping[Variant, Sequence[Values]]) -> Iterator[tuple[Variant, int, int]]:
    """Yield (variant, number of the layer, number of zero vectors) for each layer that has zero vectors.

    ``by_layer`` has the results of the layers by variant.
    """
    for variant, layers in by_layer.items():
        for layer in layers:
            if count := sum(layer["zero_vectors"].values()):
                yield variant, layer["layer"], count


def _zero_vectors(values: Values) -> Iterator[str]:
    """Yield a note on each layer with word vectors that are zero."""
    for variant, layer, count in zero_vectors({name: found["layers"] for name, found in values["variants"].items()}):
        yield (
            f"retrieval, {SHORT[variant]}, layer {layer}: {count:,} word vectors are zero, and their words count as "
            "not found"
        )


def _missing(values: Values, settings: RetrievalConfig, unit: str) -> Iterator[str]:
    """Yield notes on results by part of speech and by frequency rank, and on examples, that are missing."""
    if values["tags"] is None:
        reason = "word alignments are of subwords" if unit == "subword" else "the text has none (set retrieval.parser)"
        yield f"retrieval: there are no results by part of speech, because {reason}"
    found = {one["word"].casefold() for one in values.get("examples", ())}
    for word in settings.examples:
        if word.casefold() not in found:
            yield f"retrieval.examples: {word} does not occur in the measured sentences"
    if values["ranks"] is None:
        yield (
            "retrieval: there are no results by frequency rank, because no word pair is in the set "
            f"{settings.rank_pairs} (retrieval.rank_pairs)"
        )
    elif len(values["ranks"]["bins"]) < 2:
        yield "retrieval: there is no figure by frequency rank, because aligned words have almost equal ranks"


def retrieval_sentence(values: Values) -> str:
    """Describe word retrieval at the last layer in a sentence.

    ``values`` is the part of probes.json for the probe ``retrieval``.
    """
    variant, kind = values["headline"]["variant"], drawn_kind(values)
    layer = values["variants"][variant]["layers"][-1]
    accuracy = layer["pairs"][kind]["csls"]
    if accuracy is None:
        return "No word could be retrieved, because there are too few aligned words."
    where = "in context" if variant == "context" else "without context"
    return (
        f"At layer {layer['layer']} the nearest word of the other language is the translation for "
        f"{accuracy['mean']:.1f} % of the words {where} ({PAIRS[kind]}; CSLS)."
    )
