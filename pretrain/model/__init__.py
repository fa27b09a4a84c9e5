"""The model: a language model with parts that are shared or separate for each language."""
