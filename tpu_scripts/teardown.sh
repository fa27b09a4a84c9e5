#!/usr/bin/env bash
# Delete a TPU VM, with its disk. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: teardown.sh [options] [--yes]
Delete the TPU VM (with --queued the request and its VM). What is in the bucket stays.
  --yes             do not ask"

yes=""

option() {
  case "$1" in
    --yes) yes=1 TAKEN=1 ;;
  esac
}

parse "$@"
need PROJECT ZONE TPU_NAME
if [[ -z "$yes" && -z "$DRY_RUN" ]]; then
  printf 'Delete %s in %s of %s? Runs on its disk that were not fetched are lost. Type its name: ' \
    "$TPU_NAME" "$ZONE" "$PROJECT" >&2
  answer=""
  read -r answer || true
  if [[ "$answer" != "$TPU_NAME" ]]; then die "nothing was deleted: type the name $TPU_NAME, or give --yes"; fi
fi
if [[ "$QUEUED" == 1 ]]; then
  step "deleting the queued request" gcloud compute tpus queued-resources delete "$TPU_NAME" --force --quiet \
    --project="$PROJECT" --zone="$ZONE"
else
  tpu "deleting $TPU_NAME" delete "$TPU_NAME" --quiet
fi
