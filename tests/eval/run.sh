#!/bin/sh
# Runs the naive programs through Lockhouse and FastMCP's CodeMode, all of them or with --subset twelve tasks; see run.py.
# LOCKHOUSE names another binary than target/release/lockhouse.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lockhouse=${LOCKHOUSE:-$root/target/release/lockhouse}

if [ ! -f "$root/build/eval/stamp" ]; then
    echo "tests/eval: nothing is installed yet; run tests/eval/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$lockhouse" ]; then
    echo "tests/eval: there is no $lockhouse; run make build" >&2
    exit 1
fi
# The suites put participants into sets, whose order must be the same in the servers and in the expected states.
export PYTHONHASHSEED=0
exec "$root/build/eval/venv/bin/python" -B "$here/run.py" "$lockhouse" "$@"
