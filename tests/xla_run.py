"""One tiny run on XLA's CPU backend: prints the compilations of each step, and the log. Started by test_xla.py.

python -m tests.xla_run FOLDER OVERRIDES-AS-JSON [STEP-TO-STOP-AT]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.tiny import PRETRAIN, changed

STOPPED = 3


def compilations() -> int:
    """How many graphs XLA has compiled so far."""
    import torch_xla.debug.metrics as metrics  # type: ignore[import-not-found,unused-ignore]

    data = metrics.metric_data("CompileTime")
    return 0 if data is None else int(data[0])


def main(folder: Path, overrides: dict[str, Any], stop: int | None) -> None:
    """Run to the end, or die before step ``stop``."""
    from pretrain.config import PretrainConfig
    from pretrain.data.batch import Batch
    from pretrain.folder import read_metrics
    from pretrain.run import pretrain
    from pretrain.step import Step

    counts: list[int] = []
    plain = Step.__call__

    def counted(self: Step, step: int, batches: Sequence[Batch]) -> Any:
        if step == stop:
            raise SystemExit(STOPPED)
        if self.accelerator.device.type == "xla":
            counts.append(compilations())
        return plain(self, step, batches)

    Step.__call__ = counted  # type: ignore[method-assign, assignment]
    pretrain(PretrainConfig.model_validate(changed(PRETRAIN, **overrides)), folder)
    print(json.dumps({"counts": counts, "log": read_metrics(folder / "metrics.jsonl")}))


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else None)
