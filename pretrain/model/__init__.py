"""The model: a masked language model whose parts languages may share or have of their own."""
