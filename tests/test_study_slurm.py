"""The Slurm executor against a queue that the test plays: arrays, records, lost jobs."""

import errno
import re
import sys

import pytest

pytest.importorskip("submitit", reason="submitit is not installed (pip install 'synthlang-study[slurm]')")

from probes.study.executors.slurm import PATIENCE, check_slurm
from synthlang.distribution import install_command
from synthlang.errors import InputError
from tests.refusals import refused
from tests.slurm_fakes import PlainTask, fake_slurm, record, start_runner, wait  # noqa: F401  fixtures


def test_where_nothing_can_be_submitted_one_line_says_so(tmp_path, slurm, start, monkeypatch):
    start().path.write_text('{"format": 99}')
    with pytest.raises(InputError, match=r"jobs\.json: is not a list of jobs of format 2"):
        start()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "submitit", None)
        with pytest.raises(InputError, match=re.escape(f"submitit is not installed; run {install_command('slurm')}")):
            start()
    slurm.go_away()
    with pytest.raises(InputError, match="squeue failed, or took over 60 s; run `scontrol ping`"):
        start()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(
        InputError, match=r"--executor slurm: the commands sbatch, squeue, srun of Slurm are not on the PATH"
    ):
        start()


def test_a_path_that_slurm_would_change(tmp_path):
    assert refused(check_slurm, tmp_path / "50%") == ("50%", "unsupported")


def running(start, *options, keys="a"):
    """An executor that has sent a task for each letter of ``keys``."""
    executor = start(*options)
    for key in keys:
        executor.submit(PlainTask(key))
    wait(executor)
    return executor


# --- sending ---


def test_ready_tasks_go_as_one_array_a_kind(slurm, start):
    executor = start("partition=short", "cpus=4", "time=7", "transfer.time=3", "setup=module load x", "gpus=1")
    for key in "abc":
        executor.submit(PlainTask(key))
    executor.submit(PlainTask("t", kind="transfer"))
    assert slurm.sent == 0  # a wave is sent when the runner starts to wait
    assert wait(executor) == {}
    assert slurm.sent == 2
    assert executor.jobs == {"a": "1_0", "b": "1_1", "c": "1_2", "t": "2"}
    first, second = slurm.script(1), slurm.script(2)
    for line in ("array=0-2%3", "partition=short", "cpus-per-task=4", "time=7", "gpus-per-node=1", "requeue"):
        assert f"#SBATCH --{line}\n" in first
    assert "#SBATCH --signal=USR2@90\n" in first
    assert "\nmodule load x\n" in first
    assert "srun --unbuffered" in first and "--cpus-per-task=4 " in first
    assert "#SBATCH --time=3\n" in second and "array" not in second.split("# command")[0]


def test_arrays_and_the_queue_are_no_longer_than_they_may_be(slurm, start):
    executor = start("array_size=2", "jobs=5")
    for left, key in enumerate("abcde"):
        assert executor.capacity() == 5 - left
        executor.submit(PlainTask(key))
    wait(executor)
    assert list(executor.jobs.values()) == ["1_0", "1_1", "2_0", "2_1", "3"]
    assert executor.capacity() == 0
    record(executor, "a", "1_0")
    wait(executor)
    assert executor.capacity() == 1


def test_a_graph_is_sent_with_its_dependencies(slurm, start):
    """Two runs, two tasks of each and a task of both; the tasks of one run go as one array. What is done is none."""
    transfers = [PlainTask(f"{run}{i}", (run, "done before"), "transfer") for run in "ab" for i in range(2)]
    tasks = [PlainTask("a"), PlainTask("b"), *transfers, PlainTask("ab", ("a", "b"), "probe"), PlainTask("z", ("ab",))]
    executor = start()
    executor.submit_graph(tasks)
    scripts = [slurm.script(number) for number in range(1, slurm.sent + 1)]
    dependencies = [re.findall("--dependency='?([^'\n]*)", script) for script in scripts]
    assert dependencies == [[], ["afterok:1_0"], ["afterok:1_1"], ["afterok:1_0:1_1"], ["afterok:4"]]
    assert executor.jobs["b1"] == "3_1"
    assert "#SBATCH --kill-on-invalid-dep=yes\n" in slurm.script(2)
    start().submit_graph(tasks)  # the same command again
    assert slurm.sent == 5


def test_what_sbatch_refuses_is_one_line(slurm, start):
    executor = start("partition=nowhere")
    executor.submit(PlainTask("a"))
    slurm.refuse("sbatch: error: invalid partition specified: nowhere\nsbatch: error: failed\n")
    with pytest.raises(
        InputError, match=r"sbatch failed for the jobs of kind pretrain: .*partition specified: nowhere"
    ):
        wait(executor)


def test_a_full_disk_is_no_fault_of_the_options(start, monkeypatch):
    def full(self, jobs):
        raise OSError(errno.ENOSPC, "No space left on device")

    executor = start()
    executor.submit(PlainTask("a"))
    monkeypatch.setattr("submitit.SlurmExecutor.submit_array", full)
    assert refused(wait, executor) == ("jobs", "resources")


# --- how jobs end ---


