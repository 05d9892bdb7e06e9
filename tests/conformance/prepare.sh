#!/bin/sh
# Installs the official conformance suite of MCP into build/conformance, at one version, with a Node that it runs on.
# A second run finds the stamp of the first and does nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/conformance
packages="@modelcontextprotocol/conformance@0.2.0-alpha.12"
# The Node version that the suite requires.
node_min=22

stop() {
    echo "tests/conformance: $1" >&2
    exit 1
}

command -v npm >/dev/null 2>&1 || stop "npm is missing. Install it with: apt-get install npm"
command -v python3 >/dev/null 2>&1 || stop "python3 is missing. Install it with: apt-get install python3"

node_version=$(node --version 2>/dev/null || echo v0)
node_major=${node_version#v}
node_major=${node_major%%.*}
if [ "$node_major" -lt "$node_min" ]; then
    # The npm package of this name contains the binary.
    packages="$packages
node@22"
fi

stamp="$build/stamp"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$packages" ]; then
    exit 0
fi

mkdir -p "$build"
rm -rf "$stamp" "$build/node_modules" "$build/package.json" "$build/package-lock.json"
echo "tests/conformance: installing into $build"
# Unquoted, because the shell must split the list into words.
# shellcheck disable=SC2086
npm install --prefix "$build" --no-audit --no-fund --loglevel=error $packages ||
    stop "npm install failed; its words are above. It needs a connection to a package registry"
printf '%s\n' "$packages" >"$stamp"
