"""Drawings of results.

The limit below is in a module that does not import matplotlib, because settings are checked against it.
"""

MOST_PAIRS = 2_000
"""Maximum number of word pairs in a picture. More cannot be distinguished, and the time of t-SNE grows faster."""
