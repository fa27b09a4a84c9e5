"""Measurements of the pretrainer: ``python -m pretrain.bench --help``."""
