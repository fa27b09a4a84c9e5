"""Intervals, tests and correlations for few seeds and few cells.

Every random draw depends on an explicit key, so reports are reproducible in every digit.
"""

from probes.statistics.correlation_values import COEFFICIENTS
from probes.statistics.correlation_values import Kind as CorrelationKind
from probes.statistics.correlations import Correlation, correlation
from probes.statistics.intervals import (
    BOOTSTRAP_ROUNDS,
    Floats,
    Interval,
    alignment_interval,
    bootstrap_difference,
    bootstrap_metric,
    generator,
    mean_interval,
    mean_of,
    numbers_among,
    wilson_interval,
)
from probes.statistics.paired import TEST_ROUNDS, Correction, PairedTest, corrected, paired_t_test, permutation_test

__all__ = [
    "BOOTSTRAP_ROUNDS",
    "COEFFICIENTS",
    "TEST_ROUNDS",
    "Correction",
    "Correlation",
    "CorrelationKind",
    "Floats",
    "Interval",
    "PairedTest",
    "alignment_interval",
    "bootstrap_difference",
    "bootstrap_metric",
    "corrected",
    "correlation",
    "generator",
    "mean_interval",
    "mean_of",
    "numbers_among",
    "paired_t_test",
    "permutation_test",
    "wilson_interval",
]
