"""``python -m pretrain.bench`` runs synthlang_bench/pretrain.py, which none of the packages imports."""

from __future__ import annotations

import runpy

if __name__ == "__main__":
    raise SystemExit(runpy.run_module("synthlang_bench.pretrain")["main"]())
