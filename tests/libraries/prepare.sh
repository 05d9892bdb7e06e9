#!/bin/sh
# Installs Python libraries for tests into build/libraries. Without an argument: those whose values docs/values.md describes, some 150 MB.
# With the argument `packages`: those of docs/python-packages.md, some 1.2 GB, into build/libraries/packages. Once each. The
# versions are those that the interpreter can have: what the documents say is to hold for any of them.
set -eu
. "$(dirname "$0")/../shell/suite.sh"

requirements=$here/requirements.txt
case "${1:-}" in
    packages) build=$build/packages requirements=$here/requirements-packages.txt ;;
    "") ;;
    *) echo "usage: prepare.sh [packages]" >&2; exit 2 ;;
esac
require_venv
pins=$(pins_of "$requirements")
exit_if_installed "$pins"

echo "tests/libraries: installing into $build"
make_venv venv
pip_install venv --only-binary :all: -r "$requirements"
mark_installed "$pins"
