"""Runners of the Slurm executor that come and go, and a cluster that does not answer: no job is sent twice."""

import json

import pytest

pytest.importorskip("submitit", reason="submitit is not installed (pip install 'synthlang[slurm]')")

from synthlang.errors import InputError
from tests.slurm_fakes import PlainTask, fake_slurm, record, start_runner, wait  # noqa: F401  fixtures


def test_a_restarted_runner_takes_its_jobs_over(slurm, start):
    before = start()
    for key in "ab":
        before.submit(PlainTask(key))
    wait(before)
    before.close()
    after = start()
    for key in "abc":
        after.submit(PlainTask(key))
    wait(after)
    assert slurm.sent == 2  # c alone
    record(after, "b", "1_1")
    assert wait(after)["b"].fingerprint == "made-b"


def test_a_job_that_ended_badly_while_nobody_watched_is_sent_again(slurm, start):
    before = start()
    before.submit(PlainTask("a"))
    wait(before)
    record(before, "a", "1", error="no")
    slurm.end("1", "FAILED")
    after = start()
    after.submit(PlainTask("a"))
    assert wait(after) == {}
    assert after.ledger.jobs == {"a": "2"}


def test_a_retry_is_a_new_job_though_the_old_one_is_still_leaving(slurm, start):
    executor = start()
    executor.submit(PlainTask("a"))
    wait(executor)
    record(executor, "a", "1", error="no")
    assert wait(executor)["a"].error == "no"
    assert "1" in slurm.queue()
    executor.submit(PlainTask("a"))
    assert wait(executor) == {}
    assert executor.ledger.jobs == {"a": "2"}
    record(executor, "a", "1", error="the old job again")
    assert wait(executor) == {}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_jobs_whose_ids_nobody_noted_are_cancelled(error, slurm, start):
    """The runner ends, or is told to, between sbatch and writing the id down."""
    before = start()
    sending = before.ledger.sending()
    slurm.put("7", "PENDING", sending.__enter__())
    assert not sending.__exit__(error, error(), None)  # as at the end of a block that it ended
    slurm.put("8")
    after = start()
    after.submit(PlainTask("a"))
    assert wait(after) == {}
    assert slurm.queue() == {"8": "PENDING", "1": "PENDING"}
    assert json.loads(after.ledger.path.read_text())["sending"] is None
    assert after.ledger.jobs == {"a": "1"}


def test_a_silent_queue_after_a_restart_sends_nothing_twice(slurm, start):
    before = start()
    before.submit(PlainTask("a"))
    wait(before)
    after = start()
    slurm.go_away()
    after.submit(PlainTask("a"))
    assert wait(after) == {}
    with pytest.raises(InputError, match=r"squeue does not answer, .* run the same command again for the rest"):
        after.submit_graph([PlainTask("a")])
    slurm.go_away(False)
    assert wait(after) == {}
    assert (slurm.sent, after.ledger.jobs) == (1, {"a": "1"})
    record(after, "a", "1")
    assert wait(after)["a"].fingerprint == "made-a"


@pytest.mark.parametrize(
    "said",
    [
        "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)",
        "sbatch: error: Batch job submission failed: Socket timed out on send/recv operation",
        "sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed: Job violates policy",
    ],
)
def test_where_sbatch_may_take_it_later_the_runner_says_so_and_waits(said, slurm, start, monkeypatch):
    monkeypatch.setattr("probes.study.executors.slurm_ledger.LATE", 0.0)
    executor = start("array_size=2")
    for key in "abc":
        executor.submit(PlainTask(key))
    slurm.refuse(said)
    notes = []
    assert executor.wait(lambda name, done, total, note: notes.append(note), 0.0) == []
    assert "sbatch: error" in notes[-1] and "\n" not in notes[-1]
    assert executor.capacity() < executor.options.jobs  # they are not forgotten
    slurm.refuse(None)
    wait(executor)
    assert sorted(executor.ledger.jobs) == ["a", "b", "c"]
    assert slurm.sent == (3 if "Limit" in said else 2)  # smaller arrays, at a limit
    assert len(slurm.queue()) == 3
    executor.wait(lambda name, done, total, note: notes.append(note), 0.0)
    assert notes[-1] == "0 running, 3 waiting"


def test_what_sbatch_took_though_it_said_otherwise_is_cancelled_first(slurm, start, monkeypatch):
    monkeypatch.setattr("probes.study.executors.slurm_ledger.LATE", 0.0)
    executor = start()
    executor.submit(PlainTask("a"))
    slurm.refuse("sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")
    wait(executor)
    slurm.put("9", "PENDING", json.loads(executor.ledger.path.read_text())["sending"])
    slurm.refuse(None)
    wait(executor)
    assert slurm.queue() == {executor.ledger.jobs["a"]: "PENDING"}
    assert executor.ledger.jobs["a"] != "9"


def test_a_list_of_jobs_of_another_version_is_refused(slurm, start):
    executor = start()
    executor.ledger.path.write_text('{"format": 99}')
    with pytest.raises(InputError, match=r"jobs\.json: is no list of jobs of format 1"):
        start()
