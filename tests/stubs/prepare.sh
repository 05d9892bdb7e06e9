#!/bin/sh
# Installs the type checkers of both languages into build/stubs, each at one version. A second run finds the stamp of the
# first and does nothing.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

mypy="mypy==2.4.1"
typescript="typescript@5.9.3"
require npm
require_venv
pins="$build $("$PYTHON" --version) $mypy $typescript"
exit_if_installed "$pins"

echo "tests/stubs: installing $mypy and $typescript into $build"
make_venv venv
pip_install venv "$mypy"
npm_install --ignore-scripts "$typescript"
mark_installed "$pins"
