"""A derived language as a data set folder for other researchers: parquet shards, card, manifest."""

from __future__ import annotations

from synthlang.export.manifest import data_set_repository, push_to_hub, verify_manifest
from synthlang.export.rows import CONFIGS
from synthlang.export.run import derived_fingerprint, export_language

__all__ = ["CONFIGS", "data_set_repository", "derived_fingerprint", "export_language", "push_to_hub", "verify_manifest"]
