"""Parallel text: sentence pairs, the links between their words, and what an encoder reads of them."""
