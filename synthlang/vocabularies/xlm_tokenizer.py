"""The tokenizer of XLM's checkpoints, which has no fast version in transformers, made of its files.

XLM's BPE (Lample and Conneau 2019; fastBPE) marks the end of a word, reads text in small letters without accents, and
splits nothing: words are those that the text has, as Moses would give them. A row starts and ends with ``</s>``, as in
XLM's own code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from synthlang.files import read_json

XLM = "xlm"
"""What transformers calls the architecture."""
END = "</w>"
NAMES = {
    "bos_token": "<s>",
    "cls_token": "</s>",
    "sep_token": "</s>",
    "pad_token": "<pad>",
    "unk_token": "<unk>",
    "mask_token": "<special1>",
}


def xlm_tokenizer(place: str) -> Any:
    """A fast tokenizer that cuts words as transformers' XLMTokenizer does, of a folder or a model by its name."""
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import cached_file

    vocabulary, merges = (Path(str(cached_file(place, name))) for name in ("vocab.json", "merges.txt"))
    told = cached_file(place, "tokenizer_config.json", _raise_exceptions_for_missing_entries=False)
    plain = read_json(Path(str(told))).get("do_lowercase_and_remove_accent", True) if told is not None else True
    made = bpe_of(read_json(vocabulary), merges.read_text(encoding="utf-8"), bool(plain))
    return PreTrainedTokenizerFast(tokenizer_object=made, **NAMES)


def bpe_of(vocabulary: dict[str, int], merges: str, plain: bool) -> Tokenizer:
    """The tokenizer of a vocabulary and of merges, ``LEFT RIGHT COUNT`` a line; ``plain``: small letters, no accents.

    A merge whose result is no token of the vocabulary is left out: XLM reads that as the unknown token.
    """
    lines = (tuple(line.split()[:2]) for line in merges.splitlines())
    pairs = [(pair[0], pair[1]) for pair in lines if len(pair) == 2]
    known = [pair for pair in pairs if {*pair, pair[0] + pair[1]} <= vocabulary.keys()]
    tokenizer = Tokenizer(models.BPE(vocabulary, known, unk_token=NAMES["unk_token"], end_of_word_suffix=END))
    if plain:
        tokenizer.normalizer = normalizers.Sequence(
            [
                # which Lowercase does not know: a capital sigma at the end of a word
                normalizers.Replace(Regex(r"(?<=\p{L})Σ(?!\p{L})"), "ς"),
                normalizers.Lowercase(),
                normalizers.NFD(),
                # not StripAccents, which takes the vowel signs of Hindi as well
                normalizers.Replace(Regex(r"\p{Mn}"), ""),
                normalizers.Lowercase(),
            ]
        )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
