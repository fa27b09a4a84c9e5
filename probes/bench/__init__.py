"""Benchmarks of fine-tuning: ``python -m probes.bench``."""
