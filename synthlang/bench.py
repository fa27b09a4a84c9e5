"""``python -m synthlang.bench`` runs synthlang_bench/synthlang.py, which none of the packages imports."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    raise SystemExit(runpy.run_module("synthlang_bench.synthlang")["main"]())
