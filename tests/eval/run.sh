#!/bin/sh
# Runs the naive programs through Lockhouse and FastMCP's CodeMode, all of them or with --subset twelve tasks; see run.py.
# LOCKHOUSE names another binary than target/release/lockhouse.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse release
# The suites put participants into sets, whose order must be the same in the servers and in the expected states.
export PYTHONHASHSEED=0
exec "$build/venv/bin/python" -B "$here/run.py" "$LOCKHOUSE" "$@"
