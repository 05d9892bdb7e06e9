#!/bin/sh
# Measures Lockhouse and its peers interleaved: run.sh [OPTION…]. LOCKHOUSE names the program; its default is the release build.
# Writes build/peers/results.json and build/peers/chart.svg. --help lists the options.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
LOCKHOUSE=${LOCKHOUSE:-$root/target/release/lockhouse}

[ -x "$LOCKHOUSE" ] || { echo "tests/peers: $LOCKHOUSE is missing: run make build" >&2; exit 1; }
"$here/prepare.sh"
exec "${PYTHON:-python3}" -B "$here/bench_peers.py" "$LOCKHOUSE" --json "$root/build/peers/results.json" --svg "$root/build/peers/chart.svg" "$@"
