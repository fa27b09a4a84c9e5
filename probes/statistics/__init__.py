"""Intervals, tests and correlations for few seeds and few cells, with NumPy and SciPy only.

Every random draw comes from an explicit key, so a report is the same in every digit when it is made again.
"""

from probes.statistics.correlation_values import COEFFICIENTS
from probes.statistics.correlation_values import Kind as CorrelationKind
from probes.statistics.correlations import EXACT_ARRANGEMENTS, Correlation, correlation
from probes.statistics.intervals import (
    BOOTSTRAP_ROUNDS,
    Floats,
    Interval,
    Score,
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
    "EXACT_ARRANGEMENTS",
    "TEST_ROUNDS",
    "Correction",
    "Correlation",
    "CorrelationKind",
    "Floats",
    "Interval",
    "PairedTest",
    "Score",
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
