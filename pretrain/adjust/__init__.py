"""Adjustment: pull the words of sentence pairs together in a pretrained encoder, and hold the rest in place."""
