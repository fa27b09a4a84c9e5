#!/usr/bin/env bash
# What the other scripts do on a worker of a TPU VM, in the project's folder there. NOT RUN ON HARDWARE.
#
#   on_worker.sh install                                          the packages, in .venv-tpu
#   on_worker.sh sum CONFIG                                       a checksum of a config
#   on_worker.sh start RUN BUCKET CONFIG CKSUM KIND ARGUMENT…     a job, detached: it outlives the connection
#   on_worker.sh wait RUN                                         show its log, end as it ends
#   on_worker.sh stop RUN                                         ask it to save and end
#
# KIND is train (all chips) or study (one chip); BUCKET is - for none. With a bucket, a job first makes its
# run folder equal to the copy there, so that all workers, new ones too, begin with the same checkpoints; the
# worker whose processes write the run copies it back every PUSH_SECONDS and at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
BIN=.venv-tpu/bin
METADATA=http://metadata.google.internal/computeMetadata/v1/instance/attributes

fail() { # CODE MESSAGE
  printf 'error: %s\n' "$2" >&2
  exit "$1"
}

install() { # the VM's own Python is too old; uv brings one, and can set aside the torch the project asks for
  local uv="$HOME/.local/bin/uv"
  if [[ ! -x "$uv" ]]; then python3 -m pip install --user --quiet uv; fi
  if [[ ! -x "$BIN/python" ]]; then "$uv" venv --quiet --python 3.11 .venv-tpu; fi
  grep -v '^torch==' constraints.txt >.venv-tpu/constraints.txt
  "$uv" pip install --quiet --python "$BIN/python" --constraints .venv-tpu/constraints.txt \
    --overrides tpu_scripts/overrides.txt -e . 'torch_xla[tpu]==2.9.0'
  "$BIN/python" -c 'import torch, torch_xla; print("torch", torch.__version__, "torch_xla", torch_xla.__version__)'
}

is_pod() { # whether there are other workers
  local hosts="${TPU_WORKER_HOSTNAMES:-}"
  if [[ -z "$hosts" ]]; then
    hosts="$(curl --silent --fail --header 'Metadata-Flavor: Google' "$METADATA/worker-network-endpoints")" ||
      fail 1 "this is no TPU VM: it does not know its workers"
  fi
  [[ "$hosts" == *,* ]]
}

sum() { # CONFIG: of a file, or of all that is called by name
  if [[ -f "$1" ]]; then
    cksum <"$1"
  else
    find configs -name '*.yaml' -print0 | LC_ALL=C sort -z | xargs -0 cat | cksum
  fi
}

goes_on() { # whether the job of $state runs
  [[ -f "$state/pid" ]] && grep -qas on_worker.sh "/proc/$(<"$state/pid")/cmdline"
}

start() { # RUN BUCKET CONFIG CKSUM KIND ARGUMENT…
  if goes_on; then
    echo "$run goes on"
    return
  fi
  if [[ ! -x "$BIN/python" ]]; then fail 2 "nothing is installed here: run setup.sh"; fi
  if [[ "$(sum "$3")" != "$4" ]]; then
    fail 2 "$3 here is not the same as yours: run setup.sh --code-only"
  fi
  if is_pod; then
    if [[ "$2" == - ]]; then fail 2 "a pod needs --bucket: its workers have no disk in common"; fi
    if [[ "$5" == study ]]; then fail 2 "a study runs on one host: give its configs to grid.sh instead"; fi
  fi
  mkdir -p "$state"
  rm -f "$state/code" "$state/pid"
  setsid nohup bash tpu_scripts/on_worker.sh job "$@" >"$state/log" 2>&1 </dev/null &
  # the job writes its number itself: until then it has other names, and for a moment none
  while [[ ! -s "$state/pid" ]] && kill -0 $! 2>/dev/null; do sleep 0.1; done
}

