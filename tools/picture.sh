#!/bin/sh
# Take the picture in the README from a page that `make run` wrote: out/report.html by default.
# Needs Chromium (the Debian package); it is started without a network and with an empty profile.
set -eu
cd "$(dirname "$0")/.."
page=${1:-out/report.html}
picture=docs/images/report.png
[ -f "$page" ] || { echo "error[picture]: $page is not there; make run writes it" >&2; exit 2; }

profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
mkdir -p docs/images
chromium --headless --no-sandbox --disable-gpu --disable-quic --no-first-run \
  --disable-background-networking --disable-component-update --disable-sync \
  --user-data-dir="$profile" --hide-scrollbars --window-size=960,915 \
  --screenshot="$picture" "file://$(realpath "$page")" >/dev/null 2>&1
echo "$picture"
