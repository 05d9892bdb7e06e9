#!/bin/sh
# Installs eight AI clients from npm and the SDK clients from npm and PyPI into build/clients, each at one version: some 1.5 GB, two
# minutes. A second run finds the stamp of the first and does nothing.
set -eu

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/clients

stop() {
    echo "tests/clients: $1" >&2
    exit 1
}

command -v npm >/dev/null 2>&1 || stop "npm is missing. Install it with: apt-get install npm"
command -v "$PYTHON" >/dev/null 2>&1 || stop "$PYTHON is missing. Install it with: apt-get install python3 python3-venv"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"

# A virtual environment contains its absolute path, so the path is part of the stamp.
pins=$(echo "$build" && "$PYTHON" --version && cat "$here/npm/package.json" "$here/sdks/package.json" && cksum <"$here/npm/package-lock.json" &&
    cat "$here"/sdks/*.txt)
if [ -f "$build/stamp" ] && [ "$(cat "$build/stamp")" = "$pins" ]; then
    exit 0
fi

rm -rf "$build"
mkdir -p "$build/sdks"
echo "tests/clients: installing AI clients and SDK clients into $build"
cp "$here/npm/package.json" "$here/npm/package-lock.json" "$build/"
# Newer versions of npm run the install scripts of the packages that package.json permits, older ones all of them.
# `npm ci` refuses a lock file in which packages for other platforms are incomplete; `npm install` keeps to its versions as well.
(cd "$build" && npm install --no-audit --no-fund --loglevel=error) || stop "npm failed; its words are above. It needs a connection to a package registry"
(cd "$build" && PATH="$build/node_modules/.bin:$PATH" npm rebuild --loglevel=error node opencode-ai @anthropic-ai/claude-code cline) ||
    stop "an install script failed; its words are above"
cp "$here/sdks/package.json" "$build/sdks/"
(cd "$build/sdks" && npm install --no-audit --no-fund --loglevel=error) || stop "npm failed; its words are above"
for requirements in "$here"/sdks/*.txt; do
    venv="$build/venv-$(basename "$requirements" .txt)"
    "$PYTHON" -m venv "$venv"
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check -r "$requirements" || stop "pip failed; its words are above"
done
printf '%s\n' "$pins" >"$build/stamp"
