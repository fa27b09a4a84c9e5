"""Zero-shot transfer of a run: SUP, ZS and Δ = SUP − ZS for one seed of fine-tuning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pretrain.config import PretrainConfig
from pretrain.encoder import MaskedLM
from pretrain.prepare import Artifacts
from probes.transfer.config import FORMAT, TransferConfig
from probes.transfer.examples import Examples, build_examples, class_names, read_split
from probes.transfer.tagging import Tagger, evaluate, fine_tune
from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.fingerprint import fingerprint
from synthlang.progress import Report, silent
from synthlang.sources import open_source
from synthlang.sources.base import Source, check_split, require_columns

COLUMNS = {"pos": "upos"}
METRICS = {"pos": "accuracy"}
DEV_SHARE = 10  # without a dev split, one sentence in ten of the training sentences is held out


def transfer_fingerprint(run: str, source: str, language: str, config: TransferConfig, seed: int) -> str:
    """Of one seed's scores: ``run``, ``source`` and ``language`` are fingerprints."""
    parents = {"pretrain": run, "source": source, "language": language}
    settings = config.model_dump(mode="json")
    return fingerprint("transfer", format=FORMAT, settings=settings, seed=seed, parents=parents)


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
    model: MaskedLM,
    pretraining: PretrainConfig,
    artifacts: Artifacts,
    config: TransferConfig,
    seed: int,
    report: Report = silent,
    language: str | None = None,
) -> dict[str, Any]:
    """Fine-tune on the parent and on a language derived from it (default: the first one), and test.

    Returns ``parent`` (train and test on the parent), ``zs`` (train parent, test derived),
    ``sup`` (train and test derived), ``delta`` = sup − zs in percent points of ``metric``,
    and every score of the three.
    """
    if config.length > model.embeddings.length:
        raise InputError(f"transfer length {config.length} is longer than the model's {model.embeddings.length} tokens")
    derived = target_member(pretraining, language)
    data = load_task(pretraining.members[0].source, config)
    sets = {
        (member, split): _examples(data, split, artifacts, member, config)
        for member in (0, derived)
        for split in ("train", "dev", "test")
    }
    target = artifacts.members[derived].name
    name = f"{config.task} {pretraining.label} → {target} seed {seed}"

    def tuned(member: int, label: str) -> Tagger:
        progress: Report = lambda _, done, total, note: report(f"{name} {label}", done, total, note)  # noqa: E731
        train, dev = sets[member, "train"], sets[member, "dev"]
        return fine_tune(model, member, train, dev, len(data.classes), config, seed, progress)

    from_parent = tuned(0, "parent")
    scores = {
        "parent": evaluate(from_parent, 0, sets[0, "test"]),
        "zs": evaluate(from_parent, derived, sets[derived, "test"]),
        "sup": evaluate(tuned(derived, "derived"), derived, sets[derived, "test"]),
    }
    metric = METRICS[config.task]
    values = {kind: score[metric] for kind, score in scores.items()}
    beyond = {f"{artifacts.members[m].name} {s}": int((~e.kept).sum()) for (m, s), e in sets.items()}
    return {
        "task": config.task,
        "language": target,
        "seed": seed,
        "metric": metric,
        **values,
        "delta": round(values["sup"] - values["zs"], 4),
        "scores": scores,
        "classes": list(data.classes),
        "sentences": {"train": len(data.train), "dev": len(data.dev), "test": len(data.test)},
        "words_beyond_length": beyond,
    }


def target_member(pretraining: PretrainConfig, language: str | None) -> int:
    """The number of the language to transfer to; InputError if there is none that shares the parent's sentences."""
    names = {pretraining.members[m].name: m for first, m in pretraining.derived_pairs if first == 0}
    if language is not None and language not in names:
        raise InputError(f"no language {language!r} derived from the parent; there is {', '.join(names) or 'none'}")
    if not names:
        raise InputError("the run has no language derived from its first one: there is nothing to transfer to")
    return names[language] if language is not None else min(names.values())


def _examples(data: TaskData, split: str, artifacts: Artifacts, member: int, config: TransferConfig) -> Examples:
    corpus: Corpus = getattr(data, split)
    trained = artifacts.members[member]
    specials = artifacts.id_space.specials
    return build_examples(
        corpus, trained.language, trained.tokenizer, specials, COLUMNS[config.task], data.classes, config.length
    )
