"""How much fits in a picture. Settings are checked against it, so nothing here draws."""

MOST_PAIRS = 2_000
"""Word pairs of one picture: no more could be told apart, and t-SNE's time grows faster than their number."""
