#!/usr/bin/env bash
# A Slurm of one node on this machine, without systemd: controller, node, accounting in a MariaDB of its own.
#
#   cluster.sh install   Debian's packages (the only command that changes the system)
#   cluster.sh start     write the files, start what is not running, wait until the node takes jobs
#   cluster.sh stop      end what `start` started
#   cluster.sh status    one line a daemon; exit code 1 if one is down
#   cluster.sh node-kill   kill the node as a power cut does: its daemon and every job process
#   cluster.sh node-start  start the node again
#
# Everything lies in SLURM_HOME (default /var/tmp/synthlang-slurm), its own keys, sockets and ports included, so that
# another Slurm or MariaDB of the machine stays untouched. Programs that use it need SLURM_CONF=$SLURM_HOME/slurm.conf.
# SLURM_CPUS (default 2) is how many CPUs the node offers.
set -euo pipefail

HERE=$(cd "$(dirname "$0")" && pwd)
SLURM_HOME=${SLURM_HOME:-/var/tmp/synthlang-slurm}
SLURM_CPUS=${SLURM_CPUS:-2}
HOST=$(hostname -s)
DATABASE_PORT=26816
export SLURM_CONF="$SLURM_HOME/slurm.conf"
PACKAGES=(slurmctld slurmd slurm-client slurmdbd mariadb-server munge)
DAEMONS=(munged mariadbd slurmdbd slurmctld slurmd)

fail() {
    printf 'error: %s\n' "$*" >&2
    exit 1
}

need_root() {
    [ "$(id -u)" -eq 0 ] || fail "Slurm's daemons start as root; run this as root"
}

need_programs() {
    local name
    for name in "${DAEMONS[@]}" sbatch sacctmgr; do
        command -v "$name" >/dev/null || fail "$name is missing; run first: $0 install"
    done
}

pid_of() { # DAEMON → its process id if it runs and is ours
    local file="$SLURM_HOME/run/$1.pid" pid
    [ -s "$file" ] || return 1
    pid=$(cat "$file" 2>/dev/null) || return 1
    # one that nobody reaps (containers have no init) keeps its name when it is dead
    grep -Eq "^[0-9]+ \($1\) [^ZX]" "/proc/$pid/stat" 2>/dev/null || return 1
    echo "$pid"
}

is_down() {
    ! pid_of "$1"
}

until_true() { # SECONDS WHAT COMMAND… → waits for the command to succeed
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@" >/dev/null 2>&1; do
        [ "$SECONDS" -lt "$end" ] || fail "$what did not happen; see $SLURM_HOME/log"
        sleep 0.2
    done
}

install() {
    need_root
    command -v apt-get >/dev/null || fail "apt-get is missing: this installs Debian's packages only"
    if [ ! -e /usr/sbin/policy-rc.d ]; then # no package may start its daemon
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod +x /usr/sbin/policy-rc.d
        trap 'rm -f /usr/sbin/policy-rc.d' EXIT
    fi
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${PACKAGES[@]}"
}

fill() { # TEMPLATE TARGET MODE
    sed -e "s|@HOME@|$SLURM_HOME|g" -e "s|@HOST@|$HOST|g" -e "s|@CPUS@|$SLURM_CPUS|g" \
        -e "s|@PORT@|$DATABASE_PORT|g" -e "s|@PASSWORD@|$(cat "$SLURM_HOME/password")|g" \
        -e "s|@MEMORY@|$(awk '/MemTotal/ {print int($2 / 1024)}' /proc/meminfo)|g" "$HERE/$1" >"$SLURM_HOME/$1.new"
    chmod "$3" "$SLURM_HOME/$1.new"
    mv "$SLURM_HOME/$1.new" "$SLURM_HOME/$2"
}

write_files() {
    mkdir -p "$SLURM_HOME"/{run,log,state,spool,munge,database}
    chmod 755 "$SLURM_HOME"
    chown munge: "$SLURM_HOME/munge"
    chmod 755 "$SLURM_HOME/munge"
    chown mysql: "$SLURM_HOME/database"
    chmod 1777 "$SLURM_HOME/run" "$SLURM_HOME/log"
    if [ ! -s "$SLURM_HOME/munge/key" ]; then
        head -c 128 /dev/urandom >"$SLURM_HOME/munge/key"
        chown munge: "$SLURM_HOME/munge/key"
        chmod 400 "$SLURM_HOME/munge/key"
    fi
    if [ ! -s "$SLURM_HOME/password" ]; then
        (umask 077 && head -c 18 /dev/urandom | base64 | tr -d '+/=' >"$SLURM_HOME/password")
    fi
    touch "$SLURM_HOME"/run/card{0,1}
    fill slurm.conf slurm.conf 644
    fill slurmdbd.conf slurmdbd.conf 600
    fill cgroup.conf cgroup.conf 644
    fill gres.conf gres.conf 644
}

