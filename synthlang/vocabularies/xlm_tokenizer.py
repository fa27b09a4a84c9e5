"""Fast tokenizer for XLM's checkpoints, built from their files because transformers has none.

XLM's BPE (Lample and Conneau 2019; fastBPE) marks the end of a word and reads text in lower case without accents. It
does not split words. A row starts and ends with ``</s>``, as in XLM's own code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers

from synthlang.files import read_json

XLM = "xlm"
"""The name of the architecture in transformers."""
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
    """Return a fast tokenizer that cuts words as transformers' XLMTokenizer does.

    ``place`` is a folder or the name of a model. Errors of transformers and of the file system are raised unchanged.

    Raises:
        InputError: The file vocab.json or tokenizer_config.json is not JSON.
    """
    from transformers import PreTrainedTokenizerFast
    from transformers.utils import cached_file

    vocabulary, merges = (Path(str(cached_file(place, name))) for name in ("vocab.json", "merges.txt"))
    settings = cached_file(place, "tokenizer_config.json", _raise_exceptions_for_missing_entries=False)
    plain = read_json(Path(str(settings))).get("do_lowercase_and_remove_accent", True) if settings is not None else True
    made = bpe_of(read_json(vocabulary), merges.read_text(encoding="utf-8"), bool(plain))
    return PreTrainedTokenizerFast(tokenizer_object=made, **NAMES)


def bpe_of(vocabulary: dict[str, int], merges: str, plain: bool) -> Tokenizer:
    """Return the tokenizer of a vocabulary and of lines ``LEFT RIGHT COUNT`` of merges.

    With ``plain``, text is in lower case without accents. A merge whose result is not in the vocabulary is left out,
    since XLM reads that result as the unknown token.
    """
    lines = (tuple(line.split()[:2]) for line in merges.split("\n"))
    pairs = [(pair[0], pair[1]) for pair in lines if len(pair) == 2]
    known = [pair for pair in pairs if {*pair, pair[0] + pair[1]} <= vocabulary.keys()]
    tokenizer = Tokenizer(models.BPE(vocabulary, known, unk_token=NAMES["unk_token"], end_of_word_suffix=END))
    if plain:
        tokenizer.normalizer = normalizers.Sequence(
            [
                # Lowercase does not handle a capital sigma at the end of a word.
                normalizers.Replace(Regex(r"(?<=\p{L})Σ(?!\p{L})"), "ς"),
                normalizers.Lowercase(),
                normalizers.NFD(),
                # StripAccents would remove the vowel signs of Hindi as well.
                normalizers.Replace(Regex(r"\p{Mn}"), ""),
                normalizers.Lowercase(),
            ]
        )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    return tokenizer
