"""Ids of all languages of a run in one space: copied, joint, joined or prefixed, or those of a checkpoint.

spec.py         settings
space.py        what every kind gives: the ids of a run and the tokenizer of each member
build.py        kinds that are trained here
huggingface.py  the tokenizer of a checkpoint, as it is or extended
extension.py    new subwords of one language
"""

from synthlang.vocabularies.build import Member, build_id_space
from synthlang.vocabularies.extension import Extension
from synthlang.vocabularies.huggingface import hf_id_space
from synthlang.vocabularies.space import OURS, IdSpace, MemberTokenizer, Specials
from synthlang.vocabularies.spec import ExtendSpec, VocabularySpec

__all__ = [
    "OURS",
    "ExtendSpec",
    "Extension",
    "IdSpace",
    "Member",
    "MemberTokenizer",
    "Specials",
    "VocabularySpec",
    "build_id_space",
    "hf_id_space",
]
