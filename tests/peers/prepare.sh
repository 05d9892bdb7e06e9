#!/bin/sh
# Installs the peers of the benchmark, each at one version: FastMCP and Monty as tests/eval/prepare.sh installs them, and Deno from
# npm into build/peers. A peer that cannot be installed is named in the table, and does not stop the others.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
build=$root/build/peers

mkdir -p "$build"
"$root/tests/eval/prepare.sh" >&2 || echo "tests/peers: FastMCP and Monty could not be installed" >&2
if [ ! -x "$build/node_modules/.bin/deno" ]; then
    command -v npm >/dev/null 2>&1 || { echo "tests/peers: npm is missing, so there is no Deno" >&2; exit 0; }
    echo "tests/peers: installing deno into $build" >&2
    (cd "$build" && npm install --no-audit --no-fund --no-save --loglevel=error deno@2.9.6 >&2) ||
        echo "tests/peers: Deno could not be installed" >&2
fi
