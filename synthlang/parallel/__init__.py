"""Parallel text: sentence pairs, the alignments of their words, and their encoding for a model."""
