"""Drawings of results.

The limit below is in a module without matplotlib, since settings are checked against it without drawing.
"""

MOST_PAIRS = 2_000
"""Largest number of word pairs in a picture. More cannot be told apart, and t-SNE takes longer than linear time."""
