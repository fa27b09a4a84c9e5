"""tpu_scripts/ against a stand-in for the cloud: the order of calls, what stops them, and going on exactly."""

from __future__ import annotations

import re
import shutil
import time

import pytest

from tests.tpu_cloud import ROOT, SCRIPTS, Cloud

CONFIG = "configs/a config.yaml"
BUCKET = "gs://my-bucket/x"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with a cloud and a project: the scripts and one config, whose path has a space. The VM has the code."""
    folder = tmp_path_factory.mktemp("prepared")
    made, project = Cloud.make(folder / "a cloud"), folder / "a project"
    for name in ("synthlang", "pretrain", "probes", "synthlang_bench", "configs"):
        (project / name).mkdir(parents=True)
    shutil.copytree(SCRIPTS, project / "tpu_scripts", ignore=shutil.ignore_patterns("__pycache__", "tpu.env"))
    for name in ("pyproject.toml", "setup.py", "constraints.txt", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, project)
    (project / CONFIG).write_text("steps: 3\n")
    with pytest.MonkeyPatch.context() as patch:
        use(project, patch)
        done = made.run("setup.sh", "--code-only")
    assert (done.returncode, made.verbs) == (0, ["scp", "ssh"]), done.stderr
    (made.folder / "calls.jsonl").unlink()
    return folder


def use(project, patch):
    """Let the scripts of a project run in place of ours."""
    patch.setattr("tests.tpu_cloud.ROOT", project)
    patch.setattr("tests.tpu_cloud.SCRIPTS", project / "tpu_scripts")


@pytest.fixture
def cloud(prepared, tmp_path, monkeypatch):
    """A copy of the prepared cloud and project."""
    shutil.copytree(prepared, tmp_path, dirs_exist_ok=True)
    use(tmp_path / "a project", monkeypatch)
    return Cloud(tmp_path / "a cloud")


def weights(folder):
    return {p.relative_to(folder).as_posix(): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_setup_brings_the_code_and_takes_away_what_is_gone(cloud, tmp_path):
    assert (cloud.project / CONFIG).read_text() == "steps: 3\n"
    (cloud.project / "synthlang" / "gone.py").touch()
    (cloud.project / "runs").mkdir()
    assert cloud.run("setup.sh", "--code-only", "--with", CONFIG).returncode == 0
    assert not (cloud.project / "synthlang" / "gone.py").exists()
    assert (cloud.project / "runs").exists()


@pytest.mark.parametrize("config", [CONFIG, "align_mlm/trans+inv/tiny"])
def test_training_runs_a_config_or_one_of_the_catalogue_and_ends_as_the_job_ends(cloud, config):
    wanted = [config, "--out", "runs/a", "--set", "source=text:a b's", "--set", "note=$HOME"]
    done = cloud.run("train.sh", *wanted)
    assert (done.returncode, cloud.verbs) == (0, ["start", "wait"]), done.stderr
    told = (cloud.project / "arguments").read_text().splitlines()
    assert told[:3] == ["TPU", "launch", "--tpu"] and told[told.index("tpu_scripts/launch.py") + 1 :] == wanted
    assert (cloud.project / "runs/a/done.json").exists()


def test_what_must_be_brought_first(cloud):
    (cloud.project / CONFIG).write_text("steps: 4\n")
    for config, said in ((CONFIG, "run setup.sh --code-only"), ("mlm/trans/tiny", "here is not the same as yours")):
        done = cloud.run("train.sh", config, "--out", "runs/a")
        assert (done.returncode, said in done.stderr) == (2, True)
    assert cloud.verbs == ["start", "start"]
    assert cloud.run("setup.sh", "--code-only").returncode == 0
    assert cloud.run("grid.sh", "mlm/trans+inv/tiny", "--out", "runs/g").returncode == 0
    assert (cloud.project / "runs/g/mlm/trans+inv/tiny/done.json").exists()
    shutil.rmtree(cloud.project / ".venv-tpu")
    done = cloud.run("train.sh", CONFIG, "--out", "runs/b")
    assert (done.returncode, "run setup.sh" in done.stderr) == (2, True)


def test_a_failed_job_fails_with_its_code_and_the_same_command_goes_on(cloud):
    (cloud.project / "dies").write_text("7")
    done = cloud.run("train.sh", CONFIG, "--out", "runs/a")
    assert done.returncode == 7
    assert "runs/a ended with exit code 7" in done.stderr
    assert not (cloud.project / "runs/a/done.json").exists()
    done = cloud.run("train.sh", CONFIG, "--out", "runs/a")
    assert done.returncode == 0
    assert "has step 1" in done.stdout


def test_a_job_outlives_the_connection_and_is_joined_not_started_twice(cloud):
    """It copies its run to the bucket while it runs."""
    arguments = (CONFIG, "--out", "runs/a", "--bucket", BUCKET)
    lost = [(r"on_worker\.sh wait", 255, "connection lost")]
    (cloud.project / "waits").touch()
    assert cloud.run("train.sh", *arguments, fails=lost, PUSH_SECONDS="0.5").returncode == 255
    pid = (cloud.project / ".jobs/runs/a/pid").read_text()
    assert cloud.run("train.sh", *arguments, fails=lost).returncode == 255
    assert (cloud.project / ".jobs/runs/a/pid").read_text() == pid
    wait_for(cloud.folder / "my-bucket/x/runs/a/checkpoints/step-1/model")
    (cloud.project / "waits").unlink()
    done = cloud.run("train.sh", *arguments)
    assert done.returncode == 0, done.stderr
    assert len((cloud.project / "runs/a/metrics.jsonl").read_text().splitlines()) == 3


def wait_for(path):
    until = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < until
        time.sleep(0.05)


def test_stop_ends_the_job_and_its_last_state_reaches_the_bucket(cloud):
    (cloud.project / "waits").touch()
    arguments = (CONFIG, "--out", "runs/a", "--bucket", BUCKET)
    cloud.run("train.sh", *arguments, fails=[(r"on_worker\.sh wait", 255, "")])
    wait_for(cloud.project / "runs/a/checkpoints/step-1/model")
    assert cloud.run("train.sh", "--out", "runs/a", "--stop").returncode == 0
    assert cloud.run("train.sh", "--out", "runs/a", "--stop").stdout == "runs/a does not go on\n"
    assert (cloud.folder / "my-bucket/x/runs/a/checkpoints/step-1/model").exists()
    assert not (cloud.project / "runs/a/done.json").exists()


def test_a_pod_needs_a_bucket_and_runs_no_study(cloud):
    hosts = "one,two"
    done = cloud.run("train.sh", CONFIG, "--out", "runs/a", TPU_WORKER_HOSTNAMES=hosts)
    assert (done.returncode, "a pod needs --bucket" in done.stderr) == (2, True)
    done = cloud.run("grid.sh", "--study", CONFIG, "--out", "runs/a", "--bucket", BUCKET, TPU_WORKER_HOSTNAMES=hosts)
    assert (done.returncode, "runs on one host" in done.stderr) == (2, True)
    assert (
        cloud.run("train.sh", CONFIG, "--out", "runs/a", "--bucket", BUCKET, TPU_WORKER_HOSTNAMES=hosts).returncode == 0
    )


def test_a_worker_that_writes_nothing_copies_nothing_to_the_bucket(cloud):
    """The main process may be on any worker of a pod; the others have old copies of the run."""
    arguments = (CONFIG, "--out", "runs/a", "--bucket", BUCKET)
    assert cloud.run("train.sh", *arguments).returncode == 0
    kept = weights(cloud.folder / "my-bucket")
    (cloud.folder / "calls.jsonl").unlink()
    for tool in ("accelerate", "python"):
        (cloud.project / ".venv-tpu/bin" / tool).write_text("#!/usr/bin/env bash\necho nothing to write\n")
    assert cloud.run("train.sh", *arguments).returncode == 0
    synced = [call[2:4] for call in cloud.calls if call[:2] == ["storage", "rsync"]]
    assert synced == [[f"{BUCKET}/runs/a", "runs/a"]]  # to here, not from here
    assert weights(cloud.folder / "my-bucket") == kept


@pytest.mark.parametrize(
    ("rule", "said"), [("storage ls", "no permission"), (r"storage rsync \S+copy", "was not copied")]
)
def test_a_bucket_that_cannot_be_read_or_written_fails_the_job(cloud, rule, said):
    fails = [(rule, 1, "ERROR: no permission")]
    done = cloud.run("train.sh", CONFIG, "--out", "runs/a", "--bucket", BUCKET, fails=fails)
    assert (done.returncode, said in done.stdout) == (1, True)
    assert (cloud.project / "runs").exists() == (said == "was not copied")


def test_the_bucket_can_go_on_wherever_a_copy_was_cut_off(cloud, tmp_path):
    """The log is never behind the checkpoints, and old ones go after new ones have come."""
    arguments = (CONFIG, "--out", "runs/a", "--bucket", BUCKET)
    (cloud.project / "dies").write_text("7")
    assert cloud.run("train.sh", *arguments).returncode == 7
    (cloud.project / "runs/a/checkpoints/step-1").rename(cloud.project / "runs/a/checkpoints/step-0")
    for number, lost in enumerate(
        (r"rsync \S+copy \S+ --recursive$", "rsync .*copy .*--delete", "rsync .*copy .*--ex")
    ):
        one = Cloud(shutil.copytree(cloud.folder, tmp_path / str(number)))
        done = one.run("train.sh", *arguments, fails=[(lost, 1, "cut off")])
        assert (done.returncode, "was not copied" in done.stdout) == (1, True)
        bucket = one.folder / "my-bucket/x/runs/a"
        steps = [int(p.parent.name.removeprefix("step-")) for p in bucket.glob("checkpoints/*/model")]
        assert min(steps) == 1, "an old checkpoint went before new ones had come"
        assert len((bucket / "metrics.jsonl").read_text().splitlines()) >= max(steps)


def test_resume_goes_on_exactly_on_a_new_vm(cloud):
    """The VM is taken back after the first step: its disk is gone, the bucket has the run."""
    whole = Cloud(shutil.copytree(cloud.folder, cloud.folder.parent / "another cloud"))
    assert whole.run("train.sh", CONFIG, "--out", "runs/a").returncode == 0

    (cloud.project / "dies").write_text("255")
    (cloud.folder / "states").write_text("NOT_FOUND PREEMPTED PREEMPTED READY")
    fails = [(r"on_worker\.sh install", 0, "installed")]  # the stand-ins are there
    done = cloud.run("resume.sh", CONFIG, "--out", "runs/a", fails=fails, PROVISIONING="spot", BUCKET=BUCKET)
    assert done.returncode == 0, done.stderr
    assert "attempt 1 of 10 ended: the VM is PREEMPTED (exit code 255)" in done.stderr
    verbs = [verb for verb in cloud.verbs if not verb.startswith("storage")]
    setup = ["scp", "ssh", "install"]
    again = ["create", *setup, "start", "wait"]
    assert verbs == ["describe", *again, "describe", "describe", "delete", *again]
    assert weights(cloud.folder / "my-bucket/x/runs/a") == weights(whole.project / "runs/a")


def test_resume_stops_where_starting_again_does_not_help(cloud):
    fails = [(r"on_worker\.sh install", 0, "")]
    (cloud.project / "dies").write_text("7")
    done = cloud.run("resume.sh", CONFIG, "--out", "runs/a", fails=fails, BUCKET=BUCKET)
    assert (done.returncode, "on a VM that is sound" in done.stderr) == (7, True)
    done = cloud.run("resume.sh", "no.yaml", "--out", "runs/a", fails=fails, BUCKET=BUCKET)
    assert (done.returncode, cloud.verbs.count("start")) == (2, 1)
    lost = [*fails, (r"on_worker\.sh wait", 255, "connection lost")]
    done = cloud.run("resume.sh", CONFIG, "--out", "runs/a", "--attempts", "1", fails=lost, BUCKET=BUCKET)
    assert (done.returncode, "not done after 1 attempts" in done.stderr) == (1, True)
    done = cloud.run(
        "resume.sh", CONFIG, "--out", "runs/a", fails=[("describe", 1, "ERROR: no credentials")], BUCKET=BUCKET
    )
    assert (done.returncode, "no credentials" in done.stderr) == (1, True)


def test_a_grid_stops_at_a_failure_or_keeps_going(cloud):
    project = cloud.folder.parent / "a project"
    (project / "configs/second.yaml").write_text("steps: 3\n")
    (project / "configs/a config.yaml").rename(project / "configs/first.yaml")
    assert cloud.run("setup.sh", "--code-only").returncode == 0
    both = ("configs/first.yaml", "configs/second.yaml", "--out", "runs/g")
    (cloud.project / "dies").write_text("7")
    done = cloud.run("grid.sh", *both)
    assert (done.returncode, "runs/g/first failed" in done.stderr) == (7, True)
    assert not (cloud.project / "runs/g/second").exists()
    shutil.rmtree(cloud.project / "runs")
    (cloud.project / "dies").write_text("7")
    done = cloud.run("grid.sh", *both, "--keep-going")
    assert (done.returncode, "error: failed: runs/g/first\n" in done.stderr) == (1, True)
    assert (cloud.project / "runs/g/second/done.json").exists()
    assert cloud.run("grid.sh", *both).returncode == 0
    assert (cloud.project / "runs/g/first/done.json").exists()


def test_a_failed_step_is_one_line_and_ends_the_script(cloud):
    done = cloud.run("setup.sh", fails=[("scp", 3, "gcloud says why")])
    assert (done.returncode, cloud.verbs) == (3, ["scp"])
    assert done.stderr.endswith("gcloud says why\nerror: copying the code failed (exit code 3)\n")
    done = cloud.run("create.sh", fails=[("create", 1, "")])
    assert (done.returncode, cloud.verbs) == (1, ["scp", "create"])


def test_a_queued_request_is_waited_for(cloud):
    (cloud.folder / "states").write_text("WAITING_FOR_RESOURCES WAITING_FOR_RESOURCES PROVISIONING ACTIVE")
    done = cloud.run("create.sh", "--queued")
    assert (done.returncode, cloud.verbs) == (0, ["create", "describe", "describe", "describe", "describe"])
    said = re.findall(r"queued request tpu-1: (\w+)", done.stderr)
    assert said == ["WAITING_FOR_RESOURCES", "PROVISIONING", "ACTIVE"]
    (cloud.folder / "states").write_text("FAILED")
    done = cloud.run("create.sh", "--queued")
    assert (done.returncode, "is FAILED; tear it down" in done.stderr) == (1, True)


def test_teardown_asks_for_the_name(cloud):
    for typed in ("", "\n", "y\n", "tpu-2\n"):
        done = cloud.run("teardown.sh", typed=typed)
        assert (done.returncode, "nothing was deleted" in done.stderr, cloud.calls) == (2, True, [])
    assert cloud.run("teardown.sh", typed="tpu-1\n").returncode == 0
    assert cloud.run("teardown.sh", "--yes", "--queued").returncode == 0
    assert cloud.verbs == ["delete", "delete"]
    assert [call[1:3] for call in cloud.calls] == [["tpus", "tpu-vm"], ["tpus", "queued-resources"]]
