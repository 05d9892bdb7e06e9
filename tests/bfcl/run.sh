#!/bin/sh
# Runs the multi-turn tasks of the Berkeley Function Calling Leaderboard, all of them or with --subset some ten; see run.py.
# LOCKHOUSE names another binary than target/debug/lockhouse.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lockhouse=${LOCKHOUSE:-$root/target/debug/lockhouse}

if [ ! -f "$root/build/bfcl/stamp" ]; then
    echo "tests/bfcl: nothing is installed yet; run tests/bfcl/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$lockhouse" ]; then
    echo "tests/bfcl: there is no $lockhouse; run cargo build --workspace" >&2
    exit 1
fi
exec "$root/build/bfcl/venv/bin/python" -B "$here/run.py" "$lockhouse" "$@"
