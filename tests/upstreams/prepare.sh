#!/bin/sh
# Installs real upstream servers and the official Python client of MCP into build/upstreams, each at one version.
# A second run finds the stamp of the first and does nothing.
set -eu

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/upstreams
packages="@modelcontextprotocol/server-filesystem@2026.8.31
@modelcontextprotocol/server-memory@2026.8.31
@modelcontextprotocol/server-everything@2026.8.31"
# What the packages under them ask for.
node_min=20

stop() {
    echo "tests/upstreams: $1" >&2
    exit 1
}

command -v git >/dev/null 2>&1 || stop "git is missing. Install it with: apt-get install git"
command -v npm >/dev/null 2>&1 || stop "npm is missing. Install it with: apt-get install npm"
command -v "$PYTHON" >/dev/null 2>&1 || stop "$PYTHON is missing. Install it with: apt-get install python3 python3-venv"

node_version=$(node --version 2>/dev/null || echo v0)
node_major=${node_version#v}
node_major=${node_major%%.*}
if [ "$node_major" -lt "$node_min" ]; then
    # npm's own package of this name brings the binary.
    packages="$packages
node@22"
fi

stamp="$build/stamp"
# A virtual environment knows the place it was made in, so the place is part of it.
pins="$build
$("$PYTHON" --version)
$packages
$(cat "$here/requirements.txt")"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$pins" ]; then
    exit 0
fi

"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"

mkdir -p "$build"
rm -rf "$stamp" "$build/venv" "$build/node_modules" "$build/package.json" "$build/package-lock.json"
echo "tests/upstreams: installing into $build"
# The list is meant to be split into words.
# shellcheck disable=SC2086
npm install --prefix "$build" --no-audit --no-fund --loglevel=error $packages ||
    stop "npm install failed; its words are above. It needs a connection to a package registry"
"$PYTHON" -m venv "$build/venv"
"$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$here/requirements.txt" ||
    stop "pip install failed; its words are above. It needs a connection to a package registry"
"$build/venv/bin/python" -m pip check >/dev/null || stop "requirements.txt does not fit together"
printf '%s\n' "$pins" >"$stamp"
