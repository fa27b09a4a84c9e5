"""Checkpoint folders with a tokenizer of each kind, made by transformers itself, small and without weights; and words
encoded by tokenizer folders as transformers reads them."""

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MODEL_TYPES = {"bert": "bert", "roberta": "roberta", "xlmr": "xlm-roberta"}
KINDS = tuple(MODEL_TYPES)


def make_folder(kind: str, lines: Iterable[str], size: int, folder: Path, rows: int | None = None) -> Path:
    """Write a folder as ``save_pretrained`` does, with a config.json that has as many rows as there are tokens."""
    from transformers import BertTokenizer, RobertaTokenizer, XLMRobertaTokenizer

    model = json.loads(_trained(kind, lines, size).to_str())["model"]
    if kind == "bert":
        made = BertTokenizer(vocab=model["vocab"], do_lower_case=False)
    elif kind == "roberta":
        made = RobertaTokenizer(vocab=model["vocab"], merges=[tuple(pair) for pair in model["merges"]])
    else:
        made = XLMRobertaTokenizer(vocab=[tuple(entry) for entry in model["vocab"]])
    made.save_pretrained(folder)
    config = {"model_type": MODEL_TYPES[kind], "vocab_size": len(made) if rows is None else rows}
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def _trained(kind: str, lines: Iterable[str], size: int) -> Tokenizer:
    trainer: trainers.Trainer
    if kind == "bert":
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=BERT, show_progress=False)
    elif kind == "roberta":
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=ROBERTA, initial_alphabet=alphabet, show_progress=False
        )
    else:
        tokenizer = Tokenizer(models.Unigram())
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
        )
        trainer = trainers.UnigramTrainer(
            vocab_size=size, special_tokens=ROBERTA, unk_token="<unk>", show_progress=False
        )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def encoded_by(folders: Sequence[tuple[Path, Sequence[str]]]) -> Iterator[dict[str, Any]]:
    """For each (folder, words) the ids of every word, of the text they make, and those of the specials."""
    from transformers import AutoTokenizer

    for folder, words in folders:
        tokenizer = AutoTokenizer.from_pretrained(folder)
        apart = [tokenizer(word, add_special_tokens=False)["input_ids"] for word in words]
        text = tokenizer(" ".join(words))["input_ids"]
        specials = [getattr(tokenizer, f"{n}_token_id") for n in ("cls", "pad", "sep", "unk", "mask")]
        yield {"apart": apart, "text": text, "specials": specials, "size": len(tokenizer)}
