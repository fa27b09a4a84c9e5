"""Tasks that take no time, for what runs tasks: they make a stage, fail or die as they are told."""

import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pretrain.config import PretrainConfig
from probes.study.tasks import AlignmentTask, PretrainTask
from synthlang.config import parse
from synthlang.errors import InputError
from synthlang.files import atomic_file, atomic_folder, write_json
from tests.tiny import PRETRAIN

RUN = PretrainTask(parse(PretrainConfig, PRETRAIN))


@dataclass(frozen=True, eq=False)
class FakeTask(AlignmentTask):
    """``does`` is what ``run`` does: ok, raise, input, die, crash, flaky, wait (for the file ``where``)."""

    pretrained: PretrainTask
    name: str
    does: str = "ok"
    where: str = ""

    @property
    def key(self):
        return self.name

    @property
    def needs(self):
        return ()

    @property
    def label(self):
        return f"fake {self.key}"

    def files(self):
        return []

    def run(self, store, report):
        report(self.label, 0, 1, self.does)
        getattr(self, f"_{self.does}")(store)
        path = store.path(self.kind, f"of-{self.key}")
        if not path.exists():
            with atomic_folder(path) as folder:
                write_json(folder / "result.json", self.found(store))
        report(self.label, 1, 1, "")
        return f"of-{self.key}"

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
        """Die at the first try."""
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
    """A task that does as it is told."""
    return FakeTask(RUN, key, does, str(where))
