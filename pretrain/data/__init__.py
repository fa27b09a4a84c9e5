"""Batches of fixed shape, each a pure function of (seed, step): sources of rows → quotas → masking → batches."""
