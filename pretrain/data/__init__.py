"""Batches of fixed shape, each a pure function of (seed, step).

rows.py      what a source of rows offers; of one language: stream.py, sentences.py; of sentence pairs: tlm.py
packing.py   whole sentences into rows
quotas.py    how many rows of each source a step has; sampling.py: by which weights, in which order
batches.py   the masked rows of a step, or of a micro-batch; batch.py: what they look like
build.py     from a config
"""
