#!/bin/sh
# Install the Debian packages that the tests use and that are not here: PostgreSQL 15, whose server
# the tests start themselves, as an ordinary user, on a socket in a temporary directory.
# Without it the tests of that database are skipped and say so.
set -eu

for server in /usr/lib/postgresql/*/bin/initdb; do
  [ -x "$server" ] && exit 0
done

if ! command -v apt-get >/dev/null; then
  echo "PostgreSQL is not installed (no /usr/lib/postgresql/*/bin/initdb): its tests will be skipped"
  exit 0
fi
if [ "$(id -u)" != 0 ]; then
  echo "PostgreSQL is not installed: its tests will be skipped"
  echo "  hint: sudo apt-get install --no-install-recommends postgresql-15"
  exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "installing the Debian package postgresql-15 ..."
export DEBIAN_FRONTEND=noninteractive
if { apt-get update && apt-get install -y --no-install-recommends postgresql-15; } >"$log" 2>&1; then
  exit 0
fi
cat "$log" >&2
echo "error[debian]: postgresql-15 could not be installed; apt-get's words are above" >&2
exit 1
