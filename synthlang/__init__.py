"""synthlang derives synthetic languages from natural ones, and exports them as data sets."""

__version__ = "0.1.0"
