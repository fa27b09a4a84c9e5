"""Where the real data is; tests that use it skip with a reason where it is absent."""

import os
from pathlib import Path

DATA = Path(os.environ.get("SYNTHLANG_TEST_DATA", Path(__file__).parents[2] / "shared" / "data"))
