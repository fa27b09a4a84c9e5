"""From a config to the data artifacts it trains on: vocabulary, shards, dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from synthlang.dictionary import read_dictionary, trained_types, write_dictionary
from synthlang.errors import InputError
from synthlang.files import atomic_folder
from synthlang.fingerprint import fingerprint
from synthlang.language import PARENT, Language, bind_language, check_source
from synthlang.progress import Report, silent
from synthlang.shards import Shards, read_shards, shards_fingerprint, write_shards
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split
from synthlang.store import Store
from synthlang.vocabulary import Vocabulary, train_vocabulary


@dataclass(frozen=True)
class Artifacts:
    """What a run trains on; ``train`` and ``dev`` have the parent first, then the derived language."""

    vocabulary: Vocabulary
    languages: tuple[Language, Language]
    train: tuple[Shards, Shards]
    dev: tuple[Shards, Shards] | None
    pairs: NDArray[np.int64] | None
    parents: dict[str, str]

    @property
    def ids(self) -> int:
        """Rows of the model's embedding: V, or 2V with a transliterated language."""
        return self.vocabulary.size_with(self.languages[1].script)


def prepare(config: PretrainConfig, store: Store, report: Report = silent) -> Artifacts:
    """Open or build every data artifact of a config."""
    source = open_source(config.source)
    check_split(source, "train", config.source)
    check_source(config.language, source, config.source)
    steps = 3 + 2 * ("dev" in source.splits)
    tick = _Ticker(report, f"prepare {config.objective.kind} {config.language.name}", steps)
    vocabulary = tick("vocabulary", lambda: _vocabulary(config, source, store))
    derived = bind_language(config.language, source, vocabulary)
    languages = (PARENT, derived)
    opened = {
        (split, language.name): tick(f"{split} shards", partial(_shards, source, split, language, vocabulary, store))
        for split in ("train", "dev")
        if split in source.splits
        for language in languages
    }
    train = (opened["train", PARENT.name], opened["train", derived.name])
    dev = (opened["dev", PARENT.name], opened["dev", derived.name]) if "dev" in source.splits else None
    parents = {"parent": train[0].fingerprint, "derived": train[1].fingerprint}
    pairs = None
    if config.objective.kind == "align_mlm":
        pairs, manifest = _dictionary(config, train[0], vocabulary, store)
        parents["dictionary"] = manifest["fingerprint"]
    return Artifacts(vocabulary, languages, train, dev, pairs, parents)


class _Ticker:
    """Counts the steps of a preparation aloud."""

    def __init__(self, report: Report, task: str, total: int) -> None:
        self.report, self.task, self.total, self.done = report, task, total, 0

    def __call__(self, note: str, work: Callable[[], Any]) -> Any:
        self.report(self.task, self.done, self.total, note)
        result = work()
        self.done += 1
        self.report(self.task, self.done, self.total, note)
        return result


def _vocabulary(config: PretrainConfig, source: Source, store: Store) -> Vocabulary:
    settings = config.vocabulary.model_dump(mode="json")
    name = fingerprint("vocabulary-training", settings=settings, source=source.fingerprint, split="train")

    def build(path: Path) -> None:
        vocabulary = train_vocabulary(source.batches("train"), **settings)
        with atomic_folder(path) as folder:
            vocabulary.save(folder)

    return Vocabulary.load(store.obtain("vocabulary", name, build))


def _shards(source: Source, split: str, language: Language, vocabulary: Vocabulary, store: Store) -> Shards:
    name = shards_fingerprint(source, split, language, vocabulary)
    return read_shards(
        store.obtain("shards", name, lambda path: write_shards(source, split, language, vocabulary, path))
    )


def _dictionary(
    config: PretrainConfig, parent: Shards, vocabulary: Vocabulary, store: Store
) -> tuple[NDArray[np.int64], dict[str, Any]]:
    spec, script = config.dictionary, config.language.script
    assert script is not None, "checked by the config"
    counts = parent.counts[: vocabulary.size]

    def build(path: Path) -> None:
        write_dictionary(spec, counts, parent.fingerprint, vocabulary, path, script)

    pairs, manifest = read_dictionary(store.obtain("dictionary", spec.fingerprint(parent.fingerprint), build))
    if not len(pairs):
        raise InputError(
            f"dictionary.coverage {spec.coverage} of {len(trained_types(counts))} types gives an empty dictionary"
        )
    return pairs, manifest
