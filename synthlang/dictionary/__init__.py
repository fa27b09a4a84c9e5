"""Bilingual dictionaries as saved artifacts: of token ids for pretraining, of words for people and MUSE files."""

from __future__ import annotations

from synthlang.dictionary.ids import read_dictionary, write_dictionary
from synthlang.dictionary.spec import DictionarySpec, draw, trained_types
from synthlang.dictionary.words import WordDictionary

__all__ = ["DictionarySpec", "WordDictionary", "draw", "read_dictionary", "trained_types", "write_dictionary"]
