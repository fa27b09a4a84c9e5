"""Which normalisations there are; normalise.py says what they do. Settings name them, so nothing here needs torch."""

from __future__ import annotations

from typing import Literal, get_args

Method = Literal["none", "centre", "unit", "unit-centre-unit", "iterative", "iterative-as-printed"]
METHODS: tuple[Method, ...] = get_args(Method)
ROUNDS = 5  # Zhang et al. 2019 and their code
