#!/usr/bin/env bash
# Run a study, or several configs one after another, on a TPU VM. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: grid.sh CONFIG… --out FOLDER [options] [--set KEY=VALUE]…
       grid.sh --study STUDY --out FOLDER [options] [--set KEY=VALUE]…
Configs: each is trained on all chips, in FOLDER/<its name, or its path below configs without .yaml>;
finished ones are passed over. A study: its cells run one at a time, on one chip of a single host (on
a pod take configs). The same command again goes on.
  --out FOLDER      relative folder, e.g. runs/grid
  --set KEY=VALUE   override a key of every config, or of the study
  --keep-going      go on with the next config when one fails; exit code 1 at the end"

study="" out="" keep_going=""
configs=() overrides=()

option() {
  case "$1" in
    --study) needs_value "$1" $# && study="$2" TAKEN=2 ;;
    --out) needs_value "$1" $# && out="$2" TAKEN=2 ;;
    --set) needs_value "$1" $# && overrides+=(--set "$2") TAKEN=2 ;;
    --keep-going) keep_going=1 TAKEN=1 ;;
    -*) ;;
    *) configs+=("$1") TAKEN=1 ;;
  esac
}

parse "$@"
if [[ -z "$out" ]]; then die "give the folder: --out runs/NAME"; fi
run_folder "$out"
if [[ -n "$study" && ${#configs[@]} -gt 0 ]]; then die "give either --study or configs"; fi
if [[ -z "$study" && ${#configs[@]} -eq 0 ]]; then die "give configs, or --study FILE"; fi
need PROJECT ZONE TPU_NAME
if [[ -n "$study" ]]; then
  config_inside "$study"
  job "$out" study "$CONFIG" --out "$out" --workers 1 "${overrides[@]}"
  exit 0
fi
folders=()
for config in "${configs[@]}"; do # all are looked at before the first one starts
  config_inside "$config"
  name="${CONFIG#configs/}"
  folder="$out/${name%.*}"
  run_folder "$folder"
  if [[ " ${folders[*]} " == *" $folder "* ]]; then die "two configs have the folder $folder"; fi
  folders+=("$folder")
done
failed=()
for i in "${!configs[@]}"; do
  code=0
  "$ROOT/tpu_scripts/train.sh" "${configs[i]}" --out "${folders[i]}" "${overrides[@]}" || code=$?
  if ((code)); then
    failed+=("${folders[i]}")
    if [[ -z "$keep_going" ]]; then fail "$code" "${folders[i]} failed; the same command goes on from there"; fi
  fi
done
if ((${#failed[@]})); then fail 1 "failed: ${failed[*]}"; fi
