"""The probe ``sentences``: log probability and perplexity of a text in both languages."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from probes.figures.drawing import Drawing
from probes.figures.lines import interval_series, lines_over
from probes.measures.probe_input import ProbeInput
from probes.measures.result import ProbeResult, to_json, with_bounds
from probes.measures.sentences import UNITS, SentencesConfig
from probes.measures.sentences.texts import LanguageText, read_texts
from probes.models.pretrained import Role
from probes.report.page import Table
from probes.scoring import Floats, Scored, score
from probes.statistics import Interval, mean_interval
from probes.statistics.intervals import bootstrap_metric
from synthlang.errors import InputError
from synthlang.progress import Report, silent
from synthlang.rng import key_of
from synthlang.wording import plural

LARGEST = 700.0
"""Largest exponent of a perplexity, beyond which a float overflows."""
EXAMPLES, SHOWN_WORDS = 5, 24
PLACES, FEWEST = 20, 10
"""Number of words of a sentence in the figure, and the smallest number of sentences for a point of a line."""


@dataclass(frozen=True, eq=False)
class Measured:
    """The scores of a text in one language.

    Attributes:
        name: Name of the language.
        text: The sentences.
        scored: The scores of the tokens, words and sentences of ``text``.
        rows: [n] the indices of the sentences that have a score.
        totals: [n] the log probability of each of these sentences in nats.
        sizes: [n, 3] the number of tokens of each of these sentences, and the numbers of words and bytes of its source
            spelling. The columns are in the order of UNITS.
    """

    name: str
    text: LanguageText
    scored: Scored
    rows: NDArray[np.int64]
    totals: Floats
    sizes: Floats

    def perplexity(self, unit: str, key: int) -> Interval:
        """Return the perplexity exp(−Σ log p / Σ units), with a bootstrap interval over sentences.

        ``unit`` is one of UNITS, and ``key`` is the key of the random draws.

        Raises:
            InputError: A log probability is NaN or infinite.
        """
        return bootstrap_metric(self._sums(unit), _perplexities, key)

    def of_sentences(self) -> Interval:
        """Return the geometric mean of exp(−Σ log p / tokens) over sentences (Kallini et al. 2024).

        The interval is Student's t interval of the mean of −Σ log p / tokens, mapped by exp.

        Raises:
            InputError: A log probability is NaN or infinite.
        """
        losses = mean_interval(-self.totals / self.sizes[:, UNITS.index("token")])
        low, high = (None if bound is None else math.exp(min(bound, LARGEST)) for bound in (losses.low, losses.high))
        return replace(losses, mean=math.exp(min(losses.mean, LARGEST)), low=low, high=high)

    def bits(self, key: int) -> Interval:
        """Return the bits per byte, −Σ log₂ p / Σ bytes, with a bootstrap interval over sentences.

        ``key`` is the key of the random draws.

        Raises:
            InputError: A log probability is NaN or infinite.
        """
        return bootstrap_metric(self._sums("byte"), lambda sums: sums[..., 0] / (sums[..., 1] * math.log(2)), key)

    def _sums(self, unit: str) -> Floats:
        return np.stack([-self.totals, self.sizes[:, UNITS.index(unit)]], axis=1)[None]


def _perplexities(sums: Floats) -> Floats:
    found: Floats = np.exp(np.minimum(sums[..., 0] / sums[..., 1], LARGEST))
    return found


def sentences_probe(given: ProbeInput, report: Report = silent) -> ProbeResult:
    """Score the sentences of a text in the source language and in the other language.

    Raises:
        InputError: A text cannot be read (see `read_texts`) or scored (see `score`), no sentence is left, or a log
            probability is NaN or infinite.
    """
    config, counts = given.config.of(SentencesConfig), Counter[str]()
    measured: dict[Role, Measured] = {}
    for role, text in read_texts(given).items():
        counts.update(text.counts)
        scored = score(given.body(role), given.reader(role), text.corpus, config.masking, report, given.name(role))
        measured[role] = _measured(given.name(role), text, scored, counts)
    found = {role: values_of(one, given.config.seed) for role, one in measured.items()}
    values: dict[str, Any] = {
        "model": {role: "causal" if given.body(role).causal else "masked" for role in measured},
        "split": {role: one.text.split for role, one in measured.items()},
        "languages": {role: to_json(of) for role, of in found.items()},
        "counts": {reason: count for reason, count in counts.items() if count},
    }
    named = {one.name: found[role] for role, one in measured.items()}
    tables = [perplexity_table(named), example_table(list(measured.values()))]
    drawn = position_lines(list(measured.values()))
    files = {"sentences.parquet": pa.concat_tables([sentence_table(one) for one in measured.values()])}
    notes = [
        f"The model was trained on this text of {one.name}."
        for role, one in measured.items()
        if one.text.split == "train" and _is_pretraining_text(role, given)
    ]
    return ProbeResult(values, tables, [drawn] if drawn else [], notes, _summary(named), files)


def _is_pretraining_text(role: Role, given: ProbeInput) -> bool:
    """Return True if the model was pretrained on the measured text of a language."""
    settings, pretrained = given.config.of(SentencesConfig), given.pretrained
    if role == "source":
        return settings.text is None
    is_own = settings.other is None and (pretrained.natural or settings.text is None)
    return is_own and given.same_model and not pretrained.notes  # a note says that the model has not seen the language


def _measured(name: str, text: LanguageText, scored: Scored, counts: Counter[str]) -> Measured:
    tokens, lengths = np.diff(scored.bounds), text.corpus.lengths
    empty = (tokens == 0) & ~scored.too_long
    long = int(scored.too_long.sum())
    counts[f"{name}: sentences with more tokens than the model reads"] += long
    counts[f"{name}: sentences without a token"] += int(empty.sum())
    rows = np.flatnonzero(~scored.too_long & ~empty & (lengths > 0)).astype(np.int64)
    if not len(rows):
        reason = (
            f"no sentence of {name} is left to score: of {plural(len(tokens), 'sentence')}, {long:,} with more tokens "
            f"than the model reads, and {int(empty.sum()):,} without a token"
        )
        hint = "give a text with shorter sentences" if long else "give another text"
        raise InputError(reason, keys="sentences", hint=hint, code="empty")
    size = np.asarray([len(line.encode()) for line in text.spelling.texts()])
    sizes = np.stack([tokens, text.spelling.lengths, size], axis=1)[rows].astype(np.float64)
    return Measured(name, text, scored, rows, scored.sentences[rows], sizes)


def values_of(one: Measured, seed: int) -> dict[str, Any]:
    """Return the measures of a language, with intervals over sentences.

    Log probabilities are in nats. ``tokens``, ``words`` and ``bytes`` are the sizes of the scored text. ``seed`` is the
    seed of the bootstrap intervals.

    Raises:
        InputError: A log probability is NaN or infinite.
    """
    key = key_of("sentences", seed)
    return {
        "sentences": len(one.rows),
        "log_probability": mean_interval(one.totals),
        "perplexity": {**{unit: one.perplexity(unit, key) for unit in UNITS}, "sentence": one.of_sentences()},
        "bits_per_byte": one.bits(key),
        **{f"{unit}s": int(one.sizes[:, number].sum()) for number, unit in enumerate(UNITS)},
    }


def perplexity_table(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return a table with a column for each language: log probability, perplexities and bits per byte.

    ``found`` has the measures of each language (`values_of`) by its name.
    """
    rows = [["sentences", *(f"{of['sentences']:,}" for of in found.values())]]
    rows.append(["log p of a sentence (nats)", *(_cell(of["log_probability"]) for of in found.values())])
    for unit in UNITS:
        rows.append([f"perplexity per {unit}", *(_cell(of["perplexity"][unit], ".4g") for of in found.values())])
    rows.append(
        ["geometric mean over sentences", *(_cell(of["perplexity"]["sentence"], ".4g") for of in found.values())]
    )
    rows.append(["bits per byte", *(_cell(of["bits_per_byte"], ".3f") for of in found.values())])
    title = "Words and bytes are those of the source spelling. Intervals are 95 % over sentences."
    return Table(title, ["measure", *found], rows)


