"""The smallest real parsers: a spaCy pipeline and Stanza models trained on mini-english in seconds, no download.

The first test process that wants one trains it; the others (pytest-xdist) wait for it.
"""

import contextlib
import io
import json
import os
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from synthlang.corpus import Sentence
from synthlang.sources.mini_english import MiniEnglish

SOURCE = "builtin:mini-english?types=500&sentences=600&dev=60&test=60"
TRAINED_ON = MiniEnglish(types=500, sentences=600, dev=60, test=60)

# (form, tag, lemma, upos, head, ClearNLP label); the tagger learns tags, the morphologizer upos
CLEARNLP = [
    "he/PRP/he/PRON/2/nsubj sat/VBD/sit/VERB/0/ROOT on/IN/on/ADP/2/prep the/DT/the/DET/5/det mat/NN/mat/NOUN/3/pobj"
    " ./././PUNCT/2/punct",
    "she/PRP/she/PRON/2/nsubj is/VBZ/be/AUX/0/ROOT happy/JJ/happy/ADJ/2/acomp ./././PUNCT/2/punct",
    "they/PRP/they/PRON/2/nsubj saw/VBD/see/VERB/0/ROOT cats/NNS/cat/NOUN/2/dobj and/CC/and/CCONJ/3/cc"
    " dogs/NNS/dog/NOUN/3/conj ./././PUNCT/2/punct",
]


def sentences(split: str) -> list[Sentence]:
    """The sentences of mini-english that the models are trained on (train) or not (dev, test)."""
    return [sentence for batch in TRAINED_ON.batches(split) for sentence in batch]


def clearnlp_rows() -> list[list[list[str]]]:
    """The hand-made ClearNLP sentences as rows of six fields."""
    return [[word.split("/") for word in text.split(" ")] for text in CLEARNLP]


def obtain(factory: pytest.TempPathFactory, name: str, train: Callable[[Path], None]) -> Path:
    """The folder of a model, trained once for all test processes of a run."""
    root = factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root
    folder = root / name
    with FileLock(root / f"{name}.lock"):
        if not (folder / "trained").exists():
            folder.mkdir(exist_ok=True)
            train(folder)
            (folder / "trained").write_text("")
    return folder


def train_spacy(folder: Path) -> None:
    """UD labels, from mini-english."""
    rows = [
        {"words": s.words, "pos": s.columns["upos"], "heads": s.columns["head"], "deps": s.columns["deprel"]}
        for s in sentences("train")[:240]
    ]
    _train_spacy(rows, ["morphologizer", "parser"], 6, folder)


def train_clearnlp(folder: Path) -> None:
    """ClearNLP labels and Penn tags, three sentences by heart; ``dobj`` and ``pobj`` make it ClearNLP."""
    rows = [
        {"words": [w[0] for w in s], "tags": [w[1] for w in s], "pos": [w[3] for w in s],
         "heads": [int(w[4]) for w in s], "deps": [w[5] for w in s]}
        for s in clearnlp_rows()
    ]  # fmt: skip
    _train_spacy(rows, ["tagger", "morphologizer", "parser"], 60, folder)


def _train_spacy(rows: list[dict[str, Any]], pipes: Sequence[str], epochs: int, folder: Path) -> None:
    import spacy
    from spacy.training import Example

    spacy.util.fix_random_seed(1)
    nlp = spacy.blank("en")
    for pipe in pipes:
        nlp.add_pipe(pipe, config={"min_action_freq": 1} if pipe == "parser" else {})
    examples = []
    for row in rows:
        heads = [i if h == 0 else h - 1 for i, h in enumerate(row["heads"])]
        deps = ["ROOT" if h == 0 else d for h, d in zip(row["heads"], row["deps"], strict=True)]
        examples.append(Example.from_dict(nlp.make_doc(" ".join(row["words"])), {**row, "heads": heads, "deps": deps}))
    optimizer = nlp.initialize(lambda: examples)
    order = random.Random(1)
    for _ in range(epochs):
        order.shuffle(examples)
        for start in range(0, len(examples), 32):
            nlp.update(examples[start : start + 32], sgd=optimizer)
    nlp.to_disk(folder)


def train_stanza(folder: Path) -> None:
    """A tagger and a parser by Stanza's own trainers, and the pipeline.json that names them."""
    import logging

    from stanza.models import parser, tagger

    from synthlang.parsing.command import conllu

    for split in ("train", "dev"):
        text = "".join(conllu(s, split) for s in sentences(split)[:300])
        (folder / f"{split}.conllu").write_text(text, encoding="utf-8")
    sizes = {"hidden_dim": 32, "char_hidden_dim": 16, "deep_biaff_hidden_dim": 32, "word_emb_dim": 32,
             "char_emb_dim": 16, "tag_emb_dim": 16, "transformed_dim": 16, "num_layers": 1, "word_cutoff": 1,
             "batch_size": 1000, "seed": 1, "dropout": 0.1, "word_dropout": 0.1}  # fmt: skip
    shared = [
        "--mode", "train", "--lang", "en", "--shorthand", "en_mini", "--save_dir", str(folder), "--no_pretrain",
        "--cpu", "--train_file", str(folder / "train.conllu"), "--eval_file", str(folder / "dev.conllu"),
    ]  # fmt: skip
    shared += [part for name, size in sizes.items() for part in (f"--{name}", str(size))]
    logging.getLogger("stanza").setLevel(logging.ERROR)
    with contextlib.redirect_stdout(io.StringIO()):
        tagger.main([*shared, "--save_name", "tagger.pt", "--max_steps", "60", "--eval_interval", "60",
                     "--composite_deep_biaff_hidden_dim", "16", "--augment_nopunct", "0", "--lr", "0.01"])  # fmt: skip
        parser.main([*shared, "--save_name", "parser.pt", "--max_steps", "100", "--eval_interval", "100", "--no_xpos",
                     "--no_ufeats", "--deep_biaff_output_dim", "16", "--no_checkpoint", "--optim", "adam",
                     "--lr", "0.01", "--no_second_optim", "--no_plateau"])  # fmt: skip
    own = {"lang": "en", "pos": "tagger.pt", "depparse": "parser.pt"}
    (folder / "pipeline.json").write_text(json.dumps(own), encoding="utf-8")
