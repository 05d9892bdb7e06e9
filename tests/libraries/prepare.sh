#!/bin/sh
# Installs Python libraries for tests into build/libraries. Without an argument: those whose values docs/values.md describes, some 150 MB.
# With the argument `packages`: those of docs/python-packages.md, some 1.2 GB, into build/libraries/packages. Once each. The
# versions are those that the interpreter can have: what the documents say is to hold for any of them.
set -eu

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$here/../.." && pwd)/build/libraries
requirements=$here/requirements.txt
case "${1:-}" in
    packages) build=$build/packages requirements=$here/requirements-packages.txt ;;
    "") ;;
    *) echo "usage: prepare.sh [packages]" >&2; exit 2 ;;
esac

stop() {
    echo "tests/libraries: $1" >&2
    exit 1
}

command -v "$PYTHON" >/dev/null 2>&1 || stop "$PYTHON is missing. Install it with: apt-get install python3 python3-venv"
"$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
    stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"

# A virtual environment contains its absolute path, so the path is part of the stamp.
wanted=$(echo "$build" && "$PYTHON" --version && cat "$requirements")
if [ -f "$build/stamp" ] && [ "$(cat "$build/stamp")" = "$wanted" ]; then
    exit 0
fi

rm -rf "$build/venv" "$build/stamp"
mkdir -p "$build"
echo "tests/libraries: installing into $build"
"$PYTHON" -m venv "$build/venv"
"$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: -r "$requirements" ||
    stop "pip install failed; its words are above. It needs a connection to a package registry"
printf '%s\n' "$wanted" >"$build/stamp"
