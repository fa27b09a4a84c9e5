# What the TPU scripts share: settings, options, running commands. Sourced, not started.
# NOT RUN ON HARDWARE: checked by shellcheck, dry runs and a stand-in for gcloud.
# shellcheck shell=bash

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
REMOTE=synthlang # the project's folder on the TPU VM, under the home folder
KEYS=(PROJECT ZONE TPU_NAME ACCELERATOR_TYPE VERSION PROVISIONING QUEUED WAIT_AT_MOST BUCKET)
COMMON_HELP="
Where (flag, or variable, or a line KEY=VALUE of the file of --env; in this order of precedence):
  --project ID      PROJECT           the Google Cloud project
  --zone ZONE       ZONE              e.g. us-central2-b
  --name NAME       TPU_NAME          of the TPU VM (and of the queued request)
  --type TYPE       ACCELERATOR_TYPE  e.g. v4-8, v5litepod-16, v6e-8; v4 or newer
  --version NAME    VERSION           of the software, e.g. tpu-ubuntu2204-base, v2-alpha-tpuv6e
  --spot            PROVISIONING=spot         cheap, may be taken back at any time
  --preemptible     PROVISIONING=preemptible  the same, and at most a day
  --queued          QUEUED=1          ask through a queued resource and wait for it
  --wait-at-most T  WAIT_AT_MOST      how long a queued request may wait, e.g. 6h
  --bucket URL      BUCKET            gs://bucket/folder that keeps the runs when a VM is taken back
  --env FILE        TPU_ENV           default: tpu_scripts/tpu.env if it is there
Also:
  --dry-run         print every command, run none
  --help            this text
Not run on hardware."

fail() { # CODE MESSAGE: one line, the end
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

die() { fail 2 "$1"; } # what the user can mend

if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  die "bash 4.4 or newer is needed, this is $BASH_VERSION"
fi

needs_value() { # FLAG COUNT: COUNT arguments are left, the flag first
  if (($2 < 2)); then die "$1 needs a value"; fi
}

# parse ARGUMENT…: the common options become settings; any other goes to the script's own
# `option ARGUMENT…`, which sets TAKEN to the number of arguments it took.
parse() {
  local key value
  unset "${KEYS[@]/#/FLAG_}"
  while (($#)); do
    key="" value="" TAKEN=1
    case "$1" in
      --project) key=PROJECT ;;
      --zone) key=ZONE ;;
      --name) key=TPU_NAME ;;
      --type) key=ACCELERATOR_TYPE ;;
      --version) key=VERSION ;;
      --wait-at-most) key=WAIT_AT_MOST ;;
      --bucket) key=BUCKET ;;
      --env) needs_value "$1" $# && TPU_ENV="$2" TAKEN=2 ;;
      --spot | --preemptible) key=PROVISIONING value="${1#--}" ;;
      --queued) key=QUEUED value=1 ;;
      --dry-run) DRY_RUN=1 ;;
      -h | --help)
        printf '%s\n%s\n' "$HELP" "$COMMON_HELP"
        exit 0
        ;;
      *)
        TAKEN=0
        option "$@"
        if ((TAKEN == 0)); then die "unknown argument $1; see --help"; fi
        ;;
    esac
    if [[ -n "$key" && -z "$value" ]]; then
      needs_value "$1" $#
      value="$2" TAKEN=2
    fi
    if [[ -n "$key" ]]; then printf -v "FLAG_$key" '%s' "$value"; fi
    shift "$TAKEN"
  done
  settle
}

