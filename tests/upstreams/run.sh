#!/bin/sh
# Runs every case of tests/upstreams. LOCKHOUSE names another binary than target/debug/lockhouse; arguments narrow the
# cases, such as: run.sh files typescript
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
python="$root/build/upstreams/venv/bin/python"
lockhouse=${LOCKHOUSE:-$root/target/debug/lockhouse}

if [ ! -f "$root/build/upstreams/stamp" ]; then
    echo "tests/upstreams: nothing is installed yet; run tests/upstreams/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$lockhouse" ]; then
    echo "tests/upstreams: there is no $lockhouse; run cargo build --workspace" >&2
    exit 1
fi
exec "$python" -B "$here/check.py" "$lockhouse" "$@"
