#!/bin/sh
# Installs the library that drives Chromium and the accessibility checker into build/page, each at one version. Chromium itself is
# that of the system: CHROMIUM names another one. A second run finds the stamp of the first and does nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/page
packages="playwright-core@1.65.1 axe-core@4.14.1"
node_min=20

stop() {
    echo "tests/page: $1" >&2
    exit 1
}

command -v npm >/dev/null 2>&1 || stop "npm is missing. Install it with: apt-get install npm"
command -v "${CHROMIUM:-chromium}" >/dev/null 2>&1 || stop "Chromium is missing. Install it with: apt-get install chromium"
node_version=$(node --version)
node_major=${node_version#v}
[ "${node_major%%.*}" -ge "$node_min" ] || stop "node $node_version is too old: version $node_min or later is needed"

if [ -f "$build/stamp" ] && [ "$(cat "$build/stamp")" = "$packages" ]; then
    exit 0
fi
mkdir -p "$build"
rm -rf "$build/stamp" "$build/node_modules" "$build/package.json" "$build/package-lock.json"
echo "tests/page: installing into $build"
# Unquoted, because the shell must split the list into words.
# shellcheck disable=SC2086
npm install --prefix "$build" --no-audit --no-fund --loglevel=error $packages ||
    stop "npm install failed; its words are above. It needs a connection to a package registry"
printf '%s\n' "$packages" >"$build/stamp"
