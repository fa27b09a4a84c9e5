"""ClearNLP trees (spaCy's English pipelines) as UD v2 trees and labels."""

from __future__ import annotations

from collections.abc import Iterable

from synthlang.parsing.clearnlp_clauses import (
    clausal_complements,
    coordination,
    copulas,
    raised_objects,
    recipients,
    run_on_sentences,
)
from synthlang.parsing.clearnlp_labels import labels, name_adjectives, part_of_speech
from synthlang.parsing.clearnlp_names import dates_and_numbers, fixed_expressions, names
from synthlang.parsing.clearnlp_phrases import prepositions
from synthlang.parsing.draft import Draft
from synthlang.parsing.punctuation import attach_punctuation

FORMAT = 1


def is_clearnlp(labels: Iterable[str]) -> bool:
    """Whether the label set of a parser is ClearNLP's: it has ``dobj`` and ``pobj``, which UD has not."""
    return {"dobj", "pobj"} <= set(labels)


def convert(draft: Draft) -> None:
    """Change a ClearNLP tree into a UD tree, in place."""
    coordination(draft)
    run_on_sentences(draft)
    name_adjectives(draft)
    prepositions(draft)
    names(draft)
    dates_and_numbers(draft)
    copulas(draft)
    raised_objects(draft)
    recipients(draft)
    clausal_complements(draft)
    fixed_expressions(draft)
    labels(draft)
    part_of_speech(draft)
    attach_punctuation(draft)
