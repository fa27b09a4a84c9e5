"""Adjustment: fine-tune an encoder so that aligned words of sentence pairs move together and others stay in place."""
