#!/bin/sh
# Install the Debian packages that the tests use and that are not here: PostgreSQL 15, whose server
# the tests start themselves, as an ordinary user, on a socket in a temporary directory, a C
# compiler, which builds the stand-in for NVIDIA's library, and what sandboxes are made with:
# bubblewrap, podman with runc, and ip, nft and mkfs.ext4 beside them. Without them the tests that
# need them are skipped and say so.
set -eu

wanted="postgresql-15"
for server in /usr/lib/postgresql/*/bin/initdb; do
  [ -x "$server" ] && wanted=""
done
command -v cc >/dev/null || command -v gcc >/dev/null || wanted="$wanted gcc libc6-dev"
for pair in bwrap:bubblewrap podman:podman runc:runc nft:nftables ip:iproute2 mkfs.ext4:e2fsprogs; do
  [ -x "/usr/bin/${pair%%:*}" ] || [ -x "/usr/sbin/${pair%%:*}" ] || wanted="$wanted ${pair#*:}"
done
[ -n "$wanted" ] || exit 0

if ! command -v apt-get >/dev/null || [ "$(id -u)" != 0 ]; then
  echo "not installed: $wanted; the tests that need them will be skipped"
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
echo "error[debian]: $wanted could not be installed; apt-get's words are above" >&2
exit 1
