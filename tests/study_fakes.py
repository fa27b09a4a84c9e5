"""Fake stages for tests of executors and runners. They succeed, fail or die as requested."""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Literal

from probes.stages.base import Stage
from probes.stages.kinds import STAGE_KINDS
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, write_json


class FakeStage(Stage):
    """``does`` is what ``make`` does: ok, raise, input, die, crash, flaky, wait (for the file ``where``)."""

    format = 1
    content = ("result.json",)
    kind: Literal["fake"] = "fake"
    does: str = "ok"
    where: str = ""

    @property
    def label(self):
        return f"fake {self.key}"

    @property
    def configs(self):
        return ()

    def reread(self, store):
        return self

    def settings(self, stage_keys):
        return [self.does, self.where]

    def run(self, making):
        store, report = making.store, making.report
        report(self.label, 0, 1, self.does)
        getattr(self, f"_{self.does}")(store)
        path = store.path(self.kind, self.key)
        if not path.exists():
            with atomic_folder(path) as folder:
                write_json(folder / "result.json", self.found(store))
        report(self.label, 1, 1, "")

    def found(self, store):
        import torch

        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        return {"pid": os.getpid(), "visible": visible, "threads": torch.get_num_threads()}

    def _ok(self, store):
        pass

    def _raise(self, store):
        raise RuntimeError("two\nlines")

    def _input(self, store):
        raise InputError("that cannot be")

    def _die(self, store):
        os.kill(os.getpid(), signal.SIGKILL)

    def _crash(self, store):
        print("last words", file=sys.stderr, flush=True)
        os._exit(3)

    def _flaky(self, store):
        """Die at the first attempt only."""
        if not Path(self.where).exists():
            Path(self.where).write_text("tried")
            os._exit(4)

    def _wait(self, store):
        with atomic_file(Path(f"{self.where}.{self.key}"), "w") as handle:
            handle.write(str(os.getpid()))
        deadline = time.monotonic() + 60
        while not Path(self.where).exists():
            assert time.monotonic() < deadline, "nobody came"
            time.sleep(0.005)


def fake(key, does="ok", where=""):
    """Return a stage with the given behaviour."""
    return FakeStage(key=key, does=does, where=str(where))


STAGE_KINDS["fake"] = FakeStage
