"""The place of real data. Tests that use it are skipped with a reason if it is missing."""

import os
from pathlib import Path

DATA = Path(os.environ.get("SYNTHLANG_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
