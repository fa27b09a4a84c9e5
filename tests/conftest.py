"""Settings of all tests: offline, no time limits inside a test, one thread."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")


from hypothesis import settings

# examples are reproducible, and a slow machine is no failure
settings.register_profile("synthlang", deadline=None, derandomize=True)
settings.load_profile("synthlang")
