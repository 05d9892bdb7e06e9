#!/bin/sh
# Type checks the output of `lockhouse stubs`: for the catalogues below LOCKHOUSE_CATALOGUES, or for the servers that
# tests/upstreams/prepare.sh --subset installs, and always for hostile.json. LOCKHOUSE names another binary than
# target/debug/lockhouse.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_installed
require_lockhouse debug
exec "$build/venv/bin/python" -B "$here/check.py" "$LOCKHOUSE" "$root/build"
