"""Parallel text: sentence pairs, word alignments, and their encoding for a model."""
