"""``python -m pretrain.bench`` runs bench/pretrain.py, which is beside the packages and imported by none of them."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("bench.pretrain", run_name="__main__")
