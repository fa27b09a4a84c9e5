"""Galactic order models: the order of a node's dependents in another language (Wang & Eisner 2016)."""