pull() { # BUCKET: the run folder becomes the copy there, if there is one
  local found
  if found="$(gcloud storage ls "$1/$run/**" 2>&1)"; then
    mkdir -p "$run"
    gcloud storage rsync "$1/$run" "$run" --recursive --delete-unmatched-destination-objects
  elif [[ "$found" != *"matched no objects"* ]]; then
    fail 1 "${found##*$'\n'}"
  elif [[ -d "$run/checkpoints" ]] && is_pod; then
    fail 2 "$run has checkpoints here and no copy in $1: copy it there first, other workers do not have them"
  fi
  touch "$state/pulled"
}

snapshot() { # $state/copy: the run folder at a moment; files that grow are copied, the others never change
  local grows
  rm -rf "$state/copy"
  cp -al "$run" "$state/copy" || return 1 # a checkpoint may have gone meanwhile
  # after the checkpoints, so that the log is never behind them
  while IFS= read -r -d '' grows; do
    cp -p --remove-destination "$run/${grows#"$state/copy/"}" "$grows" || return 1
  done < <(find "$state/copy" -type f \( -name '*.jsonl' -o -name '*tfevents*' \) -print0)
  find "$state/copy" -depth -name '.tmp-*' -exec rm -rf {} +
}

push() { # BUCKET: whenever the VM is lost, the bucket can go on: the log first, checkpoints next, deletions last
  local tries sync=(gcloud storage rsync "$state/copy" "$1/$run" --recursive)
  for tries in 1 2 3; do
    if snapshot; then break; elif ((tries == 3)); then return 1; fi
  done
  "${sync[@]}" --exclude='(^|.*/)checkpoints/.*' && "${sync[@]}" &&
    "${sync[@]}" --delete-unmatched-destination-objects || return 1
  rm -rf "$state/copy"
}

writes() { # KIND: whether the processes here write the run. The main one may be on any worker.
  [[ "$1" == study || "$run/metrics.jsonl" -nt "$state/pulled" ]]
}

push_now_and_then() { # BUCKET KIND
  while sleep "${PUSH_SECONDS:-120}"; do
    # a failed copy is tried again; the last one counts
    if writes "$2"; then push "$1" || echo "copying $run to $1 failed; trying again" >&2; fi
  done
}

job() { # RUN BUCKET CONFIG CKSUM KIND ARGUMENT…
  local bucket="$2" kind="$5" pusher="" child code command again=1
  shift 5
  echo $$ >"$state/pid"
  trap 'echo $? >"$state/code"' EXIT
  touch "$state/pulled"
  if [[ "$bucket" != - ]]; then
    pull "$bucket"
    push_now_and_then "$bucket" "$kind" &
    pusher=$!
  fi
  if [[ "$kind" == study ]]; then
    command=("$BIN/synthlang" study)
  else
    # the same on every worker: the processes find each other. accelerate's own launcher for pods needs a
    # module that torch_xla has no more
    command=("$BIN/accelerate" launch --tpu --num_machines 1 --num_processes 1 --mixed_precision no
      --dynamo_backend no --main_training_function main tpu_scripts/launch.py)
  fi
  trap 'again=1' TERM # the processes get it too; their last checkpoint is still to be copied
  PJRT_DEVICE="${PJRT_DEVICE:-TPU}" "${command[@]}" "$@" &
  child=$!
  while [[ -n "$again" ]]; do # once, even if the child has ended already, and again when TERM cut it short
    again="" code=0
    wait "$child" || code=$?
  done
  if [[ -n "$pusher" ]]; then
    kill "$pusher" 2>/dev/null || true
    wait "$pusher" || true
    if writes "$kind" && [[ -d "$run" ]] && ! push "$bucket"; then
      echo "error: $run was not copied to $bucket; start the same command again" >&2
      if ((code == 0)); then code=1; fi
    fi
  fi
  exit "$code"
}

await() {
  local code shown=0
  if [[ ! -f "$state/pid" ]]; then fail 2 "$run was not started here"; fi
  while goes_on; do
    show
    sleep "${LOOK_SECONDS:-1}"
  done
  show
  code="$(cat "$state/code" 2>/dev/null || echo 1)" # no code: the job was killed
  if ((code)); then fail "$code" "$run ended with exit code $code; its log is $PWD/$state/log"; fi
}

show() { # what the log has beyond its first $shown bytes
  local size
  size="$(stat -c %s "$state/log")"
  head -c "$size" "$state/log" | tail -c "+$((shown + 1))" # the other way, a log that grows would break the pipe
  shown="$size"
}

stop() {
  local pid second
  if ! goes_on; then
    echo "$run does not go on"
    return
  fi
  pid="$(<"$state/pid")"
  kill -TERM -- "-$pid"
  for ((second = 0; second < 300; second++)); do
    if ! goes_on; then return; fi
    sleep 1
  done
  kill -KILL -- "-$pid"
  fail 1 "$run did not end in 5 minutes and was killed; it goes on from its last checkpoint"
}

verb="${1:---help}"
shift || true
run="${1:-}"
state=".jobs/$run"
case "$verb" in
  install) install ;;
  sum) sum "$run" ;;
  start | job) "$verb" "$@" ;;
  wait) await ;;
  stop) stop ;;
  -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' tpu_scripts/on_worker.sh ;;
  *) fail 2 "unknown verb $verb; see --help" ;;
esac
