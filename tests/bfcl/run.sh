#!/bin/sh
# Runs the multi-turn tasks of the Berkeley Function Calling Leaderboard, all of them or with --subset some ten; see run.py.
# LOCKHOUSE names another binary than target/debug/lockhouse.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
exec "$build/venv/bin/python" -B "$here/run.py" "$LOCKHOUSE" "$@"
