"""``python -m probes.bench`` runs synthlang_bench/probes.py, which none of the packages imports."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    raise SystemExit(runpy.run_module("synthlang_bench.probes")["main"]())
