"""``python -m probes.bench`` runs bench/probes.py, which is beside the packages and imported by none of them."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    runpy.run_module("bench.probes", run_name="__main__")
