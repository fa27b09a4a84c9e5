"""Entry point of ``python -m pretrain.bench``, which runs ``synthlang_bench/pretrain.py``."""

from __future__ import annotations

from pkgutil import resolve_name

if __name__ == "__main__":
    raise SystemExit(resolve_name("synthlang_bench.pretrain:main")())
