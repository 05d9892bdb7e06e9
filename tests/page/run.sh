#!/bin/sh
# Drives the page of target/debug/lockhouse with Chromium, and prints one row for each thing that it verifies.
#   run.sh                     everything
#   run.sh actions payloads    these parts: actions, keyboard, views, payloads, attacks, rest
# LOCKHOUSE names another binary, CHROMIUM another browser. PICTURES=docs/pictures writes the pictures of docs/page.md.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
export LOCKHOUSE="${LOCKHOUSE:-$root/target/debug/lockhouse}"

if [ ! -f "$root/build/page/stamp" ]; then
    echo "tests/page: nothing is installed yet; run tests/page/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$LOCKHOUSE" ]; then
    echo "tests/page: there is no $LOCKHOUSE; run cargo build --workspace" >&2
    exit 1
fi
exec node "$here/main.mjs" "$@"
