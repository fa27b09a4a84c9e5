"""Tiny random encoders with small tokenizers, saved as Hugging Face saves them."""

from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    BertConfig,
    BertForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

SHAPE = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "initializer_range": 0.2,
}
TEXT = ["the small dog sees a black cat .", "le petit chien voit un chat noir .", "unbelievable things happened 1984 !"]


def _bert(text: list[str]) -> tuple[Tokenizer, dict[str, str]]:
    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
        "mask_token": "[MASK]",
    }
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=120, special_tokens=list(names.values()), show_progress=False)
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer, names


ROBERTA = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}


def _roberta(text: list[str]) -> tuple[Tokenizer, dict[str, str]]:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=300, special_tokens=list(ROBERTA.values()), initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer, ROBERTA | {"cls_token": "<s>", "sep_token": "</s>"}


def _xlmr(text: list[str]) -> tuple[Tokenizer, dict[str, str]]:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.NFKC()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=list(ROBERTA.values()), unk_token="<unk>", show_progress=False
    )
    tokenizer.train_from_iterator(text, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer, ROBERTA | {"cls_token": "<s>", "sep_token": "</s>"}


KINDS = {
    "bert": (_bert, BertConfig, BertForMaskedLM, 0, 40),
    "roberta": (_roberta, RobertaConfig, RobertaForMaskedLM, 1, 42),
    "xlmr": (_xlmr, XLMRobertaConfig, XLMRobertaForMaskedLM, 1, 42),
}
LONGEST = 40  # tokens that each of them reads


def save_model(folder: Path, kind: str = "bert", text: list[str] | None = None, seed: int = 0, **shape: object) -> Path:
    """Write a random model of a kind, with its tokenizer trained on ``text``."""
    make, config_class, model_class, pad, positions = KINDS[kind]
    tokenizer, names = make(text or TEXT)
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        settings = {**SHAPE, "max_position_embeddings": positions, **shape}
        config = config_class(vocab_size=tokenizer.get_vocab_size(), pad_token_id=pad, **settings)
        model_class(config).save_pretrained(folder)
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names).save_pretrained(folder)
    return folder
