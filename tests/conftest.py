"""Settings of all tests: offline, no time limits inside a test, one thread."""

import os

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ.setdefault("OMP_NUM_THREADS", "1")

from pathlib import Path

import pytest
from hypothesis import settings

# examples are reproducible, and a slow machine is no failure
settings.register_profile("synthlang", deadline=None, derandomize=True)
settings.load_profile("synthlang")


@pytest.fixture(scope="session")
def shared_data():
    """The folder of real data beside the project; tests that need it skip where it is absent."""
    folder = Path(os.environ.get("SYNTHLANG_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip("no folder of real data (set SYNTHLANG_TEST_DATA)")
    return folder