def test_records_become_outcomes(slurm, start):
    executor = running(start, keys="ab")
    record(executor, "a", "1_0")
    record(executor, "b", "1_1", error="that cannot be")
    ended = wait(executor)
    assert ended["a"].error is None
    assert (ended["b"].error, ended["b"].log) == ("that cannot be", "its log")
    assert wait(executor) == {}


def test_a_job_that_is_gone_without_a_record_has_failed(slurm, start, monkeypatch):
    monkeypatch.setitem(PATIENCE, "FAILED", 0.0)
    executor = running(start)
    executor.log_path("1").write_text("x" * 20_000 + "srun: error: Killed\n")
    slurm.end("1", "FAILED")
    outcome = wait(executor)["a"]
    assert "the Slurm job 1 ended without a result (state FAILED); see the log " in outcome.error
    assert outcome.error.endswith("1_0_log.err")
    assert outcome.log.endswith("srun: error: Killed\n") and len(outcome.log) == 8_000


@pytest.mark.parametrize("state", ["COMPLETED", None])
def test_a_record_may_come_late(slurm, start, state):
    """A disk of another machine shows it after the queue has let the job go; without accounting too."""
    executor = running(start)
    slurm.end("1", state)
    assert wait(executor) == {}
    record(executor, "a", "1")
    assert wait(executor)["a"].error is None


def test_without_an_answer_of_the_controller_nothing_is_concluded(slurm, start):
    executor = running(start)
    slurm.end("1", "FAILED")
    slurm.go_away()
    notes = []
    assert executor.wait(lambda name, done, total, note: notes.append(note), 0.0) == []
    assert notes == ["squeue failed, or took over 60 s"]


def test_jobs_that_slurm_lost_are_sent_again_but_not_for_ever(slurm, start):
    executor = running(start, "requeues=2")
    for number, state in enumerate(["PREEMPTED", "NODE_FAIL", "PREEMPTED"], start=1):
        assert executor.jobs["a"] == str(number)
        slurm.end(str(number), state)
        ended = wait(executor)
        assert bool(ended) == (number == 3)
        wait(executor)
    assert slurm.sent == 3
    assert "state PREEMPTED" in ended["a"].error


# --- runners that come and go ---


def test_a_restarted_runner_takes_its_jobs_over(slurm, start):
    before = running(start, keys="ab")
    before.close()
    after = running(start, keys="abc")
    assert slurm.sent == 2  # c alone
    record(after, "b", "1_1")
    assert wait(after)["b"].error is None


def test_a_job_that_ended_badly_while_nobody_watched_is_sent_again(slurm, start):
    before = running(start)
    record(before, "a", "1", error="no")
    slurm.end("1", "FAILED")
    after = start()
    after.submit(PlainTask("a"))
    assert wait(after) == {}
    assert after.jobs == {"a": "2"}


def test_a_retry_is_a_new_job_though_the_old_one_is_still_leaving(slurm, start):
    executor = running(start)
    record(executor, "a", "1", error="no")
    assert wait(executor)["a"].error == "no"
    assert "1" in slurm.queue()
    executor.submit(PlainTask("a"))
    assert wait(executor) == {}
    assert executor.jobs == {"a": "2"}
    record(executor, "a", "1", error="the old job again")
    assert wait(executor) == {}


def test_a_silent_queue_after_a_restart_sends_nothing_twice(slurm, start):
    running(start)
    after = start()
    slurm.go_away()
    after.submit(PlainTask("a"))
    assert wait(after) == {}
    with pytest.raises(InputError, match="squeue failed, or took over 60 s; run the same command again"):
        after.submit_graph([PlainTask("a")])
    slurm.go_away(False)
    assert wait(after) == {}
    assert (slurm.sent, after.jobs) == (1, {"a": "1"})
    record(after, "a", "1")
    assert wait(after)["a"].error is None


def test_at_a_limit_of_the_cluster_the_runner_waits_and_sends_smaller_arrays(slurm, start):
    executor = start("array_size=2")
    for key in "abc":
        executor.submit(PlainTask(key))
    slurm.refuse(
        "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates policy"
    )
    notes = []
    assert executor.wait(lambda name, done, total, note: notes.append(note), 0.0) == []
    assert "sbatch: error" in notes[-1] and "\n" not in notes[-1]
    assert executor.capacity() < executor.options.jobs  # they are not forgotten
    slurm.refuse(None)
    wait(executor)
    assert sorted(executor.jobs) == ["a", "b", "c"]
    assert (slurm.sent, len(slurm.queue())) == (3, 3)
    executor.wait(lambda name, done, total, note: notes.append(note), 0.0)
    assert notes[-1] == "0 running, 3 waiting"


def test_where_the_controller_is_away_as_jobs_are_sent_the_same_command_goes_on(slurm, start):
    executor = start()
    executor.submit(PlainTask("a"))
    slurm.refuse("sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)")
    with pytest.raises(InputError, match="Unable to contact slurm controller"):
        wait(executor)
    slurm.refuse(None)
    after = start()
    after.submit(PlainTask("a"))
    assert wait(after) == {} and after.jobs == {"a": "1"}
