#!/bin/sh
# Measures Lockhouse and its peers interleaved: run.sh [OPTION…]. LOCKHOUSE names the program; its default is the release build.
# Writes build/peers/results.json and build/peers/chart.svg. --help lists the options.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_lockhouse release
"$here/prepare.sh"
exec "$PYTHON" -B "$here/bench_peers.py" "$LOCKHOUSE" --json "$build/results.json" --svg "$build/chart.svg" "$@"
