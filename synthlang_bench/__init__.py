"""Benchmarks of speed and memory: ``python -m pretrain.bench``, ``synthlang.bench`` and ``probes.bench``."""