start_munged() {
    runuser -u munge -- munged --socket="$SLURM_HOME/munge/socket" --key-file="$SLURM_HOME/munge/key" \
        --pid-file="$SLURM_HOME/munge/munged.pid" --log-file="$SLURM_HOME/munge/log" --seed-file="$SLURM_HOME/munge/seed"
    cp "$SLURM_HOME/munge/munged.pid" "$SLURM_HOME/run/munged.pid"
    until_true 10 munged munge --socket="$SLURM_HOME/munge/socket" --no-input
}

start_mariadbd() {
    local flags=(--no-defaults --user=mysql --datadir="$SLURM_HOME/database" --socket="$SLURM_HOME/run/database.socket"
        --port="$DATABASE_PORT" --bind-address=127.0.0.1 --pid-file="$SLURM_HOME/run/mariadbd.pid"
        --innodb-buffer-pool-size=128M --innodb-log-file-size=64M --innodb-lock-wait-timeout=900)
    local client=(mariadb --no-defaults --socket="$SLURM_HOME/run/database.socket" --user=root)
    if [ ! -d "$SLURM_HOME/database/mysql" ]; then
        mariadb-install-db --no-defaults --user=mysql --datadir="$SLURM_HOME/database" --skip-test-db \
            >"$SLURM_HOME/log/install-db" 2>&1 || fail "the database was not made; see $SLURM_HOME/log/install-db"
    fi
    setsid mariadbd "${flags[@]}" >>"$SLURM_HOME/log/mariadbd" 2>&1 </dev/null &
    until_true 60 mariadbd "${client[@]}" -e 'select 1'
    "${client[@]}" <<SQL
create database if not exists slurm_accounting;
create user if not exists slurm@localhost identified by '$(cat "$SLURM_HOME/password")';
create user if not exists slurm@'127.0.0.1' identified by '$(cat "$SLURM_HOME/password")';
grant all on slurm_accounting.* to slurm@localhost;
grant all on slurm_accounting.* to slurm@'127.0.0.1';
SQL
}

start_slurmdbd() {
    slurmdbd
    until_true 60 slurmdbd sacctmgr -n list cluster
    [ -n "$(sacctmgr -n list cluster)" ] || sacctmgr -i add cluster synthlang >/dev/null
}

start_slurmctld() {
    slurmctld -f "$SLURM_CONF"
    until_true 60 slurmctld scontrol ping
}

start_slurmd() {
    slurmd -f "$SLURM_CONF"
    scontrol update "nodename=$HOST" state=resume 2>/dev/null || true # if it was set aside; else there is nothing to do
}

node_is_up() {
    sinfo -h -o %T | grep -Eq '^(idle|mixed|allocated|completing)$'
}

start() {
    need_root
    need_programs
    write_files
    local name
    for name in "${DAEMONS[@]}"; do
        pid_of "$name" >/dev/null || "start_$name"
    done
    until_true 60 "the start of the node" node_is_up
    echo "Slurm runs: export SLURM_CONF=$SLURM_CONF"
}

end_daemon() { # NAME: ask, then kill
    local pid end=$((SECONDS + 15))
    pid=$(pid_of "$1") || return 0
    kill "$pid"
    while pid_of "$1" >/dev/null; do
        [ "$SECONDS" -lt "$end" ] || kill -9 "$pid"
        sleep 0.1
    done
}

stop() {
    need_root
    if pid_of slurmctld >/dev/null; then
        scancel --full --signal=KILL --user=root 2>/dev/null || true
        scancel --user=root 2>/dev/null || true
    fi
    local i
    for ((i = ${#DAEMONS[@]} - 1; i >= 0; i--)); do
        end_daemon "${DAEMONS[i]}"
    done
    kill_steps
}

status() {
    local name pid down=0
    for name in "${DAEMONS[@]}"; do
        if pid=$(pid_of "$name"); then
            echo "$name runs ($pid)"
        else
            echo "$name is down"
            down=1
        fi
    done
    return "$down"
}

kill_steps() { # every slurmstepd of this node, and what runs below it
    local pid
    for pid in $(ps -eo pid=,args= | awk '$2 ~ /^slurmstepd/ {print $1}'); do
        grep -qz "^SLURM_CONF=$SLURM_CONF$" "/proc/$pid/environ" 2>/dev/null || continue
        kill_tree "$pid"
    done
}

kill_tree() {
    local child children
    children=$(ps -o pid= --ppid "$1" || true)
    kill -9 "$1" 2>/dev/null || true
    for child in $children; do
        kill_tree "$child"
    done
}

node_kill() {
    need_root
    local pid
    if pid=$(pid_of slurmd); then
        kill -9 "$pid"
        until_true 10 "the end of slurmd" is_down slurmd
    fi
    kill_steps
}

node_start() {
    need_root
    pid_of slurmd >/dev/null || start_slurmd
    until_true 60 "the start of the node" node_is_up
}

case ${1:-} in
install | start | stop | status) "$1" ;;
node-kill) node_kill ;;
node-start) node_start ;;
*) fail "usage: $0 install|start|stop|status|node-kill|node-start" ;;
esac
