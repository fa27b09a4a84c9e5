"""``python -m synthlang.bench`` runs bench/synthlang.py, which is beside the packages and imported by none of them."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("bench.synthlang", run_name="__main__")
