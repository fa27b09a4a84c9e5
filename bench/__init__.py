"""Measurements, one module for each package: ``python -m pretrain.bench``, ``synthlang.bench`` and ``probes.bench``."""
