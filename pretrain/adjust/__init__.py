"""Adjustment: fine-tune an encoder so that aligned words of sentence pairs move together and other words stay."""
