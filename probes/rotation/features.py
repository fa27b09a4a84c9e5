"""Rotations of features: an orthogonal map between the languages of a transfer at each layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from pretrain.adjust.vectors import Subword, layer_numbers
from pretrain.model.language_model import LanguageModel
from probes.models.aligned import Aligned, read_aligned
from probes.models.pretrained import Pretrained, Role
from probes.rotation.dictionary import lowered_text, named_translations, translations
from probes.rotation.fitted import NormalisedMap, fit_layers
from probes.rotation.procrustes import LinearMap
from probes.rotation.saved import load_maps
from probes.rotation.settings import RotationConfig
from probes.states import LanguageSide, StateReader, anchors, linked_vectors, reading, sentence_pairs
from probes.transfer.config import FeaturesConfig
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.progress import Report, silent
from synthlang.references import as_written, resolved
from synthlang.rng import key_of, permutation
from synthlang.store import Store

FORMAT = 1  # raise when the same settings and texts give other maps
SUBWORDS: dict[Literal["first", "last", "mean"], Subword] = {"first": "start", "last": "end", "mean": "mean"}


@dataclass(frozen=True, eq=False)
class Rotation:
    """Maps of the states of one language to the space of the other one, for each layer of the features.

    Attributes:
        moves: The language whose states are mapped.
        layers: The layers of the features.
        maps: The map of each layer. If the maps are linear, states of the other language stay unchanged. Other maps
            also normalise the states of the other language.
        counts: Numbers of used and omitted sentence pairs, word alignments and dictionary pairs by reason, or {} for
            saved maps.
        name: The fingerprint of everything that the maps depend on.
    """

    moves: Role
    layers: tuple[int, ...]
    maps: tuple[NormalisedMap, ...]
    counts: dict[str, int]
    name: str
    _moved: dict[Any, LinearMap | NormalisedMap] = field(default_factory=dict, init=False, repr=False)

    @property
    def reads(self) -> tuple[Role, ...]:
        """The languages whose states must pass through ``apply``."""
        other: Role = "source" if self.moves == "target" else "target"
        return (self.moves,) if self.maps[0].is_linear else (self.moves, other)

    def apply(self, states: Tensor, index: int, role: Role | None = None) -> Tensor:
        """Map states […, d] of one language to the space in which both languages are compared.

        Args:
            states: The states.
            index: The index of the layer in ``layers``.
            role: The language of the states, which must be in ``reads`` (default: the language that moves).
        """
        assert (role or self.moves) in self.reads, role
        key = index, states.device, torch.promote_types(states.dtype, torch.float32)
        if key not in self._moved:  # copy each map to a device only once
            one = self.maps[index]
            self._moved[key] = (one.linear() if one.is_linear else one).to(*key[1:])
        moving = self._moved[key]
        if isinstance(moving, LinearMap) or role in (None, self.moves):
            return moving.apply(states)
        return moving.apply_right(states)

    def to_json(self) -> dict[str, Any]:
        """Return the fingerprint, the mapped language, the measures of each layer's fit and the counts, for JSON."""
        numbers = (one.fit.to_json() if one.is_linear else one.to_json() for one in self.maps)
        layers = [{"layer": layer, **fit} for layer, fit in zip(self.layers, numbers, strict=True)]
        return {"fingerprint": self.name, "moves": self.moves, "layers": layers, "counts": self.counts}


def fit_rotation(
    config: RotationConfig,
    features: FeaturesConfig,
    pretrained: Pretrained,
    seed: int = 0,
    store: Store | None = None,
    report: Report = silent,
    texts: Sequence[Aligned] | None = None,
) -> Rotation:
    """Fit a map for each layer of the features, on vectors of words or sentences that are translations of each other.

    Vectors come from the models before fine-tuning. At most ``config.words`` pairs of vectors are used, from sentence
    pairs in a random order. With ``supervision: dictionary``, they are the first pairs of the file, or the most
    frequent word alignments.

    Args:
        config: The settings of the rotation.
        features: The layers and subwords that the transfer reads.
        pretrained: The models and the two languages.
        seed: The seed of the random order.
        store: The store for word alignments of an aligner.
        report: Function that shows progress.
        texts: The sentence pairs (default: read from the settings).

    Raises:
        InputError: Sentence pairs or a dictionary cannot be read, or there are several pairs of languages. No pair of
            the dictionary occurs in the sentences. The models differ in hidden size, a model lacks a layer, or a layer
            is named twice. The vectors cannot be mapped (see `fit_layers`). With ``config.map``, the maps cannot be
            read, or belong to other models, layers or subwords.
    """
    bodies: dict[Role, LanguageModel] = {"target": pretrained.target_model, "source": pretrained.model}
    sizes = {body.shape.hidden for body in bodies.values()}
    if len(sizes) > 1:
        reason = f"the two models have different hidden sizes, {' and '.join(map(str, sorted(sizes)))}"
        hint = "choose a target_model with the same hidden size, or remove the rotation"
        raise InputError(reason, keys="rotation", hint=hint, code="conflict")
    numbers = {role: layer_numbers(features.layers, body, "features.layers") for role, body in bodies.items()}
    if config.map is not None:
        return _saved(config, user_path(config.map), features, pretrained, numbers)
    if texts is None:
        texts = read_aligned(config.pairs, config.data, pretrained, seed, store, report)
    if len(texts) > 1:
        reason = f"has {len(texts)} sets of sentence pairs, but a rotation is fitted on one set"
        raise InputError(reason, keys="rotation.pairs", hint="keep one of them", code="conflict")
    subword = SUBWORDS[features.subword]
    readers = {"target": pretrained.target, "source": pretrained.source}
    sides = {role: StateReader(body, readers[role].specials, numbers[role], subword) for role, body in bodies.items()}
    text, pairs = _pairs(config, texts[0], (sides["target"], sides["source"]), seed, report)
    moved = pairs if config.moves == "target" else ((y, x) for x, y in pairs)
    method, centre = config.normalise or "none", config.normalise is None and config.centre
    with reading(bodies.values()):
        maps = fit_layers(moved, len(features.layers), next(iter(sizes)), method, centre=centre)
    name = rotation_fingerprint(config, features, pretrained, texts[0], seed)
    return Rotation(config.moves, features.layers, maps, dict(text.data.counts), name)


