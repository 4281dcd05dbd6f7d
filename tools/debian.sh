#!/bin/sh
# Install the Debian packages that are needed and not here. `debian.sh run`: what sandboxes are made
# with, for `make run`. `debian.sh fleet`: that and Slurm with its accounting, for `make fleet`. `debian.sh test`: that, PostgreSQL 15,
# whose server the tests start themselves
# on a socket in a temporary directory, a C compiler, which builds the stand-in for NVIDIA's library,
# podman with runc, Chromium, which reads the console, a simulated BMC with ipmitool, and what a service
# of the whole machine would be made of (OpenSSH's server, Slurm with its accounting, MariaDB): those only
# in a container without systemd, which would start them for everybody; the tests start their own on the
# loopback. `debian.sh soak`: what only the long tests need beside that, QEMU and mmdebstrap, for a machine
# with systemd and control groups v2. What cannot be installed is named; the tests that need it are skipped and say so,
# and `make run` works without a sandbox.
set -eu

what=${1:-test}
wanted=""
pairs="bwrap:bubblewrap mkfs.ext4:e2fsprogs"
[ "$what" != soak ] || pairs="qemu-system-x86_64:qemu-system-x86 mmdebstrap:mmdebstrap mkfs.ext4:e2fsprogs"
slurm="slurmctld:slurmctld slurmd:slurmd sacct:slurm-client slurmdbd:slurmdbd slurmrestd:slurmrestd munged:munge mariadbd:mariadb-server"
if [ "$what" = fleet ]; then
  pairs="$pairs unshare:util-linux"
  [ -d /run/systemd/system ] || pairs="$pairs $slurm"
fi
if [ "$what" = test ]; then
  pairs="$pairs podman:podman runc:runc nft:nftables ip:iproute2 chromium:chromium"
  pairs="$pairs ssh:openssh-client unshare:util-linux"
  if [ ! -d /run/systemd/system ]; then
    pairs="$pairs sshd:openssh-server $slurm"
  fi
  pairs="$pairs ipmitool:ipmitool ipmi_sim:openipmi"
  wanted="postgresql-15"
  for server in /usr/lib/postgresql/*/bin/initdb; do
    [ -x "$server" ] && wanted=""
  done
  command -v cc >/dev/null || command -v gcc >/dev/null || wanted="$wanted gcc libc6-dev"
fi
for pair in $pairs; do
  [ -x "/usr/bin/${pair%%:*}" ] || [ -x "/usr/sbin/${pair%%:*}" ] || wanted="$wanted ${pair#*:}"
done
case $wanted in # what has no program of its own
  *slurmdbd*) wanted="$wanted slurm-wlm-mysql-plugin slurm-wlm-jwt-plugin" ;;
esac
[ -n "$wanted" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "not installed: $wanted"
  echo "  hint: sudo apt-get install --no-install-recommends $wanted"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing from Debian: $wanted ..."
export DEBIAN_FRONTEND=noninteractive
# shellcheck disable=SC2086 # one word for each package
if { apt-get update && apt-get install -y --no-install-recommends $wanted; } >"$log" 2>&1; then
  exit 0
fi
cat "$log" >&2
echo "not installed: $wanted; apt-get's words are above" >&2
# The work runs without a sandbox, and the tests skip what they cannot do; both say so.
