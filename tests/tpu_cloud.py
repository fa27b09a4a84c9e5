"""A fake gcloud that records its arguments and simulates a cloud with one TPU VM in a folder."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ROOT / "tpu_scripts"
WHERE = {"PROJECT": "my-project", "ZONE": "us-central2-b", "TPU_NAME": "tpu-1"}
KIND = {"ACCELERATOR_TYPE": "v4-8", "VERSION": "tpu-ubuntu2204-base"}
END = "--project=my-project --zone=us-central2-b"

GCLOUD = r"""
import json, os, re, shutil, subprocess, sys
from pathlib import Path
cloud, arguments = Path(os.environ["CLOUD"]), sys.argv[1:]
with (cloud / "calls.jsonl").open("a") as handle:
    handle.write(json.dumps(arguments) + "\n")
line = " ".join(arguments)
for rule in json.loads(os.environ.get("CLOUD_FAILS", "[]")):
    if re.search(rule[0], line):
        print(rule[2], file=sys.stderr)
        raise SystemExit(rule[1])
flags = dict(a[2:].split("=", 1) for a in arguments if a.startswith("--") and "=" in a)
words = [a for a in arguments if not a.startswith("--")]
place = lambda name: name.replace("gs://", f"{cloud}/").replace("tpu-1:", f"{cloud}/vm/")
def sync(source, target, delete=False):
    kept = {p.relative_to(source) for p in source.rglob("*") if p.is_file()}
    kept = {p for p in kept if not re.match(flags.get("exclude", "$^"), str(p))}
    for name in kept:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)
    for path in [p for p in target.rglob("*") if p.is_file()] if delete else []:
        if path.relative_to(target) not in kept:
            path.unlink()
if "describe" in words:
    states = (cloud / "states").read_text().split()
    (cloud / "states").write_text(" ".join(states[1:] or states))
    if states[0] == "NOT_FOUND":
        print("ERROR: NOT_FOUND: Resource was not found", file=sys.stderr)
        raise SystemExit(1)
    print(states[0])
elif "ssh" in words:
    environment = {"PUSH_SECONDS": "60", "LOOK_SECONDS": "0.1", **os.environ, "HOME": f"{cloud}/vm"}
    raise SystemExit(subprocess.run(["bash", "-c", flags["command"]], cwd=cloud / "vm", env=environment).returncode)
elif "scp" in words:
    source, target = Path(place(words[4])), Path(place(words[5]))
    (shutil.copytree(source, target / source.name) if source.is_dir() else shutil.copy(source, target))
elif "ls" in words:
    found = list(cloud.glob(words[2].replace("gs://", "").replace("**", "**/*")))
    if not found:
        print("ERROR: (gcloud.storage.ls) One or more URLs matched no objects.", file=sys.stderr)
        raise SystemExit(1)
elif "rsync" in words:
    sync(Path(place(words[2])), Path(place(words[3])), "--delete-unmatched-destination-objects" in arguments)
"""

ACCELERATE = r"""#!/usr/bin/env bash
# stands for accelerate and synthlang: a run of three steps; the file `dies` lets it die after the first
printf '%s\n' "$PJRT_DEVICE" "$@" >arguments
while (($#)); do if [[ "$1" == --out ]]; then run="$2"; fi; shift; done
mkdir -p "$run/checkpoints"
for step in 1 2 3; do
  if [[ -d "$run/checkpoints/step-$step" ]]; then echo "has step $step"; continue; fi
  echo "{\"step\": $step}" >>"$run/metrics.jsonl"
  mkdir "$run/checkpoints/step-$step"; echo "weights $step" >"$run/checkpoints/step-$step/model"
  if [[ -f dies ]]; then code="$(<dies)"; rm dies; exit "$code"; fi
  while [[ -f waits ]]; do sleep 0.05; done
done
touch "$run/done.json"
"""


@dataclass
class Cloud:
    """The cloud's folder: ``vm`` is the home on the VM, the other folders are buckets."""

    folder: Path

    @classmethod
    def make(cls, folder: Path) -> Cloud:
        """A cloud whose VM is ready and has the stand-ins for what setup installs."""
        (folder / "bin").mkdir(parents=True)
        _executable(folder / "bin" / "gcloud", f"#!{sys.executable}\n{GCLOUD}")
        tools = folder / "vm" / "synthlang" / ".venv-tpu" / "bin"
        tools.mkdir(parents=True)
        for name in ("python", "accelerate", "synthlang"):
            _executable(tools / name, ACCELERATE)
        (folder / "states").write_text("READY")
        return cls(folder)

    @property
    def project(self) -> Path:
        """The project's folder on the VM."""
        return self.folder / "vm" / "synthlang"

    def run(
        self,
        script: str,
        *arguments: str,
        fails: list[tuple[str, int, str]] | None = None,
        typed: str = "",
        **more: str,
    ) -> subprocess.CompletedProcess[str]:
        """Start a script in an environment of ``more`` variables (``WHERE`` and ``KIND`` unless given)."""
        path = f"{self.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
        clean = {k: v for k, v in os.environ.items() if k in ("LANG", "TMPDIR")}
        environment = clean | {"PATH": path, "CLOUD": str(self.folder), "CLOUD_FAILS": json.dumps(fails or [])}
        environment |= {"POLL_SECONDS": "0", "TPU_WORKER_HOSTNAMES": "one", "HOME": str(self.folder)} | WHERE | KIND
        environment |= more
        command = ["bash", str(SCRIPTS / script), *arguments]
        return subprocess.run(
            command, env=environment, input=typed, capture_output=True, text=True, cwd=ROOT, timeout=300, check=False
        )

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call of gcloud."""
        path = self.folder / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def verbs(self) -> list[str]:
        """Return the action of each call, and the verb that runs on the VM."""
        found = []
        for call in self.calls:
            inner = re.search(r"on_worker\.sh (\w+)", " ".join(call))
            found.append(inner[1] if inner else call[1] if call[0] == "storage" else call[3])
        return [
            ("storage " if call[0] == "storage" else "") + verb for call, verb in zip(self.calls, found, strict=True)
        ]


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
