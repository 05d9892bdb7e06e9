#!/bin/sh
# Installs the task environments and FastMCP into build/eval: some 150 MB, a minute. A second run finds the stamp of the first
# and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_venv
pins=$(pins_of "$here/environments.txt" "$here/requirements.txt")
exit_if_installed "$pins"

echo "tests/eval: installing agentdojo, bfcl-eval and fastmcp into $build"
make_venv venv
pip_install venv --no-deps --require-hashes -r "$here/environments.txt"
pip_install venv --no-deps -r "$here/requirements.txt"
mark_installed "$pins"
