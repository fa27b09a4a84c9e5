"""Measurements: a module for each of ``python -m pretrain.bench``, ``synthlang.bench`` and ``probes.bench``."""
