#!/usr/bin/env bash
# Pretrain a config on every host of a TPU VM: TPU_NAME=… ZONE=… pretrain_pod.sh CONFIG RUN [--set key=value …]
set -euo pipefail

if [[ $# -lt 2 || -z "${TPU_NAME:-}" || -z "${ZONE:-}" ]]; then
    echo "usage: TPU_NAME=NAME ZONE=ZONE [DRY_RUN=1] $0 CONFIG RUN [--set key=value …]" >&2
    exit 2
fi
config=$1
run=$2
shift 2
repository=${REPOSITORY:-\$HOME/synthlang}

on_every_host() {
    local command=(gcloud compute tpus tpu-vm ssh "$TPU_NAME" --zone "$ZONE" --worker all --command "$1")
    if [[ -n "${DRY_RUN:-}" ]]; then
        printf '%q ' "${command[@]}"
        echo
    else
        "${command[@]}"
    fi
}

# quoted twice: once here, once for the shell of the host
arguments=$(printf '%q ' "$config" --out "$run" "$@")
on_every_host "cd $repository && python3 -m pip install -q -c constraints.txt -e . 'torch_xla[tpu]'"
on_every_host "cd $repository && PJRT_DEVICE=TPU python3 -m accelerate.commands.launch --tpu pretrain/train.py $arguments"
