"""Bilingual dictionaries as saved artifacts: of token ids for pretraining, of words for people and MUSE files."""

from __future__ import annotations

from synthlang.dictionary.candidates import IdCandidates, all_candidates, word_files
from synthlang.dictionary.pairs import IdDictionary, build_id_dictionary, read_id_dictionary
from synthlang.dictionary.spec import DictionarySpec, draw, trained_types
from synthlang.dictionary.synonyms import Synonyms
from synthlang.dictionary.words import WordDictionary

__all__ = [
    "DictionarySpec",
    "IdCandidates",
    "IdDictionary",
    "Synonyms",
    "WordDictionary",
    "all_candidates",
    "build_id_dictionary",
    "draw",
    "read_id_dictionary",
    "trained_types",
    "word_files",
]
