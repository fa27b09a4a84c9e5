"""Zero-shot transfer of a run: SUP, ZS and Δ = SUP − ZS for one seed of fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from transformers import RobertaForMaskedLM

from pretrain.config import PretrainConfig
from pretrain.prepare import Artifacts
from probes.transfer.config import FORMAT, TransferConfig
from probes.transfer.examples import Examples, build_examples, class_names, read_split
from probes.transfer.tagging import Tagger, evaluate, fine_tune
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.language import Language
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split, require_columns

COLUMNS = {"pos": "upos"}
METRICS = {"pos": "accuracy"}
DEV_SHARE = 10  # without a dev split, one sentence in ten of the training sentences is held out


def transfer_fingerprint(run: str, source: str, config: TransferConfig, seed: int) -> str:
    """Of one seed's scores: ``run`` and ``source`` are fingerprints."""
    settings = config.model_dump(mode="json")
    return fingerprint(
        "transfer", format=FORMAT, settings=settings, seed=seed, parents={"pretrain": run, "source": source}
    )


@dataclass(frozen=True)
class TaskData:
    """The sentences of a task in the parent; a language's version is derived from them."""

    train: Corpus
    dev: Corpus
    test: Corpus
    classes: tuple[str, ...]


def check_task(spec: str, task: str) -> Source:
    """Open a source for a task; InputError if it has not what the task needs. Costs no reading."""
    source = open_source(spec)
    require_columns(source, [COLUMNS[task]], spec, f"the task {task}")
    for split in ("train", "test"):
        check_split(source, split, spec)
    return source


def load_task(spec: str, config: TransferConfig) -> TaskData:
    """Read the splits of a source for a task."""
    source = check_task(spec, config.task)
    column = COLUMNS[config.task]
    train = read_split(source, "train", config.train_sentences)
    if "dev" in source.splits:
        dev = read_split(source, "dev", config.dev_sentences)
    else:
        count = len(train) - max(1, len(train) // DEV_SHARE)
        train, dev = train.between(0, count), train.between(count, len(train))
    test = read_split(source, "test", config.test_sentences)
    if not len(train):
        raise InputError(f"{spec}: the train split is too small for the task {config.task}")
    return TaskData(train, dev, test, class_names(train.columns[column]))


def transfer(
    model: RobertaForMaskedLM,
    pretraining: PretrainConfig,
    artifacts: Artifacts,
    config: TransferConfig,
    seed: int,
    report: Report = silent,
) -> dict[str, Any]:
    """Fine-tune on the parent and on the derived language, and test.

    Returns ``parent`` (train and test on the parent), ``zs`` (train parent, test derived),
    ``sup`` (train and test derived), ``delta`` = sup − zs in percent points of ``metric``,
    and every score of the three.
    """
    if config.length > pretraining.batch.length:
        raise InputError(
            f"transfer length {config.length} is longer than the model's {pretraining.batch.length} tokens"
        )
    data = load_task(pretraining.source, config)
    parent, derived = artifacts.languages
    sets = {
        (language.name, split): _examples(data, split, language, artifacts, config)
        for language in (parent, derived)
        for split in ("train", "dev", "test")
    }
    name = f"{config.task} {pretraining.objective.kind} {derived.name} seed {seed}"

    def tuned(language: Language, label: str) -> Tagger:
        progress: Report = lambda _, done, total, note: report(f"{name} {label}", done, total, note)  # noqa: E731
        train, dev = sets[language.name, "train"], sets[language.name, "dev"]
        return fine_tune(model.roberta, train, dev, len(data.classes), config, seed, progress)

    from_parent = tuned(parent, "parent")
    scores = {
        "parent": evaluate(from_parent, sets[parent.name, "test"]),
        "zs": evaluate(from_parent, sets[derived.name, "test"]),
        "sup": evaluate(tuned(derived, "derived"), sets[derived.name, "test"]),
    }
    metric = METRICS[config.task]
    values = {kind: score[metric] for kind, score in scores.items()}
    beyond = {f"{n} {s}": int((~e.kept).sum()) for (n, s), e in sets.items()}
    return {
        "task": config.task,
        "seed": seed,
        "metric": metric,
        **values,
        "delta": round(values["sup"] - values["zs"], 4),
        "scores": scores,
        "classes": list(data.classes),
        "sentences": {"train": len(data.train), "dev": len(data.dev), "test": len(data.test)},
        "words_beyond_length": beyond,
    }


def _examples(data: TaskData, split: str, language: Language, artifacts: Artifacts, config: TransferConfig) -> Examples:
    corpus: Corpus = getattr(data, split)
    return build_examples(corpus, language, artifacts.vocabulary, COLUMNS[config.task], data.classes, config.length)
