"""The model: a masked language model with parts that are shared or separate for each language."""
