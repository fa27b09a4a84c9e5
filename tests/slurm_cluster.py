"""A real Slurm of one node for tests (tests/slurm/cluster.sh), and events that happen to its jobs."""

import importlib.util
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

SCRIPT = Path(__file__).parent / "slurm" / "cluster.sh"
HOME = Path(os.environ.get("SLURM_HOME", "/var/tmp/synthlang-slurm"))
PROGRAMS = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "sbatch")
WANTED = os.environ.get("SYNTHLANG_TEST_SLURM") == "1"


def why_not() -> str:
    """Return the reason why the tests cannot run here, or "" if they can."""
    if not WANTED:
        return "a cluster takes minutes: SYNTHLANG_TEST_SLURM=1 installs Debian's packages where they are missing"
    if os.geteuid() != 0:
        return "Slurm's daemons start as root"
    if importlib.util.find_spec("submitit") is None:
        return "submitit is not installed (pip install 'synthlang-study[slurm]')"
    return ""


def cluster(command: str) -> None:
    """A command of the script."""
    subprocess.run([SCRIPT, command], check=True, capture_output=True, text=True, timeout=600)


def set_up() -> None:
    """Install and start Debian's packages, or skip with their output on a machine that cannot have them."""
    try:
        if any(shutil.which(name) is None for name in PROGRAMS):
            cluster("install")
        cluster("start")
    except subprocess.CalledProcessError as error:
        said = (error.stderr or error.stdout).strip().splitlines()
        pytest.skip(f"no Slurm can be set up here: {said[-1] if said else error}")


def say(*command: str) -> str:
    """Return the output of a command of Slurm."""
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@contextmanager
def running() -> Iterator[None]:
    """Run the cluster for one test process at a time. If it ran before, it runs on afterwards."""
    with FileLock(f"{HOME}.lock"):
        was_up = subprocess.run([SCRIPT, "status"], check=False, capture_output=True, timeout=60).returncode == 0
        set_up()
        before = os.environ.get("SLURM_CONF")
        os.environ["SLURM_CONF"] = str(HOME / "slurm.conf")
        say("scancel", "--user=root")
        try:
            yield
        finally:
            say("scancel", "--user=root")
            if not was_up:
                cluster("stop")
            if before is None:
                del os.environ["SLURM_CONF"]
            else:
                os.environ["SLURM_CONF"] = before


def queue() -> dict[str, str]:
    """{job id: state} of all jobs that wait or run."""
    pairs = (line.split() for line in say("squeue", "--noheader", "--array", "--format=%i %T").splitlines())
    return {pair[0]: pair[1] for pair in pairs}


def until(condition, seconds: float = 90.0, what: str = "it"):
    """Wait until ``condition()`` is true, and return what it returned."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, f"{what} did not happen in {seconds} s"
        time.sleep(0.2)
    return found


def hurry() -> None:
    """Let requeued jobs start: Slurm keeps them for two minutes, lest a broken node eats a queue."""
    for line in say("squeue", "--noheader", "--array", "--states=PENDING", "--format=%i %r").splitlines():
        job, reason = line.split()
        if reason == "BeginTime":
            command = ["scontrol", "update", f"JobId={job}", "StartTime=now"]
            subprocess.run(command, check=False, capture_output=True, timeout=60)  # it may have started meanwhile


def restarts(job: str) -> int:
    """Return the number of times that a job went back into the queue."""
    words = say("scontrol", "show", "job", job).split()
    return int(next(word.partition("=")[2] for word in words if word.startswith("Restarts=")))


def worker() -> psutil.Process:
    """The Python process of the only job."""
    found = [p for p in psutil.process_iter(["cmdline"]) if "submitit.core._submit" in (p.info["cmdline"] or [])]
    (process,) = [p for p in found if p.name() != "srun"]
    return process


def requeue(job: str) -> None:
    """Requeue the job, as an administrator does."""
    say("scontrol", "requeue", job)


def preempt(job: str) -> None:
    """Preempt the job by another job that takes the whole node for a moment."""
    del job
    say("sbatch", "--partition=urgent", "--exclusive", "--output=/dev/null", "--wrap=sleep 1")


def warn(job: str) -> None:
    """Warn the job, as Slurm does before the time limit."""
    say("scancel", "--signal=USR2", job)


def lose_node(job: str) -> None:
    """Lose the node, as in a power cut, and bring it back."""
    del job
    cluster("node-kill")
    cluster("node-start")


def kill(job: str) -> None:
    """Kill the job, as the kernel does when memory runs out."""
    del job
    worker().send_signal(signal.SIGKILL)


def cancel(job: str) -> None:
    """Cancel the job, as a user does."""
    say("scancel", job)
