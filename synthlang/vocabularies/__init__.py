"""Ids of all languages of a run in one space: copied, joint, joined or prefixed, or from a checkpoint.

space.py        settings, the ids of a run, and the tokenizer of each language
build.py        the kinds that are trained here
checkpoint.py   the tokenizer of a checkpoint
extension.py    the ids of a checkpoint, with or without new subwords of one language
grow.py         learning of new subwords
"""

from synthlang.vocabularies.build import SourcedLanguage, build_id_space
from synthlang.vocabularies.extension import Extension, hf_id_space
from synthlang.vocabularies.space import OURS, ExtendSpec, IdSpace, LanguageTokenizer, Specials, VocabularySpec

__all__ = [
    "OURS",
    "ExtendSpec",
    "Extension",
    "IdSpace",
    "LanguageTokenizer",
    "SourcedLanguage",
    "Specials",
    "VocabularySpec",
    "build_id_space",
    "hf_id_space",
]
