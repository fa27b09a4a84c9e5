#!/usr/bin/env bash
# Bring the code to every worker of a TPU VM and install it. NOT RUN ON HARDWARE.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

HELP="usage: setup.sh [options] [--with PATH]… [--code-only]
Copy this working tree (code and configs) to every worker and install it there.
  --with PATH       a file or folder inside the project goes along: corpora, dictionaries
  --code-only       do not install again: enough after a change of code or configs"

folders=(synthlang pretrain probes synthlang_bench configs tpu_scripts)
parts=(pyproject.toml setup.py constraints.txt README.md LICENSE "${folders[@]}")
code_only=""

option() {
  case "$1" in
    --with)
      needs_value "$1" $#
      if [[ "$2" == /* || "/$2/" == */../* || ! -e "$ROOT/$2" ]]; then
        die "--with $2: give the path of something in the project, relative to it"
      fi
      parts+=("$2") TAKEN=2
      ;;
    --code-only) code_only=1 TAKEN=1 ;;
  esac
}

parse "$@"
need PROJECT ZONE TPU_NAME
packed=TEMPORARY/synthlang.tar.gz
if [[ -z "$DRY_RUN" ]]; then
  folder="$(mktemp -d)"
  trap 'rm -rf "$folder"' EXIT
  packed="$folder/synthlang.tar.gz"
fi
step "packing" tar --exclude=__pycache__ -czf "$packed" -C "$ROOT" "${parts[@]}"
tpu "copying the code" scp "$packed" "$TPU_NAME:synthlang.tar.gz" --worker=all
# what is gone here must be gone there; run folders and data stay
tpu "unpacking the code" ssh "$TPU_NAME" --worker=all \
  --command="mkdir -p $REMOTE && cd $REMOTE && rm -rf ${folders[*]} && tar -xzf ../synthlang.tar.gz"
if [[ -z "$code_only" ]]; then remote "installing" all bash tpu_scripts/on_worker.sh install; fi
