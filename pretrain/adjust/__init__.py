"""Adjustment: the words of sentence pairs are pulled together in a pretrained encoder, the rest is held in place."""
