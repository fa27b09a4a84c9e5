"""The name of the distribution, and the command that installs an optional part of this copy."""

from __future__ import annotations

from pathlib import Path

NAME = "synthlang-study"
"""Name on the package index, where ``synthlang`` is another project."""
CHECKOUT = Path(__file__).resolve().parents[1]


def install_command(extra: str = "") -> str:
    """Return the command that installs this copy again with the packages of the optional part ``extra``.

    Without ``extra``, the command installs only the required packages.
    """
    is_checkout = (CHECKOUT / "pyproject.toml").is_file()
    part = f"[{extra}]" if extra else ""
    return f"pip install -e '{CHECKOUT}{part}'" if is_checkout else f"pip install '{NAME}{part}'"
