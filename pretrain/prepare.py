"""Build the data artifacts of a config: vocabulary, shards, sentence pairs, dictionary."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pretrain.artifacts import Artifacts, Parallel, RunLanguage
from pretrain.config import LanguageConfig, PretrainConfig
from pretrain.hub import open_base
from pretrain.model.from_hf import check_start
from synthlang.dictionary.ids import all_candidates, build_id_dictionary, word_files
from synthlang.dictionary.word_dictionary import trained_types
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language, checked_source
from synthlang.progress import Report, silent
from synthlang.shards import Shards, read_shards, shards_fingerprint, write_shards
from synthlang.sources import open_source
from synthlang.sources.base import TRAINING, Source, check_split
from synthlang.sources.text import LinesSource
from synthlang.store import Store
from synthlang.vocabularies import Extension, IdSpace, LanguageTokenizer, build_id_space, hf_id_space
from synthlang.wording import plural


def prepare(config: PretrainConfig, store: Store, report: Report = silent) -> Artifacts:
    """Open or build every data artifact of a config.

    Args:
        config: The settings of the run.
        store: Store that holds the artifacts. Artifacts that it has already are not built again.
        report: Function that shows progress.

    Raises:
        InputError: A source cannot be read, or lacks a training split or a column that a language needs. The two files
            of a pair have different numbers of lines. The vocabulary has nearly no word of a text. The checkpoint to
            start from cannot be used. A term lacks sentence pairs, a dictionary or a mask token. The setting
            ``sharing.softmax`` has no effect. An artifact in the store is damaged.
        DiskError: An artifact cannot be written, for example because the disk is full.
    """
    sources = _open_sources(config)
    named = [(m.name, sources[m.source], m.language) for m in config.all_languages]
    words = word_files(config.dictionary.path, [m.name for m in config.all_languages]) if len(named) > 1 else {}
    task, total = f"prepare {config.label}", 1 + sum(len({"train", "dev"} & {*s.splits}) for _, s, _ in named)
    report(task, 0, total, "vocabulary")
    id_space, bound, extension = _vocabulary(config, named, store)
    languages, done = [], 1
    for m, language, tokenizer in zip(config.all_languages, bound, id_space.languages, strict=True):
        source, texts = sources[m.source], {}
        for split in ("train", "dev"):
            if split in source.splits:
                report(task, done, total, f"{m.name} {split}")
                texts[split] = _shards(source, split, language, tokenizer, store)
                done += 1
        train, dev = texts["train"], texts.get("dev")
        _check_words(train, id_space, m)
        redrawn = [language.redrawn(number) for number in range(1, m.copies)]
        copies = tuple(_shards(source, "train", one, tokenizer, store) for one in redrawn)
        languages.append(RunLanguage(m.name, m.source, source, language, tokenizer, train, dev, copies))
    report(task, done, total, "")
    parallel = _parallel(config, languages, sources, store) if config.objective.needing("pairs") else ()
    parents = _parents(languages, id_space, parallel)
    own_rows = config.sharing.embeddings == "separate"
    trains = [language.train for language in languages]
    dictionary = None
    if config.objective.needing("dictionary"):
        dictionary = build_id_dictionary(config.dictionary, id_space, trains, store, own_rows)
        parents["dictionary"] = dictionary.fingerprint
    candidates = tuple(all_candidates(id_space, [shards.counts for shards in trains], words, own_rows))
    if config.start is not None:
        parents["start"] = open_base(config.start.model).parents()["model"]
    return Artifacts(id_space, tuple(languages), dictionary, candidates, own_rows, parallel, extension, parents)


def _check_words(train: Shards, id_space: IdSpace, language: LanguageConfig) -> None:
    """Raise InputError if the vocabulary lacks all words, or nearly all tokens, of the training text of a language."""
    place = f"language {language.name}"
    if not len(trained_types(train.counts, id_space.specials.all)):  # no position could be masked
        reason = f"the vocabulary has none of the words of {language.source}"
        hint = "choose another text or another model to start from, or add subwords with start.extend"
        raise InputError(reason, place, hint=hint, code="empty")
    train.reading(id_space.specials.unk).check(place, "the vocabulary")


def _parents(languages: Sequence[RunLanguage], id_space: IdSpace, parallel: Sequence[Parallel]) -> dict[str, str]:
    """Return the fingerprints of the texts, the vocabulary and the sentence pairs of a run."""
    parents = {f"language {i}": m.train.fingerprint for i, m in enumerate(languages)}
    for i, m in enumerate(languages):
        parents |= {f"language {i} copy {n}": copy.fingerprint for n, copy in enumerate(m.copies, 1)}
    parents["vocabulary"] = id_space.fingerprint
    for pair in parallel:
        sides = {"left": pair.left_shards.fingerprint, "right": pair.right_shards.fingerprint}
        parents[f"pairs {pair.left} {pair.right}"] = fingerprint("pairs", **sides)
    return parents


def _open_sources(config: PretrainConfig) -> dict[str, Source]:
    """Open every source, and check that it has a training split and the columns that the languages read."""
    own = [(entry.language, entry.source) for entry in config.all_languages]
    named = {entry.name: entry.language for entry in config.all_languages}
    for pair in config.parallel:
        own += [(named[name], spec) for name, spec in zip(pair.languages, pair.sources, strict=True)]
    sources = {spec: open_source(spec) for spec in dict.fromkeys(spec for _, spec in own)}
    for spec, source in sources.items():
        check_split(source, "train", spec, hint=TRAINING)
    for language, spec in own:
        sources[spec] = checked_source(language, sources[spec], spec)
    return sources


def _vocabulary(
    config: PretrainConfig, named: Sequence[tuple[str, Source, Language]], store: Store
) -> tuple[IdSpace, tuple[Language, ...], Extension | None]:
    extension = None
    if config.start is None:
        id_space, bound = build_id_space(config.vocabulary, named, store)
    else:
        check_start(config.start.model, config.batch.length, config.sharing.layers, config.objective.is_causal)
        id_space, bound, extension = hf_id_space(config.start.model, named, store, config.start.extend)
        if "mlm" in config.objective.terms and id_space.specials.mask == id_space.specials.eos:
            reason = f"the term mlm needs a mask token, which {config.start.model} lacks"
            hint = "leave the term mlm out, or start from another model"
            raise InputError(reason, keys="objective.weights", hint=hint, code="conflict")
    first, *others = (language.ids for language in id_space.languages)
    alone = config.sharing.softmax == "language" and config.sharing.embeddings == "shared"
    if alone and all(np.array_equal(first, ids) for ids in others):
        reason = "the value language has no effect, because all languages have the same ids"
        raise InputError(reason, keys="sharing.softmax", hint="leave this key out", code="no_effect")
    return id_space, bound, extension


def _shards(source: Source, split: str, language: Language, tokenizer: LanguageTokenizer, store: Store) -> Shards:
    name = shards_fingerprint(source, split, language, tokenizer)
    path = store.obtain("shards", name, lambda folder: write_shards(source, split, language, tokenizer, folder))
    shards = read_shards(path, name)
    if shards.counts[list(tokenizer.specials.control)].any():
        reason = "was written by an older version and has control tokens in the text"
        raise InputError(reason, path, hint="delete the folder and run the command again", code="format")
    return shards


def _parallel(
    config: PretrainConfig, languages: Sequence[RunLanguage], sources: dict[str, Source], store: Store
) -> tuple[Parallel, ...]:
    number = {language.name: i for i, language in enumerate(languages)}
    pairs = [(a, b, languages[a].train, languages[b].train) for a, b in config.derived_pairs]
    found = [Parallel(a, b, left, right, _same_sentences(left, right)) for a, b, left, right in pairs]
    for which, given in enumerate(config.parallel):
        keys = f"parallel.{which}.sources"
        left, right = (
            _shards(sources[spec], "train", languages[number[n]].language, languages[number[n]].tokenizer, store)
            for n, spec in zip(given.languages, given.sources, strict=True)
        )
        counts = [source.lines("train") for spec in given.sources if isinstance(source := sources[spec], LinesSource)]
        if len(counts) == 2 and counts[0] != counts[1]:  # the lines are probably not translations of each other
            reason = f"{given.sources[0]} has {plural(counts[0], 'line')}, but {given.sources[1]} has {counts[1]:,}"
            hint = "name two files in which line n of one translates line n of the other"
            raise InputError(reason, keys=keys, hint=hint, code="conflict")
        one, other = (number[name] for name in given.languages)
        pair = Parallel(one, other, left, right, _same_sentences(left, right))
        if not len(pair.rows):
            reason = f"{' and '.join(given.languages)} have no sentence pair, because no sentence number occurs in both"
            hint = "give two texts in which sentence n of one translates sentence n of the other"
            raise InputError(reason, keys=keys, hint=hint, code="empty")
        found.append(pair)
    return tuple(found)


def _same_sentences(left: Shards, right: Shards) -> NDArray[np.int64]:
    _, a, b = np.intersect1d(left.sentence_ids, right.sentence_ids, assume_unique=True, return_indices=True)
    return np.stack([a, b], axis=1).astype(np.int64)
