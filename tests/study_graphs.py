"""Small studies with every kind of task, and running their tasks as a runner does."""

from pathlib import Path
from typing import Any

import numpy as np

from probes.stages import making
from probes.stages.base import StageKeys
from probes.stages.content_hashes import ContentHashes
from probes.stages.done import is_done
from probes.study.cells import expand
from probes.study.config import StudyConfig
from probes.study.graph import graph
from synthlang.config import parse
from synthlang.progress import silent
from tests.tiny import PRETRAIN, STUDY, changed

SOURCE = PRETRAIN["source"]
MLM = {"kind": "mlm", "mask_rate": 0.3}
PAIR = {"kind": "derived", "source": SOURCE, "left": "trans+inv"}
ADJUST: dict[str, Any] = {
    "pairs": {"x": PAIR},
    "rows": 8,
    "data": {"dev": 20, "sentences": 40},
    "optimizer": {"learning_rate": 1e-3},
}
FULL: dict[str, Any] = {
    "name": "full",
    "source": SOURCE,
    "seeds": [0, 1],
    "pretrain": {k: v for k, v in PRETRAIN.items() if k != "source"} | {"objective": MLM},
    "transfer": {**STUDY["transfer"], "dev_items": 20, "test_items": 20},
    "tasks": {"pos": {}, "ner": {}},
    "probes": {"words": {"probes": ["words"]}},
}
TWO = {
    **FULL,
    "target_model": {**FULL["pretrain"], "seed": 7},
    "transfer": {**FULL["transfer"], "features": {"tune": "none"}},
    "probes": {
        "cka": {"probes": ["cka"], "model2": None, "cka": {"paraphrase": "cell:second"}},
        "plain": {"probes": ["cka"]},
    },
}
ADJUSTED = {
    **FULL,
    "adjust": ADJUST,
    "probes": {"d": {"probes": ["distances"], "distances": {"before": {"a": "cell:model"}}}},
}

FIRST = {k: v for k, v in FULL["pretrain"].items() if k not in ("language", "dictionary")}
FIRST = {**FIRST, "languages": [{"name": "en"}, {"name": "hi", "language": "trans"}]}
OWN = {k: v for k, v in FIRST.items() if k not in ("vocabulary", "model")}
OWN = {**OWN, "languages": [{"name": "en"}, {"name": "hi", "language": "trans+inv"}]}
OWN = {**OWN, "start": {"extend": {"language": "hi", "size": 40}}}
STARTED = {**FULL, "seeds": [0], "init_from": FIRST, "pretrain": OWN, "tasks": {"pos": {}}}

# probes read a fine-tuned model
TASK = {"length": 48, "train_items": 60, "dev_items": 20, "test_items": 20}
TUNED: dict[str, Any] = {"task": "pos", **TASK, "fine_tune": {"epochs": 2, "learning_rate": 0.01}}
CONTINUAL = {"alpha": 1.0, "rows": 4, "data": {"dev": 0, "sentences": 40}}
PROBE = {"probes": ["retrieval"], "layers": [-1], "data": {"dev": 20, "sentences": 40}, "seed": 1}
PROBES = {"d": PROBE}
DISTANCES = {**PROBE, "probes": ["distances"], "distances": {"before": {"before": "cell:model"}, "picture": "none"}}
BASE = {**changed(FULL, pretrain__language="trans", seeds=[3, 4], tasks={}, probes=PROBES), "finetuned": TUNED}
GRID: dict[str, Any] = {
    "tuning": {
        "none": {"finetuned": None},
        "pos": {},
        "pos+continual": {"finetuned.continual": CONTINUAL, "probes.d": DISTANCES},
    },
}
CELLS = {**BASE, "grid": {"product": GRID}}


def study_of(data) -> StudyConfig:
    return parse(StudyConfig, data)


def graph_of(data, path=None):
    study = study_of(data)
    cells = expand(study, path)
    return graph(cells, study.seeds), cells


def keyed(stage):
    """Return a single stage with its key."""
    return StageKeys(ContentHashes()).keyed(stage)


def of_kind(whole, kind):
    return [stage for stage in whole.stages.values() if isinstance(stage, kind)]


def run_all(stages, store) -> list[str]:
    """Make every unfinished stage of a graph in order, as a runner does, and return their keys."""
    made = [key for key, stage in stages.items() if not is_done(store, stage)]
    for key in made:
        making.make(stages[key], store, silent)
    return made


def contents(store, kinds=("alignment", "probe", "transfer")) -> dict[str, bytes]:
    """The bytes of every result."""
    found = {}
    for kind in kinds:
        for path in sorted(store.root.glob(f"{kind}-*/*")):
            if path.is_file():
                found[f"{path.parent.name}/{path.name}"] = path.read_bytes()
    return found


def write_treebank(folder: Path, seed: int = 0, words: int = 30) -> Path:
    """A treebank of random sentences, each word of which has one part of speech."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(seed)
    for split, count in (("train", 60), ("test", 20)):
        lines = []
        for _ in range(count):
            drawn = rng.integers(0, words, 8)
            lines += [f"{i}\tw{w}\t_\t{'NV'[w % 2]}\t_\t_\t{i - 1}\tx\t_\t_" for i, w in enumerate(drawn, 1)] + [""]
        (folder / f"x-ud-{split}.conllu").write_text("\n".join(lines) + "\n")
    return folder
