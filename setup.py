"""The packages of the distribution: the code, and configs/ as a part of synthlang. All else is in pyproject.toml."""

from setuptools import find_packages, setup

setup(
    packages=[*find_packages(include=["synthlang*", "pretrain*", "probes*"]), "synthlang.configs"],
    package_dir={"synthlang.configs": "configs"},
)
