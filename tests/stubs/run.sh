#!/bin/sh
# Type checks the output of `lockhouse stubs`: for the catalogues below LOCKHOUSE_CATALOGUES, or for the servers that
# tests/upstreams/prepare.sh --subset installs, and always for hostile.json. LOCKHOUSE names another binary than
# target/debug/lockhouse.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
lockhouse=${LOCKHOUSE:-$root/target/debug/lockhouse}

if [ ! -f "$root/build/stubs/stamp" ]; then
    echo "tests/stubs: nothing is installed yet; run tests/stubs/prepare.sh" >&2
    exit 1
fi
if [ ! -x "$lockhouse" ]; then
    echo "tests/stubs: there is no $lockhouse; run cargo build --workspace" >&2
    exit 1
fi
exec "$root/build/stubs/venv/bin/python" -B "$here/check.py" "$lockhouse" "$root/build"
