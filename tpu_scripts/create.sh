#!/usr/bin/env bash
# Create a TPU VM. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: create.sh [options]
Create a TPU VM: at once, or with --queued when there is room. A pod is one of a larger --type."

SCOPE=https://www.googleapis.com/auth/cloud-platform # lets the VM read and write the bucket

option() { TAKEN=0; }

# ready STATE: whether a queued request is there; what cannot become so any more ends the script
ready() {
  case "$1" in
    ACTIVE) return 0 ;;
    FAILED | SUSPENDING | SUSPENDED | DELETING)
      fail 1 "the queued request $TPU_NAME is $1; tear it down (teardown.sh --queued) and create it again"
      ;;
    *) return 1 ;;
  esac
}

wait_for_room() {
  local ask=(gcloud compute tpus queued-resources describe "$TPU_NAME"
    "--format=value(state.state)" "--project=$PROJECT" "--zone=$ZONE")
  local state before=""
  if [[ -n "$DRY_RUN" ]]; then
    run "${ask[@]}"
    return
  fi
  while true; do
    state="$("${ask[@]}")" || fail 1 "asking for the state of the queued request $TPU_NAME failed"
    if [[ "$state" != "$before" ]]; then printf 'queued request %s: %s\n' "$TPU_NAME" "${state:-?}" >&2; fi
    before="$state"
    if ready "$state"; then return; fi
    sleep "${POLL_SECONDS:-30}"
  done
}

parse "$@"
need PROJECT ZONE TPU_NAME ACCELERATOR_TYPE VERSION
what=(--accelerator-type="$ACCELERATOR_TYPE")
if [[ -n "$BUCKET" ]]; then what+=(--scopes="$SCOPE"); fi
if [[ "$QUEUED" == 1 ]]; then
  if [[ "$PROVISIONING" == preemptible ]]; then die "a queued request has no --preemptible; take --spot"; fi
  if [[ "$PROVISIONING" == spot ]]; then what+=(--spot); fi
  if [[ -n "$WAIT_AT_MOST" ]]; then what+=(--valid-until-duration="$WAIT_AT_MOST"); fi
  step "the queued request" gcloud compute tpus queued-resources create "$TPU_NAME" --node-id="$TPU_NAME" \
    --runtime-version="$VERSION" "${what[@]}" --project="$PROJECT" --zone="$ZONE"
  wait_for_room
else
  if [[ "$PROVISIONING" != standard ]]; then what+=("--$PROVISIONING"); fi
  tpu "creating $TPU_NAME" create "$TPU_NAME" --version="$VERSION" "${what[@]}"
fi
