"""From a config to the data artifacts it trains on: vocabulary, shards, sentence pairs, dictionary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pretrain.config import PretrainConfig
from pretrain.hub import open_base
from synthlang.dictionary import IdDictionary, build_id_dictionary
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, check_source
from synthlang.progress import Report, silent
from synthlang.shards import Shards, read_shards, shards_fingerprint, write_shards
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split
from synthlang.store import Store
from synthlang.vocabularies import Extension, IdSpace, MemberTokenizer, build_id_space, hf_id_space


@dataclass(frozen=True)
class Member:
    """One language of a run with its data; ``spec`` names the source, ``language`` is bound to what it needs."""

    name: str
    spec: str
    source: Source
    language: Language
    tokenizer: MemberTokenizer
    train: Shards
    dev: Shards | None


@dataclass(frozen=True)
class Parallel:
    """Sentence pairs of two members: ``rows`` [n, 2] are the sentences' rows in the shards of each side."""

    left: int
    right: int
    left_shards: Shards
    right_shards: Shards
    rows: NDArray[np.int64]


@dataclass(frozen=True)
class Artifacts:
    """What a run trains on; the first member is the parent."""

    id_space: IdSpace
    members: tuple[Member, ...]
    dictionary: IdDictionary | None
    parallel: tuple[Parallel, ...]
    extension: Extension | None
    parents: dict[str, str]


def prepare(config: PretrainConfig, store: Store, report: Report = silent) -> Artifacts:
    """Open or build every data artifact of a config."""
    sources = _open_sources(config)
    named = [(m.name, sources[m.source], m.language) for m in config.members]
    tick = _Ticker(report, f"prepare {config.label}", 1 + sum(len({"train", "dev"} & {*s.splits}) for _, s, _ in named))
    id_space, languages, extension = tick("vocabulary", lambda: _vocabulary(config, named, store))
    members = tuple(
        Member(
            m.name,
            m.source,
            sources[m.source],
            language,
            tokenizer,
            tick(f"{m.name} train", partial(_shards, sources[m.source], "train", language, tokenizer, store)),
            tick(f"{m.name} dev", partial(_shards, sources[m.source], "dev", language, tokenizer, store))
            if "dev" in sources[m.source].splits
            else None,
        )
        for m, language, tokenizer in zip(config.members, languages, id_space.members, strict=True)
    )
    # by number: what a language is called does not change the weights
    parents = {f"language {i}": m.train.fingerprint for i, m in enumerate(members)}
    parents["vocabulary"] = id_space.fingerprint
    parallel = _parallel(config, members, sources, store) if "tlm" in config.objective.terms else ()
    for pair in parallel:
        parents[f"pairs {pair.left} {pair.right}"] = fingerprint(
            "pairs", left=pair.left_shards.fingerprint, right=pair.right_shards.fingerprint
        )
    dictionary = None
    if config.objective.needs_dictionary:
        dictionary = _dictionary(config, members, id_space, store)
        parents["dictionary"] = dictionary.fingerprint
    if config.start is not None:
        parents["start"] = open_base(config.start.model).parents()["model"]
    return Artifacts(id_space, members, dictionary, parallel, extension, parents)


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


def _open_sources(config: PretrainConfig) -> dict[str, Source]:
    """Every source by its spec, checked to have what the languages read; costs no reading."""
    specs = [member.source for member in config.members] + [s for pair in config.parallel for s in pair.sources]
    sources = {spec: open_source(spec) for spec in dict.fromkeys(specs)}
    for spec, source in sources.items():
        check_split(source, "train", spec)
    for member in config.members:
        check_source(member.language, sources[member.source], member.source)
    return sources


def _vocabulary(
    config: PretrainConfig, named: Sequence[tuple[str, Source, Language]], store: Store
) -> tuple[IdSpace, tuple[Language, ...], Extension | None]:
    if config.start is None:
        return (*build_id_space(config.vocabulary, named, store), None)
    return hf_id_space(config.start.model, named, store, config.start.extend)


def _shards(source: Source, split: str, language: Language, tokenizer: MemberTokenizer, store: Store) -> Shards:
    name = shards_fingerprint(source, split, language, tokenizer)
    path = store.obtain("shards", name, lambda folder: write_shards(source, split, language, tokenizer, folder))
    return read_shards(path, name)


def _parallel(
    config: PretrainConfig, members: tuple[Member, ...], sources: dict[str, Source], store: Store
) -> tuple[Parallel, ...]:
    """The sentence pairs of every pair of languages that has some."""
    number = {member.name: i for i, member in enumerate(members)}
    pairs = [(a, b, members[a].train, members[b].train) for a, b in config.derived_pairs]
    for given in config.parallel:
        left, right = (
            _shards(sources[spec], "train", members[number[n]].language, members[number[n]].tokenizer, store)
            for n, spec in zip(given.languages, given.sources, strict=True)
        )
        _check_lines(given.sources, (left, right))
        pairs.append((number[given.languages[0]], number[given.languages[1]], left, right))
    found = tuple(Parallel(a, b, left, right, _same_sentences(left, right)) for a, b, left, right in pairs)
    for pair in found:
        if not len(pair.rows):
            names = f"{members[pair.left].name} and {members[pair.right].name}"
            raise InputError(f"tlm: no sentence of {names} is a pair; pairs are sentences of the same number")
    return found


def _check_lines(specs: tuple[str, str], sides: tuple[Shards, Shards]) -> None:
    """Raise InputError for two files of which one is longer: they are hardly translations line by line."""
    lines = [int(side.sentence_ids[-1]) + 1 for side in sides]
    if lines[0] != lines[1]:
        raise InputError(f"parallel: {specs[0]} ends with line {lines[0]}, {specs[1]} with line {lines[1]}")


def _same_sentences(left: Shards, right: Shards) -> NDArray[np.int64]:
    """The rows [n, 2] of the sentences that both have."""
    _, a, b = np.intersect1d(left.sentence_ids, right.sentence_ids, assume_unique=True, return_indices=True)
    return np.stack([a, b], axis=1).astype(np.int64)


def _dictionary(config: PretrainConfig, members: tuple[Member, ...], id_space: IdSpace, store: Store) -> IdDictionary:
    return build_id_dictionary(config.dictionary, id_space, [member.train for member in members], store)
