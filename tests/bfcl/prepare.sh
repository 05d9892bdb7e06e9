#!/bin/sh
# Installs the Berkeley Function Calling Leaderboard into build/bfcl: some 12 MB, a few seconds. A second run finds the stamp
# of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_venv
pins=$(pins_of "$here/requirements.txt")
exit_if_installed "$pins"

echo "tests/bfcl: installing bfcl-eval into $build"
make_venv venv
pip_install venv --no-deps --require-hashes -r "$here/requirements.txt"
mark_installed "$pins"
