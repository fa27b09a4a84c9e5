"""BPEs trained on the text of members, each an artifact of the store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from synthlang.corpus import Corpus
from synthlang.files import atomic_folder
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.sources.base import Source
from synthlang.store import Store
from synthlang.vocabularies.spec import VocabularySpec
from synthlang.vocabulary import FORMAT, Vocabulary, train_vocabulary

Text = tuple[Source, Language | None]  # None: the source as it is


def text_of(source: Source, language: Language) -> Text:
    """The training text of a language bound to its source."""
    return source, language if language.transforms else None


def text_fingerprint(text: Text) -> dict[str, str | None]:
    """Of the sentences of a training text."""
    source, language = text
    return {"source": source.fingerprint, "language": language.fingerprint if language else None, "split": "train"}


def batches_of_text(text: Text) -> Iterator[Corpus]:
    """The training text, batch by batch, derived on the way."""
    source, language = text
    for batch in source.batches("train"):
        yield batch if language is None else language.derive(batch)


def trained(spec: VocabularySpec, texts: Sequence[Text], store: Store) -> Vocabulary:
    """One BPE of all the texts, read from the store or trained and put there. Memory grows with word types only."""
    parts = {"size": spec.size, "min_frequency": spec.min_frequency, "texts": [text_fingerprint(t) for t in texts]}
    name = fingerprint("vocabulary-training", format=FORMAT, **parts)

    def build(path: Path) -> None:
        batches = (batch for text in texts for batch in batches_of_text(text))
        vocabulary = train_vocabulary(batches, spec.size, spec.min_frequency)
        with atomic_folder(path) as folder:
            vocabulary.save(folder)

    return Vocabulary.load(store.obtain("vocabulary", name, build))
