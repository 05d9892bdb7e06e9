#!/bin/sh
# Installs the type checkers of both languages into build/stubs, each at one version. A second run finds the stamp of the
# first and does nothing.
set -eu

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/stubs
mypy="mypy==2.4.1"
typescript="typescript@5.9.3"

stop() {
    echo "tests/stubs: $1" >&2
    exit 1
}

command -v npm >/dev/null 2>&1 || stop "npm is missing. Install it with: apt-get install npm"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"

stamp="$build/stamp"
pins="$build $("$PYTHON" --version) $mypy $typescript"
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$pins" ]; then
    exit 0
fi

mkdir -p "$build"
rm -rf "$stamp" "$build/venv" "$build/node_modules"
echo "tests/stubs: installing $mypy and $typescript into $build"
"$PYTHON" -m venv "$build/venv"
"$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check "$mypy" ||
    stop "pip install failed; its words are above. It needs a connection to a package registry"
npm install --prefix "$build" --ignore-scripts --no-audit --no-fund --loglevel=error "$typescript" ||
    stop "npm install failed; its words are above. It needs a connection to a package registry"
printf '%s\n' "$pins" >"$stamp"