settle() { # every setting from its flag, variable or file; exported, so that scripts started by this one agree
  local key flag
  if [[ -z "${TPU_ENV:-}" && -f "$ROOT/tpu_scripts/tpu.env" ]]; then TPU_ENV="$ROOT/tpu_scripts/tpu.env"; fi
  if [[ -n "${TPU_ENV:-}" ]]; then read_settings "$TPU_ENV"; fi
  for key in "${KEYS[@]}"; do
    flag="FLAG_$key"
    if [[ -n "${!flag:-}" ]]; then printf -v "$key" '%s' "${!flag}"; fi
    printf -v "$key" '%s' "${!key:-}"
    export "${key?}"
  done
  export DRY_RUN="${DRY_RUN:-}" TPU_ENV="${TPU_ENV:-}"
  BUCKET="${BUCKET%/}"
  if [[ "${PROVISIONING:=standard}" != @(standard|spot|preemptible) ]]; then
    die "PROVISIONING is $PROVISIONING; it must be standard, spot or preemptible"
  fi
  if [[ "${QUEUED:=0}" != [01] ]]; then die "QUEUED is $QUEUED; it must be 0 or 1"; fi
  if [[ -n "$BUCKET" && ! "$BUCKET" =~ ^gs://[a-z0-9][a-z0-9._-]+(/[A-Za-z0-9._/-]+)?$ ]]; then
    die "the bucket is $BUCKET; it must be like gs://bucket/folder"
  fi
}

read_settings() { # FILE: lines KEY=VALUE and comments; a variable that is set already wins
  local line key value number=0
  if [[ ! -f "$1" ]]; then die "$1: there is no such file"; fi
  while IFS= read -r line || [[ -n "$line" ]]; do
    number=$((number + 1))
    line="${line%$'\r'}"
    if [[ "$line" =~ ^[[:space:]]*(#.*)?$ ]]; then continue; fi
    key="${line%%=*}" value="${line#*=}"
    if [[ "$line" != *=* || " ${KEYS[*]} " != *" $key "* ]]; then
      die "$1:$number: a line is KEY=VALUE with one of ${KEYS[*]}"
    fi
    if [[ "$value" == \"*\" && ${#value} -ge 2 ]]; then value="${value:1:${#value}-2}"; fi
    if [[ -z "${!key:-}" ]]; then printf -v "$key" '%s' "$value"; fi
  done <"$1"
}

need() { # KEY…: settings that must be there. What else is wrong with them, gcloud says.
  local key
  for key in "$@"; do
    if [[ -z "${!key}" ]]; then
      die "$key is not set: give its flag (see --help), the variable, or a line in the file of --env"
    fi
  done
  # on v2 and v3 two replicas are threads of one process; the trainer is written for one a process
  if [[ "$ACCELERATOR_TYPE" =~ ^v[23]- ]]; then die "ACCELERATOR_TYPE is $ACCELERATOR_TYPE; v4 or newer is needed"; fi
  if [[ -z "$DRY_RUN" ]] && ! command -v gcloud >/dev/null; then die "gcloud is not installed, or not on PATH"; fi
}

quoted() { # WORD…: sets QUOTED to a line that a shell reads as these words
  local word flag escaped="'\\''"
  QUOTED=""
  for word in "$@"; do
    flag=""
    if [[ "$word" =~ ^(--[a-z-]+=)(.*)$ ]]; then flag="${BASH_REMATCH[1]}" word="${BASH_REMATCH[2]}"; fi
    if [[ ! "$word" =~ ^[A-Za-z0-9_@%+=:,./-]+$ ]]; then word="'${word//\'/"$escaped"}'"; fi
    QUOTED+="${QUOTED:+ }$flag$word"
  done
}

run() { # COMMAND…: run it, or print it as one could type it
  quoted "$@"
  if [[ -n "$DRY_RUN" ]]; then
    printf '%s\n' "$QUOTED"
  else
    printf '+ %s\n' "$QUOTED" >&2
    "$@"
  fi
}

step() { # WHAT COMMAND…: run it; a failure is one line that says what failed
  local what="$1" code=0
  shift
  run "$@" || code=$?
  if ((code)); then fail "$code" "$what failed (exit code $code)"; fi
}

tpu() { # WHAT VERB NAME ARGUMENT…: a command on the TPU VM's resource
  local what="$1" verb="$2" name="$3"
  shift 3
  step "$what" gcloud compute tpus tpu-vm "$verb" "$name" "$@" --project="$PROJECT" --zone="$ZONE"
}

remote() { # WHAT WORKER COMMAND…: a command in the project's folder on the worker(s)
  local what="$1" worker="$2"
  shift 2
  quoted "$@"
  tpu "$what" ssh "$TPU_NAME" --worker="$worker" --command="cd $REMOTE && $QUOTED"
}

run_folder() { # FOLDER: a folder of results; it has the same name here, on the VM and in the bucket
  if [[ ! "$1" =~ ^[A-Za-z0-9_][A-Za-z0-9._+-]*(/[A-Za-z0-9_][A-Za-z0-9._+-]*)*$ ]]; then
    die "$1: a run folder is a relative path of letters, digits, . _ + and -"
  fi
}

config_inside() { # PATH or NAME: sets CONFIG to it, a path relative to the project, or a name of the catalogue
  local folder root
  if [[ ! -f "$1" && "$1" == *.y?(a)ml ]]; then die "$1: there is no such config"; fi
  if [[ ! -f "$1" ]]; then
    CONFIG="$1"
    return
  fi
  folder="$(cd "$(dirname "$1")" && pwd -P)"
  CONFIG="$folder/$(basename "$1")"
  root="$(cd "$ROOT" && pwd -P)"
  if [[ "$CONFIG" != "$root"/* ]]; then die "$1: is not inside $ROOT, which is what goes to the TPU"; fi
  CONFIG="${CONFIG#"$root"/}"
}

# job OUT KIND ARGUMENT…: start a job on every worker, or join the one that runs there, and wait for its end.
# The checksum of the config, or of the catalogue that has it by name, shows whether the copy on the VM is this one.
job() {
  local out="$1" kind="$2" sum
  shift 2
  sum="$(cd "$ROOT" && bash tpu_scripts/on_worker.sh sum "$CONFIG")"
  remote "starting $out" all bash tpu_scripts/on_worker.sh start "$out" "${BUCKET:--}" "$CONFIG" "$sum" "$kind" "$@"
  remote "$out" all bash tpu_scripts/on_worker.sh wait "$out"
}
