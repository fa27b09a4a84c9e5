"""Settings of the probe ``sentences``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from probes.measures.base import ProbeSettings
from probes.results.declared import AT_LEAST_ONE, AT_LEAST_ZERO, Measure, Tree
from synthlang.references import OmitDefaultFromHash, SourceSpec

UNITS = ("token", "word", "byte")
"""Units over which a perplexity is computed. Words and bytes are counted in the source spelling."""
LANGUAGE: Tree = {
    "sentences": Measure("sentences", "sentences", AT_LEAST_ZERO),
    "log_probability": {"mean": Measure("nats", "sentences")},
    "perplexity": {
        **{unit: {"mean": Measure("perplexity", f"{unit}s", AT_LEAST_ONE)} for unit in UNITS},
        "sentence": {"mean": Measure("perplexity", "sentences", AT_LEAST_ONE, "geometric mean over sentences")},
    },
    "bits_per_byte": {"mean": Measure("bits", "bytes", AT_LEAST_ZERO, "bits per byte", main=True)},
}
"""The measures of one language."""
Masking = Literal["within-word", "token"]


class SentencesConfig(ProbeSettings):
    """Settings of the probe ``sentences``: the texts to score, and the masked tokens of an encoder."""

    smoke: ClassVar[Mapping[str, Any]] = {"most": 20}

    title: ClassVar[str] = "Scores of sentences"
    about: ClassVar[str] = (
        "Log probability of sentences: of a decoder, or the pseudo-log-likelihood of an encoder. Perplexity per word "
        "and per byte counts the words and bytes of the source spelling, so that languages and tokenizers can be "
        "compared. Values of encoders and of decoders cannot be compared with each other."
    )
    run: ClassVar[str] = "probes.measures.sentences.probe:sentences_probe"
    check: ClassVar[str] = "probes.measures.sentences.texts:check_text"
    measures: ClassVar[Tree] = {"languages": {"source": LANGUAGE, "target": LANGUAGE}}
    reads_sentences: ClassVar[bool] = False

    text: SourceSpec | None = None
    """Text in the source language (null: the pretraining text).

    In a derived language, the sentences of this text are scored after the transforms.
    """
    other: SourceSpec | None = None
    """Text in the other language (null: the derived text, or for a natural language its pretraining text)."""
    split: Literal["train", "dev", "test"] | None = None
    """Split of the texts (null: ``dev``, else ``test``, else ``train``)."""
    most: int = Field(default=1000, ge=1)
    """Maximum number of sentences, from the beginning of the split."""
    affected: Annotated[bool, OmitDefaultFromHash()] = False
    """Score only the sentences that the transforms of a language affect, among the first ``most``.

    Kallini et al. 2024 test on such sentences. The languages of ``shuffle``, ``reverse`` and ``hop`` flag them. A
    language without transforms keeps all sentences.
    """
    masking: Masking = "within-word"
    """Masked tokens when an encoder predicts a token.

    ``within-word`` masks also the later tokens of the same word (Kauf & Ivanova 2023). ``token`` masks this token only
    (Salazar et al. 2020), which overestimates words of several tokens. A decoder has no masks.
    """
