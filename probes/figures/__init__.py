"""Drawings of results. How much fits in one stands here, since settings are checked against it without drawing."""

MOST_PAIRS = 2_000
"""Word pairs of one picture: no more could be told apart, and t-SNE's time grows faster than their number."""
