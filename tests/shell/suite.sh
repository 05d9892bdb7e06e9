# shellcheck shell=sh
# What the scripts of the suites in tests/*/ have in common. A script reads it at its start, after `set -eu`:
#     . "$(dirname "$0")/../shell/suite.sh"
# It sets `here` (the folder of the suite), `root` (the repository), `build` (the folder into which the suite installs programs) and PYTHON.
# shellcheck disable=SC2034

PYTHON=${PYTHON:-python3}
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
suite=$(basename "$here")
build=$root/build/$suite

# stop MESSAGE: ends the script with an error.
stop() {
    echo "tests/$suite: $1" >&2
    exit 1
}

# require PROGRAM [PACKAGES]: stops if a program is missing. PACKAGES are those of Debian that have it.
require() {
    command -v "$1" >/dev/null 2>&1 || stop "$1 is missing. Install it with: apt-get install ${2:-$1}"
}

require_venv() {
    require "$PYTHON" "python3 python3-venv"
    "$PYTHON" -c 'import ensurepip, venv' 2>/dev/null ||
        stop "$PYTHON cannot make virtual environments. Install what it needs with: apt-get install python3-venv"
}

# Prints the major version of Node.js, or 0 if there is none.
node_major() {
    version=$(node --version 2>/dev/null || echo v0)
    version=${version#v}
    echo "${version%%.*}"
}

# Prints the pins of a suite with a virtual environment and these files of versions: pins_of FILE… A virtual environment contains its absolute
# path, so the path is one of the pins.
pins_of() {
    echo "$build" && "$PYTHON" --version && cat "$@"
}

# exit_if_installed PINS: ends the script if an earlier run has installed these versions. Otherwise removes the stamp of other versions.
exit_if_installed() {
    if [ -f "$build/stamp" ] && [ "$(cat "$build/stamp")" = "$1" ]; then
        exit 0
    fi
    rm -f "$build/stamp"
    mkdir -p "$build"
}

# mark_installed PINS: writes the stamp that exit_if_installed finds.
mark_installed() {
    printf '%s\n' "$1" >"$build/stamp"
}

registry_failed() {
    stop "$1 failed; its output is above. It needs a connection to a package registry"
}

# npm_install OPTION_OR_PACKAGE…: installs packages into build/SUITE/node_modules, in place of those that are there.
npm_install() {
    rm -rf "$build/node_modules" "$build/package.json" "$build/package-lock.json"
    npm install --prefix "$build" --no-audit --no-fund --loglevel=error "$@" || registry_failed "npm install"
}

# make_venv NAME: makes the empty virtual environment build/SUITE/NAME.
make_venv() {
    rm -rf "${build:?}/$1"
    "$PYTHON" -m venv "$build/$1"
}

# pip_install NAME OPTION_OR_PACKAGE…: installs packages into the virtual environment build/SUITE/NAME.
pip_install() {
    environment=$1
    shift
    "$build/$environment/bin/python" -m pip install --quiet --disable-pip-version-check "$@" || registry_failed "pip install"
}

# prepare_node_program PACKAGE@VERSION: installs a program from npm that needs Node.js 22, and Node.js if that of this machine is older.
prepare_node_program() {
    require npm
    require python3
    packages=$1
    # The npm package of this name contains the binary.
    [ "$(node_major)" -ge 22 ] || packages="$packages
node@22"
    exit_if_installed "$packages"
    echo "tests/$suite: installing into $build"
    # Unquoted, because the shell must split the list into words.
    # shellcheck disable=SC2086
    npm_install $packages
    mark_installed "$packages"
}

# Stops if prepare.sh of the suite has not run.
require_installed() {
    [ -f "$build/stamp" ] || stop "nothing is installed yet; run tests/$suite/prepare.sh"
}

# require_lockhouse PROFILE: exports LOCKHOUSE, by default the program in target/PROFILE. Stops if it is not built.
require_lockhouse() {
    export LOCKHOUSE="${LOCKHOUSE:-$root/target/$1/lockhouse}"
    command="make build"
    [ "$1" = release ] || command="cargo build --workspace"
    [ -x "$LOCKHOUSE" ] || stop "there is no $LOCKHOUSE; run $command"
}
