#!/usr/bin/env bash
# Train on VMs that may be taken back, until the run is done. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: resume.sh CONFIG --out RUN --bucket URL [options] [--set KEY=VALUE]… [--with PATH]… [--attempts N]
Create the TPU VM if it is not there, set it up and train. When the VM is taken back, or the connection is
lost, begin again: the run goes on from its last checkpoint in the bucket, exactly. The VM stays at the end.
  --attempts N      at most so many beginnings (default 10)
  --with PATH       as for setup.sh
  --out, --set      as for train.sh"

attempts=10
train=() setup=()

option() {
  case "$1" in
    --attempts)
      needs_value "$1" $#
      if [[ ! "$2" =~ ^[1-9][0-9]*$ ]]; then die "--attempts $2: must be a whole number from 1 on"; fi
      attempts="$2" TAKEN=2
      ;;
    --with) needs_value "$1" $# && setup+=(--with "$2") TAKEN=2 ;;
    --out | --set) needs_value "$1" $# && train+=("$1" "$2") TAKEN=2 ;;
    -*) ;;
    *) train+=("$1") TAKEN=1 ;;
  esac
}

state() { # sets STATE to that of the VM, GONE if there is none
  local ask=(gcloud compute tpus tpu-vm describe "$TPU_NAME"
    "--format=value(state)" "--project=$PROJECT" "--zone=$ZONE")
  local errors
  STATE=GONE
  if [[ -n "$DRY_RUN" ]]; then
    run "${ask[@]}"
    return
  fi
  errors="$(mktemp)"
  if STATE="$("${ask[@]}" 2>"$errors")"; then
    :
  elif grep -q NOT_FOUND "$errors"; then
    STATE=GONE
  else
    cat "$errors" >&2
    rm -f "$errors"
    fail 1 "asking for the state of $TPU_NAME failed"
  fi
  rm -f "$errors"
}

renew() { # a VM that is there and has the code; one that was taken back is deleted first
  state
  if [[ "$STATE" != @(READY|CREATING|STARTING|RESTARTING|REPAIRING) ]]; then
    # a queued request outlives its VM
    if [[ "$STATE" != GONE || ("$QUEUED" == 1 && $1 -gt 1) ]]; then "$ROOT/tpu_scripts/teardown.sh" --yes; fi
    "$ROOT/tpu_scripts/create.sh"
  fi
  "$ROOT/tpu_scripts/setup.sh" "${setup[@]}"
}

parse "$@"
need PROJECT ZONE TPU_NAME ACCELERATOR_TYPE VERSION BUCKET
for ((attempt = 1; attempt <= attempts; attempt++)); do
  code=0
  renew "$attempt" || fail $? "no TPU VM to train on"
  "$ROOT/tpu_scripts/train.sh" "${train[@]}" || code=$?
  if ((code == 0)); then exit 0; fi
  if ((code == 2)); then exit 2; fi # it has said what to mend
  state
  # ssh's own code is 255: the VM may be there, and the connection was lost
  if [[ "$STATE" == READY && $code -ne 255 ]]; then fail "$code" "the run failed on a VM that is sound; see its log"; fi
  printf 'attempt %s of %s ended: the VM is %s (exit code %s)\n' "$attempt" "$attempts" "$STATE" "$code" >&2
  sleep "${POLL_SECONDS:-30}"
done
fail 1 "the run is not done after $attempts attempts; the same command goes on"
