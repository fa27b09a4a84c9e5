"""Zero-shot transfer: fine-tuning on one language and testing on another.

parent    trained and tested on the source language
zs        the same model, tested on the target language
sup       trained and tested on the target language
delta     sup − zs, in percentage points of the main metric
mixed …   the model of parent and zs, tested on pairs with one text in each language
… dev     parent, zs and sup on the dev sets instead of the test sets (``tested_on: both``)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pretrain.hub import Base, open_base, pooler_of
from pretrain.model.language_model import LanguageModel
from probes.models.aligned import Aligned, read_aligned
from probes.models.opening import load_original, open_original, write_model
from probes.models.pretrained import Pretrained, Role
from probes.rotation.features import Rotation, fit_rotation
from probes.rotation.saved import maps_fingerprint
from probes.rotation.settings import RotationConfig
from probes.transfer.config import FORMAT, ContinualConfig, TransferConfig, check_decoder, check_tried, combinations
from probes.transfer.continual import Continual
from probes.transfer.features import Features, TaskModel
from probes.transfer.fit import Fitted, fine_tune, predict
from probes.transfer.movement import movement
from probes.transfer.saved import TRANSFER, model_folders
from probes.transfer.shared import SharedPlace
from probes.transfer.splits import DEV, MIXED, TransferData
from probes.transfer.tasks.base import Examples, Labels
from probes.transfer.tasks.heads import ClassifyHead
from probes.transfer.tasks.metrics import Floats, Metric
from synthlang import plugins
from synthlang.dictionary.word_dictionary import read_muse
from synthlang.errors import InputError
from synthlang.files import user_path
from synthlang.fingerprint import fingerprint, sha256_file
from synthlang.progress import Report, silent
from synthlang.reading import Reading
from synthlang.references import as_written, resolved
from synthlang.rng import key_of
from synthlang.store import Store
from synthlang.vocabulary import nothing_read
from synthlang.wording import first_few

DIGITS = 4
Kept = tuple[str, TransferConfig, TaskModel, Fitted]  # one result of a search: label, settings, model, fit


@dataclass(frozen=True)
class Predictions:
    """The predictions of one fine-tuned model on a test set.

    Attributes:
        test: Name of the test: ``parent``, ``zs``, ``sup``, ``mixed …`` or ``… dev``.
        seed: The seed of the fine-tuning.
        setting: Rank of the model among the settings that a search kept, from 0 for the best.
        ids: The ids of the items.
        gold: The gold value of each item, in the JSON form of the task.
        predicted: The prediction for each item, in the same form.
    """

    test: str
    seed: int
    setting: int
    ids: tuple[str, ...]
    gold: list[Any]
    predicted: list[Any]


@dataclass(frozen=True)
class SeedResult:
    """The scores and predictions of one seed.

    Attributes:
        seed: The seed of the fine-tuning.
        scores: The scores in percent by test and metric, averaged over the settings that a search kept. A score is None
            if no item counts.
        predictions: The predictions for each test and each kept setting.
        fits: A record of the fit for each kept setting, by the language of training (``source`` or ``target``).
    """

    seed: int
    scores: Mapping[str, Mapping[str, float | None]]
    predictions: tuple[Predictions, ...]
    fits: Mapping[str, list[dict[str, Any]]]


class Transfer:
    """A transfer of one model. Call ``run`` for each seed.

    Args:
        pretrained: The model and the two languages.
        data: All sets of items.
        config: The settings.
        report: Receives the progress.
        store: The store for the word alignments of aligned text (continual learning, rotations).
        shared: Folders for fits that other transfers need as well, by the language of training.

    Raises:
        InputError: The maps or the dictionary of a rotation cannot be read, or the settings do not suit a decoder (see
            `check_decoder`). The error is also raised if the task does not have the main metric or the rules of scoring
            in the settings, or if the training set has too few labels.
    """

    def __init__(
        self,
        pretrained: Pretrained,
        data: TransferData,
        config: TransferConfig,
        report: Report = silent,
        store: Store | None = None,
        shared: Mapping[Role, SharedPlace] = MappingProxyType({}),
    ) -> None:
        if config.rotation is not None and config.rotation.map is not None:
            maps_fingerprint(user_path(config.rotation.map))  # raises its errors before any fit
        elif config.rotation is not None and config.rotation.dictionary is not None:
            read_muse(user_path(config.rotation.dictionary))
        check_decoder(config, pretrained.model.causal or pretrained.target_model.causal)
        self.pretrained, self.data, self.config = pretrained, data, config
        self.report, self.store, self.shared = report, store, shared
        self.name = f"{config.task} {pretrained.name} → {pretrained.language_name('target')}"
        self.task = data.task
        self.metrics = self.task.metrics()
        self.main = self.task.main_metric()
        self.labels = {"source": self._labels_of("source")}
        self.labels["target"] = self.labels["source"]
        if pretrained.natural and data.has_target_train:
            self.labels["target"] = self._labels_of("target")
        self._encoded: dict[tuple[str, str], Examples] = {}
        self._rotations: dict[str, Rotation] = {}
        self._texts: dict[str, tuple[Aligned, ...]] = {}

    def _labels_of(self, role: Role) -> Labels:
        with _in_set(f"{role} train"):
            return self.task.labels(self.data.sets[f"{role} train"].batch)

    @cached_property
    def fingerprint(self) -> str:
        """The fingerprint of model, data, aligned text and settings. It does not depend on the seed.

        Raises:
            InputError: Aligned text, the maps or the dictionary of a rotation, the model f⁰ of continual learning, or
                the model with the weights of the pooler cannot be read. The error is also raised if f⁰ has another
                vocabulary than the model.
        """
        settings = resolved(self.config, lambda _: None)  # the content of data counts, not its paths
        readers = self.pretrained.source, self.pretrained.target
        parents = {
            "model": self.pretrained.fingerprint,
            "data": dict(self.data.fingerprints),
            "tokenizers": [reader.tokenizer.fingerprint for reader in readers],
            "languages": [reader.number for reader in readers],
        }
        continual, rotation = self.config.aligning, self.config.rotation
        if continual is not None:
            parents["continual"] = self._text_fingerprints(continual)
            if self._original is not None:
                parents["original"] = fingerprint("model", **self._original.parents())
        if self._pooler is not None:
            weights = self._pooler.items()
            parents["pooler"] = {part: sha256(one.numpy().tobytes()).hexdigest() for part, one in weights}
        if rotation is not None and rotation.map is not None:
            parents["rotation"] = maps_fingerprint(user_path(rotation.map))
        elif rotation is not None:
            parents["rotation"] = self._text_fingerprints(rotation)
            if rotation.dictionary is not None:
                parents["rotation dictionary"] = sha256_file(user_path(rotation.dictionary))
        of_plugin = plugins.parts("tasks", [self.config.task])
        return fingerprint("transfer", format=FORMAT, settings=settings, parents=parents, **of_plugin)

    @cached_property
    def _original(self) -> Base | None:
        """The model f⁰ of continual learning, or None if it is the model itself."""
        return open_original(self.pretrained)

    @cached_property
    def _before(self) -> LanguageModel | None:
        return None if self._original is None else load_original(self._original, self.pretrained)

    @cached_property
    def _pooler(self) -> dict[str, Tensor] | None:
        """The pooler of the checkpoint, or of the model before an adjustment, or None for random weights."""
        known = (self.pretrained.checkpoint, self.pretrained.original) if self.config.head.pooler is True else ()
        found = (pooler_of(open_base(name)) for name in known if name is not None)
        return next((one for one in found if one is not None), None)

    def _text_fingerprints(self, settings: ContinualConfig | RotationConfig) -> list[list[str]]:
        return [[text.data.name, text.text.fingerprint] for text in self._aligned(settings)]

    def _aligned(self, settings: ContinualConfig | RotationConfig, seed: int = 0) -> tuple[Aligned, ...]:
        """Return the aligned text, which is read once for each seed. The seed selects the sentence pairs."""
        key = repr((settings.pairs, settings.data, seed))
        if key not in self._texts:
            pairs, data = settings.pairs, settings.data
            try:
                self._texts[key] = read_aligned(pairs, data, self.pretrained, seed, self.store, self.report)
            except InputError as error:
                section = "continual" if isinstance(settings, ContinualConfig) else "rotation"
                is_own = error.keys and error.keys[0] in ("pairs", "data")  # a key of the section
                raise (error.inside(section) if is_own else error) from error
        return self._texts[key]

    @property
    def aligned(self) -> dict[str, Any]:
        """Facts about the aligned text that was read, and about the rotations fitted on it."""
        texts = {text.data.name: text for texts in self._texts.values() for text in texts}
        found = {name: {"fingerprint": t.text.fingerprint, "counts": t.data.counts} for name, t in texts.items()}
        fits = [rotation.to_json() for rotation in self._rotations.values()]
        return {**({"aligned": found} if found else {}), **({"rotations": fits} if fits else {})}

    def examples(self, name: str, trained: Role = "source") -> Examples:
        """Return the set ``name`` as encoded items. ``trained`` is the language whose training labels are used.

        Raises:
            InputError: The task cannot encode the set (see ``Task.encode``).
        """
        key = (name, trained if self.labels["target"] is not self.labels["source"] else "source")
        if key not in self._encoded:
            items = self.data.sets[name]
            with _in_set(name):
                self._encoded[key] = self.task.encode(items.batch, items.readers, self.labels[trained])
        return self._encoded[key]

    def reading(self, name: str) -> Reading | None:
        """Return the numbers of words, tokens and unknown tokens of the set ``name``, or None if it has two languages.

        Raises:
            InputError: The transforms of the language work on tokens of another tokenizer than that of the model.
        """
        items = self.data.sets[name]
        first, *others = items.readers
        if any(other.role != first.role for other in others):
            return None
        return Reading.of(first.encode(items.batch.corpus), first.specials.unk)

    @property
    def tests(self) -> dict[str, tuple[tuple[str, ...], Role]]:
        """The names of the sets and the language of training of each test, by the name of the test.

        The mapping is empty without test sets.
        """
        if "source test" not in self.data.sets:
            return {}
        mixed = tuple(name for name in self.data.sets if name.startswith(MIXED))
        parts = {f"{MIXED}random": mixed} if self.config.mixed == "random" else {name: (name,) for name in mixed}
        split, has_sup = "dev" if self.config.tested_on == "dev" else "test", self.data.has_target_train
        tests: dict[str, tuple[tuple[str, ...], Role]] = {
            "parent": ((f"source {split}",), "source"),
            "zs": ((f"target {split}",), "source"),
            **{test: (names, "source") for test, names in parts.items()},
            **({"sup": ((f"target {split}",), "target")} if has_sup else {}),
        }
        if self.config.tested_on == "both":
            tests |= {"parent dev": (("source dev",), "source"), "zs dev": (("target dev",), "source")}
            tests |= {"sup dev": (("target dev",), "target")} if has_sup else {}
        return tests

    def chosen_by(self, trained: Role) -> tuple[str, ...]:
        """Return the names of the dev sets whose mean score selects the epoch and the settings of a model.

        ``trained`` is the language that the model is trained on.
        """
        if trained == "target" or self.config.chosen_by == "source":
            return (f"{trained} dev",)
        if self.config.chosen_by == "target":
            return ("target dev",)
        target = () if self.data.has_one_dev else ("target dev",)
        return ("source dev", *target, *(name for name in self.data.sets if name.startswith(DEV)))

    def run(self, seed: int, folder: Path | None = None, keep: Path | None = None) -> SeedResult:
        """Fine-tune with one seed, and predict all test sets.

        Args:
            seed: The seed.
            folder: The folder for fits in progress, from which an interrupted fit continues.
            keep: The folder for the models fine-tuned on the source language (default: they are not saved), see
                `model_folders`.

        Raises:
            InputError: The model cannot be built (see `build`) or fine-tuned (see `fine_tune`), or a set cannot be
                encoded (see ``Task.encode``). The error is also raised if continual learning cannot use the aligned
                text, the model f⁰ or the two languages (see `Continual`).
            DiskError: A fit or a model cannot be written.
        """
        kept = self._tuned(seed, folder)
        models: dict[Role, list[TaskModel]] = {"source": [model for _, _, model, _ in kept], "target": []}
        fits = {
            "source": [self._record(label, "source", model, fitted) for label, _, model, fitted in kept],
            "target": [],
        }
        if self.data.has_target_train:
            for label, config, _, _ in kept:
                model, fitted = self._fit(config, "target", seed, label, folder)
                models["target"].append(model)
                fits["target"].append(self._record(label, "target", model, fitted))
        if keep is not None:
            readers = self.pretrained.source, self.pretrained.target
            languages = {self.pretrained.language_name(one.role): (one.tokenizer, one.number) for one in readers}
            record = {"model": self.pretrained.name, TRANSFER: self.fingerprint}
            for model, place in zip(models["source"], model_folders(keep, seed, len(kept)), strict=True):
                write_model(model.features.body("source"), languages, place, record)
        predictions = []
        for test, (names, trained) in self.tests.items():
            sets = [self.examples(name, trained) for name in names]
            ids, gold = tuple(one for part in sets for one in part.ids), [one for part in sets for one in part.gold]
            for setting, model in enumerate(models[trained]):
                said = [one for part in sets for one in predict(model, part)]
                predictions.append(Predictions(test, seed, setting, ids, gold, said))
        return SeedResult(seed, self._scores(predictions), tuple(predictions), fits)

    def tune(self, seed: int, folder: Path | None = None) -> tuple[LanguageModel, dict[str, Any]]:
        """Fine-tune on the source language as `run` does, without tests.

        Args:
            seed: The seed.
            folder: The folder for fits in progress, from which an interrupted fit continues.

        Returns:
            The model without its head, and the record of its fit. After a search, they belong to the best setting on
            the dev set.

        Raises:
            InputError: Fine-tuning is not possible for a reason that `run` lists.
            DiskError: A fit cannot be written.
        """
        label, _, model, fitted = self._tuned(seed, folder)[0]
        return model.features.body("source"), self._record(label, "source", model, fitted)

    def _tuned(self, seed: int, folder: Path | None) -> list[Kept]:
        """Fine-tune on the source language, and return the models that a search keeps, best first."""
        kept: list[Kept] = []
        for label, config in combinations(self.config):
            kept.append((label, config, *self._fit(config, "source", seed, label, folder)))
            # drop models now, so that memory holds at most ``best`` of them and the current one
            kept = [kept[i] for i in rank([fitted.dev for *_, fitted in kept], self.config.best)]
        return kept

    def _scores(self, predictions: list[Predictions]) -> dict[str, dict[str, float | None]]:
        found: dict[str, dict[str, list[float | None]]] = {}
        for part in predictions:
            for name, metric in self.metrics.items():
                stats = metric.stats(part.gold, part.predicted).sum(axis=0)
                score = None if _nothing_counts(metric, stats) else float(metric.score(stats))
                found.setdefault(part.test, {}).setdefault(name, []).append(score)
        return {test: {name: _mean(values) for name, values in scores.items()} for test, scores in found.items()}

    def _fit(
        self, config: TransferConfig, trained: Role, seed: int, label: str, folder: Path | None
    ) -> tuple[TaskModel, Fitted]:
        """Fine-tune a model on one language. The initial head depends only on the seed."""
        language = "parent" if trained == "source" else "target"
        name = " ".join(filter(None, (self.name, f"seed {seed}", language, label)))
        progress: Report = lambda _, done, total, note: self.report(name, done, total, note)  # noqa: E731
        model, further = self.build(config, trained, seed), None
        if config.aligning is not None:
            texts = self._aligned(config.aligning, seed)
            body = model.features.body("source")
            further = Continual(config.aligning, self.pretrained, body, seed, texts, self._before).loss
        train, *dev = (self.examples(name, trained) for name in (f"{trained} train", *self.chosen_by(trained)))
        settings = self.main, config.fine_tune, seed
        with self._kept(config, trained, seed, folder) as kept:
            fitted = fine_tune(model, train, dev, *settings, folder=kept, extra=further, report=progress)
        return model, fitted

    @contextmanager
    def _kept(self, config: TransferConfig, trained: Role, seed: int, own: Path | None) -> Iterator[Path | None]:
        """Yield the folder for a fit: the shared folder if it is free, else ``own``."""
        settings = resolved(config.of_fit(trained), as_written)
        name = f"fit-{fingerprint('fit', settings=settings, seed=seed, trained=trained)}"
        with nullcontext() if trained not in self.shared else self.shared[trained].taken() as common:
            folder = common or own
            yield None if folder is None else folder / name

    def _record(self, label: str, trained: Role, model: TaskModel, fitted: Fitted) -> dict[str, Any]:
        moved = movement(self.bodies[trained], model.features.body(trained))
        return {
            "setting": label,
            "best_epoch": fitted.best,
            "steps": fitted.steps,
            "epochs": fitted.history,
            "moved": {name: round(value, DIGITS) for name, value in moved.items()},
        }

    @property
    def bodies(self) -> dict[Role, LanguageModel]:
        """The pretrained model of each language, before fine-tuning."""
        return {"source": self.pretrained.model, "target": self.pretrained.target_model}

    def build(self, config: TransferConfig, trained: Role, seed: int) -> TaskModel:
        """Build the untrained task model on a GPU if there is one. The seed determines its new weights.

        Args:
            config: The settings, which may be one combination of a search.
            trained: The language of training, whose labels the head predicts.
            seed: The seed of the new weights.

        Raises:
            InputError: A model lacks a layer, two models differ in hidden size, or a rotation cannot be read or fitted
                (see `fit_rotation`). The error is also raised if the model with the weights of the pooler cannot be
                read.
        """
        also = () if config.continual is None else config.continual.loss.layers
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key_of("transfer", seed) >> 1)  # torch takes signed 64-bit seeds
            features = Features(self.bodies, config.features, self._rotation(config), also)
            model = TaskModel(features, self.task.head(features.width, self.labels[trained]))
        if self._pooler is not None and isinstance(model.head, ClassifyHead):
            model.head.take_pooler(self._pooler)
        return model.to("cuda" if torch.cuda.is_available() else "cpu")

    def _rotation(self, config: TransferConfig) -> Mapping[Role, Rotation] | None:
        if config.rotation is None:
            return None
        key = repr((config.rotation, config.features.layers, config.features.subword))
        if key not in self._rotations:
            texts = None if config.rotation.map is not None else self._aligned(config.rotation)
            fitted = fit_rotation(config.rotation, config.features, self.pretrained, report=self.report, texts=texts)
            self._rotations[key] = fitted
        return dict.fromkeys(self._rotations[key].reads, self._rotations[key])

    def check(self) -> None:
        """Encode every set, so that errors appear before training.

        Raises:
            InputError: The task rejects a set, nothing in a set can be read or scored, nearly all tokens of a set are
                unknown, or no label of a set occurs in training. The error is also raised if a setting that a search
                tries is not allowed or does not suit the model (see `check_tried`).
        """
        roles: tuple[Role, ...] = ("source", "target") if self.data.has_target_train else ("source",)
        sets = [(name, trained) for names, trained in self.tests.values() for name in names]
        sets += [(name, role) for role in roles for name in (f"{role} train", *self.chosen_by(role))]
        for name, trained in sets:
            examples, words = self.examples(name, trained), int(self.data.sets[name].batch.corpus.offsets[-1])
            gold = examples.gold
            if words and not (examples.lengths > examples.around).any():
                raise nothing_read(name, words, f"the tokenizer of {self.pretrained.name}")
            if all(labels == [] for labels in gold):
                reason = f"no word has a gold label for the task {self.config.task}"
                raise InputError(reason, name, hint="use items with labels", code="empty")
            if (reading := self.reading(name)) is not None:
                reading.check(name, f"the tokenizer of {self.pretrained.name}")
            if unknown := self.task.unknown_labels(gold, self.labels[trained]):
                field, labels = next(iter(unknown.items()))
                of_field = f" of the field {field}" if field else ""
                reason = f"none of its labels{of_field} occurs in the training set: {first_few(labels, 5)}"
                hint = "use the same names of labels in both sets"
                hint += "" if self.config.train_items is None else ", or raise or remove train_items"
                raise InputError(reason, name, hint=hint, code="conflict")
            sums = self.main.stats(gold, self.task.majority(gold, gold)).sum(axis=0)
            if _nothing_counts(self.main, sums):
                reason = f"the metric {self.main.name} does not apply to any of its items"
                hint = f"set score.metric to {next(iter(self.task.metrics()))}, or use other items"
                raise InputError(reason, name, hint=hint, code="empty")
        check_tried(self.config, (body.shape.layers for body in (self.pretrained.model, self.pretrained.target_model)))

    @cached_property
    def majority(self) -> dict[str, float]:
        """The score of the majority baseline by the main metric, in percent from 0 to 100, by the name of the test.

        Raises:
            InputError: The task cannot encode a set (see ``Task.encode``).
        """
        found = {}
        for test, (names, trained) in self.tests.items():
            train = self.examples(f"{trained} train", trained).gold
            gold = [one for name in names for one in self.examples(name, trained).gold]
            found[test] = round(self.main(gold, self.task.majority(train, gold)), DIGITS)
        return found


@contextmanager
def _in_set(name: str) -> Iterator[None]:
    """Give the set ``name`` as the place of an error that has no place."""
    try:
        yield
    except InputError as error:
        raise (error if error.keys else error.inside(path=name)) from error


def rank(scores: Sequence[float], best: int) -> list[int]:
    """Return the indices of the ``best`` highest scores, in descending order of score. Ties go to the lower index."""
    return sorted(range(len(scores)), key=lambda number: -scores[number])[:best]


def _nothing_counts(metric: Metric, sums: Floats) -> bool:
    return metric.of_items and not sums[1]


def _mean(values: list[float | None]) -> float | None:
    """Return the mean of the values, or None if any of them is None."""
    known = [value for value in values if value is not None]
    return round(float(np.mean(known)), DIGITS) if len(known) == len(values) else None
