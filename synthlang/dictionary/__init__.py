"""Bilingual dictionaries as saved artifacts: of token ids for pretraining, of words for people and MUSE files."""
