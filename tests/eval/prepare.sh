#!/bin/sh
# Installs the task environments and FastMCP into build/eval: some 150 MB, a minute. A second run finds the stamp of the first
# and does nothing.
set -eu

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/eval

stop() {
    echo "tests/eval: $1" >&2
    exit 1
}

command -v "$PYTHON" >/dev/null 2>&1 || stop "$PYTHON is missing. Install it with: apt-get install python3 python3-venv"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"

# A virtual environment contains its absolute path, so the path is part of the stamp.
pins=$(echo "$build" && "$PYTHON" --version && cat "$here/environments.txt" "$here/requirements.txt")
if [ -f "$build/stamp" ] && [ "$(cat "$build/stamp")" = "$pins" ]; then
    exit 0
fi

rm -rf "$build"
mkdir -p "$build"
echo "tests/eval: installing agentdojo, bfcl-eval and fastmcp into $build"
"$PYTHON" -m venv "$build/venv"
install() {
    "$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps "$@" ||
        stop "pip install failed; its words are above. It needs a connection to a package registry"
}
install --require-hashes -r "$here/environments.txt"
install -r "$here/requirements.txt"
printf '%s\n' "$pins" >"$build/stamp"