def rotation_fingerprint(
    config: RotationConfig, features: FeaturesConfig, pretrained: Pretrained, text: Aligned, seed: int
) -> str:
    """Return the fingerprint of everything that the maps depend on."""
    unread = {"pairs", "map", "dictionary"}
    settings = {key: value for key, value in resolved(config, as_written).items() if key not in unread}
    read = {"layers": list(features.layers), "subword": features.subword}
    sides = [[reader.tokenizer.fingerprint, reader.number] for reader in (pretrained.target, pretrained.source)]
    parents: dict[str, Any] = {"model": pretrained.fingerprint, "text": text.text.fingerprint, "sides": sides}
    if config.dictionary is not None:
        parents["dictionary"] = sha256_file(user_path(config.dictionary))
    return fingerprint("rotation", format=FORMAT, settings=settings, features=read, seed=seed, parents=parents)


def _saved(
    config: RotationConfig,
    folder: Path,
    features: FeaturesConfig,
    pretrained: Pretrained,
    numbers: Mapping[Role, tuple[int, ...]],
) -> Rotation:
    """Read the maps that the probe ``maps`` saved."""
    saved = load_maps(folder)
    about, subword = saved.about, SUBWORDS[features.subword]
    if (about.model, about.language) != (pretrained.fingerprint, pretrained.target.language.name):
        reason = f"has maps of a model other than {pretrained.name}"
        if about.model == pretrained.fingerprint:
            reason = f"has maps for the language {about.language}, not {pretrained.target.language.name}"
        hint = "run the probe maps for this model and language"
        raise InputError(reason, folder, hint=hint, code="conflict")
    if about.moves != config.moves or about.subword != subword:
        reason = (
            f"has maps with moves: {about.moves} and subword: {about.subword}, but the transfer needs moves: "
            f"{config.moves} and subword: {subword}"
        )
        own = next(name for name, of_probe in SUBWORDS.items() if of_probe == about.subword)
        hint = (
            f"set rotation.moves to {about.moves} and features.subword to {own}, or run the probe maps with the needed "
            "settings"
        )
        raise InputError(reason, folder, hint=hint, code="conflict")
    maps = []
    for source, target in zip(numbers["source"], numbers["target"], strict=True):
        if (source, target) not in zip(about.source, about.target, strict=True):
            reason = (
                f"has no map between layer {source} of the source language and layer {target} of the target language"
            )
            hint = "run the probe maps with these layers, or change features.layers"
            raise InputError(reason, folder, hint=hint, code="missing")
        maps.append(saved.maps[source])
    return Rotation(config.moves, features.layers, tuple(maps), {}, saved.name)


def _pairs(
    config: RotationConfig, text: Aligned, sides: tuple[StateReader, StateReader], seed: int, report: Report
) -> tuple[Aligned, Iterator[tuple[Tensor, Tensor]]]:
    """Return the text that was used, and batches of paired target and source vectors [layers, n, d].

    With a dictionary, the text is lower-cased if case is ignored, and its counts include missing dictionary words.
    """
    data = text.data
    if config.supervision == "parallel":
        return text, linked_vectors(data, *sides, config.words, seed, report)
    if config.supervision == "sentences":
        order = permutation(key_of("rotation-order", seed, data.name), len(data.train))
        return text, sentence_pairs(data, *sides, np.sort(data.train[order][: config.words]), report=report)
    read = lowered_text(text) if config.in_small_letters else text
    if config.dictionary is None:
        types = translations(read, config.words)
    else:
        path = user_path(config.dictionary)
        types, missing = named_translations(read, path, config.words, config.in_small_letters)
        counts = {**data.counts, "pairs of the dictionary with a word that is not in the sentences": missing}
        read = replace(read, data=replace(data, counts=counts))

    def means() -> Iterator[tuple[Tensor, Tensor]]:
        left, right = (
            anchors(LanguageSide(name, corpus, sentences, reader), data.train, wanted, report)
            for name, corpus, sentences, reader, wanted in zip(
                ("target", "source"),
                (read.text.left, read.text.right),
                (data.left, data.right),
                sides,
                types.T,
                strict=True,
            )
        )
        yield left, right

    return read, means()
