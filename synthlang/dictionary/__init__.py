"""Bilingual dictionaries: pairs of token ids for pretraining, and pairs of words in the format of MUSE."""
