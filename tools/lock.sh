#!/bin/sh
# Pin every set in requirements/ to the newest versions that fit, with the hashes of all the files
# that the index offers for them. No address of an index is written. dev.txt follows run.txt.
# Uses uv: from the path, or the version pinned in requirements/lock.txt, installed into .tools/.
set -eu
cd "$(dirname "$0")/../requirements"

uv=$(command -v uv || true)
if [ -z "$uv" ]; then
  tools=../.tools/lock
  [ -x "$tools/bin/uv" ] || {
    "${PYTHON:-python3}" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --require-hashes -r lock.txt
  }
  uv=$tools/bin/uv
fi

for set in run dev lock; do
  echo "pinning requirements/$set.txt"
  "$uv" pip compile "$set.in" --output-file "$set.txt" --upgrade --quiet --no-config \
    --universal --fork-strategy fewest --python-version 3.11 \
    --generate-hashes --no-emit-index-url --no-emit-find-links --no-header
done
