"""Entry point of ``python -m probes.bench``, which runs ``synthlang_bench/probes.py``."""

from __future__ import annotations

from pkgutil import resolve_name

if __name__ == "__main__":
    raise SystemExit(resolve_name("synthlang_bench.probes:main")())
