"""Adjustment: fine-tuning of an encoder that moves aligned words of sentence pairs together and keeps other words."""