def _cell(interval: Interval, form: str = ".2f") -> str:
    return with_bounds(interval.mean, interval.low, interval.high, form)


def example_table(measured: Sequence[Measured]) -> Table:
    """Return a table of the first EXAMPLES sentences of each language, with the surprisal of their words in bits.

    A sentence is cut after SHOWN_WORDS words.
    """
    rows = []
    for one in measured:
        words, surprisal = one.text.corpus.form.values(), -one.scored.words / math.log(2)
        for row, total in list(zip(one.rows.tolist(), one.totals.tolist(), strict=True))[:EXAMPLES]:
            start, stop = one.text.corpus.offsets[row : row + 2].tolist()
            stop = min(stop, start + SHOWN_WORDS)
            told = " ".join(
                f"{word} ({bits:.1f})" for word, bits in zip(words[start:stop], surprisal[start:stop], strict=True)
            )
            rows.append([one.name, told, f"{total:.2f}"])
    return Table(
        "Surprisal of words in bits, in the first sentences.", ["language", "sentence", "log p"], rows, texts=2
    )


def position_lines(measured: Sequence[Measured]) -> Drawing | None:
    """Draw the mean surprisal in bits of the n-th word of a sentence, for n from 1 to PLACES.

    A number n with fewer than FEWEST sentences is left out. If all numbers are left out, the result is None.

    Raises:
        InputError: A log probability is NaN or infinite.
    """
    lines = []
    for one in measured:
        kept = np.isin(one.text.corpus.sentence_of_word, one.rows)
        place, bits = one.text.corpus.position[kept], -one.scored.words[kept] / math.log(2)
        groups = [(number + 1, bits[place == number]) for number in range(PLACES)]
        points = [(number, mean_interval(of)) for number, of in groups if len(of) >= FEWEST]
        if points:
            lines.append(interval_series(one.name, [x for x, _ in points], [interval for _, interval in points]))
    if not lines:
        return None
    note = "Mean surprisal of the n-th word of a sentence. Bands are 95 % intervals."
    title, axes = "Surprisal by place in the sentence", ("word of the sentence", "surprisal (bits)")
    return lines_over("sentences-places", title, lines, axes, note)


