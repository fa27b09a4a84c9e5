"""Token ids of both languages beside their words, and how many ids the two share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from synthlang.corpus import Corpus
from synthlang.export.arrow import lists, numbers
from synthlang.language import Language
from synthlang.overlap import Overlap
from synthlang.vocabulary import Encoded, Vocabulary, encode_corpus


@dataclass(frozen=True)
class BatchIds:
    """A batch as ids without ``<s>`` and ``</s>``: an Arrow list for each sentence, and how often each id occurs.

    ``control_words``: how many words spelled a control token, which is the unknown one now.
    """

    column: Any
    counts: NDArray[np.int64]
    control_words: int


def batch_ids(vocabulary: Vocabulary, language: Language, parent: Corpus, derived: Corpus) -> tuple[BatchIds, BatchIds]:
    """The ids of a batch in the parent and in the language: those of a transliterated word are moved by V."""
    size = vocabulary.size_with(language.script)
    return (
        _ids(encode_corpus(vocabulary.parent, parent).as_text(), parent, size),
        _ids(language.encode(derived, vocabulary), derived, size),
    )


def _ids(encoded: Encoded, corpus: Corpus, size: int) -> BatchIds:
    column = lists(encoded.word_offsets[corpus.offsets], numbers(encoded.ids.astype(np.int32)))
    counts = np.bincount(encoded.ids, minlength=size).astype(np.int64)
    return BatchIds(column, counts, encoded.control_words)


def overlap_of_ids(parent: NDArray[np.int64], derived: NDArray[np.int64]) -> Overlap:
    """The overlap of two texts given how often each id occurs, [ids] each."""
    both = np.minimum(parent, derived)
    return Overlap(int((both > 0).sum()), int((parent > 0).sum()), int(both.sum()), int(parent.sum()))


def write_tokenizers(vocabulary: Vocabulary, language: Language, out: Path) -> list[Path]:
    """Both tokenizers as folders that AutoTokenizer loads; returns their files.

    That of a language of tokens gives the ids of its words, before tokens are moved.
    """
    vocabulary.save(out / "tokenizer" / "parent")
    vocabulary.save(out / "tokenizer" / "derived", language.script)
    return sorted(path for path in (out / "tokenizer").rglob("*") if path.is_file())
