#!/usr/bin/env bash
# Pretrain on a TPU VM, on all chips of all its workers. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: train.sh CONFIG --out RUN [options] [--set KEY=VALUE]…
Train a config on the TPU, in the folder RUN there, and wait for the end. The same command again goes
on: with a run that is still going, with one that was cut off (from its last checkpoint, exactly), and
with --bucket also on a new VM. A pod, and a VM that may be taken back, need --bucket.
  --out RUN         relative folder, e.g. runs/tiny
  --set KEY=VALUE   override a key of the config
  --stop            end the run that goes on in RUN there, on every worker"

config="" out="" stop=""
overrides=()

option() {
  case "$1" in
    --out) needs_value "$1" $# && out="$2" TAKEN=2 ;;
    --set) needs_value "$1" $# && overrides+=(--set "$2") TAKEN=2 ;;
    --stop) stop=1 TAKEN=1 ;;
    -*) ;;
    *)
      if [[ -n "$config" ]]; then die "one config at a time, there is $config already; for several see grid.sh"; fi
      config="$1" TAKEN=1
      ;;
  esac
}

parse "$@"
if [[ -z "$out" ]]; then die "give the run folder: --out runs/NAME"; fi
run_folder "$out"
need PROJECT ZONE TPU_NAME
if [[ -n "$stop" ]]; then
  remote "stopping $out" all bash tpu_scripts/on_worker.sh stop "$out"
  exit 0
fi
if [[ -z "$config" ]]; then die "give a config; see --help"; fi
config_inside "$config"
if [[ "$PROVISIONING" != standard && -z "$BUCKET" ]]; then
  die "a $PROVISIONING VM loses its disk when it is taken back: give --bucket gs://…"
fi
job "$out" train "$CONFIG" --out "$out" "${overrides[@]}"