def sentence_table(one: Measured) -> pa.Table:
    """Return a table of the scored sentences, with the log probabilities of sentences, words and tokens.

    Log probabilities are in nats. The column ``source`` has the sentence in its source spelling.
    """
    corpus, scored, tokens = one.text.corpus, one.scored, one.scored.encoded
    words, of_words = corpus.form.values(), scored.words.tolist()
    of_tokens, pieces = scored.tokens.tolist(), np.diff(tokens.word_offsets)
    spans = [(corpus.offsets[row : row + 2].tolist(), scored.bounds[row : row + 2].tolist()) for row in one.rows]
    spelled = one.text.spelling.texts()
    return pa.table(
        {
            "language": pa.array([one.name] * len(one.rows), pa.string()),
            "sentence": pa.array(corpus.ids[one.rows]),
            "source": pa.array([spelled[row] for row in one.rows.tolist()], pa.string()),
            "log_probability": pa.array(one.totals),
            "words": pa.array([words[a:b] for (a, b), _ in spans], pa.list_(pa.string())),
            "tokens_of_words": pa.array([pieces[a:b].tolist() for (a, b), _ in spans], pa.list_(pa.int64())),
            "word_log_probabilities": pa.array([of_words[a:b] for (a, b), _ in spans], pa.list_(pa.float64())),
            "token_ids": pa.array([tokens.ids[a:b].tolist() for _, (a, b) in spans], pa.list_(pa.int64())),
            "token_log_probabilities": pa.array([of_tokens[a:b] for _, (a, b) in spans], pa.list_(pa.float64())),
        }
    )


def _summary(found: Mapping[str, Mapping[str, Any]]) -> str:
    told = " and ".join(f"{of['bits_per_byte'].mean:.2f} in {name}" for name, of in found.items())
    return f"The model needs {told} bits per byte of the source spelling."
