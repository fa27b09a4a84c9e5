#!/usr/bin/env bash
# Fetch a run folder from a TPU VM, or from its bucket. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: fetch.sh RUN [options] [--to FOLDER]
Copy the run folder RUN (a run, a grid or a study) from worker 0 of the TPU VM; with --bucket from there,
which needs no VM any more. Again: what changed since.
  --to FOLDER       the copy is FOLDER/RUN (default: the project's folder)"

folder="" to="$ROOT"

option() {
  case "$1" in
    --to) needs_value "$1" $# && to="$2" TAKEN=2 ;;
    -*) ;;
    *)
      if [[ -n "$folder" ]]; then die "one run folder at a time, there is $folder already"; fi
      folder="$1" TAKEN=1
      ;;
  esac
}

parse "$@"
if [[ -z "$folder" ]]; then die "which run folder? fetch.sh runs/NAME"; fi
run_folder "$folder"
if [[ -n "$BUCKET" ]]; then
  need PROJECT
  step "making $to/$folder" mkdir -p "$to/$folder"
  step "fetching $folder" gcloud storage rsync "$BUCKET/$folder" "$to/$folder" --recursive --project="$PROJECT"
else
  need PROJECT ZONE TPU_NAME
  parent="$(dirname "$to/$folder")"
  step "making $parent" mkdir -p "$parent"
  tpu "fetching $folder" scp "$TPU_NAME:$REMOTE/$folder" "$parent/" --worker=0 --recurse
fi
